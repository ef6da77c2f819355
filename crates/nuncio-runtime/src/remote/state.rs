//! What must be remembered of a remote agent between a run and the next.

use nuncio_engine::{EmitError, RunCx, SessionError};
use nuncio_protocol::{ContextId, Task, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};

/// How things stand with a remote agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RemoteState {
    /// The conversation there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) context: Option<ContextId>,
    /// The task there that goes on, or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open: Option<TaskId>,
    /// The message that the open task is the answer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<String>,
    /// The question that the open task asked last, as it can be told from the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<String>,
    /// The task there that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<TaskId>,
}

/// The state of a conversation here that names the conversation there.
const STATE: &str = "remote";

impl RemoteState {
    /// As this task has left it; a first task goes on with the conversation of those before it.
    pub(super) async fn of(cx: &RunCx) -> Result<Self, SessionError> {
        let left = match cx.left() {
            Some(left) => Some(left),
            None => cx.session().get(STATE).await?,
        };
        let left = left.and_then(|left| serde_json::from_value(left).ok());
        Ok(left.unwrap_or_default())
    }

    /// Leaves the conversation, and the task that ended last, to later tasks of the context.
    pub(super) async fn pass_on(&self, cx: &RunCx) -> Result<(), SessionError> {
        let passed = Self {
            open: None,
            sent: None,
            asked: None,
            ..self.clone()
        };
        let passed = serde_json::to_value(passed).unwrap_or_default();
        cx.session().set(STATE, passed).await
    }

    pub(super) fn keep(&self, cx: &RunCx) -> Result<(), EmitError> {
        let value = serde_json::to_value(self).unwrap_or_default();
        cx.checkpoint(&value)
    }

    /// Takes note of how a task stands; tells whether that is new.
    pub(super) fn note(&mut self, task: &Task, sent: &str) -> bool {
        let before = self.clone();
        if let Some(context) = task.context_id.as_ref().filter(|id| !id.is_empty()) {
            self.context = Some(context.clone());
        }
        if task.id.is_empty() {
            return *self != before;
        }
        if task.status.state.is_terminal() {
            (self.open, self.sent) = (None, None);
            self.last = Some(task.id.clone());
        } else {
            self.open = Some(task.id.clone());
            self.sent = Some(sent.to_owned());
        }
        *self != before
    }

    /// Whether a status is the question that has been answered, seen once more.
    pub(super) fn is_answered(&self, status: &TaskStatus) -> bool {
        status.state.is_interrupted() && self.asked.is_some() && self.asked == question(status)
    }
}

/// What a question can be told by: its message and its time, if it has any.
pub(super) fn question(status: &TaskStatus) -> Option<String> {
    let message = status.message.as_ref().map(|message| &message.message_id);
    let id = message.map(ToString::to_string).unwrap_or_default();
    let time = status.timestamp.map(|time| time.to_string());
    let text = format!("{id} {}", time.unwrap_or_default());
    Some(text).filter(|text| text.len() > 1)
}
