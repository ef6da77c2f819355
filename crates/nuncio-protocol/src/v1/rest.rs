//! Paths, queries and bodies of the HTTP+JSON binding of version 1.0. Spec: §11

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::json;
use crate::{
    A2aError, ErrorKind, GrpcStatus, ListTasksRequest, Operation, OperationKind, Outcome,
    StatusProfile, StreamResponse,
};

/// Which operation a path and an HTTP method mean, with the ids in the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The operation.
    pub kind: OperationKind,
    /// The tenant, if the path begins with one.
    pub tenant: Option<String>,
    /// The task in the path.
    pub task_id: Option<String>,
    /// The webhook in the path.
    pub config_id: Option<String>,
}

/// A path that is not one of the binding's, or not with this HTTP method (REST-06).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    /// No such path.
    NotFound,
    /// The path exists; these HTTP methods go with it.
    MethodNotAllowed(&'static [&'static str]),
}

/// Names that cannot be tenants, since paths begin with them (TEN-03).
pub const RESERVED_TENANTS: &[&str] = &[
    "tasks",
    "message:send",
    "message:stream",
    "extendedAgentCard",
    ".well-known",
    "v1",
];

/// Finds the operation for an HTTP method and a path below the interface's address.
///
/// `path` begins with `/` and is still percent-encoded; ids are decoded once, and a verb is split
/// at the last colon only (REST-05).
///
/// # Errors
/// [`RouteError`].
pub fn route(method: &str, path: &str) -> Result<Route, RouteError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = path
        .strip_prefix('/')
        .ok_or(RouteError::NotFound)?
        .split('/')
        .collect();
    match untenanted(method, &segments) {
        Err(RouteError::NotFound) => {
            let [tenant, rest @ ..] = segments.as_slice() else {
                return Err(RouteError::NotFound);
            };
            let tenant = decoded(tenant)?;
            if tenant.is_empty() || RESERVED_TENANTS.contains(&tenant.as_str()) {
                return Err(RouteError::NotFound);
            }
            let route = untenanted(method, rest)?;
            Ok(Route {
                tenant: Some(tenant),
                ..route
            })
        }
        found => found,
    }
}

fn untenanted(method: &str, segments: &[&str]) -> Result<Route, RouteError> {
    use OperationKind::{
        CancelTask, CreateTaskPushNotificationConfig, DeleteTaskPushNotificationConfig,
        GetExtendedAgentCard, GetTask, GetTaskPushNotificationConfig,
        ListTaskPushNotificationConfigs, ListTasks, SendMessage, SendStreamingMessage,
        SubscribeToTask,
    };
    type Methods = &'static [(&'static str, OperationKind)];
    let (methods, task, config): (Methods, _, _) = match segments {
        ["message:send"] => (&[("POST", SendMessage)], None, None),
        ["message:stream"] => (&[("POST", SendStreamingMessage)], None, None),
        ["extendedAgentCard"] => (&[("GET", GetExtendedAgentCard)], None, None),
        ["tasks"] => (&[("GET", ListTasks)], None, None),
        ["tasks", last] if !last.is_empty() => match last.rsplit_once(':') {
            Some((id, "cancel")) => (&[("POST", CancelTask)], Some(id), None),
            Some((id, "subscribe")) => (
                &[("POST", SubscribeToTask), ("GET", SubscribeToTask)],
                Some(id),
                None,
            ),
            _ => (&[("GET", GetTask)], Some(*last), None),
        },
        ["tasks", id, "pushNotificationConfigs"] => (
            &[
                ("POST", CreateTaskPushNotificationConfig),
                ("GET", ListTaskPushNotificationConfigs),
            ],
            Some(*id),
            None,
        ),
        ["tasks", id, "pushNotificationConfigs", config] if !config.is_empty() => (
            &[
                ("GET", GetTaskPushNotificationConfig),
                ("DELETE", DeleteTaskPushNotificationConfig),
            ],
            Some(*id),
            Some(*config),
        ),
        _ => return Err(RouteError::NotFound),
    };
    let asked = if method == "HEAD" { "GET" } else { method };
    let Some((_, kind)) = methods.iter().find(|(name, _)| *name == asked) else {
        return Err(RouteError::MethodNotAllowed(allowed(methods)));
    };
    Ok(Route {
        kind: *kind,
        tenant: None,
        task_id: task.map(decoded).transpose()?,
        config_id: config.map(decoded).transpose()?,
    })
}

fn allowed(methods: &[(&str, OperationKind)]) -> &'static [&'static str] {
    match methods {
        [("POST", _)] => &["POST"],
        [("GET", _)] => &["GET"],
        [("GET", _), ("DELETE", _)] => &["GET", "DELETE"],
        _ => &["GET", "POST"],
    }
}

