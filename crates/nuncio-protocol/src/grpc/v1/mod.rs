//! Version 1.0 in protobuf: package `lf.a2a.v1`. Spec: §10

mod messages;

use super::convert::{Proto as _, bad_answer, bad_request, decode, read, write};
use super::generated::lf_a2a_v1 as pb;
use crate::dialect::{Dialect, GrpcDialect, Notification, StreamKind};
use crate::json::DecodeError;
use crate::{A2aError, Event, Operation, OperationKind, Outcome, StreamResponse, Task, Version};

/// Version 1.0 over gRPC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V1;

impl Dialect for V1 {
    fn version(&self) -> Version {
        Version::V1_0
    }

    fn extensions_header(&self) -> &'static str {
        "a2a-extensions"
    }

    fn instead(&self, _asked: &Operation, _error: &A2aError) -> Option<Operation> {
        None
    }

    fn encode_notification(&self, event: &Event, task: &Task) -> Notification {
        crate::v1::V1_0.encode_notification(event, task)
    }

    fn notifies_of_whole_tasks(&self) -> bool {
        crate::v1::V1_0.notifies_of_whole_tasks()
    }

    fn marks_last_items(&self) -> bool {
        crate::v1::V1_0.marks_last_items()
    }
}

impl GrpcDialect for V1 {
    fn service(&self) -> &'static str {
        "lf.a2a.v1.A2AService"
    }

    fn has_tenants(&self) -> bool {
        true
    }

    fn kind(&self, method: &str) -> Option<OperationKind> {
        OperationKind::from_name(method)
    }

    fn method(&self, kind: OperationKind) -> Option<&'static str> {
        Some(kind.as_str())
    }

    fn decode_request(&self, kind: OperationKind, message: &[u8]) -> Result<Operation, A2aError> {
        decode_request(kind, message).map_err(bad_request)
    }

    fn encode_request(&self, operation: &Operation) -> Result<Vec<u8>, A2aError> {
        Ok(encode_request(operation))
    }

    fn encode_result(&self, asked: OperationKind, outcome: &Outcome) -> Result<Vec<u8>, A2aError> {
        if asked.streams() {
            return Ok(write::<pb::StreamResponse>(&super::only_item(outcome)?));
        }
        Ok(match outcome {
            Outcome::Sent(sent) => write::<pb::SendMessageResponse>(sent),
            Outcome::Stream(_) => return Err(super::not_one_message()),
            Outcome::Task(task) => write::<pb::Task>(task),
            Outcome::Tasks(page) => write::<pb::ListTasksResponse>(page),
            Outcome::PushConfig(config) => write::<pb::TaskPushNotificationConfig>(config),
            Outcome::PushConfigs(list) => {
                write::<pb::ListTaskPushNotificationConfigsResponse>(list)
            }
            Outcome::Deleted => Vec::new(),
            Outcome::Card(card) => write::<pb::AgentCard>(&**card),
        })
    }

    fn decode_result(&self, kind: OperationKind, message: &[u8]) -> Result<Outcome, A2aError> {
        decode_result(kind, message).map_err(bad_answer)
    }

    fn encode_event(&self, event: &Event, _stream: StreamKind) -> Result<Vec<u8>, A2aError> {
        Ok(write::<pb::StreamResponse>(event.response()))
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

fn decode_request(kind: OperationKind, message: &[u8]) -> Result<Operation, DecodeError> {
    Ok(match kind {
        OperationKind::SendMessage => {
            Operation::SendMessage(read::<pb::SendMessageRequest, _>(message)?)
        }
        OperationKind::SendStreamingMessage => {
            Operation::SendStreamingMessage(read::<pb::SendMessageRequest, _>(message)?)
        }
        OperationKind::GetTask => Operation::GetTask(read::<pb::GetTaskRequest, _>(message)?),
        OperationKind::ListTasks => Operation::ListTasks(read::<pb::ListTasksRequest, _>(message)?),
        OperationKind::CancelTask => {
            Operation::CancelTask(read::<pb::CancelTaskRequest, _>(message)?)
        }
        OperationKind::SubscribeToTask => {
            Operation::SubscribeToTask(read::<pb::SubscribeToTaskRequest, _>(message)?)
        }
        OperationKind::CreateTaskPushNotificationConfig => {
            Operation::CreateTaskPushNotificationConfig(read::<pb::TaskPushNotificationConfig, _>(
                message,
            )?)
        }
        OperationKind::GetTaskPushNotificationConfig => {
            Operation::GetTaskPushNotificationConfig(read::<
                pb::GetTaskPushNotificationConfigRequest,
                _,
            >(message)?)
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            Operation::ListTaskPushNotificationConfigs(read::<
                pb::ListTaskPushNotificationConfigsRequest,
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
            Operation::GetExtendedAgentCard(read::<pb::GetExtendedAgentCardRequest, _>(message)?)
        }
    })
}

fn encode_request(operation: &Operation) -> Vec<u8> {
    match operation {
        Operation::SendMessage(r) | Operation::SendStreamingMessage(r) => {
            write::<pb::SendMessageRequest>(r)
        }
        Operation::GetTask(r) => write::<pb::GetTaskRequest>(r),
        Operation::ListTasks(r) => write::<pb::ListTasksRequest>(r),
        Operation::CancelTask(r) => write::<pb::CancelTaskRequest>(r),
        Operation::SubscribeToTask(r) => write::<pb::SubscribeToTaskRequest>(r),
        Operation::CreateTaskPushNotificationConfig(r) => {
            write::<pb::TaskPushNotificationConfig>(r)
        }
        Operation::GetTaskPushNotificationConfig(r) => {
            write::<pb::GetTaskPushNotificationConfigRequest>(r)
        }
        Operation::ListTaskPushNotificationConfigs(r) => {
            write::<pb::ListTaskPushNotificationConfigsRequest>(r)
        }
        Operation::DeleteTaskPushNotificationConfig(r) => {
            write::<pb::DeleteTaskPushNotificationConfigRequest>(r)
        }
        Operation::GetExtendedAgentCard(r) => write::<pb::GetExtendedAgentCardRequest>(r),
    }
}

fn decode_result(kind: OperationKind, message: &[u8]) -> Result<Outcome, DecodeError> {
    Ok(match kind {
        OperationKind::SendMessage => Outcome::Sent(read::<pb::SendMessageResponse, _>(message)?),
        OperationKind::GetTask | OperationKind::CancelTask => {
            Outcome::Task(read::<pb::Task, _>(message)?)
        }
        OperationKind::ListTasks => Outcome::Tasks(read::<pb::ListTasksResponse, _>(message)?),
        OperationKind::CreateTaskPushNotificationConfig
        | OperationKind::GetTaskPushNotificationConfig => {
            Outcome::PushConfig(read::<pb::TaskPushNotificationConfig, _>(message)?)
        }
        OperationKind::ListTaskPushNotificationConfigs => Outcome::PushConfigs(read::<
            pb::ListTaskPushNotificationConfigsResponse,
            _,
        >(message)?),
        OperationKind::DeleteTaskPushNotificationConfig => Outcome::Deleted,
        OperationKind::GetExtendedAgentCard => {
            Outcome::Card(Box::new(read::<pb::AgentCard, _>(message)?))
        }
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => {
            return Err(DecodeError::data("", "a stream was expected"));
        }
    })
}
