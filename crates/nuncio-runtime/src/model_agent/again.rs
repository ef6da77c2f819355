//! Running again up to a step: what was said then is said again without a model.

use nuncio_engine::AgentError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::conversation::{Conversation, Entry};
use super::exchange::{Exchange, Reply, Unheard};
use crate::model::{StopReason, Thought, ToolCall};

/// What a model said, as the call tree keeps it.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Said {
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thoughts: Vec<Thought>,
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// What a model was asked, as the call tree keeps it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    #[serde(default)]
    system: String,
    conversation: Vec<Entry>,
}

impl Reply {
    /// For the call tree.
    pub(super) fn told(&self) -> Value {
        json!(Said {
            text: self.text.clone(),
            thoughts: self.thoughts.clone(),
            tool_calls: self.calls.clone(),
            truncated: self.stop == Some(StopReason::MaxTokens),
        })
    }

    /// From a call tree, or from somebody who wants the model to have said this; words alone will do.
    fn read(told: Value) -> Result<Self, AgentError> {
        let said = match told {
            Value::String(text) => Said {
                text,
                ..Said::default()
            },
            told => serde_json::from_value(told).map_err(|error| {
                AgentError::new(format!("this is nothing that a model could say: {error}"))
            })?,
        };
        let stop = match (said.truncated, said.tool_calls.is_empty()) {
            (true, _) => StopReason::MaxTokens,
            (false, true) => StopReason::Completed,
            (false, false) => StopReason::ToolCalls,
        };
        Ok(Self {
            text: said.text,
            thoughts: said.thoughts,
            calls: said.tool_calls,
            stop: Some(stop),
        })
    }
}

/// A conversation for the call tree. Which message somebody spoke in is left out: it is another one
/// each time.
pub(super) fn told<'e>(entries: impl Iterator<Item = &'e Entry>) -> Vec<Value> {
    let told = |entry| {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        if let Some(members) = value.as_object_mut() {
            members.remove("message");
            let files = members.get_mut("files").and_then(Value::as_array_mut);
            for file in files.into_iter().flatten().filter_map(Value::as_object_mut) {
                file.remove("place");
            }
        }
        value
    };
    entries.map(told).collect()
}

impl Exchange<'_> {
    /// Hears what was said in the run that this one repeats, or what is to be said instead.
    pub(super) async fn hear_again(&mut self, said: Value) -> Result<Reply, Unheard> {
        let reply = Reply::read(said)?;
        if self.agent.output.is_none() {
            self.answer.say(&reply.text).await?;
        }
        Ok(reply)
    }

    /// Goes on with another question to the model; what was said before this task stays what it was
    /// if the question begins with it.
    pub(super) fn take_question(&mut self, question: Value) -> Result<(), AgentError> {
        let question: Question = serde_json::from_value(question).map_err(|error| {
            AgentError::new(format!(
                "this is nothing that a model could be asked: {error}"
            ))
        })?;
        let mut entries = question.conversation;
        let past = told(self.past.entries());
        if told(entries.iter()).starts_with(&past) {
            entries.drain(..past.len());
        } else {
            self.past.set_aside();
        }
        self.system = question.system;
        self.left.conversation = Conversation(entries);
        Ok(())
    }
}
