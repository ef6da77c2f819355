//! Methods, params and results of 0.3 in JSON-RPC, as the JSON schema has them (0.3§7).

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::event::{self, Item};
use super::read::{Object, Read, Side};
use super::write::{Out, Spelt};
use super::{Form, V0_3, error, outcome, push, send};
use crate::dialect::{JsonRpcDialect, StreamKind};
use crate::json::{decode_checked, encode};
use crate::{
    A2aError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, Event,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, Message, Operation, OperationKind, Outcome, Role,
    StreamResponse, SubscribeToTaskRequest,
};

const METHODS: [(&str, OperationKind); 10] = [
    ("message/send", OperationKind::SendMessage),
    ("message/stream", OperationKind::SendStreamingMessage),
    ("tasks/get", OperationKind::GetTask),
    ("tasks/cancel", OperationKind::CancelTask),
    ("tasks/resubscribe", OperationKind::SubscribeToTask),
    (
        "tasks/pushNotificationConfig/set",
        OperationKind::CreateTaskPushNotificationConfig,
    ),
    (
        "tasks/pushNotificationConfig/get",
        OperationKind::GetTaskPushNotificationConfig,
    ),
    (
        "tasks/pushNotificationConfig/list",
        OperationKind::ListTaskPushNotificationConfigs,
    ),
    (
        "tasks/pushNotificationConfig/delete",
        OperationKind::DeleteTaskPushNotificationConfig,
    ),
    (
        "agent/getAuthenticatedExtendedCard",
        OperationKind::GetExtendedAgentCard,
    ),
];

impl JsonRpcDialect for V0_3 {
    fn kind(&self, method: &str) -> Option<OperationKind> {
        METHODS
            .iter()
            .find(|(name, _)| *name == method)
            .map(|(_, kind)| *kind)
    }

    fn method(&self, kind: OperationKind) -> Option<&'static str> {
        METHODS
            .iter()
            .find(|(_, known)| *known == kind)
            .map(|(name, _)| *name)
    }

    fn decode_params(&self, kind: OperationKind, params: &str) -> Result<Operation, A2aError> {
        Ok(read_params(
            kind,
            Object::parse(params, Form::Schema, Side::Request)?,
        )?)
    }

    fn encode_params(&self, operation: &Operation) -> Result<String, A2aError> {
        write_params(operation)
    }

    fn encode_result(&self, asked: OperationKind, answer: &Outcome) -> Result<String, A2aError> {
        outcome::encode(asked, answer, Form::Schema)
    }

    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError> {
        let value: Value = decode_checked(result).map_err(error::unreadable)?;
        outcome::decode(kind, value, Form::Schema).map_err(error::unreadable)
    }

    fn encode_event<'e>(&self, event: &'e Event, stream: StreamKind) -> Cow<'e, str> {
        encode(&Item(event.response(), Form::Schema, stream)).into()
    }

    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError> {
        Object::parse(result, Form::Schema, Side::Reply)
            .and_then(event::read)
            .map_err(error::unreadable)
    }

    fn streams_errors(&self) -> bool {
        true
    }

    fn encode_error(&self, error: &A2aError) -> Value {
        error::encode(error).into()
    }
}

fn read_params(kind: OperationKind, mut params: Object) -> Read<Operation> {
    Ok(match kind {
        OperationKind::SendMessage => Operation::SendMessage(send::read(params)?),
        OperationKind::SendStreamingMessage => Operation::SendStreamingMessage(send::read(params)?),
        OperationKind::GetTask => {
            let mut request = GetTaskRequest::new(params.id::<String>("id")?);
            request.history_length = params.int("historyLength")?;
            Operation::GetTask(request)
        }
        OperationKind::ListTasks => return Err(params.wrong_itself("0.3 does not list tasks")),
        OperationKind::CancelTask => {
            let mut request = CancelTaskRequest::new(params.id::<String>("id")?);
            request.metadata = params.metadata()?;
            Operation::CancelTask(request)
        }
        OperationKind::SubscribeToTask => {
            let id: String = params.id("id")?;
            Operation::SubscribeToTask(SubscribeToTaskRequest::new(id))
        }
        OperationKind::CreateTaskPushNotificationConfig => {
            Operation::CreateTaskPushNotificationConfig(push::read(params)?)
        }
        OperationKind::GetTaskPushNotificationConfig => {
            let (task, config): (_, Option<String>) = read_webhook_ids(&mut params)?;
            match config {
                Some(config) if config != push::DEFAULT_ID => get_webhook(task, config),
                _ => list_webhooks(task),
            }
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            list_webhooks(read_webhook_ids(&mut params)?.0)
        }
        OperationKind::DeleteTaskPushNotificationConfig => {
            let (task, config) = read_webhook_ids(&mut params)?;
            let request = DeleteTaskPushNotificationConfigRequest {
                task_id: task.into(),
                id: config.unwrap_or_default().into(),
                ..DeleteTaskPushNotificationConfigRequest::default()
            };
            Operation::DeleteTaskPushNotificationConfig(request)
        }
        OperationKind::GetExtendedAgentCard => {
            Operation::GetExtendedAgentCard(GetExtendedAgentCardRequest::default())
        }
    })
}

