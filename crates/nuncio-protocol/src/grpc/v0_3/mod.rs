//! Version 0.3 in protobuf: package `a2a.v1`.
//!
//! What is lost of 1.0 beside the losses of [`crate::v0_3`]: `referenceTaskIds`, the metadata of a
//! cancellation, and `historyLength` 0, which asks for everything here: it is written as 1.

mod card;
mod messages;
mod names;

use super::convert::{Proto, bad_answer, bad_request, decode, read, write};
use super::generated::a2a_v1 as pb;
use crate::dialect::{Dialect, GrpcDialect, Notification, StreamKind};
use crate::json::DecodeError;
use crate::{
    A2aError, ErrorKind, Event, GetExtendedAgentCardRequest, Operation, OperationKind, Outcome,
    StreamResponse, Task, Version,
};

/// Version 0.3 over gRPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V0_3;

impl Dialect for V0_3 {
    fn version(&self) -> Version {
        Version::V0_3
    }

    fn extensions_header(&self) -> &'static str {
        "x-a2a-extensions"
    }

    /// A task that has ended is shown to whoever wants to follow it (V03-05).
    fn instead(&self, asked: &Operation, error: &A2aError) -> Option<Operation> {
        crate::v0_3::V0_3.instead(asked, error)
    }

    fn encode_notification(&self, event: &Event, task: &Task) -> Notification {
        crate::v0_3::V0_3.encode_notification(event, task)
    }

    fn notifies_of_whole_tasks(&self) -> bool {
        crate::v0_3::V0_3.notifies_of_whole_tasks()
    }

    fn marks_last_items(&self) -> bool {
        crate::v0_3::V0_3.marks_last_items()
    }
}

/// The methods; there is none to list tasks.
const METHODS: &[(OperationKind, &str)] = &[
    (OperationKind::SendMessage, "SendMessage"),
    (OperationKind::SendStreamingMessage, "SendStreamingMessage"),
    (OperationKind::GetTask, "GetTask"),
    (OperationKind::CancelTask, "CancelTask"),
    (OperationKind::SubscribeToTask, "TaskSubscription"),
    (
        OperationKind::CreateTaskPushNotificationConfig,
        "CreateTaskPushNotificationConfig",
    ),
    (
        OperationKind::GetTaskPushNotificationConfig,
        "GetTaskPushNotificationConfig",
    ),
    (
        OperationKind::ListTaskPushNotificationConfigs,
        "ListTaskPushNotificationConfig",
    ),
    (
        OperationKind::DeleteTaskPushNotificationConfig,
        "DeleteTaskPushNotificationConfig",
    ),
    (OperationKind::GetExtendedAgentCard, "GetAgentCard"),
];

impl GrpcDialect for V0_3 {
    fn service(&self) -> &'static str {
        "a2a.v1.A2AService"
    }

    fn has_tenants(&self) -> bool {
        false
    }

    fn kind(&self, method: &str) -> Option<OperationKind> {
        let found = METHODS.iter().find(|(_, name)| *name == method);
        found.map(|(kind, _)| *kind)
    }

    fn method(&self, kind: OperationKind) -> Option<&'static str> {
        let found = METHODS.iter().find(|(known, _)| *known == kind);
        found.map(|(_, name)| *name)
    }

    fn decode_request(&self, kind: OperationKind, message: &[u8]) -> Result<Operation, A2aError> {
        if kind == OperationKind::ListTasks {
            return Err(no_list());
        }
        decode_request(kind, message).map_err(bad_request)
    }

    fn encode_request(&self, operation: &Operation) -> Result<Vec<u8>, A2aError> {
        Ok(match operation {
            Operation::SendMessage(r) | Operation::SendStreamingMessage(r) => {
                write::<pb::SendMessageRequest>(r)
            }
            Operation::GetTask(r) => write::<pb::GetTaskRequest>(r),
            Operation::ListTasks(_) => return Err(no_list()),
            Operation::CancelTask(r) => write::<pb::CancelTaskRequest>(r),
            Operation::SubscribeToTask(r) => write::<pb::TaskSubscriptionRequest>(r),
            Operation::CreateTaskPushNotificationConfig(r) => {
                write::<pb::CreateTaskPushNotificationConfigRequest>(r)
            }
            Operation::GetTaskPushNotificationConfig(r) => {
                write::<pb::GetTaskPushNotificationConfigRequest>(r)
            }
            Operation::ListTaskPushNotificationConfigs(r) => {
                write::<pb::ListTaskPushNotificationConfigRequest>(r)
            }
            Operation::DeleteTaskPushNotificationConfig(r) => {
                write::<pb::DeleteTaskPushNotificationConfigRequest>(r)
            }
            Operation::GetExtendedAgentCard(_) => Vec::new(),
        })
    }

    fn encode_result(&self, asked: OperationKind, outcome: &Outcome) -> Result<Vec<u8>, A2aError> {
        if asked.streams() {
            return Ok(write::<pb::StreamResponse>(&super::only_item(outcome)?));
        }
        Ok(match outcome {
            Outcome::Sent(sent) => write::<pb::SendMessageResponse>(sent),
            Outcome::Stream(_) => return Err(super::not_one_message()),
            Outcome::Task(task) => write::<pb::Task>(task),
            Outcome::Tasks(_) => return Err(no_list()),
            Outcome::PushConfig(config) => write::<pb::TaskPushNotificationConfig>(config),
            Outcome::PushConfigs(list) => write::<pb::ListTaskPushNotificationConfigResponse>(list),
            Outcome::Deleted => Vec::new(),
            Outcome::Card(card) => write::<pb::AgentCard>(&**card),
        })
    }

    fn decode_result(&self, kind: OperationKind, message: &[u8]) -> Result<Outcome, A2aError> {
        if kind == OperationKind::ListTasks {
            return Err(no_list());
        }
        decode_result(kind, message).map_err(bad_answer)
    }

    fn encode_event(&self, event: &Event, stream: StreamKind) -> Result<Vec<u8>, A2aError> {
        Ok(messages::write_item(event.response(), stream))
    }

    fn decode_event(&self, message: &[u8]) -> Result<Option<StreamResponse>, A2aError> {
        let proto: pb::StreamResponse = decode(message).map_err(bad_answer)?;
        if proto.payload.is_none() {
            return Ok(None);
        }
        StreamResponse::from_proto(proto)
            .map(Some)
            .map_err(bad_answer)
    }
}

