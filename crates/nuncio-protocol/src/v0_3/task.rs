//! Tasks of 0.3, their status, and pages of them.

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::Value;

use super::read::{Object, Read};
use super::write::{Out, Spelt};
use super::{Form, message};
use crate::{ListTasksResponse, Task, TaskState, TaskStatus, Timestamp};

/// The names of the schema, by the numbers of the proto.
const STATES: [&str; 9] = [
    "unknown",
    "submitted",
    "working",
    "completed",
    "failed",
    "canceled",
    "input-required",
    "rejected",
    "auth-required",
];

/// The one name of the proto that 1.0 spells otherwise.
const CANCELLED: &str = "TASK_STATE_CANCELLED";

/// The name of a state in a form.
pub(super) fn state_name(state: TaskState, form: Form) -> &'static str {
    match (form, state) {
        (Form::Schema, state) => STATES[state as usize],
        (Form::Proto, TaskState::Canceled) => CANCELLED,
        (Form::Proto, state) => state.as_str(),
    }
}

/// The state of any of its names, or of its number.
pub(super) fn state_of(value: &Value) -> Option<TaskState> {
    let Some(name) = value.as_str() else {
        return value.as_i64().and_then(TaskState::from_number);
    };
    let by_schema = || {
        let place = STATES.iter().position(|known| *known == name)?;
        TaskState::from_number(place as i64)
    };
    match name {
        CANCELLED | "cancelled" => Some(TaskState::Canceled),
        _ => TaskState::from_name(name).or_else(by_schema),
    }
}

impl Serialize for Spelt<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(status, form) = *self;
        let mut out = Out::new(serializer)?;
        out.put("state", state_name(status.state, form))?;
        out.some("message", status.message.as_ref().map(|m| Spelt(m, form)))?;
        out.some("timestamp", status.timestamp)?;
        out.end()
    }
}

/// Reads a status; one that is missing reads as unknown, as does a state of another version.
pub(super) fn read_status(object: Option<Object>) -> Read<TaskStatus> {
    let mut status = TaskStatus::default();
    let Some(mut object) = object else {
        return Ok(status);
    };
    let state = object.take("state")?;
    status.state = state.as_ref().and_then(state_of).unwrap_or_default();
    let said = object.object(&["message", "update"])?;
    status.message = said.map(message::read).transpose()?;
    status.timestamp = read_time(&mut object, "timestamp")?;
    Ok(status)
}

/// Reads a time; one without a zone is UTC.
pub(super) fn read_time(object: &mut Object, name: &str) -> Read<Option<Timestamp>> {
    let Some(text) = object.text(name)? else {
        return Ok(None);
    };
    Timestamp::parse_told(&text)
        .map(Some)
        .map_err(|error| object.wrong(name, error.to_string()))
}

impl Serialize for Spelt<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_task(self.0, self.1, false, serializer)
    }
}

/// Writes a task; `contextId` is required in 0.3 (MAP-03).
fn write_task<S: Serializer>(
    task: &Task,
    form: Form,
    with_artifacts: bool,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut out = Out::new(serializer)?;
    out.kind(form, "task")?;
    out.put("id", &task.id)?;
    let context = task.context_id.as_ref().map_or("", |id| id.as_str());
    out.put("contextId", context)?;
    out.put("status", &Spelt(&task.status, form))?;
    if with_artifacts || !task.artifacts.is_empty() {
        out.put("artifacts", &Spelt(task.artifacts.as_slice(), form))?;
    }
    if !task.history.is_empty() {
        out.put("history", &Spelt(task.history.as_slice(), form))?;
    }
    out.some("metadata", task.metadata.as_ref())?;
    out.end()
}

pub(super) fn read(mut object: Object) -> Read<Task> {
    Ok(Task {
        id: object.id("id")?,
        context_id: object.some_id("contextId")?,
        status: read_status(object.object(&["status"])?)?,
        artifacts: object.list(&["artifacts"], message::read_artifact)?,
        history: object.list(&["history"], message::read)?,
        metadata: object.metadata()?,
    })
}

/// A page has no schema in 0.3: it is that of 1.0 with the tasks of 0.3 (V03-11).
impl Serialize for Spelt<'_, ListTasksResponse> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(page, form) = *self;
        let mut out = Out::new(serializer)?;
        let tasks: Vec<Listed<'_>> = page
            .tasks
            .iter()
            .map(|task| Listed(task, form, page.artifacts_included))
            .collect();
        out.put("tasks", &tasks)?;
        out.put("nextPageToken", &page.next_page_token)?;
        out.put("pageSize", &page.page_size)?;
        out.put("totalSize", &page.total_size)?;
        out.end()
    }
}

struct Listed<'a>(&'a Task, Form, bool);

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_task(self.0, self.1, self.2, serializer)
    }
}

pub(super) fn read_page(mut object: Object) -> Read<ListTasksResponse> {
    Ok(ListTasksResponse {
        tasks: object.list(&["tasks"], read)?,
        next_page_token: object.any_text("nextPageToken")?.unwrap_or_default(),
        page_size: object.int("pageSize")?.unwrap_or_default(),
        total_size: object.int("totalSize")?.unwrap_or_default(),
        ..ListTasksResponse::default()
    })
}
