//! What a run may use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::model::Usage;

/// How much one run (the answer to one message) may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// Questions to the model; 20.
    pub max_turns: u32,
    /// Calls of tools; 50.
    pub max_tool_calls: u32,
    /// Tokens read and written, as the provider counts them; 1,000,000.
    pub max_tokens: u64,
    /// The estimated tokens of a conversation above which its older part is summarised; 100,000.
    pub compact_above_tokens: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            max_turns: 20,
            max_tool_calls: 50,
            max_tokens: 1_000_000,
            compact_above_tokens: 100_000,
        }
    }
}

/// What a model costs, in any currency, for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A million tokens read.
    pub input: f64,
    /// A million tokens written.
    pub output: f64,
}

/// What a run has used so far.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) turns: u32,
    pub(super) tool_calls: u32,
    pub(super) tokens: u64,
}

impl Used {
    /// Why the model may not be asked again, if so.
    pub(super) fn exceeds(&self, budgets: &Budgets) -> Option<String> {
        if self.turns >= budgets.max_turns {
            let limit = budgets.max_turns;
            return Some(format!("the model gave no answer within {limit} turns"));
        }
        if self.tokens >= budgets.max_tokens {
            let limit = budgets.max_tokens;
            return Some(format!("the run has used its budget of {limit} tokens"));
        }
        None
    }
}

/// Usage as it is shown in metadata; nothing if the provider does not count.
pub(super) fn shown(usage: &Usage, prices: Option<&Prices>) -> Map<String, Value> {
    if usage.total() == 0 {
        return Map::new();
    }
    let mut shown = json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
    });
    if usage.cached_tokens > 0 {
        shown["cachedTokens"] = usage.cached_tokens.into();
    }
    if usage.reasoning_tokens > 0 {
        shown["reasoningTokens"] = usage.reasoning_tokens.into();
    }
    if let Some(prices) = prices {
        let cost =
            usage.input_tokens as f64 * prices.input + usage.output_tokens as f64 * prices.output;
        shown["cost"] = (cost / 1_000_000.0).into();
    }
    Map::from_iter([("usage".to_owned(), shown)])
}
