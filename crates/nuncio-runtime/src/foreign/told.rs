//! The question: one message, and what there is to know about it.

use nuncio_engine::{Input, RunCx};
use nuncio_protocol::Message;
use serde_json::{Value, json};

use super::VERSION;
use crate::script::turns;

/// Says that the task is canceled.
pub(crate) const CANCEL: &str = r#"{"type":"cancel"}"#;

/// A message as another program gets it. Members without a value are there as `null`.
pub(crate) fn told(cx: &RunCx, input: &Input) -> Value {
    json!({
        "type": "message",
        "version": VERSION,
        "task": cx.task(),
        "context": cx.context(),
        "caller": { "id": cx.caller().id, "workspace": cx.caller().workspace },
        "turn": turns(input).len(),
        "attempt": cx.attempt(),
        "message": input.message,
        "history": earlier(input),
        "metadata": input.metadata,
        "acceptedOutputModes": input.accepted_output_modes,
        "extensions": input.extensions,
        "checkpoint": input.checkpoint,
        "trace": cx.trace().to_string(),
    })
}

/// What was said in the task before this message, by both sides.
fn earlier(input: &Input) -> &[Message] {
    let history = &input.task.history;
    let this = history
        .iter()
        .rposition(|message| message.message_id == input.message.message_id);
    &history[..this.unwrap_or(history.len())]
}