fn decoded(segment: &str) -> Result<String, RouteError> {
    percent_decode_str(segment)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| RouteError::NotFound)
}

impl Route {
    /// Reads the operation from query and body.
    ///
    /// # Errors
    /// [`ErrorKind::ParseError`], or [`ErrorKind::InvalidParams`] naming the field, also where path
    /// and body disagree (OP-PCRE-07, TEN-04).
    pub fn operation(&self, query: Option<&str>, body: &[u8]) -> Result<Operation, A2aError> {
        let text = match self.kind {
            OperationKind::SendMessage
            | OperationKind::SendStreamingMessage
            | OperationKind::CancelTask
            | OperationKind::CreateTaskPushNotificationConfig => body_object(self.kind, body)?,
            _ => Cow::Owned(query_object(self.kind, query)?),
        };
        let mut operation = super::decode_operation(self.kind, &text)?;
        self.put_ids(&mut operation)?;
        self.put_tenant(&mut operation)?;
        Ok(operation)
    }

    fn put_ids(&self, operation: &mut Operation) -> Result<(), A2aError> {
        let task = self.task_id.as_deref().unwrap_or_default();
        let config = self.config_id.as_deref().unwrap_or_default();
        match operation {
            Operation::GetTask(r) => r.id = task.into(),
            Operation::SubscribeToTask(r) => r.id = task.into(),
            Operation::CancelTask(r) => {
                agree("id", r.id.as_str(), task)?;
                r.id = task.into();
            }
            Operation::CreateTaskPushNotificationConfig(r) => {
                agree(
                    "taskId",
                    r.task_id.as_ref().map_or("", |id| id.as_str()),
                    task,
                )?;
                r.task_id = Some(task.into());
            }
            Operation::GetTaskPushNotificationConfig(r) => {
                (r.task_id, r.id) = (task.into(), config.into());
            }
            Operation::ListTaskPushNotificationConfigs(r) => r.task_id = task.into(),
            Operation::DeleteTaskPushNotificationConfig(r) => {
                (r.task_id, r.id) = (task.into(), config.into());
            }
            Operation::SendMessage(_)
            | Operation::SendStreamingMessage(_)
            | Operation::ListTasks(_)
            | Operation::GetExtendedAgentCard(_) => {}
        }
        Ok(())
    }

    fn put_tenant(&self, operation: &mut Operation) -> Result<(), A2aError> {
        let Some(tenant) = &self.tenant else {
            return Ok(());
        };
        agree("tenant", operation.tenant().unwrap_or_default(), tenant)?;
        operation.set_tenant(Some(tenant.clone()));
        Ok(())
    }
}

fn agree(field: &str, in_body: &str, in_path: &str) -> Result<(), A2aError> {
    if in_body.is_empty() || in_body == in_path {
        return Ok(());
    }
    Err(A2aError::invalid_field(field, "differs from the path"))
}

fn body_object(kind: OperationKind, body: &[u8]) -> Result<Cow<'_, str>, A2aError> {
    let text =
        json::check_within(body, json::MAX_REQUEST_DEPTH)?.trim_matches([' ', '\t', '\r', '\n']);
    let optional = kind == OperationKind::CancelTask;
    match text.as_bytes().first() {
        None if optional => Ok("{}".into()),
        None => Err(A2aError::new(
            ErrorKind::ParseError,
            "the body is empty, expected a JSON object",
        )),
        Some(b'{') => Ok(text.into()),
        _ if optional && text == "null" => Ok("{}".into()),
        _ => match json::decode_checked::<serde::de::IgnoredAny>(text) {
            Err(error) => Err(error.into()),
            Ok(_) => Err(A2aError::invalid_field(
                "",
                "the body must be a JSON object",
            )),
        },
    }
}

/// What a query parameter means to each operation that takes some (REST-02).
fn query_names(kind: OperationKind) -> &'static [&'static str] {
    match kind {
        OperationKind::GetTask => &["historyLength", "tenant"],
        OperationKind::ListTasks => &[
            "contextId",
            "status",
            "pageSize",
            "pageToken",
            "historyLength",
            "statusTimestampAfter",
            "includeArtifacts",
            "tenant",
        ],
        OperationKind::ListTaskPushNotificationConfigs => &["pageSize", "pageToken", "tenant"],
        _ => &["tenant"],
    }
}

/// Turns a query into the JSON object of the request; unknown names are ignored.
fn query_object(kind: OperationKind, query: Option<&str>) -> Result<String, A2aError> {
    let mut object = Map::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let camel = json::camel_case(&name);
        if !query_names(kind).contains(&camel.as_str()) {
            continue;
        }
        let value = query_value(&camel, &value)?;
        if object.insert(camel.clone(), value).is_some() {
            return Err(A2aError::invalid_field(camel, "is given twice"));
        }
    }
    Ok(json::encode(&object))
}

