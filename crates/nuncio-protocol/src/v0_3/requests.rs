//! Operations as HTTP requests of 0.3.

use serde::{Serialize, Serializer};

use super::routes::{config_path, configs_path, task_path};
use super::write::{Out, Spelt};
use super::{Form, error, push};
use crate::json::encode;
use crate::v1::rest::HttpRequest;
use crate::{
    A2aError, CancelTaskRequest, ListTaskPushNotificationConfigsRequest, Operation,
    TaskPushNotificationConfig,
};

/// Writes an operation as an HTTP request.
pub(super) fn write(operation: &Operation) -> Result<HttpRequest, A2aError> {
    let request = |method, target, body| HttpRequest {
        method,
        target,
        body,
    };
    let send = |verb: &str, body| request("POST", format!("/v1/message:{verb}"), Some(body));
    Ok(match operation {
        Operation::SendMessage(r) => send("send", encode(&Spelt(r, Form::Proto))),
        Operation::SendStreamingMessage(r) => send("stream", encode(&Spelt(r, Form::Proto))),
        Operation::GetTask(r) => {
            let path = task_path(r.id.as_str());
            let target = match r.history_length {
                Some(length) => format!("{path}?historyLength={length}"),
                None => path,
            };
            request("GET", target, None)
        }
        Operation::ListTasks(_) => return Err(error::not_in_this_version("listing tasks")),
        Operation::CancelTask(r) => {
            let target = format!("{}:cancel", task_path(r.id.as_str()));
            request("POST", target, Some(encode(&CancelBody(r))))
        }
        Operation::SubscribeToTask(r) => {
            let target = format!("{}:subscribe", task_path(r.id.as_str()));
            request("POST", target, None)
        }
        Operation::CreateTaskPushNotificationConfig(config) => {
            let task = config.task_id.as_ref().map_or("", |id| id.as_str());
            let body = encode(&CreateBody(config));
            request("POST", configs_path(task), Some(body))
        }
        Operation::GetTaskPushNotificationConfig(r) => {
            let target = config_path(r.task_id.as_str(), r.id.as_str());
            request("GET", target, None)
        }
        Operation::ListTaskPushNotificationConfigs(r) => request("GET", list_target(r), None),
        Operation::DeleteTaskPushNotificationConfig(r) => {
            let target = config_path(r.task_id.as_str(), r.id.as_str());
            request("DELETE", target, None)
        }
        Operation::GetExtendedAgentCard(_) => request("GET", "/v1/card".to_owned(), None),
    })
}

fn list_target(request: &ListTaskPushNotificationConfigsRequest) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if request.page_size != 0 {
        query.append_pair("pageSize", &request.page_size.to_string());
    }
    if let Some(token) = &request.page_token {
        query.append_pair("pageToken", token);
    }
    let path = configs_path(request.task_id.as_str());
    match query.finish() {
        query if query.is_empty() => path,
        query => format!("{path}?{query}"),
    }
}

struct CancelBody<'a>(&'a CancelTaskRequest);

impl Serialize for CancelBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("name", &push::task_name(self.0.id.as_str()))?;
        out.some("metadata", self.0.metadata.as_ref())?;
        out.end()
    }
}

struct CreateBody<'a>(&'a TaskPushNotificationConfig);

impl Serialize for CreateBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let task = self.0.task_id.as_ref().map_or("", |id| id.as_str());
        let mut out = Out::new(serializer)?;
        out.put("parent", &push::task_name(task))?;
        out.text("configId", self.0.id.as_ref().map(|id| id.as_str()))?;
        out.put("config", &Spelt(self.0, Form::Proto))?;
        out.end()
    }
}
