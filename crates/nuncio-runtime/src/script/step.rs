//! Steps: what a script can do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing a script does. Texts may say `{text}` for the text of the message that is being
/// answered and `{turn}` for its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Says WORKING with this text.
    Status(String),
    /// Adds this text to the one text artifact of this turn, as a streaming model does.
    Text(String),
    /// Gives an artifact, whole, in chunks, or a further piece of an earlier one.
    Artifact(Box<Artifact>),
    /// Gives a data artifact of this name that shows what the agent was given besides the text:
    /// context, task and predecessor, metadata of request and message, extensions.
    Received(String),
    /// Answers with this text and makes no task; must come before anything else but a wait.
    Message(String),
    /// Asks, and goes on when the answer is there.
    Pause(Box<Pause>),
    /// Waits so many milliseconds; a cancel ends it at once.
    WaitMs(u64),
    /// Plays steps several times.
    Repeat(Repeat),
    /// Ends the task as COMPLETED with this text in its status.
    Done(String),
    /// Ends the task as FAILED with this text.
    Fail(String),
    /// Ends the task as REJECTED with this text.
    Reject(String),
    /// Panics, as broken code does.
    Panic,
    /// Returns without saying how the task ended.
    Silent,
}

/// An artifact to give: `parts`, or one of the contents right here, or `chunks` of text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Its id; made up if absent. Needed to append to it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// A reference to content elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Structured data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// Structured data as JSON text, for what TOML cannot say, such as `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// A file name for the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Several contents, instead of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Content>,
    /// Text in pieces, each an event of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<String>,
    /// Milliseconds between two chunks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interval_ms: u64,
    /// Adds to the artifact of this id instead of replacing it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// Whether this ends the artifact; yes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<bool>,
}

/// One content of an artifact: exactly one of `text`, `raw`, `url`, `data` and `json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// A reference to content elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Structured data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
    /// Structured data as JSON text, for what TOML cannot say, such as `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// A file name for the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// A question to the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// What is asked.
    pub prompt: String,
    /// INPUT_REQUIRED or AUTH_REQUIRED.
    #[serde(default)]
    pub reason: PauseReason,
    /// The scheme of an authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Where to give an authorisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What happens on the answer; if empty, the answer is matched against the rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_answer: Vec<Step>,
}

/// What a script waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// An answer: INPUT_REQUIRED.
    #[default]
    Input,
    /// An authorisation: AUTH_REQUIRED.
    Auth,
}

/// Steps to play several times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often.
    pub times: u32,
    /// What.
    pub steps: Vec<Step>,
}

impl Step {
    /// What follows the answer, if it is a question.
    pub(crate) fn on_answer(&self) -> Option<&[Self]> {
        match self {
            Self::Pause(pause) => Some(&pause.on_answer),
            _ => None,
        }
    }

    /// Whether nothing after it is played in the same turn.
    pub(crate) fn ends(&self) -> bool {
        matches!(
            self,
            Self::Message(_)
                | Self::Pause(_)
                | Self::Done(_)
                | Self::Fail(_)
                | Self::Reject(_)
                | Self::Panic
                | Self::Silent
        )
    }
}

impl Artifact {
    /// Its contents as parts of the same form.
    pub(crate) fn contents(&self) -> Vec<Content> {
        let own = Content {
            text: self.text.clone(),
            raw: self.raw.clone(),
            url: self.url.clone(),
            data: self.data.clone(),
            json: self.json.clone(),
            filename: self.filename.clone(),
            media_type: self.media_type.clone(),
        };
        if own == Content::default() {
            self.parts.clone()
        } else {
            vec![own]
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
