//! Layers around a run.

use std::fmt;
use std::sync::Arc;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};
use nuncio_protocol::{A2aError, Caller, Message, Metadata};

use super::{Ended, Layer, LayerError, Layers, tell};

/// An agent within layers.
pub struct LayeredAgent<A> {
    agent: A,
    layers: Layers,
}

impl<A: Agent> LayeredAgent<A> {
    /// The agent within these layers, outermost first.
    pub fn new(agent: A, layers: impl IntoIterator<Item = Arc<dyn Layer>>) -> Self {
        Self {
            agent,
            layers: layers.into_iter().collect(),
        }
    }
}

impl<A> fmt::Debug for LayeredAgent<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredAgent").finish_non_exhaustive()
    }
}

impl<A: Agent> Agent for LayeredAgent<A> {
    fn info(&self) -> &AgentInfo {
        self.agent.info()
    }

    fn check(
        &self,
        caller: &Caller,
        message: &Message,
        metadata: Option<&Metadata>,
    ) -> Result<(), A2aError> {
        self.agent.check(caller, message, metadata)
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(run(&self.layers, cx, input, async |cx: RunCx, input| {
            self.agent.run(&cx, input).await
        }))
    }
}

/// Runs an agent within layers.
pub(crate) async fn run<F>(
    layers: &Layers,
    cx: &RunCx,
    input: Input,
    agent: F,
) -> Result<Outcome, AgentError>
where
    F: AsyncFnOnce(RunCx, Input) -> Result<Outcome, AgentError>,
{
    let ended = within(layers, cx, input, agent).await;
    tell(layers, cx, &Ended::Run(&ended));
    ended
}

async fn within<F>(
    layers: &Layers,
    cx: &RunCx,
    input: Input,
    agent: F,
) -> Result<Outcome, AgentError>
where
    F: AsyncFnOnce(RunCx, Input) -> Result<Outcome, AgentError>,
{
    let input = match come_in(layers, cx, input).await {
        Ok(input) => input,
        Err(error) => return refused(error),
    };
    if !layers.iter().any(|layer| layer.sees_output()) {
        return agent(cx.clone(), input).await;
    }
    let (inner, gathered) = cx.gathering();
    let outcome = agent(inner, input).await?;
    for mut artifact in gathered.artifacts() {
        for layer in layers.iter().rev() {
            artifact = match layer.output(cx, artifact).await {
                Ok(artifact) => artifact,
                Err(error) => return refused(error),
            };
        }
        cx.artifact(artifact).await?;
    }
    Ok(outcome)
}

async fn come_in(layers: &Layers, cx: &RunCx, mut input: Input) -> Result<Input, LayerError> {
    for layer in layers.iter() {
        input = layer.input(cx, input).await?;
    }
    Ok(input)
}

fn refused(error: LayerError) -> Result<Outcome, AgentError> {
    match error {
        LayerError::Refused(why) => Ok(Outcome::Rejected(why)),
        LayerError::Failed(error) => Err(error),
    }
}