fn query_value(name: &str, value: &str) -> Result<Value, A2aError> {
    if name == "includeArtifacts" {
        return match value {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(A2aError::invalid_field(name, "must be true or false")),
        };
    }
    if name == "status"
        && value.bytes().all(|b| b.is_ascii_digit())
        && let Ok(number) = value.parse::<u32>()
    {
        return Ok(number.into());
    }
    Ok(Value::String(value.to_owned()))
}

/// An HTTP request without its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The HTTP method.
    pub method: &'static str,
    /// Path and query below the interface's address, beginning with `/`.
    pub target: String,
    /// The JSON body, if there is one.
    pub body: Option<String>,
}

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Writes an operation as an HTTP request (REST-01, TEN-02).
pub fn encode_request(operation: &Operation) -> HttpRequest {
    let prefix = operation
        .tenant()
        .filter(|tenant| !tenant.is_empty())
        .map(|tenant| format!("/{}", segment(tenant)))
        .unwrap_or_default();
    let request = |method, path: String, body| HttpRequest {
        method,
        target: format!("{prefix}{path}"),
        body,
    };
    let body = || Some(operation.encode());
    match operation {
        Operation::SendMessage(_) => request("POST", "/message:send".to_owned(), body()),
        Operation::SendStreamingMessage(_) => request("POST", "/message:stream".to_owned(), body()),
        Operation::GetTask(r) => {
            let query = r
                .history_length
                .map(|n| format!("?historyLength={n}"))
                .unwrap_or_default();
            request(
                "GET",
                format!("/tasks/{}{query}", segment(r.id.as_str())),
                None,
            )
        }
        Operation::ListTasks(r) => request("GET", format!("/tasks{}", list_query(r)), None),
        Operation::CancelTask(r) => request(
            "POST",
            format!("/tasks/{}:cancel", segment(r.id.as_str())),
            body(),
        ),
        Operation::SubscribeToTask(r) => request(
            "POST",
            format!("/tasks/{}:subscribe", segment(r.id.as_str())),
            None,
        ),
        Operation::CreateTaskPushNotificationConfig(r) => {
            let task = r.task_id.as_ref().map_or("", |id| id.as_str());
            request("POST", configs_path(task), body())
        }
        Operation::GetTaskPushNotificationConfig(r) => {
            let path = format!(
                "{}/{}",
                configs_path(r.task_id.as_str()),
                segment(r.id.as_str())
            );
            request("GET", path, None)
        }
        Operation::ListTaskPushNotificationConfigs(r) => {
            let mut query = form_urlencoded::Serializer::new(String::new());
            if r.page_size != 0 {
                query.append_pair("pageSize", &r.page_size.to_string());
            }
            if let Some(token) = &r.page_token {
                query.append_pair("pageToken", token);
            }
            request(
                "GET",
                format!(
                    "{}{}",
                    configs_path(r.task_id.as_str()),
                    question(query.finish())
                ),
                None,
            )
        }
        Operation::DeleteTaskPushNotificationConfig(r) => {
            let path = format!(
                "{}/{}",
                configs_path(r.task_id.as_str()),
                segment(r.id.as_str())
            );
            request("DELETE", path, None)
        }
        Operation::GetExtendedAgentCard(_) => request("GET", "/extendedAgentCard".to_owned(), None),
    }
}

fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

fn configs_path(task: &str) -> String {
    format!("/tasks/{}/pushNotificationConfigs", segment(task))
}

fn question(query: String) -> String {
    if query.is_empty() {
        query
    } else {
        format!("?{query}")
    }
}

fn list_query(request: &ListTasksRequest) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(context) = &request.context_id {
        query.append_pair("contextId", context.as_str());
    }
    if let Some(status) = request.status {
        query.append_pair("status", status.as_str());
    }
    if let Some(size) = request.page_size {
        query.append_pair("pageSize", &size.to_string());
    }
    if let Some(token) = &request.page_token {
        query.append_pair("pageToken", token);
    }
    if let Some(length) = request.history_length {
        query.append_pair("historyLength", &length.to_string());
    }
    if let Some(time) = request.status_timestamp_after {
        query.append_pair("statusTimestampAfter", &time.to_string());
    }
    if let Some(include) = request.include_artifacts {
        query.append_pair("includeArtifacts", if include { "true" } else { "false" });
    }
    question(query.finish())
}

/// Writes a result; `None` for a stream, whose events are written one by one.
pub fn encode_outcome(outcome: &Outcome) -> Option<String> {
    super::encode_outcome(outcome, "{}")
}

