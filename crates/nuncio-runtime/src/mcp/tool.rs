//! One tool of an MCP server.

use std::sync::Arc;

use nuncio_engine::Pause;
use nuncio_protocol::Message;
use rmcp::model::{
    CallToolResult, ElicitResult, ElicitationAction, JsonObject, Tool as RemoteTool,
};
use serde_json::Value;

use super::connection::{CallError, Connection};
use super::server::Shared;
use super::{content, elicitation};
use crate::tool::{Tool, ToolCx, ToolError, ToolFuture, ToolOutput, ToolSpec};

/// A tool that a server has listed.
pub(super) struct McpTool {
    server: Arc<Shared>,
    spec: ToolSpec,
    /// Its name there.
    name: String,
}

/// How one try of a call ended.
enum Try {
    Done(CallToolResult),
    Asked(Box<Pause>),
    Lost,
    Failed(String),
}

impl McpTool {
    pub(super) fn new(server: Arc<Shared>, tool: RemoteTool) -> Self {
        let settings = &server.settings;
        let fits = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c,
            _ => '_',
        };
        let prefix = settings.prefix.as_deref().unwrap_or_default();
        let name: String = format!("{prefix}{}", tool.name).chars().map(fits).collect();
        let description = tool.description.as_deref().unwrap_or_default();
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        let mut spec = ToolSpec::new(name, description, schema);
        let hint = tool
            .annotations
            .as_ref()
            .and_then(|hints| hints.read_only_hint);
        spec.read_only = settings.trust_hints && hint == Some(true);
        spec.parallel = spec.read_only;
        spec.needs_approval = settings.approve.iter().any(|name| *name == tool.name);
        spec.timeout = settings.call_timeout;
        Self {
            name: tool.name.into_owned(),
            spec,
            server,
        }
    }

    async fn attempt(&self, connection: &Connection, cx: &ToolCx, args: JsonObject) -> Try {
        let mut seat = connection.desk.sit();
        let call = connection.call(&self.name, args);
        tokio::pin!(call);
        let mut answer: Option<&Message> = cx.answer();
        loop {
            tokio::select! {
                biased;
                result = &mut call => return match result {
                    Ok(result) => Try::Done(result),
                    Err(CallError::Lost) => Try::Lost,
                    Err(CallError::Told(why)) => Try::Failed(why),
                },
                question = seat.questions.recv() => {
                    let Some(question) = question else { return Try::Lost };
                    match answer.take() {
                        Some(message) => {
                            let answer = elicitation::answer(&question.asks, message);
                            // If the server does not wait any more, its result will tell.
                            let _ = question.answer.send(answer);
                        }
                        None if cx.answer().is_some() => {
                            let nobody = ElicitResult::new(ElicitationAction::Cancel);
                            let _ = question.answer.send(nobody);
                        }
                        None => return Try::Asked(Box::new(elicitation::pause(cx.run(), &question.asks))),
                    }
                }
            }
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let Value::Object(args) = args else {
                return Err(ToolError::new("the arguments are no object"));
            };
            let mut tries = if self.spec.read_only { 2 } else { 1 };
            loop {
                tries -= 1;
                let connection = self.server.connection().await?;
                match self.attempt(&connection, &cx, args.clone()).await {
                    Try::Done(result) => return content::output(result),
                    Try::Asked(pause) => return Ok(ToolOutput::Paused(pause)),
                    Try::Failed(why) => return Err(ToolError::new(why)),
                    Try::Lost => self.server.discard(&connection).await,
                }
                if tries == 0 {
                    let name = &self.server.settings.name;
                    let doubt = match self.spec.read_only {
                        true => "",
                        false => "; whether the call has happened is not known",
                    };
                    return Err(ToolError::new(format!(
                        "the MCP server {name} has gone{doubt}"
                    )));
                }
            }
        })
    }
}
