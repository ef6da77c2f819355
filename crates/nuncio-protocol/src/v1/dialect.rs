//! Version 1.0 behind the seam: the bare spellings of this module, which are the types' own.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::rest::{HttpRequest, Route, RouteError};
use super::{json_rpc, rest};
use crate::dialect::{Dialect, JsonRpcDialect, Notification, RestDialect, StreamKind};
use crate::json::{self, DecodeError};
use crate::{
    A2aError, Event, Operation, OperationKind, Outcome, StatusProfile, StreamResponse, Task,
    Version,
};

/// The members that an item of a stream may have in this version.
const ITEMS: &[&str] = &[
    "task",
    "message",
    "statusUpdate",
    "status_update",
    "artifactUpdate",
    "artifact_update",
    "error",
];

/// Version 1.0.
#[derive(Clone, Copy, Debug)]
pub struct V1_0;

impl Dialect for V1_0 {
    fn version(&self) -> Version {
        Version::V1_0
    }

    fn extensions_header(&self) -> &'static str {
        "a2a-extensions"
    }

    fn instead(&self, _: &Operation, _: &A2aError) -> Option<Operation> {
        None
    }

    fn encode_notification(&self, event: &Event, _: &Task) -> Notification {
        Notification {
            content_type: "application/a2a+json",
            body: event.json().to_owned(),
        }
    }

    fn notifies_of_whole_tasks(&self) -> bool {
        false
    }

    fn marks_last_items(&self) -> bool {
        false
    }
}

impl JsonRpcDialect for V1_0 {
    fn kind(&self, method: &str) -> Option<OperationKind> {
        OperationKind::from_name(method)
    }

    fn method(&self, kind: OperationKind) -> Option<&'static str> {
        Some(kind.as_str())
    }

    fn decode_params(&self, kind: OperationKind, params: &str) -> Result<Operation, A2aError> {
        super::decode_operation(kind, params)
    }

    fn encode_params(&self, operation: &Operation) -> Result<String, A2aError> {
        Ok(operation.encode())
    }

    fn encode_result(&self, _: OperationKind, outcome: &Outcome) -> Result<String, A2aError> {
        super::encode_outcome(outcome, "null").ok_or_else(A2aError::internal)
    }

    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError> {
        super::decode_outcome(kind, result).map_err(json_rpc::unreadable)
    }

    fn encode_event<'e>(&self, event: &'e Event, _: StreamKind) -> Cow<'e, str> {
        event.json().into()
    }

    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError> {
        decode_item(result).map_err(json_rpc::unreadable)
    }

    fn streams_errors(&self) -> bool {
        false
    }

    fn encode_error(&self, error: &A2aError) -> Value {
        json_rpc::error_object(error)
    }
}

impl RestDialect for V1_0 {
    fn route(&self, method: &str, path: &str) -> Result<Route, RouteError> {
        rest::route(method, path)
    }

    fn decode_request(
        &self,
        route: &Route,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Operation, A2aError> {
        route.operation(query, body)
    }

    fn encode_request(&self, operation: &Operation) -> Result<HttpRequest, A2aError> {
        Ok(rest::encode_request(operation))
    }

    fn encode_result(&self, _: OperationKind, outcome: &Outcome) -> Result<String, A2aError> {
        rest::encode_outcome(outcome).ok_or_else(A2aError::internal)
    }

    fn decode_result(&self, kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
        rest::decode_outcome(kind, body)
    }

    fn encode_event<'e>(&self, event: &'e Event, _: StreamKind) -> Cow<'e, str> {
        event.json().into()
    }

    fn decode_event(&self, data: &[u8]) -> Result<Option<StreamResponse>, A2aError> {
        let text = json::check(data).map_err(json_rpc::unreadable)?;
        match decode_item(text) {
            Ok(item) => Ok(item),
            Err(_) => rest::decode_event(data).map(Some),
        }
    }

    fn encode_error(&self, error: &A2aError, profile: StatusProfile) -> String {
        rest::encode_error(error, profile)
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> A2aError {
        rest::decode_error(status, body)
    }

    fn has_own_media_type(&self) -> bool {
        true
    }
}

/// Reads an item; an object with none of the known members is one of a newer version (JSON-07).
fn decode_item(text: &str) -> Result<Option<StreamResponse>, DecodeError> {
    json::decode_checked(text).map(Some).or_else(|error| {
        let object: Result<Map<String, Value>, _> = serde_json::from_str(text);
        let unknown = object.is_ok_and(|object| {
            let absent = |name: &&str| object.get(*name).is_none_or(Value::is_null);
            ITEMS.iter().all(absent)
        });
        if unknown { Ok(None) } else { Err(error) }
    })
}
