//! Tools of MCP servers.
//!
//! A [`McpServer`] is a [`ToolSource`](crate::tool::ToolSource): it connects when tools are first
//! asked for, keeps the connection, lists the tools again when the server says that they have
//! changed, and connects anew when the server has gone. What the server asks the user while a tool
//! runs (elicitation) pauses the task; with the answer the call is made again.

mod connection;
mod content;
mod elicitation;
mod server;
mod settings;
mod tool;

pub use server::McpServer;
pub use settings::{McpSettings, McpTransport};
