//! What callers of an agent may change.

use std::collections::BTreeSet;

use nuncio_protocol::A2aError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RequestOverrides;

/// What callers of an agent may change for one request; nothing unless it is said.
///
/// What concerns memory may always be said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OverridePolicy {
    /// Models of `[models]` that they may choose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Whether they may give other instructions.
    pub system_prompt: bool,
    /// Whether they may say how the model answers: temperature, length and the like.
    pub params: bool,
    /// The most tokens of thinking they may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    /// Whether they may leave out tools.
    pub capabilities: bool,
    /// Agents of this server that they may put in the place of sub-agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<String>,
    /// The most questions to the model that they may allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The callers to whom this applies; all if absent. Others may change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<BTreeSet<String>>,
}

impl OverridePolicy {
    /// Refuses what a caller may not change; `place` is [where](RequestOverrides::place) it is said.
    ///
    /// # Errors
    /// InvalidParams that names the member.
    pub fn check(
        &self,
        caller: &str,
        said: &RequestOverrides,
        place: &str,
    ) -> Result<(), A2aError> {
        let nothing = Self::default();
        let admitted = self
            .callers
            .as_ref()
            .is_none_or(|callers| callers.contains(caller));
        let policy = if admitted { self } else { &nothing };
        let refused = |field: &str, why: String| {
            Err(A2aError::invalid_field(format!("{place}.{field}"), why))
        };
        let not_here = || "may not be set by callers of this agent".to_owned();
        if let Some(model) = &said.model
            && !policy.models.contains(model)
        {
            let why = match policy.models.as_slice() {
                [] => not_here(),
                models => format!(
                    "is none of the models that may be chosen: {}",
                    models.join(", ")
                ),
            };
            return refused("overrides.model", why);
        }
        if said.system_prompt.is_some() && !policy.system_prompt {
            return refused("overrides.systemPromptOverride", not_here());
        }
        if said.model_params != Default::default() && !policy.params {
            return refused("overrides.modelParams", not_here());
        }
        match (said.reasoning.as_ref(), policy.reasoning_tokens) {
            (Some(_), None) => return refused("overrides.reasoning", not_here()),
            (Some(wanted), Some(most)) if wanted.budget_tokens > most => {
                return refused(
                    "overrides.reasoning.budgetTokens",
                    format!("is more than {most}"),
                );
            }
            _ => {}
        }
        if said.capabilities.is_some() && !policy.capabilities {
            return refused("overrides.capabilitiesOverride", not_here());
        }
        if let Some(agent) = said
            .subagent_mapping
            .values()
            .find(|a| !policy.subagents.contains(a))
        {
            return refused(
                "subagentMapping",
                format!("names agent {agent}, which may not be used so"),
            );
        }
        match (said.max_turns, policy.max_turns) {
            (Some(_), None) => refused("overrides.maxTurns", not_here()),
            (Some(wanted), Some(most)) if wanted > most => {
                refused("overrides.maxTurns", format!("is more than {most}"))
            }
            _ => Ok(()),
        }
    }
}
