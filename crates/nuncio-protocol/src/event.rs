//! What happens to a task, as told to its readers.

use std::sync::{Arc, OnceLock};

use crate::wire::{wire_message, wire_oneof};
use crate::{Artifact, ContextId, Message, Metadata, Task, TaskId, TaskStatus, json};

wire_message! {
    /// A task's status has changed. Spec: §4.2.1
    pub struct TaskStatusUpdateEvent {
        /// The task.
        task_id: TaskId => required "taskId",
        /// Its conversation.
        context_id: ContextId => required "contextId",
        /// The new status.
        status: TaskStatus => required "status",
        /// Belongs to this event only.
        metadata: Option<Metadata> => optional "metadata",
    }
}

impl TaskStatusUpdateEvent {
    /// A status event without metadata.
    pub fn new(task_id: TaskId, context_id: ContextId, status: TaskStatus) -> Self {
        Self {
            task_id,
            context_id,
            status,
            metadata: None,
        }
    }
}

wire_message! {
    /// An artifact, or a further piece of one, is there. Spec: §4.2.2
    pub struct TaskArtifactUpdateEvent {
        /// The task.
        task_id: TaskId => required "taskId",
        /// Its conversation.
        context_id: ContextId => required "contextId",
        /// The artifact, or the piece to add.
        artifact: Artifact => required "artifact",
        /// Whether the parts are added to the artifact of the same id instead of replacing it.
        append: bool => flag "append",
        /// Whether this is the last piece of the artifact; says nothing about the task.
        last_chunk: bool => flag "lastChunk",
        /// Belongs to this event only.
        metadata: Option<Metadata> => optional "metadata",
    }
}

impl TaskArtifactUpdateEvent {
    /// An event that creates or replaces a whole artifact.
    pub fn new(task_id: TaskId, context_id: ContextId, artifact: Artifact) -> Self {
        Self {
            task_id,
            context_id,
            artifact,
            last_chunk: true,
            ..Self::default()
        }
    }
}

wire_oneof! {
    /// One item of a stream. Spec: §3.2.3
    pub enum StreamResponse {
        /// The whole task: first item of a task's stream, and a replacement wherever it occurs.
        Task(Task) => "task",
        /// The only item of a stream that makes no task.
        Message(Message) => "message",
        /// A change of status.
        StatusUpdate(TaskStatusUpdateEvent) => "statusUpdate" | "status_update",
        /// An artifact or a piece of one.
        ArtifactUpdate(TaskArtifactUpdateEvent) => "artifactUpdate" | "artifact_update",
    }
}

/// One item of a stream with its position in the task's log.
///
/// Cloning shares the item and its JSON text, so that a thousand readers cost one encoding.
#[derive(Clone, Debug)]
pub struct Event {
    /// The position, gapless from 1; `None` where the peer gave none or the item has none.
    pub position: Option<u64>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    response: StreamResponse,
    json: OnceLock<Box<str>>,
}

impl Event {
    /// An item at a position.
    pub fn new(position: Option<u64>, response: StreamResponse) -> Self {
        Self {
            position,
            shared: Arc::new(Shared {
                response,
                json: OnceLock::new(),
            }),
        }
    }

    /// What happened.
    pub fn response(&self) -> &StreamResponse {
        &self.shared.response
    }

    /// The item as JSON text of version 1.0, encoded once.
    pub fn json(&self) -> &str {
        self.shared
            .json
            .get_or_init(|| json::encode(&self.shared.response).into())
    }

    /// The state this item reports, if it reports one.
    pub fn state(&self) -> Option<crate::TaskState> {
        match self.response() {
            StreamResponse::Task(task) => Some(task.status.state),
            StreamResponse::StatusUpdate(update) => Some(update.status.state),
            StreamResponse::Message(_) | StreamResponse::ArtifactUpdate(_) => None,
        }
    }
}

impl From<StreamResponse> for Event {
    fn from(response: StreamResponse) -> Self {
        Self::new(None, response)
    }
}
