//! An MCP server as a source of tools.

use std::fmt;
use std::sync::Arc;

use nuncio_engine::RunCx;
use tokio::sync::Mutex;

use super::connection::Connection;
use super::settings::McpSettings;
use super::tool::McpTool;
use crate::tool::{ReadyTool, ToolError, ToolSource, ToolsFuture};

/// An MCP server whose tools a model may call. Cloning shares the connection.
#[derive(Clone)]
pub struct McpServer(Arc<Shared>);

/// What the tools of a server share.
pub(super) struct Shared {
    pub(super) settings: McpSettings,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServer").field(&self.0.settings).finish()
    }
}

impl McpServer {
    /// A server; it is connected to when its tools are first asked for.
    pub fn new(settings: McpSettings) -> Self {
        Self(Arc::new(Shared {
            settings,
            connection: Mutex::default(),
        }))
    }

    /// Its tools now: as listed before, unless the server has said that they have changed.
    ///
    /// # Errors
    /// [`ToolError`] if the server cannot be reached or does not answer.
    pub async fn list(&self) -> Result<Vec<ReadyTool>, ToolError> {
        let connection = self.0.connection().await?;
        if let Some(tools) = connection.known() {
            return Ok(tools);
        }
        let settings = &self.0.settings;
        let name = &settings.name;
        let listed = tokio::time::timeout(settings.connect_timeout, connection.list()).await;
        let listed = match listed {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                self.0.discard(&connection).await;
                tracing::warn!(server = %name, %error, "an MCP server does not list its tools");
                let why = format!("the MCP server {name} does not list its tools");
                return Err(ToolError::new(why));
            }
            Err(_) => {
                let why = format!("the MCP server {name} did not list its tools in time");
                return Err(ToolError::new(why));
            }
        };
        let mut tools = Vec::new();
        for tool in listed
            .into_iter()
            .filter(|tool| settings.allows(&tool.name))
        {
            let tool = McpTool::new(Arc::clone(&self.0), tool);
            match ReadyTool::new(Arc::new(tool)) {
                Ok(tool) => tools.push(tool),
                Err(error) => {
                    tracing::warn!(server = %name, %error, "a tool of an MCP server is left out");
                }
            }
        }
        *connection.tools.lock() = Some(tools.clone());
        Ok(tools)
    }
}

impl ToolSource for McpServer {
    fn name(&self) -> &str {
        &self.0.settings.name
    }

    fn tools<'a>(&'a self, _: &'a RunCx) -> ToolsFuture<'a> {
        Box::pin(self.list())
    }
}

impl Shared {
    /// The connection, made anew if the server has gone.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        let mut kept = self.connection.lock().await;
        if let Some(connection) = kept.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Connection::open(&self.settings).await?);
        *kept = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Forgets a connection that has turned out to be lost.
    pub(super) async fn discard(&self, lost: &Arc<Connection>) {
        let mut kept = self.connection.lock().await;
        if kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, lost)) {
            *kept = None;
        }
    }
}
