//! The conversation so far, as it is kept and as the model is shown it.

use nuncio_engine::Input;
use nuncio_protocol::{Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::{FileRef, Said};
use crate::model::{Thought, ToolCall, ToolResult, Turn, UserPart};

/// One thing that was said. Deltas are never kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(super) enum Entry {
    /// The user spoke.
    User {
        /// The message.
        #[serde(default)]
        message: String,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
    },
    /// The model spoke.
    Assistant {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        thoughts: Vec<Thought>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// Tools gave their results.
    Results {
        results: Vec<ToolResult>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
    },
    /// We told the model something.
    Note { text: String },
    /// What was said before, in short.
    Summary { text: String },
}

/// Everything said so far, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Conversation(pub(super) Vec<Entry>);

impl Entry {
    /// A message of the user.
    pub(super) fn user(message: &Message) -> Self {
        let Said { text, files } = Said::by(message);
        Self::User {
            message: message.message_id.as_str().to_owned(),
            text,
            files,
        }
    }

    /// Words of the model.
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thoughts: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Roughly how many tokens it is: four letters are one, a file is a thousand.
    pub(super) fn tokens(&self) -> u64 {
        let letters = |text: &str| text.chars().count() as u64;
        let count = match self {
            Self::User { text, files, .. } => letters(text) + 4_000 * files.len() as u64,
            Self::Assistant { text, calls, .. } => {
                let calls = calls
                    .iter()
                    .map(|call| letters(&call.arguments.to_string()));
                letters(text) + calls.sum::<u64>()
            }
            Self::Results { results, files } => {
                let results = results.iter().map(|result| letters(&result.content));
                results.sum::<u64>() + 4_000 * files.len() as u64
            }
            Self::Note { text } | Self::Summary { text } => letters(text),
        };
        count.div_ceil(4)
    }

    /// Cuts texts that are longer than this many characters.
    pub(super) fn shorten(&mut self, limit: usize) {
        let cut = |text: &mut String| {
            if let Some((end, _)) = text.char_indices().nth(limit) {
                text.truncate(end);
                text.push_str("\n[the rest is left out]");
            }
        };
        match self {
            Self::User { text, .. } | Self::Note { text } | Self::Summary { text } => cut(text),
            Self::Assistant {
                text,
                thoughts,
                calls,
            } => {
                cut(text);
                thoughts.clear();
                let cut = |value: &mut Value| {
                    if value.to_string().len() > limit {
                        *value = Value::Object(serde_json::Map::new());
                    }
                };
                calls.iter_mut().for_each(|call| cut(&mut call.arguments));
            }
            Self::Results { results, .. } => {
                let share = limit / results.len().max(1);
                for result in results {
                    let Some((end, _)) = result.content.char_indices().nth(share) else {
                        continue;
                    };
                    result.content.truncate(end);
                }
            }
        }
    }
}

impl Conversation {
    /// What the task's history says, before a message that is to be answered.
    pub(super) fn before(message: &Message, history: &[Message]) -> Self {
        let earlier = history
            .iter()
            .take_while(|m| m.message_id != message.message_id);
        let entries = earlier.map(|message| match message.role {
            Role::Agent => Entry::said(Said::by(message).text),
            _ => Entry::user(message),
        });
        Self(entries.collect())
    }

    /// Adds what was said.
    pub(super) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }
}

/// What was said, for the model; files come from the task's history.
pub(super) fn turns<'e>(entries: impl Iterator<Item = &'e Entry>, input: &Input) -> Vec<Turn> {
    let history = &input.task.history;
    let mut turns = Vec::new();
    for entry in entries {
        match entry {
            Entry::User { text, files, .. } => user(&mut turns, text, files, history),
            Entry::Note { text } => user(&mut turns, text, &[], history),
            Entry::Summary { text } => {
                let text = format!("What was said before, in short:\n{text}");
                user(&mut turns, &text, &[], history);
            }
            Entry::Assistant {
                text,
                thoughts,
                calls,
            } => turns.push(Turn::Assistant {
                text: text.clone(),
                thoughts: thoughts.clone(),
                tool_calls: calls.clone(),
            }),
            Entry::Results { results, files } => {
                turns.push(Turn::Tools(results.clone()));
                user(&mut turns, "", files, history);
            }
        }
    }
    turns
}

/// Adds what the user side says; providers want turns to alternate.
fn user(turns: &mut Vec<Turn>, text: &str, files: &[FileRef], history: &[Message]) {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(UserPart::Text(text.to_owned()));
    }
    parts.extend(files.iter().map(|file| file.show(history)));
    match turns.last_mut() {
        _ if parts.is_empty() => {}
        Some(Turn::User(earlier)) => earlier.extend(parts),
        _ => turns.push(Turn::User(parts)),
    }
}
