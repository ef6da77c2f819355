//! Tools: what a model may call.
//!
//! A [`Tool`] is a function with a schema. [`FnTool`] makes one of a Rust closure, [`AskUser`] is the
//! one that asks, [`AgentTool`] is another agent, [`HandOver`] gives the task to one. A [`ToolSource`] lists tools for each run. Which are
//! called, and whether somebody must approve first, is the model agent's business.

mod agent;
mod agents;
mod ask;
mod call;
mod function;
mod hand_over;
mod later;
mod output;
mod ready;
mod spec;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use nuncio_engine::RunCx;
use serde_json::Value;

pub use agent::AgentTool;
pub use agents::AgentTools;
pub use ask::AskUser;
pub use call::ToolCx;
pub use function::FnTool;
pub use hand_over::HandOver;
pub use later::{Completer, Later};
pub use output::{IntoToolOutput, Json, ToolError, ToolOutput};
pub use ready::ReadyTool;
pub(crate) use ready::faults;
pub use spec::ToolSpec;

/// What a call gives in the end.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// What a source gives in the end.
pub type ToolsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<ReadyTool>, ToolError>> + Send + 'a>>;

/// Something that a model may call.
pub trait Tool: Send + Sync {
    /// What it is and how it may be called.
    fn spec(&self) -> &ToolSpec;

    /// Calls it. The arguments fit its schema.
    ///
    /// The future is dropped when the task is canceled or the tool takes too long.
    ///
    /// # Errors
    /// [`ToolError`], whose message the model reads.
    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_>;
}

/// Where tools come from.
pub trait ToolSource: Send + Sync {
    /// Its name, for logs.
    fn name(&self) -> &str;

    /// The tools for this run.
    ///
    /// # Errors
    /// [`ToolError`] if they cannot be had; the run then goes on without them.
    fn tools<'a>(&'a self, cx: &'a RunCx) -> ToolsFuture<'a>;
}

impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn spec(&self) -> &ToolSpec {
        (**self).spec()
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        (**self).call(cx, args)
    }
}
