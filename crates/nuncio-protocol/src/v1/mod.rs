//! Dialect 1.0: how operations, results and errors are spelt in JSON-RPC and HTTP+JSON.
//!
//! Servers decode requests and encode results with it, clients the other way round. Framing
//! (HTTP, SSE) is left to them.

mod compat;
mod dialect;
pub mod json_rpc;
mod push_shapes;
pub mod rest;

pub use dialect::V1_0;

use crate::json::{DecodeError, decode_checked, encode};
use crate::{A2aError, Operation, OperationKind, Outcome};

/// Reads a request from its JSON object; see [`compat`] for what older callers may write.
fn decode_operation(kind: OperationKind, text: &str) -> Result<Operation, A2aError> {
    let decoded = Operation::decode(kind, text);
    match kind {
        OperationKind::SendMessage | OperationKind::SendStreamingMessage => {
            compat::understood(decoded, text)
        }
        _ => Ok(decoded?),
    }
}

/// Writes a result as JSON; `None` for a stream, whose events are written one by one.
///
/// Deleting answers `null` in JSON-RPC and `{}` in HTTP+JSON (OP-PDEL-03): `deleted` says which.
pub(crate) fn encode_outcome(outcome: &Outcome, deleted: &str) -> Option<String> {
    Some(match outcome {
        Outcome::Sent(sent) => encode(sent),
        Outcome::Stream(_) => return None,
        Outcome::Task(task) => encode(task),
        Outcome::Tasks(page) => encode(page),
        Outcome::PushConfig(config) => encode(config),
        Outcome::PushConfigs(list) => encode(list),
        Outcome::Deleted => deleted.to_owned(),
        Outcome::Card(card) => encode(card),
    })
}

/// Reads the result of an operation that does not stream; `text` has been checked.
///
/// # Errors
/// [`DecodeError`] with the path of what is wrong.
pub(crate) fn decode_outcome(kind: OperationKind, text: &str) -> Result<Outcome, DecodeError> {
    Ok(match kind {
        OperationKind::SendMessage => Outcome::Sent(decode_checked(text)?),
        OperationKind::GetTask | OperationKind::CancelTask => Outcome::Task(decode_checked(text)?),
        OperationKind::ListTasks => Outcome::Tasks(decode_checked(text)?),
        OperationKind::CreateTaskPushNotificationConfig
        | OperationKind::GetTaskPushNotificationConfig => {
            Outcome::PushConfig(decode_checked(&push_shapes::config(text))?)
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            Outcome::PushConfigs(decode_checked(&push_shapes::configs(text))?)
        }
        OperationKind::DeleteTaskPushNotificationConfig => Outcome::Deleted,
        OperationKind::GetExtendedAgentCard => Outcome::Card(Box::new(decode_checked(text)?)),
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => {
            return Err(DecodeError::data("", "a stream was expected"));
        }
    })
}
