//! Rules: which message gets which answer.

use nuncio_engine::Input;
use nuncio_protocol::{Message, PartContent, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Step;

/// What to do about some messages. The first rule that matches is played.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which messages; everything said here must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// Matches every message; stands in the last rule, instead of `when`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub otherwise: bool,
    /// What happens, in this order; at the end the task is COMPLETED.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// Conditions on a message; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// How its messageId begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id_prefix: Option<String>,
    /// Its whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// How its text begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_prefix: Option<String>,
    /// What stands somewhere in its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_contains: Option<String>,
    /// A kind of part it has, or has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_data: Option<bool>,
    /// Whether it has a part of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_raw: Option<bool>,
    /// Whether it has a part that refers to a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_url: Option<bool>,
    /// The how-manieth message of the user in this task it is, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
}

impl Rule {
    /// Whether it is for a message that is the `turn`th of the user in its task.
    pub(crate) fn matches(&self, message: &Message, turn: usize) -> bool {
        self.otherwise
            || self
                .when
                .as_ref()
                .is_some_and(|when| when.holds(message, turn))
    }
}

impl When {
    /// Whether a message is like this, being the `turn`th.
    pub(crate) fn holds(&self, message: &Message, turn: usize) -> bool {
        let text = message.text();
        let id = message.message_id.as_str();
        let has = |wanted: Option<bool>, kind: fn(&PartContent) -> bool| {
            wanted.is_none_or(|w| w == message.parts.iter().any(|part| kind(&part.content)))
        };
        said(&self.message_id_prefix, |prefix| id.starts_with(prefix))
            && said(&self.text, |whole| text == whole)
            && said(&self.text_prefix, |prefix| text.starts_with(prefix))
            && said(&self.text_contains, |piece| text.contains(piece))
            && has(self.has_data, |c| matches!(c, PartContent::Data(_)))
            && has(self.has_raw, |c| matches!(c, PartContent::Raw(_)))
            && has(self.has_url, |c| matches!(c, PartContent::Url(_)))
            && self.turn.is_none_or(|wanted| wanted == turn)
    }
}

fn said(condition: &Option<String>, holds: impl FnOnce(&str) -> bool) -> bool {
    condition.as_deref().is_none_or(holds)
}

/// The user's messages in the task, up to the one to be answered, which is the last.
///
/// The history may already hold messages that came after it and wait for their turn.
pub(crate) fn turns(input: &Input) -> Vec<&Message> {
    let history = &input.task.history;
    let this = history
        .iter()
        .rposition(|m| m.message_id == input.message.message_id);
    let earlier = &history[..this.unwrap_or(history.len())];
    let earlier = earlier.iter().filter(|message| message.role == Role::User);
    earlier.chain([&input.message]).collect()
}
