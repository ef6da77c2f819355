//! Requests that name a task or a webhook by its resource name.

use super::pb;
use crate::grpc::convert::{Proto, within};
use crate::json::DecodeError;
use crate::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    PushConfigId, SubscribeToTaskRequest, TaskId, TaskPushNotificationConfig,
};

const COLLECTION: &str = "/pushNotificationConfigs";
const CONFIGS: &str = "/pushNotificationConfigs/";

/// What SDKs write into a name for want of an id.
const NO_IDS: [&str; 3] = ["", "None", "undefined"];

/// `tasks/{id}`.
fn task_name(task: &str) -> String {
    format!("tasks/{task}")
}

/// `tasks/{id}/pushNotificationConfigs/{id}`.
pub(super) fn config_name(task: &str, config: &str) -> String {
    format!("tasks/{task}{CONFIGS}{config}")
}

/// What follows `tasks/`; an empty name is left to validation.
fn below_tasks(name: &str) -> Result<&str, DecodeError> {
    let prefixes = ["tasks/", "task/"];
    let path = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    path.or(name.is_empty().then_some(""))
        .ok_or_else(|| DecodeError::data("", "expected a name such as tasks/{id}"))
}

fn task_named(field: &str, name: &str) -> Result<TaskId, DecodeError> {
    let id = below_tasks(name).map_err(|error| within(field, error))?;
    Ok(id.into())
}

/// The ids in the name of a webhook, empty where it has none.
pub(super) fn ids(name: &str) -> Result<(TaskId, PushConfigId), DecodeError> {
    let path = below_tasks(name).map_err(|error| within("name", error))?;
    let whole = path.split_once(CONFIGS);
    let (task, config) = whole.unwrap_or((path.strip_suffix(COLLECTION).unwrap_or(path), ""));
    let config = Some(config).filter(|id| !NO_IDS.contains(id));
    Ok((task.into(), config.unwrap_or_default().into()))
}

impl Proto<pb::GetTaskRequest> for GetTaskRequest {
    fn to_proto(&self) -> pb::GetTaskRequest {
        pb::GetTaskRequest {
            name: task_name(self.id.as_str()),
            history_length: write_history(self.history_length),
        }
    }

    fn from_proto(proto: pb::GetTaskRequest) -> Result<Self, DecodeError> {
        let mut request = Self::new(task_named("name", &proto.name)?);
        request.history_length = read_history(proto.history_length);
        Ok(request)
    }
}

/// 0 asks for all of it (V03-07); the least that can be asked for is one message.
pub(super) fn write_history(length: Option<i32>) -> i32 {
    match length {
        None => 0,
        Some(0) => 1,
        Some(length) => length,
    }
}

pub(super) fn read_history(length: i32) -> Option<i32> {
    Some(length).filter(|length| *length != 0)
}

impl Proto<pb::CancelTaskRequest> for CancelTaskRequest {
    fn to_proto(&self) -> pb::CancelTaskRequest {
        pb::CancelTaskRequest {
            name: task_name(self.id.as_str()),
        }
    }

    fn from_proto(proto: pb::CancelTaskRequest) -> Result<Self, DecodeError> {
        task_named("name", &proto.name).map(Self::new)
    }
}

impl Proto<pb::TaskSubscriptionRequest> for SubscribeToTaskRequest {
    fn to_proto(&self) -> pb::TaskSubscriptionRequest {
        pb::TaskSubscriptionRequest {
            name: task_name(self.id.as_str()),
        }
    }

    fn from_proto(proto: pb::TaskSubscriptionRequest) -> Result<Self, DecodeError> {
        task_named("name", &proto.name).map(Self::new)
    }
}

impl Proto<pb::GetTaskPushNotificationConfigRequest> for GetTaskPushNotificationConfigRequest {
    fn to_proto(&self) -> pb::GetTaskPushNotificationConfigRequest {
        pb::GetTaskPushNotificationConfigRequest {
            name: config_name(self.task_id.as_str(), self.id.as_str()),
        }
    }

    fn from_proto(proto: pb::GetTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        let (task_id, id) = ids(&proto.name)?;
        Ok(Self {
            tenant: None,
            task_id,
            id,
        })
    }
}

impl Proto<pb::DeleteTaskPushNotificationConfigRequest>
    for DeleteTaskPushNotificationConfigRequest
{
    fn to_proto(&self) -> pb::DeleteTaskPushNotificationConfigRequest {
        pb::DeleteTaskPushNotificationConfigRequest {
            name: config_name(self.task_id.as_str(), self.id.as_str()),
        }
    }

    fn from_proto(proto: pb::DeleteTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        let (task_id, id) = ids(&proto.name)?;
        Ok(Self {
            tenant: None,
            task_id,
            id,
        })
    }
}

impl Proto<pb::ListTaskPushNotificationConfigRequest> for ListTaskPushNotificationConfigsRequest {
    fn to_proto(&self) -> pb::ListTaskPushNotificationConfigRequest {
        pb::ListTaskPushNotificationConfigRequest {
            parent: task_name(self.task_id.as_str()),
            page_size: self.page_size,
            page_token: self.page_token.to_proto(),
        }
    }

    fn from_proto(proto: pb::ListTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: None,
            task_id: parent(&proto.parent)?,
            page_size: proto.page_size,
            page_token: Proto::from_proto(proto.page_token)?,
        })
    }
}

/// The task above its webhooks; some write the name of the collection (TRAP-32).
fn parent(name: &str) -> Result<TaskId, DecodeError> {
    // A slash at the end belongs to the collection's name, or else to the id.
    let collection = name.strip_suffix('/').unwrap_or(name);
    task_named(
        "parent",
        collection.strip_suffix(COLLECTION).unwrap_or(name),
    )
}

impl Proto<pb::CreateTaskPushNotificationConfigRequest> for TaskPushNotificationConfig {
    fn to_proto(&self) -> pb::CreateTaskPushNotificationConfigRequest {
        pb::CreateTaskPushNotificationConfigRequest {
            parent: task_name(self.task_id.as_ref().map_or("", |id| id.as_str())),
            config_id: self.id.to_proto(),
            config: Some(self.to_proto()),
        }
    }

    /// Servers read the ids in different places, so clients write them in all (V03-REST-04).
    fn from_proto(proto: pb::CreateTaskPushNotificationConfigRequest) -> Result<Self, DecodeError> {
        let config = Self::from_proto(proto.config.unwrap_or_default());
        let mut config = config.map_err(|error| within("config", error))?;
        let task = parent(&proto.parent)?;
        if !task.is_empty() {
            if config.task_id.as_ref().is_some_and(|named| *named != task) {
                return Err(DecodeError::data(
                    "config.name",
                    "must be of the task in parent",
                ));
            }
            config.task_id = Some(task);
        }
        let id: Option<PushConfigId> = Proto::from_proto(proto.config_id)?;
        config.id = id.or(config.id);
        Ok(config)
    }
}
