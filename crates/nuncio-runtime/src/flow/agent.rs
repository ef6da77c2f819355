//! The agent that a flow is.

use std::fmt;
use std::sync::Arc;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};

use super::journal::Journal;
use super::step::{Flow, Stop};
use super::{FindAgent, Plan};

/// An agent made of others.
///
/// Questions of members become its own, and an answer reaches the member that asked and no other,
/// also after a restart. A cancel reaches all that work. A member that fails or rejects does so for
/// the flow, with its name. Members are looked up when they are needed.
pub struct FlowAgent {
    info: AgentInfo,
    plan: Plan,
    agents: Arc<dyn FindAgent>,
}

impl FlowAgent {
    /// The agent of a plan.
    pub fn new(mut info: AgentInfo, plan: Plan, agents: Arc<dyn FindAgent>) -> Self {
        info.answers_directly = false;
        Self { info, plan, agents }
    }

    async fn play(&self, cx: &RunCx, input: &Input) -> Result<Outcome, AgentError> {
        let flow = Flow::new(cx, input, &*self.agents, journal(cx, input)?);
        match self.plan.play(&flow).await {
            Ok(_) | Err(_) if cx.cancellation().is_cancelled() => Ok(Outcome::Done),
            Ok(output) => {
                // A message that came meanwhile begins anew.
                cx.forget()?;
                Ok(output.said.map_or(Outcome::Done, Outcome::Said))
            }
            Err(Stop::Paused { place, pause }) => {
                flow.wait_for(place)?;
                Ok(Outcome::Paused(*pause))
            }
            Err(Stop::Rejected(reason)) => Ok(Outcome::Rejected(reason)),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Canceled) => Err(AgentError::new("a part of the flow was canceled")),
        }
    }
}

/// The journal of the task, with the message as the answer to what it waits for, if it does.
fn journal(cx: &RunCx, input: &Input) -> Result<Journal, AgentError> {
    let Some(left) = cx.left() else {
        return Ok(Journal::new(input.message.clone()));
    };
    let mut journal: Journal = serde_json::from_value(left).map_err(|error| {
        AgentError::caused("what the flow has done before cannot be read", error)
    })?;
    journal.answer(input.message.clone());
    Ok(journal)
}

impl fmt::Debug for FlowAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowAgent")
            .field("id", &self.info.id)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

impl Agent for FlowAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move { self.play(cx, &input).await })
    }
}
