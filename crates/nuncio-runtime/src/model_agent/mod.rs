//! Agents that a model speaks for.
//!
//! A [`ModelAgent`] gives the conversation to a [`Model`](crate::model::Model), streams its words into
//! one artifact, calls the tools it asks for, and asks people where that is needed. What a run needs
//! to go on after a pause or a crash lies in its checkpoint.

mod again;
mod answer;
mod approval;
mod budget;
mod builder;
mod calls;
mod compact;
mod conversation;
mod exchange;
mod file;
mod instructions;
mod otherwise;
mod past;
mod pending;
mod skill;
mod structured;

use std::fmt;
use std::sync::Arc;

use nuncio_engine::{Agent, AgentInfo, Input, Outcome, RunCx, RunFuture};
use nuncio_protocol::{A2aError, Caller, Clock, Message, Metadata};

use crate::layer::{self, Layers};
use crate::model::{Model, ModelParams};
use crate::tool::{ReadyTool, ToolSource};

pub use budget::{Budgets, Prices};
pub use builder::{BuildError, ModelAgentBuilder};

use exchange::Exchange;
use instructions::Instructions;
use otherwise::Offered;
use structured::OutputSchema;

/// An agent that a model speaks for.
pub struct ModelAgent {
    info: AgentInfo,
    model: Arc<dyn Model>,
    instructions: Instructions,
    tools: Vec<ReadyTool>,
    /// Names of tools that callers may call without the model.
    skills: Vec<String>,
    sources: Vec<Arc<dyn ToolSource>>,
    params: ModelParams,
    output: Option<OutputSchema>,
    budgets: Budgets,
    prices: Option<Prices>,
    clock: Arc<dyn Clock>,
    offered: Offered,
    layers: Layers,
}

impl fmt::Debug for ModelAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelAgent")
            .field("id", &self.info.id)
            .field("model", &self.model.name())
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Agent for ModelAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn check(
        &self,
        caller: &Caller,
        _: &Message,
        metadata: Option<&Metadata>,
    ) -> Result<(), A2aError> {
        self.check_overrides(caller.id.as_str(), metadata)
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let run = layer::run(&self.layers, cx, input, async |cx: RunCx, input: Input| {
                Exchange::run(self, &cx, &input).await
            });
            tokio::select! {
                biased;
                // Drops the model's stream and the calls of tools; the engine knows the rest.
                () = cx.cancellation().cancelled() => Ok(Outcome::Done),
                outcome = run => outcome,
            }
        })
    }
}