/// In 0.3 `id` is the task and in 1.0 the webhook: a request of 1.0 must not be taken for another.
fn read_webhook_ids(params: &mut Object) -> Read<(String, Option<String>)> {
    params.refuse_newer(
        "taskId",
        "`id` for the task and `pushNotificationConfigId` for the webhook",
    )?;
    let task = params.id("id")?;
    Ok((task, params.text("pushNotificationConfigId")?))
}

fn get_webhook(task: String, config: String) -> Operation {
    let request = GetTaskPushNotificationConfigRequest {
        task_id: task.into(),
        id: config.into(),
        ..GetTaskPushNotificationConfigRequest::default()
    };
    Operation::GetTaskPushNotificationConfig(request)
}

/// Also the way to read "the" webhook of a task, as older clients do (V03-08).
fn list_webhooks(task: String) -> Operation {
    let request = ListTaskPushNotificationConfigsRequest {
        task_id: task.into(),
        ..ListTaskPushNotificationConfigsRequest::default()
    };
    Operation::ListTaskPushNotificationConfigs(request)
}

fn write_params(operation: &Operation) -> Result<String, A2aError> {
    let by_id = |id| Ids { id, config: None };
    Ok(match operation {
        Operation::SendMessage(request) | Operation::SendStreamingMessage(request) => {
            if request.message.as_ref().is_some_and(lacks_role) {
                return Err(error::not_in_this_version("a message without a role"));
            }
            encode(&Spelt(request, Form::Schema))
        }
        Operation::GetTask(request) => encode(&GetParams(request)),
        Operation::ListTasks(_) => return Err(error::not_in_this_version("listing tasks")),
        Operation::CancelTask(request) => encode(&CancelParams(request)),
        Operation::SubscribeToTask(request) => encode(&by_id(request.id.as_str())),
        Operation::CreateTaskPushNotificationConfig(config) => encode(&Spelt(config, Form::Schema)),
        Operation::GetTaskPushNotificationConfig(request) => encode(&Ids {
            id: request.task_id.as_str(),
            config: Some(request.id.as_str()),
        }),
        Operation::ListTaskPushNotificationConfigs(request) => {
            encode(&by_id(request.task_id.as_str()))
        }
        Operation::DeleteTaskPushNotificationConfig(request) => encode(&Ids {
            id: request.task_id.as_str(),
            config: Some(request.id.as_str()),
        }),
        Operation::GetExtendedAgentCard(_) => "{}".to_owned(),
    })
}

fn lacks_role(message: &Message) -> bool {
    message.role == Role::Unspecified
}

struct Ids<'a> {
    id: &'a str,
    config: Option<&'a str>,
}

impl Serialize for Ids<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("id", self.id)?;
        out.text("pushNotificationConfigId", self.config)?;
        out.end()
    }
}

struct GetParams<'a>(&'a GetTaskRequest);

impl Serialize for GetParams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("id", &self.0.id)?;
        out.some("historyLength", self.0.history_length)?;
        out.end()
    }
}

struct CancelParams<'a>(&'a CancelTaskRequest);

impl Serialize for CancelParams<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("id", &self.0.id)?;
        out.some("metadata", self.0.metadata.as_ref())?;
        out.end()
    }
}
