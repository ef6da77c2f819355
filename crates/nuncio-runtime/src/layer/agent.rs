//! Layers around a run.

use std::fmt;
use std::sync::Arc;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, RunFuture};
use nuncio_protocol::{A2aError, Caller, Message, Metadata, Part};

use super::out::{Words, go_out};
use super::teller::Teller;
use super::{Layer, LayerError, Layers};

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
    if layers.is_empty() {
        return agent(cx.clone(), input).await;
    }
    let teller = Teller::of_run(layers, cx, input.message.clone());
    let goes_on = input.turn() > 1;
    let ended = within(layers, cx, input, agent).await;
    let ended = ended.unwrap_or_else(|error| refused(cx, error, goes_on));
    teller.run_ended(&ended);
    ended
}

async fn within<F>(
    layers: &Layers,
    cx: &RunCx,
    mut input: Input,
    agent: F,
) -> Result<Result<Outcome, AgentError>, LayerError>
where
    F: AsyncFnOnce(RunCx, Input) -> Result<Outcome, AgentError>,
{
    for layer in layers.iter() {
        input = layer.input(cx, input).await?;
    }
    // No message gets to the agent past the layers.
    let inner = cx.apart();
    if !layers.iter().any(|layer| layer.sees_output()) {
        return Ok(agent(inner, input).await);
    }
    let (inner, gathered) = inner.gathering();
    let inner = inner.heard_by(Arc::new(Words::new(layers, cx)));
    let result = agent(inner, input).await;
    go_out(layers, cx, result, &gathered).await
}

/// What becomes of a run that a layer does not let pass.
fn refused(cx: &RunCx, error: LayerError, goes_on: bool) -> Result<Outcome, AgentError> {
    match error {
        LayerError::NotNow(why) if goes_on => {
            let prompt = cx.message(vec![Part::text(why)]);
            Ok(Outcome::Paused(Pause::input(prompt)))
        }
        LayerError::Refused(why) | LayerError::NotNow(why) => Ok(Outcome::Rejected(why)),
        LayerError::Failed(error) => Err(error),
    }
}
