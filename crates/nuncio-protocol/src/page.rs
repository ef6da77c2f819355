//! A page of tasks, whose artifacts are shown whole or not at all.

use serde::ser::{SerializeSeq as _, SerializeStruct as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Task;
use crate::wire::wire_message;

/// A page of tasks. Spec: §3.1.4
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ListTasksResponse {
    /// The tasks of this page.
    pub tasks: Vec<Task>,
    /// Where to go on; empty on the last page.
    pub next_page_token: String,
    /// The limit applied to this page.
    pub page_size: i32,
    /// How many tasks match the filters in all.
    pub total_size: i32,
    /// Whether artifacts were asked for: then every task is written with its list, even an empty
    /// one (OP-LIST-07). Not on the wire itself.
    pub artifacts_included: bool,
}

wire_message! {
    /// The page as it is read.
    pub(crate) struct ReadPage {
        /// The tasks.
        tasks: Vec<Task> => required "tasks",
        /// Where to go on.
        next_page_token: String => required "nextPageToken",
        /// The limit.
        page_size: i32 => size "pageSize",
        /// The number of matches.
        total_size: i32 => size "totalSize",
    }
}

impl<'de> Deserialize<'de> for ListTasksResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let page = ReadPage::deserialize(deserializer)?;
        Ok(Self {
            tasks: page.tasks,
            next_page_token: page.next_page_token,
            page_size: page.page_size,
            total_size: page.total_size,
            artifacts_included: false,
        })
    }
}

impl Serialize for ListTasksResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ListTasksResponse", 4)?;
        if self.artifacts_included {
            out.serialize_field("tasks", &WithArtifacts(&self.tasks))?;
        } else {
            out.serialize_field("tasks", &self.tasks)?;
        }
        out.serialize_field("nextPageToken", &self.next_page_token)?;
        out.serialize_field("pageSize", &self.page_size)?;
        out.serialize_field("totalSize", &self.total_size)?;
        out.end()
    }
}

struct WithArtifacts<'a>(&'a [Task]);

impl Serialize for WithArtifacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(Some(self.0.len()))?;
        for task in self.0 {
            out.serialize_element(&TaskWithArtifacts(task))?;
        }
        out.end()
    }
}

struct TaskWithArtifacts<'a>(&'a Task);

impl Serialize for TaskWithArtifacts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let task = self.0;
        if !task.artifacts.is_empty() {
            return task.serialize(serializer);
        }
        let mut out = serializer.serialize_struct("Task", 6)?;
        out.serialize_field("id", &task.id)?;
        if let Some(context) = &task.context_id {
            out.serialize_field("contextId", context)?;
        }
        out.serialize_field("status", &task.status)?;
        out.serialize_field("artifacts", &task.artifacts)?;
        if !task.history.is_empty() {
            out.serialize_field("history", &task.history)?;
        }
        if let Some(metadata) = &task.metadata {
            out.serialize_field("metadata", metadata)?;
        }
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Artifact, Part, TaskState, TaskStatus, Timestamp, json};

    /// OP-LIST-07, BR-086: asked for, every task has the member; else none has.
    #[test]
    fn artifacts_are_members_of_all_tasks_or_of_none() {
        let status = TaskStatus::new(TaskState::Working, Timestamp::from_unix_ms(0));
        let bare = Task::new("t1".into(), "c1".into(), status);
        let mut full = bare.clone();
        full.artifacts = vec![Artifact::new("a1", vec![Part::text("x")])];
        let page = ListTasksResponse {
            tasks: vec![bare.clone(), full],
            artifacts_included: true,
            ..ListTasksResponse::default()
        };
        let shown: serde_json::Value = serde_json::from_str(&json::encode(&page)).unwrap();
        assert_eq!(shown["tasks"][0]["artifacts"], serde_json::json!([]));
        assert_eq!(shown["tasks"][1]["artifacts"][0]["artifactId"], "a1");
        let mut without: serde_json::Value = shown["tasks"][0].clone();
        without.as_object_mut().unwrap().remove("artifacts");
        assert_eq!(
            without,
            serde_json::to_value(&bare).unwrap(),
            "nothing else differs"
        );
    }
}
