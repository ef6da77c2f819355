//! Layers around what agents do: guardrails, redaction, quotas, audit.
//!
//! A [`Layer`] sees, and may change or refuse, the message that comes in, each request to a model, each
//! call of a tool and what it gives, and the artifacts that go out; and it sees how each of these
//! ended, failures too. Layers are in order: what comes in passes the first one first, what goes out
//! the last one first. A [`ModelAgent`](crate::ModelAgent) has them all; [`LayeredAgent`] puts them
//! around any agent, of whose models and tools they see nothing.

mod agent;
mod model;
mod tool;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use nuncio_engine::{AgentError, Input, Outcome, RunCx};
use nuncio_protocol::Artifact;

use crate::model::{ModelError, ModelRequest, ToolCall, Usage};
use crate::tool::{ToolError, ToolOutput};

pub use agent::LayeredAgent;
pub(crate) use agent::run;
pub(crate) use model::LayeredModel;
pub(crate) use tool::layered;

/// What a layer gives back of what it has seen.
pub type LayerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LayerError>> + Send + 'a>>;

/// Why a layer lets something not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// It must not be: a task is REJECTED with these words, the call of a tool is answered with them.
    #[error("{0}")]
    Refused(String),
    /// The layer itself failed: the task is FAILED.
    #[error(transparent)]
    Failed(AgentError),
}

/// How something ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended<'a> {
    /// A run.
    Run(&'a Result<Outcome, AgentError>),
    /// A request to a model.
    Model {
        /// Its name.
        name: &'a str,
        /// The tokens that it used, or why there is no answer.
        result: Result<&'a Usage, &'a ModelError>,
    },
    /// A call of a tool.
    Tool {
        /// Its name.
        name: &'a str,
        /// Why there is no result.
        result: Result<(), &'a ToolError>,
    },
}

/// Stands around what an agent does. Every method lets everything pass unless it says otherwise.
pub trait Layer: Send + Sync {
    /// A message on its way in.
    fn input<'a>(&'a self, _: &'a RunCx, input: Input) -> LayerFuture<'a, Input> {
        Box::pin(ready(Ok(input)))
    }

    /// A request on its way to a model.
    fn model_request<'a>(
        &'a self,
        _: &'a RunCx,
        request: ModelRequest,
    ) -> LayerFuture<'a, ModelRequest> {
        Box::pin(ready(Ok(request)))
    }

    /// A call on its way to a tool; the name may not be changed.
    fn tool_call<'a>(&'a self, _: &'a RunCx, call: ToolCall) -> LayerFuture<'a, ToolCall> {
        Box::pin(ready(Ok(call)))
    }

    /// What a tool gave, on its way to the model.
    fn tool_output<'a>(
        &'a self,
        _: &'a RunCx,
        _: &'a ToolCall,
        output: ToolOutput,
    ) -> LayerFuture<'a, ToolOutput> {
        Box::pin(ready(Ok(output)))
    }

    /// Whether it must see artifacts. They are then given whole when the run ends or pauses, instead
    /// of piece by piece as they come.
    fn sees_output(&self) -> bool {
        false
    }

    /// An artifact on its way out, if it [must see them](Self::sees_output).
    fn output<'a>(&'a self, _: &'a RunCx, artifact: Artifact) -> LayerFuture<'a, Artifact> {
        Box::pin(ready(Ok(artifact)))
    }

    /// Is told how something ended, whatever it came to.
    fn ended(&self, _: &RunCx, _: &Ended<'_>) {}
}

/// Layers in their order.
pub(crate) type Layers = Arc<[Arc<dyn Layer>]>;

/// Tells all layers, the last one first.
fn tell(layers: &Layers, cx: &RunCx, ended: &Ended<'_>) {
    layers.iter().rev().for_each(|layer| layer.ended(cx, ended));
}
