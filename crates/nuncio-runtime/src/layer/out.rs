//! What goes out, through the layers, the last one first.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use nuncio_engine::{AgentError, EmitError, Gathered, Listener, Outcome, Pause, RunCx};
use nuncio_protocol::{Message, Part};

use super::{LayerError, Layers};
use crate::parts::joined;

/// Lets what an agent says about its work pass the layers before the task has it.
pub(super) struct Words {
    layers: Layers,
    cx: RunCx,
}

impl Words {
    pub(super) fn new(layers: &Layers, cx: &RunCx) -> Self {
        Self {
            layers: Layers::clone(layers),
            cx: cx.clone(),
        }
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Words").finish_non_exhaustive()
    }
}

impl Listener for Words {
    fn hear(
        &self,
        message: Message,
    ) -> Pin<Box<dyn Future<Output = Result<(), EmitError>> + Send + '_>> {
        Box::pin(async move {
            let passed = passed(&self.layers, &self.cx, message).await;
            let message = passed.map_err(|error| EmitError::Invalid(error.to_string()))?;
            self.cx.say(message).await
        })
    }
}

/// Lets all that a run has given pass; nothing goes out if a layer refuses any of it.
pub(super) async fn go_out(
    layers: &Layers,
    cx: &RunCx,
    result: Result<Outcome, AgentError>,
    gathered: &Gathered,
) -> Result<Result<Outcome, AgentError>, LayerError> {
    let mut artifacts = Vec::new();
    for mut artifact in gathered.artifacts() {
        artifact.parts = joined(artifact.parts);
        let id = artifact.artifact_id.clone();
        for layer in layers.iter().rev() {
            artifact = layer.output(cx, artifact).await?;
        }
        artifacts.push((artifact, gathered.goes_on(&id), gathered.has_ended(&id)));
    }
    let result = match result {
        Ok(outcome) => Ok(last_words(layers, cx, outcome).await?),
        Err(error) => Err(failure(layers, cx, error).await?),
    };
    for (artifact, append, last) in artifacts {
        if let Err(ended) = cx.chunk(artifact, append, last).await {
            return Ok(Err(ended.into()));
        }
    }
    Ok(result)
}

async fn last_words(layers: &Layers, cx: &RunCx, outcome: Outcome) -> Result<Outcome, LayerError> {
    Ok(match outcome {
        Outcome::Done => Outcome::Done,
        Outcome::Said(message) => Outcome::Said(passed(layers, cx, message).await?),
        Outcome::Reply(message) => Outcome::Reply(passed(layers, cx, message).await?),
        Outcome::Paused(pause) => Outcome::Paused(Pause {
            prompt: passed(layers, cx, pause.prompt).await?,
            ..pause
        }),
        Outcome::Rejected(why) => Outcome::Rejected(text(layers, cx, &why).await?),
        Outcome::HandOff { agent, message } => Outcome::HandOff {
            message: passed(layers, cx, message).await?,
            agent,
        },
    })
}

async fn failure(layers: &Layers, cx: &RunCx, error: AgentError) -> Result<AgentError, LayerError> {
    let words = text(layers, cx, error.message()).await?;
    Ok(match words == error.message() {
        true => error,
        false => AgentError::caused(words, error),
    })
}

async fn text(layers: &Layers, cx: &RunCx, text: &str) -> Result<String, LayerError> {
    let message = cx.message(vec![Part::text(text)]);
    Ok(passed(layers, cx, message).await?.text())
}

async fn passed(layers: &Layers, cx: &RunCx, mut message: Message) -> Result<Message, LayerError> {
    for layer in layers.iter().rev() {
        message = layer.words(cx, message).await?;
    }
    Ok(message)
}
