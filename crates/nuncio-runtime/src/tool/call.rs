//! What a tool sees of the run that calls it.

use nuncio_engine::{EmitError, Input, RunCx};
use nuncio_protocol::{ForwardedHeaders, Message};
use tokio_util::sync::CancellationToken;

/// A tool's view of one call.
#[derive(Clone, Debug)]
pub struct ToolCx {
    run: RunCx,
    call_id: String,
    answer: Option<Message>,
    forwarded: ForwardedHeaders,
    extensions: Vec<String>,
    cancellation: CancellationToken,
}

impl ToolCx {
    /// A call within a run; `answer` is what came for an earlier pause of the same call.
    pub fn new(run: RunCx, call_id: impl Into<String>, answer: Option<Message>) -> Self {
        let cancellation = run.cancellation().child_token();
        Self {
            run,
            call_id: call_id.into(),
            answer,
            forwarded: ForwardedHeaders::default(),
            extensions: Vec::new(),
            cancellation,
        }
    }

    /// The same call, made while this is answered: the tool sees which headers and extensions came
    /// along.
    #[must_use]
    pub fn answering(mut self, input: &Input) -> Self {
        self.forwarded.clone_from(&input.forwarded);
        self.extensions.clone_from(&input.extensions);
        self
    }

    /// The run.
    pub fn run(&self) -> &RunCx {
        &self.run
    }

    /// Names the call; the same when it is made again.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// What came for the [pause](super::ToolOutput::Paused) that this call asked for before.
    pub fn answer(&self) -> Option<&Message> {
        self.answer.as_ref()
    }

    /// Headers of the caller's request that the agent may see; none after a crash.
    pub fn forwarded(&self) -> &ForwardedHeaders {
        &self.forwarded
    }

    /// URIs of the extensions that the caller has named.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// Fires when the task is canceled or the call has taken too long.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Says that work goes on, with a word about it.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn status(&self, text: impl Into<String>) -> Result<(), EmitError> {
        self.run.status(text).await
    }
}
