//! What a tool sees of the run that calls it.

use nuncio_engine::{EmitError, RunCx};
use nuncio_protocol::Message;
use tokio_util::sync::CancellationToken;

/// A tool's view of one call.
#[derive(Clone, Debug)]
pub struct ToolCx {
    run: RunCx,
    call_id: String,
    answer: Option<Message>,
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
            cancellation,
        }
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
