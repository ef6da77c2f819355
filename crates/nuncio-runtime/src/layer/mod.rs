//! Layers around what agents do: guardrails, redaction, quotas, audit.
//!
//! A [`Layer`] sees, and may change or refuse, the message that comes in, each request to a model, each
//! call of a tool and what it gives, and what goes out: artifacts, questions and all other words; and it
//! sees how each of these ended, failures too. Layers are in order: what comes in passes the first one first, what goes out
//! the last one first. A [`ModelAgent`](crate::ModelAgent) has them all; [`LayeredAgent`] puts them
//! around any agent, of whose models and tools they see nothing. [`Redact`], [`Refuse`], [`Quota`] and
//! [`Audit`] are ready to use.

mod agent;
mod audit;
mod model;
mod out;
mod patterns;
mod quota;
mod redact;
mod refuse;
mod teller;
mod texts;
mod tool;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{AgentError, Input, Outcome, RunCx};
use nuncio_protocol::{Artifact, Message};

use crate::model::{ModelError, ModelRequest, ToolCall, Usage};
use crate::tool::{ToolError, ToolOutput};

pub use agent::LayeredAgent;
pub(crate) use agent::run;
pub use audit::Audit;
pub(crate) use model::LayeredModel;
pub use patterns::{At, PatternError};
pub use quota::Quota;
pub use redact::Redact;
pub use refuse::Refuse;
pub(crate) use tool::layered;

/// What a layer gives back of what it has seen.
pub type LayerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LayerError>> + Send + 'a>>;

/// Why a layer lets something not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// It must not be: a task is REJECTED with these words, the call of a tool is answered with them, and
    /// a run whose request to a model it was fails with them.
    #[error("{0}")]
    Refused(String),
    /// It must not be now: as [`Refused`](Self::Refused), but a task that has been asked something before
    /// asks again with these words, and waits on.
    #[error("{0}")]
    NotNow(String),
    /// The layer itself failed: the task is FAILED.
    #[error(transparent)]
    Failed(AgentError),
}

/// How something ended.
///
/// There is no result of what was given up: with a task that is canceled, at its deadline, or when the
/// server stops.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended<'a> {
    /// A run.
    Run {
        /// The message that it answers, as it came.
        message: &'a Message,
        /// What came of it.
        result: Option<&'a Result<Outcome, AgentError>>,
        /// How long it took.
        took: Duration,
    },
    /// A request to a model.
    Model {
        /// Its name.
        name: &'a str,
        /// The tokens that it used, or why there is no answer.
        result: Option<Result<&'a Usage, &'a ModelError>>,
        /// How long it took.
        took: Duration,
    },
    /// A call of a tool.
    Tool {
        /// The call, as the model made it.
        call: &'a ToolCall,
        /// What it gave, or why it gave nothing.
        result: Option<Result<&'a ToolOutput, &'a ToolError>>,
        /// How long it took.
        took: Duration,
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

    /// What an answer of a model took, before its end is told to anybody.
    fn used<'a>(&'a self, _: &'a RunCx, _: &'a Usage) -> LayerFuture<'a, ()> {
        Box::pin(ready(Ok(())))
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

    /// Why a tool failed, on its way to the model.
    fn tool_failure<'a>(
        &'a self,
        _: &'a RunCx,
        _: &'a ToolCall,
        words: String,
    ) -> LayerFuture<'a, String> {
        Box::pin(ready(Ok(words)))
    }

    /// Whether it must see what goes out. Artifacts are then given whole when the run ends, pauses or
    /// fails, instead of piece by piece as they come.
    fn sees_output(&self) -> bool {
        false
    }

    /// An artifact on its way out, if it [must see them](Self::sees_output).
    fn output<'a>(&'a self, _: &'a RunCx, artifact: Artifact) -> LayerFuture<'a, Artifact> {
        Box::pin(ready(Ok(artifact)))
    }

    /// Words on their way out, if it [must see them](Self::sees_output): a direct answer, a question, what
    /// is said about the work or at its end, why it was refused or has failed, and what another agent
    /// that gets the task is told.
    fn words<'a>(&'a self, _: &'a RunCx, message: Message) -> LayerFuture<'a, Message> {
        Box::pin(ready(Ok(message)))
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
