//! Items of streams, and answers to messages: bare and told apart by `kind`, or in a wrapper.

use serde::{Serialize, Serializer};

use super::read::{Object, Read};
use super::write::{Out, Spelt};
use super::{Form, message, task};
use crate::dialect::StreamKind;
use crate::{
    SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskState,
    TaskStatusUpdateEvent,
};

/// An item of a stream of some kind, which decides what is final.
pub(super) struct Item<'a>(
    pub(super) &'a StreamResponse,
    pub(super) Form,
    pub(super) StreamKind,
);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(item, form, stream) = *self;
        let member = match item {
            StreamResponse::Task(_) => "task",
            StreamResponse::Message(_) => "message",
            StreamResponse::StatusUpdate(_) => "statusUpdate",
            StreamResponse::ArtifactUpdate(_) => "artifactUpdate",
        };
        if form == Form::Schema {
            return Bare(item, form, stream).serialize(serializer);
        }
        let mut out = Out::new(serializer)?;
        out.put(member, &Bare(item, form, stream))?;
        out.end()
    }
}

struct Bare<'a>(&'a StreamResponse, Form, StreamKind);

impl Serialize for Bare<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(item, form, stream) = *self;
        match item {
            StreamResponse::Task(task) => Spelt(task, form).serialize(serializer),
            StreamResponse::Message(message) => Spelt(message, form).serialize(serializer),
            StreamResponse::StatusUpdate(update) => write_status(update, form, stream, serializer),
            StreamResponse::ArtifactUpdate(update) => Spelt(update, form).serialize(serializer),
        }
    }
}

/// Whether a stream of that kind ends with that state (V03-04): clients stop on nothing else.
fn is_final(state: TaskState, stream: StreamKind) -> bool {
    state.is_terminal() || (state == TaskState::InputRequired && stream == StreamKind::Send)
}

fn write_status<S: Serializer>(
    update: &TaskStatusUpdateEvent,
    form: Form,
    stream: StreamKind,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut out = Out::new(serializer)?;
    out.kind(form, "status-update")?;
    out.put("taskId", &update.task_id)?;
    out.put("contextId", &update.context_id)?;
    out.put("status", &Spelt(&update.status, form))?;
    let last = is_final(update.status.state, stream);
    match form {
        Form::Schema => out.put("final", &last)?,
        Form::Proto => out.flag("final", last)?,
    }
    out.some("metadata", update.metadata.as_ref())?;
    out.end()
}

impl Serialize for Spelt<'_, TaskArtifactUpdateEvent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(update, form) = *self;
        let mut out = Out::new(serializer)?;
        out.kind(form, "artifact-update")?;
        out.put("taskId", &update.task_id)?;
        out.put("contextId", &update.context_id)?;
        out.put("artifact", &Spelt(&update.artifact, form))?;
        out.flag("append", update.append)?;
        out.flag("lastChunk", update.last_chunk)?;
        out.some("metadata", update.metadata.as_ref())?;
        out.end()
    }
}

impl Serialize for Spelt<'_, SendMessageResponse> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(sent, form) = *self;
        let mut out = match (form, sent) {
            (Form::Schema, SendMessageResponse::Task(task)) => {
                return Spelt(task, form).serialize(serializer);
            }
            (Form::Schema, SendMessageResponse::Message(message)) => {
                return Spelt(message, form).serialize(serializer);
            }
            (Form::Proto, _) => Out::new(serializer)?,
        };
        match sent {
            SendMessageResponse::Task(task) => out.put("task", &Spelt(task, form))?,
            SendMessageResponse::Message(message) => out.put("message", &Spelt(message, form))?,
        }
        out.end()
    }
}

const WRAPPERS: [(&str, &[&str]); 4] = [
    ("task", &["task"]),
    ("message", &["message", "msg"]),
    ("status-update", &["statusUpdate"]),
    ("artifact-update", &["artifactUpdate"]),
];

/// Reads an item: wrapped, by its `kind`, or by the members that only one kind has.
///
/// `None` for an item of another kind, which a newer peer may send.
pub(super) fn read(mut object: Object) -> Read<Option<StreamResponse>> {
    if let Some(kind) = object.text("kind")? {
        return read_kind(&kind, object);
    }
    let mut wrapped = None;
    for (kind, names) in WRAPPERS {
        if let Some(inner) = object.object(names)?
            && wrapped.replace((kind, inner)).is_some()
        {
            return Err(object.wrong_itself("expected only one item"));
        }
    }
    if let Some((kind, inner)) = wrapped {
        return read_kind(kind, inner);
    }
    let has = |name| object.has(name);
    let kind = if has("artifact") {
        "artifact-update"
    } else if has("status") && has("taskId") {
        "status-update"
    } else if has("status") && has("id") {
        "task"
    } else if has("messageId") {
        "message"
    } else {
        return Ok(None);
    };
    read_kind(kind, object)
}

fn read_kind(kind: &str, object: Object) -> Read<Option<StreamResponse>> {
    Ok(Some(match kind {
        "task" => StreamResponse::Task(task::read(object)?),
        "message" => StreamResponse::Message(message::read(object)?),
        "status-update" => StreamResponse::StatusUpdate(read_status_update(object)?),
        "artifact-update" => StreamResponse::ArtifactUpdate(read_artifact_update(object)?),
        _ => return Ok(None),
    }))
}

fn read_status_update(mut object: Object) -> Read<TaskStatusUpdateEvent> {
    let status = object.object(&["status"])?;
    Ok(TaskStatusUpdateEvent {
        task_id: object.id("taskId")?,
        context_id: object.id("contextId")?,
        status: task::read_status(status)?,
        metadata: object.metadata()?,
    })
}

fn read_artifact_update(mut object: Object) -> Read<TaskArtifactUpdateEvent> {
    let artifact = object.object(&["artifact"])?;
    Ok(TaskArtifactUpdateEvent {
        task_id: object.id("taskId")?,
        context_id: object.id("contextId")?,
        artifact: artifact
            .map(message::read_artifact)
            .transpose()?
            .unwrap_or_default(),
        append: object.flag("append")?.unwrap_or_default(),
        last_chunk: object.flag("lastChunk")?.unwrap_or_default(),
        metadata: object.metadata()?,
    })
}

/// Reads the answer to a message.
pub(super) fn read_sent(object: Object) -> Read<SendMessageResponse> {
    let neither = object.wrong_itself("expected a task or a message");
    match read(object)? {
        Some(StreamResponse::Task(task)) => Ok(SendMessageResponse::Task(task)),
        Some(StreamResponse::Message(message)) => Ok(SendMessageResponse::Message(message)),
        _ => Err(neither),
    }
}

/// Reads a task, bare or in its wrapper.
pub(super) fn read_task(mut object: Object) -> Read<Task> {
    match object.object(&["task"])? {
        Some(inner) => task::read(inner),
        None => task::read(object),
    }
}
