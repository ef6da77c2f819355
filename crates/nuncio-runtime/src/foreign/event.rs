//! The answer: events, one JSON object each.

use nuncio_protocol::{Artifact, json};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One thing that another program says about its task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Event {
    /// Work goes on, with a word about it.
    Status { text: String },
    /// A piece of the one text artifact of the run.
    Text { delta: String },
    /// An artifact, or a piece of one.
    Artifact {
        artifact: Artifact,
        #[serde(default)]
        append: bool,
        #[serde(default = "yes")]
        last: bool,
    },
    /// Something for a later run of the task.
    Checkpoint { value: Value },
    /// The user is asked; ends the run.
    Ask {
        text: String,
        #[serde(default)]
        schema: Option<Value>,
    },
    /// An authorisation is needed; ends the run.
    Auth {
        text: String,
        scheme: String,
        #[serde(default)]
        url: Option<String>,
    },
    /// The task will not be done; ends the run.
    Reject { reason: String },
    /// The task has failed; ends the run.
    Fail { message: String },
    /// The task is done; ends the run.
    Done {
        #[serde(default)]
        text: Option<String>,
    },
}

fn yes() -> bool {
    true
}

/// Why something is no event, in a sentence without subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct EventError(String);

impl Event {
    /// Reads an event of a task. `named` says that it must name the task, as it must where one
    /// program serves many.
    ///
    /// # Errors
    /// [`EventError`] for what is no JSON, no event, or an event of another task.
    pub(crate) fn read(
        bytes: &[u8],
        task: &str,
        named: bool,
        fresh_id: impl FnOnce() -> String,
    ) -> Result<Self, EventError> {
        let object: Map<String, Value> = json::decode(bytes)
            .map_err(|error| EventError(format!("is no JSON object: {error}")))?;
        Self::from_object(object, task, named, fresh_id)
    }

    /// The same, of an object that has been read.
    ///
    /// # Errors
    /// [`EventError`] for what is no event, or an event of another task.
    pub(crate) fn from_object(
        mut object: Map<String, Value>,
        task: &str,
        named: bool,
        fresh_id: impl FnOnce() -> String,
    ) -> Result<Self, EventError> {
        match object.remove("task") {
            Some(said) if said == task => {}
            Some(_) => return Err(EventError("is about another task".to_owned())),
            None if named => return Err(EventError("has no `task`".to_owned())),
            None => {}
        }
        if !object.contains_key("type") {
            return Err(EventError("has no `type`".to_owned()));
        }
        if let Some(Value::Object(artifact)) = object.get_mut("artifact") {
            let id = artifact.entry("artifactId");
            id.or_insert_with(|| fresh_id().into());
        }
        serde_json::from_value(Value::Object(object))
            .map_err(|error| EventError(format!("is no event: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::Part;
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Event, String> {
        let bytes = value.to_string();
        Event::read(bytes.as_bytes(), "t", false, || "fresh".to_owned()).map_err(|e| e.to_string())
    }

    #[test]
    fn every_event_is_read() {
        let artifact = Artifact::new("fresh", vec![Part::text("x")]);
        for (said, event) in [
            (
                json!({"type": "status", "text": "s", "task": "t"}),
                Event::Status { text: "s".into() },
            ),
            (
                json!({"type": "text", "delta": "d"}),
                Event::Text { delta: "d".into() },
            ),
            (
                json!({"type": "artifact", "artifact": {"parts": [{"text": "x"}]}}),
                Event::Artifact {
                    artifact,
                    append: false,
                    last: true,
                },
            ),
            (
                json!({"type": "ask", "text": "?", "schema": {"type": "string"}}),
                Event::Ask {
                    text: "?".into(),
                    schema: Some(json!({"type": "string"})),
                },
            ),
            (
                json!({"type": "auth", "text": "?", "scheme": "Bearer"}),
                Event::Auth {
                    text: "?".into(),
                    scheme: "Bearer".into(),
                    url: None,
                },
            ),
            (
                json!({"type": "checkpoint", "value": [9_007_199_254_740_993_u64]}),
                Event::Checkpoint {
                    value: json!([9_007_199_254_740_993_u64]),
                },
            ),
            (
                json!({"type": "reject", "reason": "r"}),
                Event::Reject { reason: "r".into() },
            ),
            (
                json!({"type": "fail", "message": "m"}),
                Event::Fail {
                    message: "m".into(),
                },
            ),
            (json!({"type": "done"}), Event::Done { text: None }),
        ] {
            assert_eq!(read(&said), Ok(event), "{said}");
        }
    }

    #[test]
    fn what_is_no_event_is_told() {
        for (said, why) in [
            (json!(1), "is no JSON object"),
            (json!({}), "has no `type`"),
            (json!({"type": "stat"}), "unknown variant `stat`"),
            (json!({"type": "status"}), "missing field `text`"),
            (json!({"type": "status", "text": 1}), "invalid type"),
            (json!({"type": "done", "txt": "x"}), "unknown field `txt`"),
            (json!({"type": "done", "task": "u"}), "another task"),
            (
                json!({"type": "artifact", "artifact": {"parts": 1}}),
                "invalid type",
            ),
        ] {
            let told = read(&said).unwrap_err();
            assert!(told.contains(why), "{said}: {told}");
        }
        let named = Event::read(br#"{"type":"done"}"#, "t", true, String::new);
        assert_eq!(named.unwrap_err().to_string(), "has no `task`");
    }
}
