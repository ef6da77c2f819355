//! What a member gave.

use nuncio_protocol::{Artifact, Message, Part, PartContent};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a member gave; empty if it went into the task directly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Output {
    pub(super) artifacts: Vec<Artifact>,
    /// What it said at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<Message>,
}

impl Output {
    /// The content, as the next member is told it: that of the artifacts, else what was said.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.artifacts.iter().flat_map(whole).collect();
        if parts.is_empty() {
            parts = self
                .said
                .iter()
                .flat_map(|said| said.parts.clone())
                .collect();
        }
        if parts.is_empty() {
            parts.push(Part::text(""));
        }
        parts
    }

    /// Whether it has data with `"done": true`.
    pub(super) fn says_done(&self) -> bool {
        let is_done = |part: &Part| match &part.content {
            PartContent::Data(Value::Object(data)) => data.get("done") == Some(&Value::Bool(true)),
            _ => false,
        };
        self.parts().iter().any(is_done)
    }
}

/// The parts of an artifact, pieces of text that follow each other as one.
fn whole(artifact: &Artifact) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for part in &artifact.parts {
        let last = parts
            .last_mut()
            .filter(|last| is_plain(last) && is_plain(part));
        match (last.map(|last| &mut last.content), &part.content) {
            (Some(PartContent::Text(text)), PartContent::Text(more)) => text.push_str(more),
            _ => parts.push(part.clone()),
        }
    }
    parts
}

/// Whether it is text and nothing but text.
fn is_plain(part: &Part) -> bool {
    part.as_text().is_some_and(|text| *part == Part::text(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_is_that_of_the_artifacts_with_whole_texts() {
        let mut named = Part::text("c");
        named.filename = Some("c.txt".to_owned());
        let pieces = vec![
            Part::text("a"),
            Part::text("b"),
            named.clone(),
            Part::text("d"),
        ];
        let said = Some(Message::agent("m", vec![Part::text("said")]));
        let mut output = Output {
            artifacts: vec![
                Artifact::new("1", pieces),
                Artifact::new("2", vec![Part::text("e")]),
            ],
            said,
        };
        let expected = [Part::text("ab"), named, Part::text("d"), Part::text("e")];
        assert_eq!(output.parts(), expected);
        output.artifacts.clear();
        assert_eq!(output.parts(), [Part::text("said")]);
        assert_eq!(Output::default().parts(), [Part::text("")]);
    }

    #[test]
    fn done_is_said_by_data() {
        for (data, done) in [
            (json!({"done": true}), true),
            (json!({"done": "true"}), false),
            (json!([true]), false),
        ] {
            let artifacts = vec![Artifact::new("1", vec![Part::data(data)])];
            let output = Output {
                artifacts,
                said: None,
            };
            assert_eq!(output.says_done(), done);
        }
    }
}
