//! Paths of 0.3 in HTTP+JSON, all below `/v1` (0.3§3.5.3).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::OperationKind::{
    self, CancelTask, CreateTaskPushNotificationConfig, DeleteTaskPushNotificationConfig,
    GetExtendedAgentCard, GetTask, GetTaskPushNotificationConfig, ListTaskPushNotificationConfigs,
    ListTasks, SendMessage, SendStreamingMessage, SubscribeToTask,
};
use crate::v1::rest::{Route, RouteError};

/// What a path takes: HTTP methods with their operations, the methods again, task and webhook.
type Found<'p> = (
    &'static [(&'static str, OperationKind)],
    &'static [&'static str],
    Option<&'p str>,
    Option<&'p str>,
);

/// Finds the operation for an HTTP method and a path that is still percent-encoded.
///
/// The proto calls the collection `task` in one place and `tasks` in all others: both are taken.
pub(super) fn route(method: &str, path: &str) -> Result<Route, RouteError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.strip_prefix("/v1/").ok_or(RouteError::NotFound)?;
    let segments: Vec<&str> = path.split('/').collect();
    let (methods, allowed, task, config) = find(&segments).ok_or(RouteError::NotFound)?;
    let asked = if method == "HEAD" { "GET" } else { method };
    let Some((_, kind)) = methods.iter().find(|(name, _)| *name == asked) else {
        return Err(RouteError::MethodNotAllowed(allowed));
    };
    Ok(Route {
        kind: *kind,
        tenant: None,
        task_id: task.map(decoded).transpose()?,
        config_id: config.map(decoded).transpose()?,
    })
}

fn find<'p>(segments: &[&'p str]) -> Option<Found<'p>> {
    Some(match *segments {
        ["message:send"] => (&[("POST", SendMessage)], &["POST"], None, None),
        ["message:stream"] => (&[("POST", SendStreamingMessage)], &["POST"], None, None),
        ["card"] => (&[("GET", GetExtendedAgentCard)], &["GET"], None, None),
        ["tasks"] => (&[("GET", ListTasks)], &["GET"], None, None),
        ["task" | "tasks", last] if !last.is_empty() => match last.rsplit_once(':') {
            Some((id, "cancel")) => (&[("POST", CancelTask)], &["POST"], Some(id), None),
            Some((id, "subscribe")) => (
                &[("POST", SubscribeToTask), ("GET", SubscribeToTask)],
                &["GET", "POST"],
                Some(id),
                None,
            ),
            _ => (&[("GET", GetTask)], &["GET"], Some(last), None),
        },
        ["task" | "tasks", id, "pushNotificationConfigs"] => (
            &[
                ("POST", CreateTaskPushNotificationConfig),
                ("GET", ListTaskPushNotificationConfigs),
            ],
            &["GET", "POST"],
            Some(id),
            None,
        ),
        ["task" | "tasks", id, "pushNotificationConfigs", config] if !config.is_empty() => (
            &[
                ("GET", GetTaskPushNotificationConfig),
                ("DELETE", DeleteTaskPushNotificationConfig),
            ],
            &["GET", "DELETE"],
            Some(id),
            Some(config),
        ),
        _ => return None,
    })
}

fn decoded(segment: &str) -> Result<String, RouteError> {
    percent_decode_str(segment)
        .decode_utf8()
        .map(Cow::into_owned)
        .map_err(|_| RouteError::NotFound)
}

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The path of a task.
pub(super) fn task_path(task: &str) -> String {
    format!("/v1/tasks/{}", utf8_percent_encode(task, SEGMENT))
}

/// The path of a task's webhooks.
pub(super) fn configs_path(task: &str) -> String {
    format!("{}/pushNotificationConfigs", task_path(task))
}

/// The path of one webhook.
pub(super) fn config_path(task: &str, config: &str) -> String {
    let config = utf8_percent_encode(config, SEGMENT);
    format!("{}/{config}", configs_path(task))
}
