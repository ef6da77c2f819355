//! Messages and artifacts of 0.3.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::read::{Object, Read, Side};
use super::write::{Out, Spelt};
use super::{Form, part};
use crate::{Artifact, Message, Role};

impl Serialize for Spelt<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(message, form) = *self;
        let mut out = Out::new(serializer)?;
        out.kind(form, "message")?;
        out.put("messageId", &message.message_id)?;
        out.text(
            "contextId",
            message.context_id.as_ref().map(|id| id.as_str()),
        )?;
        out.text("taskId", message.task_id.as_ref().map(|id| id.as_str()))?;
        out.put("role", role_name(message.role, form))?;
        let parts = match form {
            Form::Schema => "parts",
            Form::Proto => "content",
        };
        out.put(parts, &Spelt(message.parts.as_slice(), form))?;
        out.some("metadata", message.metadata.as_ref())?;
        out.list("extensions", &message.extensions)?;
        if form == Form::Schema {
            out.list("referenceTaskIds", &message.reference_task_ids)?;
        }
        out.end()
    }
}

/// The schema has no word for an unknown role; SDKs write `agent` for it.
fn role_name(role: Role, form: Form) -> &'static str {
    match (form, role) {
        (Form::Proto, role) => role.as_str(),
        (Form::Schema, Role::User) => "user",
        (Form::Schema, Role::Agent | Role::Unspecified) => "agent",
    }
}

/// Reads a message; a missing id is left to validation.
pub(super) fn read(mut object: Object) -> Read<Message> {
    if object.form == Form::Proto && !object.has("content") {
        object.refuse_newer("parts", "`content` in HTTP+JSON")?;
    }
    let role = read_role(&mut object)?;
    Ok(Message {
        role,
        message_id: object.id("messageId")?,
        context_id: object.some_id("contextId")?,
        task_id: object.some_id("taskId")?,
        parts: object.list(parts_names(object.form), part::read)?,
        metadata: object.metadata()?,
        extensions: object.texts("extensions")?,
        reference_task_ids: object.texts("referenceTaskIds")?,
    })
}

fn parts_names(form: Form) -> &'static [&'static str] {
    match form {
        Form::Schema => &["parts", "content"],
        Form::Proto => &["content", "parts"],
    }
}

fn read_role(object: &mut Object) -> Read<Role> {
    let value = object.take("role")?;
    let role = match &value {
        Some(Value::String(name)) => match name.as_str() {
            "user" => Some(Role::User),
            "agent" => Some(Role::Agent),
            name if object.form == Form::Schema && object.side == Side::Request => {
                if Role::from_name(name).is_some() {
                    let hint = "this is a value of protocol 1.0; 0.3 has user and agent";
                    return Err(object.wrong("role", hint));
                }
                None
            }
            name => Role::from_name(name),
        },
        Some(number) => number.as_i64().and_then(Role::from_number),
        None => None,
    };
    match (role, object.side, object.form) {
        (Some(role), ..) => Ok(role),
        (None, Side::Reply, _) => Ok(Role::Unspecified),
        (None, Side::Request, Form::Schema) => {
            Err(object.wrong("role", "is required and must be user"))
        }
        (None, Side::Request, Form::Proto) => {
            Err(object.wrong("role", "is required and must be ROLE_USER"))
        }
    }
}

impl Serialize for Spelt<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(artifact, form) = *self;
        let mut out = Out::new(serializer)?;
        out.put("artifactId", &artifact.artifact_id)?;
        out.text("name", artifact.name.as_deref())?;
        out.text("description", artifact.description.as_deref())?;
        out.put("parts", &Spelt(artifact.parts.as_slice(), form))?;
        out.some("metadata", artifact.metadata.as_ref())?;
        out.list("extensions", &artifact.extensions)?;
        out.end()
    }
}

pub(super) fn read_artifact(mut object: Object) -> Read<Artifact> {
    Ok(Artifact {
        artifact_id: object.id("artifactId")?,
        name: object.text("name")?,
        description: object.text("description")?,
        parts: object.list(&["parts"], part::read)?,
        metadata: object.metadata()?,
        extensions: object.texts("extensions")?,
    })
}
