//! All texts of what passes a layer, however deep they are.

use std::sync::Arc;

use nuncio_engine::Input;
use nuncio_protocol::{Artifact, Message, Part, PartContent, Task};
use serde_json::Value;

use crate::model::{ModelRequest, ToolCall, Turn, UserPart};
use crate::tool::ToolOutput;

/// Something with texts in it.
pub(super) trait Texts {
    /// Shows each text, in order, to be read or changed.
    fn each(&mut self, see: &mut dyn FnMut(&mut String));
}

impl Texts for String {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        see(self);
    }
}

/// Values, not the names of members.
impl Texts for Value {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        match self {
            Self::String(text) => see(text),
            Self::Array(values) => values.iter_mut().for_each(|value| value.each(see)),
            Self::Object(members) => members.values_mut().for_each(|value| value.each(see)),
            Self::Null | Self::Bool(_) | Self::Number(_) => {}
        }
    }
}

/// Texts and data; neither bytes nor addresses of files.
impl Texts for Part {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        match &mut self.content {
            PartContent::Text(text) => see(text),
            PartContent::Data(value) => value.each(see),
            PartContent::Raw(_) | PartContent::Url(_) => {}
        }
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(|one| one.each(see));
    }
}

impl Texts for Message {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.parts.each(see);
    }
}

impl Texts for Artifact {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.parts.each(see);
    }
}

impl Texts for Task {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.history.each(see);
        self.artifacts.each(see);
        if let Some(message) = &mut self.status.message {
            message.each(see);
        }
    }
}

/// The message, and what was said before it.
impl Texts for Input {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.message.each(see);
        Arc::make_mut(&mut self.task).each(see);
        self.references.each(see);
    }
}

impl Texts for ModelRequest {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.system.iter_mut().for_each(&mut *see);
        self.turns.each(see);
    }
}

/// Signed reasoning is left alone: its provider would not take it back changed.
impl Texts for Turn {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        match self {
            Self::User(parts) => parts.each(see),
            Self::Assistant {
                text, tool_calls, ..
            } => {
                see(text);
                tool_calls.each(see);
            }
            Self::Tools(results) => results.iter_mut().for_each(|r| see(&mut r.content)),
        }
    }
}

impl Texts for UserPart {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        if let Self::Text(text) = self {
            see(text);
        }
    }
}

/// What a tool asks somebody is seen on its way out.
impl Texts for ToolOutput {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Value(value) => value.each(see),
            Self::Parts(parts) => parts.each(see),
            Self::HandOff { message, .. } => message.each(see),
            Self::Paused(_) | Self::Later(_) => {}
        }
    }
}

impl Texts for ToolCall {
    fn each(&mut self, see: &mut dyn FnMut(&mut String)) {
        self.arguments.each(see);
    }
}
