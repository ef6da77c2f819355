//! What a model answers, piece by piece.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::ToolCall;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelChunk {
    /// More words.
    Text(String),
    /// More of what it thinks, for watching; not part of the answer.
    Reasoning(String),
    /// Reasoning that its provider wants back with the next request.
    Thought(Thought),
    /// A whole call of a tool.
    ToolCall(ToolCall),
    /// The end.
    Done {
        /// The model that answered.
        model: String,
        /// What it took.
        usage: Usage,
        /// Why it ended.
        stop: StopReason,
    },
}

/// A piece of reasoning with the provider's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thought {
    /// The words, if the provider shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The signature.
    pub signature: String,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Everything is said.
    Completed,
    /// It wants tools called.
    ToolCalls,
    /// It came to its limit of tokens.
    MaxTokens,
    /// The provider withheld the rest.
    Filtered,
    /// It met a text that ends answers.
    StopSequence,
    /// Another reason, in the provider's words.
    Other(String),
}

/// Tokens that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read, cached ones included.
    pub input_tokens: u64,
    /// Tokens written, thinking included.
    pub output_tokens: u64,
    /// Tokens that were read from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens spent on thinking.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Tokens read and written.
    pub fn total(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
    }
}
