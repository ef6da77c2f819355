//! What a caller wants otherwise, for one request: in its metadata, under `memorylake` as MemoryLake
//! has it, or under [`OVERRIDES`] with the same members.
//!
//! Unknown members are refused with their path. What an agent lets its callers change is its
//! [policy](OverridePolicy); what concerns memory is read, checked and handed to the agent.

mod policy;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nuncio_protocol::{A2aError, Metadata};
use serde::Deserialize;
use serde_json::Value;

use crate::model::{ModelParams, Reasoning};

pub use policy::OverridePolicy;

/// The extension with which overrides are said without MemoryLake's name.
pub const OVERRIDES: &str = "https://nuncio.dev/extensions/overrides/v1";

/// The member of a request's metadata in which MemoryLake's clients say them.
pub const MEMORYLAKE: &str = "memorylake";

/// What a request says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RequestOverrides {
    /// On whose behalf the request is made.
    pub actor_id: Option<String>,
    /// The project in which facts are read and kept.
    pub read_write_project_id: Option<String>,
    /// Projects in which facts are read only.
    pub read_only_project_ids: Vec<String>,
    /// Agents in place of sub-agents, by the names of those.
    pub subagent_mapping: BTreeMap<String, String>,
    /// Another model, by its name here.
    pub model: Option<String>,
    /// Other instructions.
    pub system_prompt: Option<String>,
    /// How the model is to answer.
    pub model_params: ModelParams,
    /// How the model thinks before it answers.
    pub reasoning: Option<Reasoning>,
    /// What the agent may use instead of all it has: names, each with what belongs to it.
    pub capabilities: Option<BTreeMap<String, Value>>,
    /// The most questions to the model.
    pub max_turns: Option<u32>,
    /// Whether memory is neither read nor written.
    pub skip_memory: bool,
}

impl RequestOverrides {
    /// Where in a request they are said.
    pub fn place(metadata: Option<&Metadata>) -> String {
        let ours = metadata.is_some_and(|metadata| metadata.contains_key(OVERRIDES));
        format!("metadata.{}", if ours { OVERRIDES } else { MEMORYLAKE })
    }

    /// Reads what a request says; nothing if it says nothing.
    ///
    /// # Errors
    /// InvalidParams that names the member, such as `metadata.memorylake.overrides.maxTurns`.
    pub fn read(metadata: Option<&Metadata>) -> Result<Self, A2aError> {
        let said = |key: &str| Some((key.to_owned(), metadata?.get(key)?));
        match (said(MEMORYLAKE), said(OVERRIDES)) {
            (None, None) => Ok(Self::default()),
            (Some((key, value)), None) | (None, Some((key, value))) => {
                read::read(&format!("metadata.{key}"), value)
            }
            (Some(_), Some((key, _))) => {
                let why = format!("says what metadata.{MEMORYLAKE} says too; keep one of them");
                Err(A2aError::invalid_field(format!("metadata.{key}"), why))
            }
        }
    }
}

/// As it is written; see [`read`].
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    actor_id: Option<String>,
    read_write_project_id: Option<String>,
    read_only_project_ids: Vec<String>,
    #[serde(alias = "subAgents")]
    subagent_mapping: BTreeMap<String, String>,
    overrides: WrittenOverrides,
    skip_memory: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct WrittenOverrides {
    model: Option<String>,
    #[serde(alias = "systemPrompt")]
    system_prompt_override: Option<String>,
    model_params: WrittenParams,
    reasoning: Option<WrittenReasoning>,
    capabilities_override: Option<Capabilities>,
    max_turns: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct WrittenParams {
    temperature: Option<f64>,
    #[serde(alias = "max_tokens")]
    max_tokens: Option<u32>,
    #[serde(alias = "top_p")]
    top_p: Option<f64>,
    stop: Vec<String>,
    seed: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenReasoning {
    #[serde(rename = "type")]
    kind: ReasoningType,
    #[serde(default)]
    budget_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReasoningType {
    Enabled,
    Disabled,
}

/// A list of names, or an object with what belongs to each.
#[derive(Debug)]
struct Capabilities(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let named = |value: Value| match value {
            Value::String(name) => Ok((name, Value::Object(serde_json::Map::new()))),
            other => Err(D::Error::custom(format!(
                "{other} is no name of a capability"
            ))),
        };
        match Value::deserialize(deserializer)? {
            Value::Array(names) => names
                .into_iter()
                .map(named)
                .collect::<Result<_, _>>()
                .map(Self),
            Value::Object(object) => Ok(Self(object.into_iter().collect())),
            _ => Err(D::Error::custom("expected a list of names or an object")),
        }
    }
}