/// Writes an error body (REST-08).
pub fn encode_error(error: &A2aError, profile: StatusProfile) -> String {
    let mut body = Map::new();
    body.insert("code".to_owned(), error.kind.http_status(profile).into());
    body.insert(
        "status".to_owned(),
        error.kind.grpc_status(profile).as_str().into(),
    );
    body.insert("message".to_owned(), error.message.clone().into());
    body.insert("details".to_owned(), error.details_json().into());
    json::encode(&serde_json::json!({ "error": body }))
}

/// Reads the result of an operation that does not stream.
///
/// # Errors
/// [`ErrorKind::InvalidAgentResponse`] for what is no such result.
pub fn decode_outcome(kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
    if kind == OperationKind::DeleteTaskPushNotificationConfig {
        return Ok(Outcome::Deleted);
    }
    let text = json::check(body).map_err(super::json_rpc::unreadable)?;
    super::decode_outcome(kind, text).map_err(super::json_rpc::unreadable)
}

/// Reads one event of a stream, which may be an error (REST-09).
///
/// # Errors
/// The peer's error, or [`ErrorKind::InvalidAgentResponse`].
pub fn decode_event(data: &[u8]) -> Result<StreamResponse, A2aError> {
    let text = json::check(data).map_err(super::json_rpc::unreadable)?;
    json::decode_checked(text).map_err(|unreadable| {
        let told = json::decode_checked::<Value>(text)
            .is_ok_and(|value| value["error"].is_object() || value["code"].is_i64());
        if told {
            decode_error(500, data)
        } else {
            super::json_rpc::unreadable(unreadable)
        }
    })
}

/// Reads an error reply of any shape met in the wild (ERR-04, ERR-05).
///
/// A body that tells nothing leaves what the status tells; a body that is no error at all is an
/// invalid response if the status is 500, since then nothing else is known.
pub fn decode_error(status: u16, body: &[u8]) -> A2aError {
    let fallback = || {
        let kind = if status == 500 {
            ErrorKind::InvalidAgentResponse
        } else {
            ErrorKind::from_http_status(status)
        };
        A2aError::new(kind, format!("the agent answered HTTP status {status}"))
    };
    let Ok(mut value) = json::decode::<Value>(body) else {
        return fallback();
    };
    if value["error"].is_object() {
        value = value["error"].take();
    }
    let message = ["message", "detail", "title"]
        .iter()
        .find_map(|name| value[*name].as_str());
    let (Some(kind), Some(message)) = (error_kind(status, &value), message) else {
        return fallback();
    };
    let details = ["details", "data"]
        .iter()
        .find_map(|name| value[*name].as_array());
    A2aError::new(kind, message).with_details_json(details.map_or(&[], Vec::as_slice))
}

fn error_kind(status: u16, body: &Value) -> Option<ErrorKind> {
    let Some(code) = body["code"].as_i64() else {
        return body
            .is_object()
            .then(|| ErrorKind::from_http_status(status));
    };
    if code < 0 {
        return Some(ErrorKind::from_json_rpc_code(code));
    }
    Some(
        match body["status"].as_str().and_then(GrpcStatus::from_name) {
            Some(GrpcStatus::InvalidArgument) => ErrorKind::InvalidParams,
            Some(GrpcStatus::Internal) => ErrorKind::Internal,
            _ => ErrorKind::from_http_status(u16::try_from(code).unwrap_or(status)),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ERR-05: every shape met in the wild gives the peer's words.
    #[test]
    fn error_bodies_of_any_shape_are_understood() {
        let google = r#"{"error":{"code":404,"status":"NOT_FOUND","message":"gone","details":[
            {"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND",
             "domain":"a2a-protocol.org","metadata":{}}]}}"#;
        for (status, body, kind) in [
            (404, google, ErrorKind::TaskNotFound),
            (
                400,
                r#"{"code":-32004,"message":"gone","data":[],"details":[]}"#,
                ErrorKind::UnsupportedOperation,
            ),
            (
                500,
                r#"{"title":"short","detail":"gone"}"#,
                ErrorKind::Internal,
            ),
            (404, r#"{"detail":"gone"}"#, ErrorKind::MethodNotFound),
            (429, r#"{"message":"gone"}"#, ErrorKind::ResourceExhausted),
        ] {
            let error = decode_error(status, body.as_bytes());
            assert_eq!(
                (error.kind, error.message.as_str()),
                (kind, "gone"),
                "{body}"
            );
        }
        for body in ["", "<html>", "[]", "7", "{}", "\"text\""] {
            assert_eq!(
                decode_error(502, body.as_bytes()).kind,
                ErrorKind::Unavailable,
                "{body}"
            );
            assert_eq!(
                decode_error(404, body.as_bytes()).kind,
                ErrorKind::MethodNotFound,
                "{body}"
            );
        }
    }
}
