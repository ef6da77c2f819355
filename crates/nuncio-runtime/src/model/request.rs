//! What a model is asked.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Thought;
use crate::tool::ToolSpec;

/// One question to a model, with the conversation that led to it.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// Who the model is and what it must do.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub turns: Vec<Turn>,
    /// What it may call.
    pub tools: Vec<ToolSpec>,
    /// The JSON Schema of the answer, if it must be JSON.
    pub output_schema: Option<Value>,
    /// How it is to answer.
    pub params: ModelParams,
}

/// One contribution to a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// What the user said.
    User(Vec<UserPart>),
    /// What the model said.
    Assistant {
        /// Its words; may be empty.
        text: String,
        /// Signed reasoning that its provider wants back.
        thoughts: Vec<Thought>,
        /// The tools it asked for.
        tool_calls: Vec<ToolCall>,
    },
    /// What the tools gave, one result for each call of the turn before.
    Tools(Vec<ToolResult>),
}

/// A piece of what the user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    /// Words.
    Text(String),
    /// An image or another file.
    File {
        /// Its media type.
        media_type: String,
        /// Its name.
        name: Option<String>,
        /// Its content.
        bytes: Bytes,
    },
    /// A file that the provider fetches itself.
    Url {
        /// Its media type.
        media_type: String,
        /// Its name.
        name: Option<String>,
        /// Where it is.
        url: String,
    },
}

/// A wish of the model to have a tool called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Names the call, for its result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What to call it with; a text if the model gave no JSON.
    pub arguments: Value,
    /// What its provider wants back along with the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<String>,
}

/// What a tool gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The result in words or JSON.
    pub content: String,
    /// Whether it is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// How a model is to answer; what is absent is left to its provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelParams {
    /// How freely it chooses its words: 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The share of likely tokens it chooses from: 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts that end the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes answers repeatable where the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How it thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
}

/// How a model thinks before it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reasoning {
    /// The most tokens it may think; 0 turns thinking off.
    pub budget_tokens: u32,
}

impl ModelRequest {
    /// A question in words.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            turns: vec![Turn::user(text)],
            ..Self::default()
        }
    }
}

impl Turn {
    /// Words of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }

    /// Words of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            thoughts: Vec::new(),
            tool_calls: Vec::new(),
        }
    }
}
