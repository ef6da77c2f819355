//! Calls that the model has asked for and that are not all done, as the checkpoint keeps them.

use nuncio_engine::RunCx;
use nuncio_protocol::{AgentId, Message};
use serde::{Deserialize, Serialize};

use super::conversation::Conversation;
use super::file::FileRef;
use crate::model::{ToolCall, ToolResult, Usage};

/// What a task leaves for its next run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Left {
    /// The format; 1.
    pub(super) version: u32,
    /// What was said in this task since the session was written.
    pub(super) conversation: Conversation,
    /// Names this part of the conversation in the session.
    pub(super) run: String,
    /// Whether it is in the session; the next message begins a new part.
    pub(super) remembered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Pending>,
    /// Who is to have the task when the calls are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) handing_over: Option<HandingOver>,
    /// What has been used since.
    pub(super) usage: Usage,
    /// The message that is being answered, so that a repeated run does not take it twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answering: Option<Answering>,
}

/// A task that is being handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HandingOver {
    pub(super) agent: AgentId,
    pub(super) message: Message,
}

/// A message that is being answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answering {
    pub(super) message: String,
    /// The artifact of the answer.
    pub(super) artifact: String,
    /// What the model has said to it so far.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) said: String,
}

/// The calls of one turn of the model, or one that the caller asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Pending {
    pub(super) calls: Vec<PendingCall>,
    /// Whether the caller asked for the call, not the model: its output is the answer.
    pub(super) direct: bool,
    /// What the task waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<Asked>,
    /// The call whose tool asked for the message that is being answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answered: Option<usize>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingCall {
    pub(super) call: ToolCall,
    /// Whether it was begun; a crash leaves open whether it has happened.
    #[serde(default)]
    pub(super) begun: bool,
    /// Whether somebody has approved exactly this call.
    #[serde(default)]
    pub(super) approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<ToolResult>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileRef>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(super) enum Asked {
    /// Whether this call may be made.
    #[serde(rename_all = "camelCase")]
    Approval { call: usize, args_hash: String },
    /// What this call's tool asked for.
    Tool { call: usize },
}

impl Answering {
    /// A message to which nothing has been said yet.
    pub(super) fn new(message: &str, cx: &RunCx) -> Self {
        Self {
            message: message.to_owned(),
            artifact: cx.next_id(),
            said: String::new(),
        }
    }
}

impl Pending {
    /// The calls of a turn.
    pub(super) fn new(calls: Vec<ToolCall>) -> Self {
        let calls = calls.into_iter().map(|call| PendingCall {
            call,
            begun: false,
            approved: false,
            result: None,
            files: Vec::new(),
        });
        Self {
            calls: calls.collect(),
            ..Self::default()
        }
    }

    /// The places of calls without a result.
    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.calls.len())
            .filter(|at| self.calls[*at].result.is_none())
            .collect()
    }
}

impl PendingCall {
    /// Notes its result.
    pub(super) fn end(&mut self, content: impl Into<String>, is_error: bool) {
        self.result = Some(ToolResult {
            id: self.call.id.clone(),
            name: self.call.name.clone(),
            content: content.into(),
            is_error,
        });
    }
}
