//! Queries and bodies of 0.3 in HTTP+JSON, as the JSON of the proto has them (0.3§3.2.3).

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::event::{self, Item};
use super::read::{Object, Read, Side};
use super::{Form, V0_3, error, outcome, push, requests, routes, send, task};
use crate::dialect::{RestDialect, StreamKind};
use crate::json::{self, encode};
use crate::v1::rest::{HttpRequest, Route, RouteError};
use crate::{
    A2aError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, ErrorKind, Event,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Operation, OperationKind, Outcome,
    StatusProfile, StreamResponse, SubscribeToTaskRequest, TaskPushNotificationConfig, TaskState,
};

impl RestDialect for V0_3 {
    fn route(&self, method: &str, path: &str) -> Result<Route, RouteError> {
        routes::route(method, path)
    }

    fn decode_request(
        &self,
        route: &Route,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Operation, A2aError> {
        let params = query_object(query)?;
        let task = route.task_id.as_deref().unwrap_or_default();
        let config = route.config_id.as_deref().unwrap_or_default();
        Ok(match route.kind {
            OperationKind::SendMessage => Operation::SendMessage(send::read(body_object(body)?)?),
            OperationKind::SendStreamingMessage => {
                Operation::SendStreamingMessage(send::read(body_object(body)?)?)
            }
            OperationKind::CancelTask => {
                Operation::CancelTask(read_cancel(task, optional_body(body)?)?)
            }
            OperationKind::CreateTaskPushNotificationConfig => {
                let config = read_create(task, params, body_object(body)?)?;
                Operation::CreateTaskPushNotificationConfig(config)
            }
            kind => read_query(kind, task, config, params)?,
        })
    }

    fn encode_request(&self, operation: &Operation) -> Result<HttpRequest, A2aError> {
        requests::write(operation)
    }

    fn encode_result(&self, asked: OperationKind, answer: &Outcome) -> Result<String, A2aError> {
        outcome::encode(asked, answer, Form::Proto)
    }

    fn decode_result(&self, kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
        if kind == OperationKind::DeleteTaskPushNotificationConfig {
            return Ok(Outcome::Deleted);
        }
        let value: Value = json::decode(body).map_err(error::unreadable)?;
        outcome::decode(kind, value, Form::Proto).map_err(error::unreadable)
    }

    fn encode_event<'e>(&self, event: &'e Event, stream: StreamKind) -> Cow<'e, str> {
        encode(&Item(event.response(), Form::Proto, stream)).into()
    }

    fn decode_event(&self, data: &[u8]) -> Result<Option<StreamResponse>, A2aError> {
        let value: Value = json::decode(data).map_err(error::unreadable)?;
        if value["error"].is_object() || value["code"].is_i64() {
            return Err(error::decode_error(500, data));
        }
        Object::new(value, String::new(), Form::Proto, Side::Reply)
            .and_then(event::read)
            .map_err(error::unreadable)
    }

    fn encode_error(&self, error: &A2aError, _profile: StatusProfile) -> String {
        error::encode_body(error)
    }

    fn decode_error(&self, status: u16, body: &[u8]) -> A2aError {
        error::decode_error(status, body)
    }

    fn has_own_media_type(&self) -> bool {
        false
    }
}

fn request_object(value: Value) -> Read<Object> {
    Object::new(value, String::new(), Form::Proto, Side::Request)
}

fn body_object(body: &[u8]) -> Result<Object, A2aError> {
    let text = json::check_within(body, json::MAX_REQUEST_DEPTH)?;
    if text.trim_ascii().is_empty() {
        let message = "the body is empty, expected a JSON object";
        return Err(A2aError::new(ErrorKind::ParseError, message));
    }
    let value: Value = json::decode_checked(text)?;
    if !value.is_object() {
        return Err(A2aError::invalid_field(
            "",
            "the body must be a JSON object",
        ));
    }
    Ok(request_object(value)?)
}

/// As [`body_object`], for what has no member that is needed.
fn optional_body(body: &[u8]) -> Result<Object, A2aError> {
    if matches!(body.trim_ascii(), b"" | b"null") {
        return Ok(request_object(json!({}))?);
    }
    body_object(body)
}

