//! Messages: what user and agent say to each other.

use crate::wire::{wire_enum, wire_message};
use crate::{ContextId, MessageId, Metadata, Part, TaskId};

wire_enum! {
    /// Who speaks. Spec: §4.1.5
    pub enum Role {
        /// Not said, or of a newer version.
        #[default]
        Unspecified = 0 "ROLE_UNSPECIFIED",
        /// The client.
        User = 1 "ROLE_USER",
        /// The agent.
        Agent = 2 "ROLE_AGENT",
    }
}

wire_message! {
    /// One turn of a conversation. Spec: §4.1.4
    pub struct Message {
        /// Made by the sender; together with the caller it makes a send idempotent.
        message_id: MessageId => required "messageId",
        /// The conversation; made by the server if absent.
        context_id: Option<ContextId> => text "contextId",
        /// The task this message belongs to.
        task_id: Option<TaskId> => text "taskId",
        /// Who speaks.
        role: Role => required "role",
        /// The content, at least one part.
        parts: Vec<Part> => required "parts",
        /// Free-form additions.
        metadata: Option<Metadata> => optional "metadata",
        /// URIs of the extensions this message uses.
        extensions: Vec<String> => list "extensions",
        /// Earlier tasks this message refers to.
        reference_task_ids: Vec<TaskId> => list "referenceTaskIds",
    }
}

impl Message {
    /// A message of the user.
    pub fn user(message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            role: Role::User,
            parts,
            ..Self::default()
        }
    }

    /// A message of the agent.
    pub fn agent(message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            role: Role::Agent,
            parts,
            ..Self::default()
        }
    }

    /// All text of the message, its text parts joined without separator.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }
}