fn no_list() -> A2aError {
    A2aError::new(
        ErrorKind::UnsupportedOperation,
        "protocol 0.3 cannot list tasks",
    )
}

fn decode_request(kind: OperationKind, message: &[u8]) -> Result<Operation, DecodeError> {
    Ok(match kind {
        OperationKind::SendMessage => {
            Operation::SendMessage(read::<pb::SendMessageRequest, _>(message)?)
        }
        OperationKind::SendStreamingMessage => {
            Operation::SendStreamingMessage(read::<pb::SendMessageRequest, _>(message)?)
        }
        OperationKind::GetTask => Operation::GetTask(read::<pb::GetTaskRequest, _>(message)?),
        OperationKind::CancelTask => {
            Operation::CancelTask(read::<pb::CancelTaskRequest, _>(message)?)
        }
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(read::<pb::TaskSubscriptionRequest, _>(message)?)
        }
        OperationKind::CreateTaskPushNotificationConfig => {
            Operation::CreateTaskPushNotificationConfig(read::<
                pb::CreateTaskPushNotificationConfigRequest,
                _,
            >(message)?)
        }
        OperationKind::GetTaskPushNotificationConfig => {
            Operation::GetTaskPushNotificationConfig(read::<
                pb::GetTaskPushNotificationConfigRequest,
                _,
            >(message)?)
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            Operation::ListTaskPushNotificationConfigs(read::<
                pb::ListTaskPushNotificationConfigRequest,
                _,
            >(message)?)
        }
        OperationKind::DeleteTaskPushNotificationConfig => {
            Operation::DeleteTaskPushNotificationConfig(read::<
                pb::DeleteTaskPushNotificationConfigRequest,
                _,
            >(message)?)
        }
        OperationKind::GetExtendedAgentCard => {
            decode::<pb::GetAgentCardRequest>(message)?;
            Operation::GetExtendedAgentCard(GetExtendedAgentCardRequest::default())
        }
        OperationKind::ListTasks => return Err(DecodeError::data("", no_list().message)),
    })
}

fn decode_result(kind: OperationKind, message: &[u8]) -> Result<Outcome, DecodeError> {
    Ok(match kind {
        OperationKind::SendMessage => Outcome::Sent(read::<pb::SendMessageResponse, _>(message)?),
        OperationKind::GetTask | OperationKind::CancelTask => {
            Outcome::Task(read::<pb::Task, _>(message)?)
        }
        OperationKind::CreateTaskPushNotificationConfig
        | OperationKind::GetTaskPushNotificationConfig => {
            Outcome::PushConfig(read::<pb::TaskPushNotificationConfig, _>(message)?)
        }
        OperationKind::ListTaskPushNotificationConfigs => Outcome::PushConfigs(read::<
            pb::ListTaskPushNotificationConfigResponse,
            _,
        >(message)?),
        OperationKind::DeleteTaskPushNotificationConfig => Outcome::Deleted,
        OperationKind::GetExtendedAgentCard => {
            Outcome::Card(Box::new(read::<pb::AgentCard, _>(message)?))
        }
        OperationKind::ListTasks
        | OperationKind::SendStreamingMessage
        | OperationKind::SubscribeToTask => {
            return Err(DecodeError::data("", "a stream was expected"));
        }
    })
}
