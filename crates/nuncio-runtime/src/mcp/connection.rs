//! One connection to an MCP server.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, JsonObject, RequestId, ServerResult, Tool,
};
use rmcp::service::{PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{Peer, RoleClient};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStderr, Command};

use super::elicitation::{Desk, Handler};
use super::settings::{McpSettings, McpTransport};
use crate::tool::{ReadyTool, ToolError};

/// A connection that has been greeted.
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    /// The tools as they were listed last.
    pub(super) tools: Mutex<Option<Vec<ReadyTool>>>,
    /// Whether the server has said that they are others now.
    changed: Arc<AtomicBool>,
    /// Where what the server asks comes in.
    pub(super) desk: Arc<Desk>,
}

/// Why a call gave nothing.
pub(super) enum CallError {
    /// The server has gone; whether the call has happened is not known.
    Lost,
    /// The server says so.
    Told(String),
}

impl Connection {
    /// Connects to a server and greets it.
    pub(super) async fn open(settings: &McpSettings) -> Result<Self, ToolError> {
        let changed = Arc::new(AtomicBool::new(false));
        let desk = Arc::new(Desk::default());
        let handler = Handler::new(Arc::clone(&changed), Arc::clone(&desk));
        let name = &settings.name;
        let cannot = |error: &dyn std::error::Error| {
            tracing::warn!(server = %name, %error, "an MCP server cannot be reached");
            ToolError::new(format!("the MCP server {name} cannot be reached"))
        };
        let greeting = async {
            match &settings.transport {
                McpTransport::Stdio {
                    command,
                    env,
                    folder,
                } => {
                    let mut program = Command::new(command.first().map_or("", String::as_str));
                    program.args(command.iter().skip(1)).env_clear().envs(env);
                    if let Some(folder) = folder {
                        program.current_dir(folder);
                    }
                    let started = TokioChildProcess::builder(program)
                        .stderr(Stdio::piped())
                        .spawn();
                    let (process, stderr) = started.map_err(|error| cannot(&error))?;
                    tokio::spawn(log(name.clone(), stderr));
                    let greeted = rmcp::serve_client(handler, process).await;
                    greeted.map_err(|error| cannot(&error))
                }
                McpTransport::Http {
                    url,
                    headers,
                    egress,
                } => {
                    let client = egress.client_for(url).map_err(|error| cannot(&error))?;
                    let headers = headers
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone()));
                    let headers: HashMap<_, _> = headers.collect();
                    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                        .custom_headers(headers);
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    let greeted = rmcp::serve_client(handler, transport).await;
                    greeted.map_err(|error| cannot(&error))
                }
            }
        };
        let greeted = tokio::time::timeout(settings.connect_timeout, greeting).await;
        let service = greeted.map_err(|_| {
            ToolError::new(format!("the MCP server {name} did not answer in time"))
        })??;
        Ok(Self {
            service,
            tools: Mutex::default(),
            changed,
            desk,
        })
    }

    /// Whether the server has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// The tools listed before, if they are the same still.
    pub(super) fn known(&self) -> Option<Vec<ReadyTool>> {
        if self.changed.swap(false, Ordering::AcqRel) {
            *self.tools.lock() = None;
        }
        self.tools.lock().clone()
    }

    /// Asks for the tools.
    pub(super) async fn list(&self) -> Result<Vec<Tool>, ServiceError> {
        self.service.list_all_tools().await
    }

    /// Calls a tool; the server is told if the call is given up.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let sent = self
            .service
            .send_cancellable_request(request, options)
            .await;
        let mut handle = sent.map_err(lost_or_told)?;
        let mut abandoned = Abandoned {
            peer: handle.peer.clone(),
            id: Some(handle.id.clone()),
        };
        let answer = (&mut handle.rx).await;
        abandoned.id = None;
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
            Ok(Ok(_)) => Err(CallError::Told(
                "the server gave no result of a tool".to_owned(),
            )),
            Ok(Err(error)) => Err(lost_or_told(error)),
            Err(_) => Err(CallError::Lost),
        }
    }
}

fn lost_or_told(error: ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) => CallError::Told(error.message.into_owned()),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) => CallError::Lost,
        other => CallError::Told(other.to_string()),
    }
}

/// Tells the server that nobody waits for a call any more, unless it is over.
struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("given up".to_owned()));
            let cancelled = CancelledNotification::new(params);
            // A server that has gone needs not be told.
            let _ = peer.send_notification(cancelled.into()).await;
        });
    }
}

/// Puts what a program says on its error output into the log.
async fn log(server: String, stderr: Option<ChildStderr>) {
    let Some(stderr) = stderr else { return };
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::debug!(%server, line, "an MCP server says");
    }
}
