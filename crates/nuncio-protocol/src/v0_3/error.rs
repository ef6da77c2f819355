//! Errors of 0.3: the codes it has, and every body met in the wild (ERR-05, V03-02, V03-REST-07).

use serde_json::{Map, Value};

use crate::json::DecodeError;
use crate::{A2aError, ErrorKind, GrpcStatus, json};

/// The class names that SDKs put into `type`, by code.
const CLASSES: [(i64, &str); 12] = [
    (-32001, "TaskNotFoundError"),
    (-32002, "TaskNotCancelableError"),
    (-32003, "PushNotificationNotSupportedError"),
    (-32004, "UnsupportedOperationError"),
    (-32005, "ContentTypeNotSupportedError"),
    (-32006, "InvalidAgentResponseError"),
    (-32007, "AuthenticatedExtendedCardNotConfiguredError"),
    (-32600, "InvalidRequestError"),
    (-32601, "MethodNotFoundError"),
    (-32602, "InvalidParamsError"),
    (-32603, "InternalError"),
    (-32700, "JSONParseError"),
];

/// The code that 0.3 has for a kind of error.
fn code(kind: ErrorKind) -> i64 {
    match kind {
        ErrorKind::ExtensionSupportRequired => ErrorKind::InvalidRequest.json_rpc_code(),
        ErrorKind::VersionNotSupported => ErrorKind::UnsupportedOperation.json_rpc_code(),
        kind => kind.json_rpc_code(),
    }
}

/// Writes the `error` member of JSON-RPC; `data` holds the details of 1.0, if there are any.
pub(super) fn encode(error: &A2aError) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("code".to_owned(), code(error.kind).into());
    body.insert("message".to_owned(), error.message.clone().into());
    let details = error.details_json();
    if !details.is_empty() {
        body.insert("data".to_owned(), details.into());
    }
    body
}

/// Writes an HTTP body: the object of JSON-RPC unwrapped, with the name of its class.
pub(super) fn encode_body(error: &A2aError) -> String {
    let mut body = encode(error);
    let wanted = code(error.kind);
    let class = CLASSES.iter().find(|(code, _)| *code == wanted);
    let class = class.map_or("InternalError", |(_, class)| class);
    body.insert("type".to_owned(), class.into());
    json::encode(&body)
}

/// Reads an error body of any shape met in the wild, under an HTTP status.
///
/// What tells most decides: `ErrorInfo`, a code of JSON-RPC, the name of a class, a status of gRPC,
/// the HTTP status. A body that is no error at all leaves what the status tells.
pub fn decode_error(status: u16, body: &[u8]) -> A2aError {
    let by_status = ErrorKind::from_http_status(status);
    let fallback = || {
        let kind = match status {
            500 => ErrorKind::InvalidAgentResponse,
            _ => by_status,
        };
        A2aError::new(kind, format!("the agent answered HTTP status {status}"))
    };
    let Ok(mut value) = json::decode::<Value>(body) else {
        return fallback();
    };
    if value["error"].is_object() {
        value = value["error"].take();
    }
    if !value.is_object() {
        return fallback();
    }
    let named = class(&value);
    let message = ["message", "detail", "title"]
        .iter()
        .find_map(|name| value[*name].as_str());
    let Some(message) = message.or(named.and(value["type"].as_str())) else {
        return fallback();
    };
    let kind = match value["code"].as_i64() {
        Some(code) if code < 0 => by_code(code, by_status),
        _ => named
            .or_else(|| by_grpc(&value))
            .or_else(|| by_words(status, message))
            .unwrap_or(by_status),
    };
    with_details(A2aError::new(kind, message), &value)
}

/// What one SDK tells by status and words alone (ERR-04).
fn by_words(status: u16, message: &str) -> Option<ErrorKind> {
    match status {
        404 if message.starts_with("Task ") => Some(ErrorKind::TaskNotFound),
        409 => Some(ErrorKind::TaskNotCancelable),
        _ => None,
    }
}

/// Of several kinds with one code, the one that the status names.
fn by_code(code: i64, by_status: ErrorKind) -> ErrorKind {
    if by_status.json_rpc_code() == code {
        by_status
    } else {
        ErrorKind::from_json_rpc_code(code)
    }
}

/// The kind that `type` names: a class, or a URI of a problem such as `…/task-not-found`.
fn class(body: &Value) -> Option<ErrorKind> {
    let name = body["type"].as_str()?;
    if let Some((code, _)) = CLASSES.iter().find(|(_, class)| *class == name) {
        return Some(ErrorKind::from_json_rpc_code(*code));
    }
    let (_, problem) = name.rsplit_once('/')?;
    ErrorKind::from_reason(&problem.replace('-', "_").to_ascii_uppercase())
}

fn by_grpc(body: &Value) -> Option<ErrorKind> {
    match body["status"].as_str().and_then(GrpcStatus::from_name)? {
        GrpcStatus::InvalidArgument => Some(ErrorKind::InvalidParams),
        GrpcStatus::Internal => Some(ErrorKind::Internal),
        _ => None,
    }
}

/// Free-form data that is no list is kept as one detail.
fn with_details(error: A2aError, body: &Value) -> A2aError {
    let found = ["details", "data"]
        .iter()
        .map(|name| &body[*name])
        .find(|value| !value.is_null());
    match found {
        None => error,
        Some(Value::Array(details)) => error.with_details_json(details),
        Some(other) => error.with_details_json(std::slice::from_ref(other)),
    }
}

/// A reply that cannot be read, as a client sees it.
pub(super) fn unreadable(error: DecodeError) -> A2aError {
    let at = match error.path.as_str() {
        "" => String::new(),
        path => format!(" at {path}"),
    };
    A2aError::new(
        ErrorKind::InvalidAgentResponse,
        format!("unreadable result{at}: {error}"),
    )
}

/// What a client is told that asks for something 0.3 does not have.
pub(super) fn not_in_this_version(what: &str) -> A2aError {
    A2aError::new(
        ErrorKind::UnsupportedOperation,
        format!("protocol 0.3 has no form for {what}"),
    )
}
