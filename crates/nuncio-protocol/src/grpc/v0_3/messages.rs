//! The messages of `a2a.v1`, as far as 1.0 has the same.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use prost::Message as _;
use serde_json::Value;

use super::names::{config_name, ids, read_history, write_history};
use super::pb;
use super::pb::file_part::File;
use super::pb::part::Part as Content;
use super::pb::{send_message_response, stream_response};
use crate::dialect::StreamKind;
use crate::grpc::convert::{Proto, message, oneof, required, within};
use crate::json::DecodeError;
use crate::v0_3::says_anything;
use crate::{
    Artifact, AuthenticationInfo, ListTaskPushNotificationConfigsResponse, Message, Metadata, Part,
    PartContent, SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse,
    Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};

impl Proto<pb::SendMessageRequest> for SendMessageRequest {
    fn to_proto(&self) -> pb::SendMessageRequest {
        // An absent configuration would mean "do not wait" (V03-03).
        let configuration = match &self.configuration {
            Some(said) => said.to_proto(),
            None => SendMessageConfiguration::default().to_proto(),
        };
        pb::SendMessageRequest {
            request: self.message.to_proto(),
            configuration: Some(configuration),
            metadata: self.metadata.to_proto(),
        }
    }

    fn from_proto(proto: pb::SendMessageRequest) -> Result<Self, DecodeError> {
        let message = Proto::from_proto(proto.request);
        let configuration = Proto::from_proto(proto.configuration.unwrap_or_default());
        let metadata = Proto::from_proto(proto.metadata);
        Ok(Self {
            tenant: None,
            message: message.map_err(|error| within("message", error))?,
            configuration: Some(configuration.map_err(|error| within("configuration", error))?),
            metadata: metadata.map_err(|error| within("metadata", error))?,
        })
    }
}

impl Proto<pb::SendMessageConfiguration> for SendMessageConfiguration {
    fn to_proto(&self) -> pb::SendMessageConfiguration {
        pb::SendMessageConfiguration {
            accepted_output_modes: self.accepted_output_modes.clone(),
            push_notification: self.task_push_notification_config.to_proto(),
            history_length: write_history(self.history_length),
            blocking: !self.return_immediately,
        }
    }

    fn from_proto(proto: pb::SendMessageConfiguration) -> Result<Self, DecodeError> {
        let webhook = Proto::from_proto(proto.push_notification);
        Ok(Self {
            accepted_output_modes: proto.accepted_output_modes,
            task_push_notification_config: webhook
                .map_err(|error| within("pushNotification", error))?,
            history_length: read_history(proto.history_length),
            return_immediately: !proto.blocking,
        })
    }
}

type Sent = send_message_response::Payload;
oneof!(SendMessageResponse = pb::SendMessageResponse.payload: Sent {
    Task = Task "task",
    Message = Msg "message",
});

type Item = stream_response::Payload;
oneof!(StreamResponse = pb::StreamResponse.payload: Item {
    Task = Task "task",
    Message = Msg "message",
    StatusUpdate = StatusUpdate "statusUpdate",
    ArtifactUpdate = ArtifactUpdate "artifactUpdate",
});

/// Writes an item of a stream, which tells whether it is the last (V03-04).
pub(super) fn write_item(item: &StreamResponse, stream: StreamKind) -> Vec<u8> {
    let mut proto: pb::StreamResponse = item.to_proto();
    if let (Some(Item::StatusUpdate(update)), StreamResponse::StatusUpdate(said)) =
        (&mut proto.payload, item)
    {
        update.r#final = ends(said.status.state, stream);
    }
    proto.encode_to_vec()
}

fn ends(state: TaskState, stream: StreamKind) -> bool {
    state.is_terminal() || (state == TaskState::InputRequired && stream == StreamKind::Send)
}

message!(
    Task = pb::Task {
        id,
        context_id,
        status,
        artifacts,
        history,
        metadata
    }
);
required!(TaskStatus = pb::TaskStatus, Artifact = pb::Artifact);

impl Proto<pb::TaskStatus> for TaskStatus {
    fn to_proto(&self) -> pb::TaskStatus {
        pb::TaskStatus {
            state: self.state.to_proto(),
            update: self.message.to_proto(),
            timestamp: self.timestamp.to_proto(),
        }
    }

