//! How an operation is framed, once per binding. Sending itself is `exchange`'s.

mod json_rpc;
mod push_shapes;
mod rest;

use std::fmt;

use bytes::Bytes;
use http::{Method, StatusCode};
use nuncio_protocol::json::{self, DecodeError};
use nuncio_protocol::{
    A2aError, Binding, ErrorKind, Operation, OperationKind, Outcome, StreamResponse,
};
use url::Url;

use crate::choose::Choice;
use crate::failure::bad_answer;

/// An HTTP request without the headers that all bindings share.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Bytes,
}

/// The framing of one interface.
pub(crate) trait Sender: Send + Sync + fmt::Debug {
    /// Writes an operation.
    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError>;

    /// Another way to ask for the same, if the agent does not know the first (REST-01).
    fn prepare_otherwise(&self, _operation: &Operation) -> Option<Prepared> {
        None
    }

    /// The media types an answer may have.
    fn accept(&self) -> &'static str;

    /// Takes the envelope off: gives the JSON text of a result, or the agent's error.
    fn result<'a>(&self, body: &'a [u8]) -> Result<&'a str, A2aError>;

    /// Reads the body of an answer whose status says that something failed.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> A2aError;

    /// Reads the result of an operation that does not stream.
    fn outcome(&self, kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
        if kind == OperationKind::DeleteTaskPushNotificationConfig && body.trim_ascii().is_empty() {
            return Ok(Outcome::Deleted);
        }
        decode_outcome(kind, self.result(body)?)
    }

    /// Reads one item of a stream; `None` for a kind of item that a newer peer may send (JSON-07).
    fn event(&self, data: &[u8]) -> Result<Option<StreamResponse>, A2aError> {
        let text = self.result(data)?;
        match json::decode_checked(text) {
            Ok(response) => Ok(Some(response)),
            Err(_) if is_unknown_item(text) => Ok(None),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

/// The sender for an interface.
pub(crate) fn sender(choice: &Choice) -> Box<dyn Sender> {
    match choice.binding {
        Binding::HttpJson => Box::new(rest::Rest::new(choice.url.clone())),
        _ => Box::new(json_rpc::JsonRpc::new(choice.url.clone())),
    }
}

fn decode_outcome(kind: OperationKind, text: &str) -> Result<Outcome, A2aError> {
    use OperationKind::{
        CancelTask, CreateTaskPushNotificationConfig, DeleteTaskPushNotificationConfig,
        GetExtendedAgentCard, GetTask, GetTaskPushNotificationConfig,
        ListTaskPushNotificationConfigs, ListTasks, SendMessage, SendStreamingMessage,
        SubscribeToTask,
    };
    let outcome = match kind {
        SendMessage => json::decode_checked(text).map(Outcome::Sent),
        GetTask | CancelTask => json::decode_checked(text).map(Outcome::Task),
        ListTasks => json::decode_checked(text).map(Outcome::Tasks),
        CreateTaskPushNotificationConfig | GetTaskPushNotificationConfig => {
            json::decode_checked(&push_shapes::config(text)).map(Outcome::PushConfig)
        }
        ListTaskPushNotificationConfigs => {
            json::decode_checked(&push_shapes::configs(text)).map(Outcome::PushConfigs)
        }
        DeleteTaskPushNotificationConfig => Ok(Outcome::Deleted),
        GetExtendedAgentCard => {
            let (card, _) = crate::card::read(text).map_err(bad_answer)?;
            Ok(Outcome::Card(Box::new(card)))
        }
        SendStreamingMessage | SubscribeToTask => {
            return Err(bad_answer("a stream was expected"));
        }
    };
    outcome.map_err(|error| unreadable(&error))
}

fn unreadable(error: &DecodeError) -> A2aError {
    let at = if error.path.is_empty() {
        String::new()
    } else {
        format!(" at {}", error.path)
    };
    bad_answer(format!("the agent's answer cannot be read{at}: {error}"))
}

/// Whether a text is an object with none of the members that items have in this version.
fn is_unknown_item(text: &str) -> bool {
    const KNOWN: &[&str] = &[
        "task",
        "message",
        "statusUpdate",
        "status_update",
        "artifactUpdate",
        "artifact_update",
        "error",
    ];
    let read: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_str(text);
    read.is_ok_and(|object| {
        KNOWN
            .iter()
            .all(|name| object.get(*name).is_none_or(serde_json::Value::is_null))
    })
}

/// Lets the HTTP status tell apart the kinds that share one JSON-RPC code (ERR-04).
///
/// A kind with a reason of its own is never touched.
fn refine(mut error: A2aError, status: StatusCode) -> A2aError {
    let by_status = ErrorKind::from_http_status(status.as_u16());
    let same_code = by_status.json_rpc_code() == error.kind.json_rpc_code();
    if error.kind.reason().is_none() && same_code {
        error.kind = by_status;
    }
    error
}
