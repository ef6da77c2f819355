//! Agents that are closures.

use std::fmt;
use std::future::Future;

use nuncio_protocol::Part;

use crate::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};

/// Makes an agent of a closure: it gets the run and the message, and gives an [`Answer`].
///
/// `?` works on [`AgentError`]; what else can fail becomes one by [`AgentError::internal`], which
/// keeps the cause from callers, or [`AgentError::new`].
///
/// ```
/// use nuncio_engine::{AgentInfo, agent_fn};
///
/// let info = AgentInfo::new("hello", "Hello", "Greets whoever writes.");
/// let agent = agent_fn(info, |_, input| async move {
///     Ok(format!("Hello, {}!", input.message.text()))
/// });
/// ```
pub fn agent_fn<F, Fut, A>(info: AgentInfo, answer: F) -> FnAgent<F>
where
    F: Fn(RunCx, Input) -> Fut + Send + Sync,
    Fut: Future<Output = Result<A, AgentError>> + Send,
    A: Answer,
{
    FnAgent { info, answer }
}

/// An agent made by [`agent_fn`].
pub struct FnAgent<F> {
    info: AgentInfo,
    answer: F,
}

impl<F> fmt::Debug for FnAgent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnAgent")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl<F, Fut, A> Agent for FnAgent<F>
where
    F: Fn(RunCx, Input) -> Fut + Send + Sync,
    Fut: Future<Output = Result<A, AgentError>> + Send,
    A: Answer,
{
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let answer = (self.answer)(cx.clone(), input).await?;
            Ok(answer.outcome(cx))
        })
    }
}

/// What an agent that is a closure may give.
pub trait Answer {
    /// The same as the end of a run.
    fn outcome(self, cx: &RunCx) -> Outcome;
}

impl Answer for Outcome {
    fn outcome(self, _: &RunCx) -> Outcome {
        self
    }
}

/// The task is completed with what has been emitted.
impl Answer for () {
    fn outcome(self, _: &RunCx) -> Outcome {
        Outcome::Done
    }
}

/// An artifact of these parts, and the task is completed.
impl Answer for Vec<Part> {
    fn outcome(self, cx: &RunCx) -> Outcome {
        Outcome::Reply(cx.message(self))
    }
}

/// An artifact of this text, and the task is completed.
impl Answer for String {
    fn outcome(self, cx: &RunCx) -> Outcome {
        vec![Part::text(self)].outcome(cx)
    }
}

/// An artifact of this text, and the task is completed.
impl Answer for &str {
    fn outcome(self, cx: &RunCx) -> Outcome {
        vec![Part::text(self)].outcome(cx)
    }
}