    fn from_proto(proto: pb::TaskStatus) -> Result<Self, DecodeError> {
        let (message, time) = (
            Proto::from_proto(proto.update),
            Proto::from_proto(proto.timestamp),
        );
        Ok(Self {
            state: Proto::from_proto(proto.state)?,
            message: message.map_err(|error| within("message", error))?,
            timestamp: time.map_err(|error| within("timestamp", error))?,
        })
    }
}

message!(Message = pb::Message {
    message_id = message_id,
    context_id = context_id,
    task_id = task_id,
    role = role,
    parts = content,
    metadata = metadata,
    extensions = extensions,
});
message!(
    Artifact = pb::Artifact {
        artifact_id,
        name,
        description,
        parts,
        metadata,
        extensions,
    }
);

impl Proto<pb::TaskStatusUpdateEvent> for TaskStatusUpdateEvent {
    /// `final` is set by [`write_item`], which knows the stream.
    fn to_proto(&self) -> pb::TaskStatusUpdateEvent {
        pb::TaskStatusUpdateEvent {
            task_id: self.task_id.to_proto(),
            context_id: self.context_id.to_proto(),
            status: self.status.to_proto(),
            r#final: self.status.state.is_terminal(),
            metadata: self.metadata.to_proto(),
        }
    }

    fn from_proto(proto: pb::TaskStatusUpdateEvent) -> Result<Self, DecodeError> {
        let (status, metadata) = (
            Proto::from_proto(proto.status),
            Proto::from_proto(proto.metadata),
        );
        Ok(Self {
            task_id: proto.task_id.into(),
            context_id: proto.context_id.into(),
            status: status.map_err(|error| within("status", error))?,
            metadata: metadata.map_err(|error| within("metadata", error))?,
        })
    }
}

message!(
    TaskArtifactUpdateEvent = pb::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk,
        metadata,
    }
);

/// Marks, in the metadata of a part, data that was no object and stands in `value`.
const WRAPPED: &str = "data_part_compat";

impl Proto<pb::Part> for Part {
    fn to_proto(&self) -> pb::Part {
        let mut metadata = self.metadata.clone();
        let content = match &self.content {
            PartContent::Text(text) => Content::Text(text.clone()),
            PartContent::Url(url) => Content::File(self.file(File::FileWithUri(url.clone()))),
            PartContent::Raw(bytes) => {
                let text = STANDARD.encode(bytes);
                Content::File(self.file(File::FileWithBytes(text.into())))
            }
            PartContent::Data(Value::Object(object)) => Content::Data(data_part(object)),
            PartContent::Data(value) => {
                let marked = metadata.get_or_insert_default();
                marked.insert(WRAPPED.to_owned(), true.into());
                let wrapped = [("value".to_owned(), value.clone())];
                Content::Data(data_part(&Metadata::from_iter(wrapped)))
            }
        };
        pb::Part {
            part: Some(content),
            metadata: metadata.to_proto(),
        }
    }

    fn from_proto(proto: pb::Part) -> Result<Self, DecodeError> {
        let metadata = Proto::from_proto(proto.metadata);
        let metadata = metadata.map_err(|error| within("metadata", error))?;
        let mut part = match proto.part {
            Some(Content::Text(text)) => Self::text(text),
            Some(Content::File(file)) => read_file(file).map_err(|error| within("file", error))?,
            Some(Content::Data(data)) => {
                let object = Metadata::from_proto(data.data.unwrap_or_default());
                Self::data(object.map_err(|error| within("data.data", error))?)
            }
            None => return Err(DecodeError::data("", "expected one of text, file, data")),
        };
        part.metadata = metadata;
        unwrap(&mut part);
        Ok(part)
    }
}

impl Part {
    fn file(&self, file: File) -> pb::FilePart {
        pb::FilePart {
            file: Some(file),
            mime_type: self.media_type.to_proto(),
            name: self.filename.to_proto(),
        }
    }
}

fn data_part(object: &Metadata) -> pb::DataPart {
    pb::DataPart {
        data: Some(object.to_proto()),
    }
}

