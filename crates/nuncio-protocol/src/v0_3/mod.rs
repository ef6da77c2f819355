//! Dialect 0.3: how operations, results and errors of 1.0 are spelt in the version before it.
//!
//! Everything behind this module is of 1.0. 0.3 has two JSON forms: JSON-RPC follows the JSON
//! schema (`kind`, `input-required`, `parts`), HTTP+JSON follows the proto (`content`,
//! `TASK_STATE_INPUT_REQUIRED`, resource names). Each is written as its own text says; reading takes
//! either form where SDKs mix them, and refuses a request that is plainly of 1.0 with a hint.
//!
//! What one version says and the other cannot is lost here, and nowhere else:
//!
//! | Of 1.0, lost in 0.3 | Binding |
//! |---|---|
//! | `mediaType`, `filename` of text and data parts | both |
//! | empty `metadata` of a data part that holds no object (see below) | both |
//! | an unknown role: refused in a request, `agent` elsewhere | JSON-RPC |
//! | `referenceTaskIds` | HTTP+JSON |
//! | `tenant` everywhere; `taskId` of a webhook inside `configuration` | both |
//! | `pageSize`, `pageToken`, `nextPageToken` of webhooks | JSON-RPC |
//! | ListTasks: refused as a request | both |
//! | the codes -32008 and -32009, told as -32600 and -32004; details keep the reason | both |
//! | an absent `configuration`, written as `blocking: true` | HTTP+JSON |
//! | `historyLength: 0` is written, but peers built on the proto read it as "all" | HTTP+JSON |
//!
//! | Of 0.3, lost in 1.0 | Binding |
//! |---|---|
//! | `final` of an event, computed anew | both |
//! | all `schemes` of a webhook but the first of `Bearer`, `Basic`, else the first | both |
//! | `metadata` of reading, subscribing and of requests about webhooks | JSON-RPC |
//! | an unset `blocking`: true in JSON-RPC, false in HTTP+JSON | both |
//! | a time without a zone, read as UTC | both |
//! | states and roles of no known name, read as unspecified | both |
//!
//! Data that is no object is written as `{"value": …}` with `data_part_compat` in the part's
//! metadata, and restored by it; a part that carries the mark of its own accord is taken for such a
//! one if `value` is its only member. The losses of agent cards stand in [`card`].

pub mod card;
mod error;
mod event;
mod json_rpc;
mod message;
mod outcome;
pub mod oxygent;
mod part;
mod push;
mod read;
mod requests;
mod rest;
mod routes;
mod security;
mod send;
mod task;
#[cfg(test)]
mod tests;
mod write;

pub use error::decode_error;
pub(crate) use push::says_anything;

use crate::dialect::{Dialect, Notification};
use crate::{A2aError, ErrorKind, Event, GetTaskRequest, Operation, Task, Version, json};

/// Version 0.3 of the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct V0_3;

/// Which of its two JSON forms 0.3 is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The JSON schema, in JSON-RPC and webhooks.
    Schema,
    /// The proto's JSON, in HTTP+JSON.
    Proto,
}

impl Dialect for V0_3 {
    fn version(&self) -> Version {
        Version::V0_3
    }

    fn extensions_header(&self) -> &'static str {
        "x-a2a-extensions"
    }

    /// A task that has ended is shown to whoever wants to follow it (V03-05).
    fn instead(&self, asked: &Operation, error: &A2aError) -> Option<Operation> {
        match asked {
            Operation::SubscribeToTask(request)
                if error.kind == ErrorKind::UnsupportedOperation =>
            {
                let mut get = GetTaskRequest::new(request.id.clone());
                get.tenant = request.tenant.clone();
                Some(Operation::GetTask(get))
            }
            _ => None,
        }
    }

    fn encode_notification(&self, _: &Event, task: &Task) -> Notification {
        Notification {
            content_type: "application/json",
            body: encode_webhook(task),
        }
    }

    fn notifies_of_whole_tasks(&self) -> bool {
        true
    }

    fn marks_last_items(&self) -> bool {
        true
    }
}

/// Writes the body of a webhook call: the whole task, whatever has happened (V03-PUSH-01).
pub fn encode_webhook(task: &Task) -> String {
    json::encode(&write::Spelt(task, Form::Schema))
}

/// Reads the body of a webhook call.
///
/// # Errors
/// [`ErrorKind::InvalidParams`] and [`ErrorKind::ParseError`], since the caller is the agent.
pub fn decode_webhook(body: &[u8]) -> Result<Task, A2aError> {
    let text = json::check(body)?;
    let object = read::Object::parse(text, Form::Schema, read::Side::Reply)?;
    Ok(event::read_task(object)?)
}
