//! The mapping table of the checklist row by row, and what strangers send.

mod card;
mod error;
mod mapping;
mod reading;

use serde_json::{Value, json};

use super::V0_3;
use crate::dialect::{JsonRpcDialect, RestDialect};
use crate::{A2aError, Operation, OperationKind};

/// Reads params of JSON-RPC.
fn params(method: &str, params: Value) -> Result<Operation, A2aError> {
    let kind = JsonRpcDialect::kind(&V0_3, method).unwrap();
    V0_3.decode_params(kind, &params.to_string())
}

/// Reads an HTTP request.
fn http(method: &str, target: &str, body: Value) -> Result<Operation, A2aError> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let route = V0_3.route(method, path).unwrap();
    V0_3.decode_request(&route, query, body.to_string().as_bytes())
}

/// Writes params of JSON-RPC.
fn written(operation: &Operation) -> Value {
    serde_json::from_str(&V0_3.encode_params(operation).unwrap()).unwrap()
}

/// Writes an HTTP body.
fn body(operation: &Operation) -> Value {
    let request = RestDialect::encode_request(&V0_3, operation).unwrap();
    serde_json::from_str(&request.body.unwrap()).unwrap()
}

/// A message of the user around one part, in JSON-RPC.
fn with_part(part: Value) -> Value {
    json!({"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}})
}

/// A message of the user around one part, in HTTP+JSON.
fn with_content(part: Value) -> Value {
    json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [part]}})
}

fn send(params_or_body: Result<Operation, A2aError>) -> crate::SendMessageRequest {
    match params_or_body.unwrap() {
        Operation::SendMessage(request) | Operation::SendStreamingMessage(request) => request,
        other => panic!("{other:?}"),
    }
}

fn first_part(read: Result<Operation, A2aError>) -> crate::Part {
    send(read).message.unwrap().parts.remove(0)
}

/// All ten that 0.3 has in JSON-RPC.
#[test]
fn every_method_is_known_both_ways() {
    for kind in OperationKind::ALL {
        match V0_3.method(*kind) {
            Some(method) => assert_eq!(JsonRpcDialect::kind(&V0_3, method), Some(*kind)),
            None => assert_eq!(*kind, OperationKind::ListTasks),
        }
    }
    for other in [
        "SendMessage",
        "tasks/list",
        "tasks/send",
        "Message/Send",
        "",
    ] {
        assert_eq!(JsonRpcDialect::kind(&V0_3, other), None, "{other}");
    }
}