fn read_file(proto: pb::FilePart) -> Result<Part, DecodeError> {
    let content = match proto.file {
        Some(File::FileWithUri(uri)) => PartContent::Url(uri),
        Some(File::FileWithBytes(bytes)) => {
            // The SDKs' base64 text, whole and padded, or the bytes themselves (V03-GRPC-02).
            let inner = STANDARD.decode(&bytes).or_else(|_| URL_SAFE.decode(&bytes));
            PartContent::Raw(inner.map_or(bytes, Into::into))
        }
        None => {
            let expected = "expected one of fileWithUri, fileWithBytes";
            return Err(DecodeError::data("", expected));
        }
    };
    let mut part = Part::new(content);
    part.media_type = Proto::from_proto(proto.mime_type)?;
    part.filename = Proto::from_proto(proto.name)?;
    Ok(part)
}

/// Undoes what was done to data that is no object.
fn unwrap(part: &mut Part) {
    let (PartContent::Data(Value::Object(data)), Some(metadata)) =
        (&mut part.content, &mut part.metadata)
    else {
        return;
    };
    if metadata.get(WRAPPED) != Some(&Value::Bool(true)) || data.len() != 1 {
        return;
    }
    let Some(value) = data.remove("value") else {
        return;
    };
    metadata.remove(WRAPPED);
    if metadata.is_empty() {
        part.metadata = None;
    }
    part.content = PartContent::Data(value);
}

impl Proto<pb::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn to_proto(&self) -> pb::TaskPushNotificationConfig {
        let task: String = self.task_id.to_proto();
        let id: String = self.id.to_proto();
        pb::TaskPushNotificationConfig {
            name: config_name(&task, &id),
            push_notification_config: Some(self.to_proto()),
        }
    }

    fn from_proto(proto: pb::TaskPushNotificationConfig) -> Result<Self, DecodeError> {
        let config = Self::from_proto(proto.push_notification_config.unwrap_or_default());
        let mut config = config.map_err(|error| within("pushNotificationConfig", error))?;
        // Where a request has its ids elsewhere, anything may stand here.
        let (task, id) = ids(&proto.name).unwrap_or_default();
        config.task_id = Some(task).filter(|id| !id.is_empty());
        config.id = config.id.or(Some(id).filter(|id| !id.is_empty()));
        Ok(config)
    }
}

impl Proto<pb::PushNotificationConfig> for TaskPushNotificationConfig {
    fn to_proto(&self) -> pb::PushNotificationConfig {
        pb::PushNotificationConfig {
            id: self.id.to_proto(),
            url: self.url.clone(),
            token: self.token.to_proto(),
            authentication: self.authentication.to_proto(),
        }
    }

    fn from_proto(proto: pb::PushNotificationConfig) -> Result<Self, DecodeError> {
        Ok(Self {
            id: Proto::from_proto(proto.id)?,
            url: proto.url,
            token: Proto::from_proto(proto.token)?,
            authentication: Option::<AuthenticationInfo>::from_proto(proto.authentication)?
                .filter(says_anything),
            ..Self::default()
        })
    }
}

impl Proto<pb::AuthenticationInfo> for AuthenticationInfo {
    fn to_proto(&self) -> pb::AuthenticationInfo {
        pb::AuthenticationInfo {
            schemes: vec![self.scheme.clone()],
            credentials: self.credentials.to_proto(),
        }
    }

    /// Keeps the first scheme that every sender knows, else the first.
    fn from_proto(proto: pb::AuthenticationInfo) -> Result<Self, DecodeError> {
        let known = |scheme: &&String| {
            let known = ["Bearer", "Basic"];
            known.iter().any(|name| name.eq_ignore_ascii_case(scheme))
        };
        let chosen = proto.schemes.iter().find(known).or(proto.schemes.first());
        Ok(Self {
            scheme: chosen.cloned().unwrap_or_default(),
            credentials: Proto::from_proto(proto.credentials)?,
        })
    }
}

message!(
    ListTaskPushNotificationConfigsResponse = pb::ListTaskPushNotificationConfigResponse {
        configs,
        next_page_token,
    }
);