/// Turns a query into an object of texts; names may be spelt as in the proto.
fn query_object(query: Option<&str>) -> Result<Object, A2aError> {
    let mut members = Map::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let name = json::camel_case(&name);
        let value = match (name.as_str(), &*value) {
            ("includeArtifacts", "true") => Value::Bool(true),
            ("includeArtifacts", "false") => Value::Bool(false),
            (_, text) => Value::String(text.to_owned()),
        };
        if members.insert(name.clone(), value).is_some() {
            return Err(A2aError::invalid_field(name, "is given twice"));
        }
    }
    Ok(request_object(Value::Object(members))?)
}

fn agree(field: &str, in_body: Option<&str>, in_path: &str) -> Result<(), A2aError> {
    match in_body {
        Some(id) if !id.is_empty() && id != in_path => {
            Err(A2aError::invalid_field(field, "differs from the path"))
        }
        _ => Ok(()),
    }
}

fn read_cancel(task: &str, mut body: Object) -> Result<CancelTaskRequest, A2aError> {
    let name = body.any_text("name")?.unwrap_or_default();
    let (named, _) = push::ids_of(&name);
    agree("name", named.as_ref().map(|id| id.as_str()), task)?;
    let mut request = CancelTaskRequest::new(task);
    request.metadata = body.metadata()?;
    Ok(request)
}

/// Reads any of the three bodies in use (V03-REST-04): whole, or the config alone.
fn read_create(
    task: &str,
    mut query: Object,
    mut body: Object,
) -> Result<TaskPushNotificationConfig, A2aError> {
    let parent = body.any_text("parent")?.unwrap_or_default();
    let (parent, _) = push::ids_of(&parent);
    agree("parent", parent.as_ref().map(|id| id.as_str()), task)?;
    let in_body = body.some_id("configId")?;
    let id = in_body.or(query.some_id("configId")?);
    let inner = match body.object(&["config"])? {
        Some(inner) => inner,
        None => body,
    };
    let field = inner.path_of("name");
    let mut config = push::read(inner)?;
    agree(&field, config.task_id.as_ref().map(|id| id.as_str()), task)?;
    config.task_id = Some(task.into());
    config.id = id.or(config.id);
    Ok(config)
}

fn read_query(
    kind: OperationKind,
    task: &str,
    config: &str,
    mut query: Object,
) -> Result<Operation, A2aError> {
    Ok(match kind {
        OperationKind::GetTask => {
            let mut request = GetTaskRequest::new(task);
            request.history_length = query.int("historyLength")?;
            Operation::GetTask(request)
        }
        OperationKind::ListTasks => Operation::ListTasks(read_list(query)?),
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(SubscribeToTaskRequest::new(task))
        }
        OperationKind::GetTaskPushNotificationConfig => {
            let request = GetTaskPushNotificationConfigRequest {
                task_id: task.into(),
                id: config.into(),
                ..GetTaskPushNotificationConfigRequest::default()
            };
            Operation::GetTaskPushNotificationConfig(request)
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            let request = ListTaskPushNotificationConfigsRequest {
                task_id: task.into(),
                page_size: query.int("pageSize")?.unwrap_or_default(),
                page_token: query.text("pageToken")?,
                ..ListTaskPushNotificationConfigsRequest::default()
            };
            Operation::ListTaskPushNotificationConfigs(request)
        }
        OperationKind::DeleteTaskPushNotificationConfig => {
            let request = DeleteTaskPushNotificationConfigRequest {
                task_id: task.into(),
                id: config.into(),
                ..DeleteTaskPushNotificationConfigRequest::default()
            };
            Operation::DeleteTaskPushNotificationConfig(request)
        }
        _ => Operation::GetExtendedAgentCard(GetExtendedAgentCardRequest::default()),
    })
}

/// The filters of 1.0, since 0.3 names none (V03-11).
fn read_list(mut query: Object) -> Read<ListTasksRequest> {
    let mut request = ListTasksRequest {
        context_id: query.some_id("contextId")?,
        ..ListTasksRequest::default()
    };
    if let Some(name) = query.take("status")? {
        let state = task::state_of(&name).ok_or_else(|| query.wrong("status", "is no state"))?;
        request.status = Some(state).filter(|state| *state != TaskState::Unspecified);
    }
    request.page_size = query.int("pageSize")?;
    request.page_token = query.any_text("pageToken")?;
    request.history_length = query.int("historyLength")?;
    request.status_timestamp_after = task::read_time(&mut query, "statusTimestampAfter")?;
    request.include_artifacts = query.flag("includeArtifacts")?;
    Ok(request)
}
