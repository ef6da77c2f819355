//! The server's configuration: one TOML file, environment variables and flags over it.
//!
//! Everything has a default, unknown keys are refused, and a refusal says where it was said, what
//! is wrong and what to do. [`load`](load::load) reads it, [`wiring`](crate::serve) uses it.

mod agents;
mod auth;
mod check;
mod dump;
mod engine;
mod layers;
mod load;
mod mcp;
mod models;
mod openapi;
mod origin;
mod outbound;
mod refusal;
mod retention;
mod secret;
mod server;
mod telemetry;
mod webhooks;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use agents::{AgentConfig, SkillConfig, Workshop, check_members};
pub(crate) use auth::{
    AuthConfig, KeyConfig, KeyLocation, OAuth2Config, OAuthFlowName, TokensConfig,
};
pub(crate) use check::{NAME_HINT, check_agent, is_name};
pub(crate) use dump::dump;
pub(crate) use engine::EngineConfig;
pub(crate) use layers::{LayerConfigs, LayersByName, make as make_layers};
pub(crate) use load::{Loaded, Sources, load};
pub(crate) use models::{ModelConfig, Models, chain};
pub(crate) use outbound::OutboundConfig;
pub(crate) use refusal::{Refusal, Refusals};
pub(crate) use retention::RetentionConfig;
pub(crate) use server::{LogConfig, LogFormat, ServerConfig, StoreConfig, TlsConfig, network};
pub(crate) use telemetry::{Collector, TelemetryConfig};
pub(crate) use webhooks::WebhooksConfig;

/// What a server is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Listening, addresses, limits.
    pub(crate) server: ServerConfig,
    /// Where tasks are kept.
    pub(crate) store: StoreConfig,
    /// Who may call.
    pub(crate) auth: AuthConfig,
    /// What happens to tasks.
    pub(crate) engine: EngineConfig,
    /// Calling those who want to be told of their tasks.
    pub(crate) webhooks: WebhooksConfig,
    /// Calls of agents to services elsewhere.
    pub(crate) outbound: OutboundConfig,
    /// How long what has ended is kept.
    pub(crate) retention: RetentionConfig,
    /// What is logged, to stderr.
    pub(crate) log: LogConfig,
    /// Who is told of spans.
    pub(crate) telemetry: TelemetryConfig,
    /// The models that agents speak with, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) models: Models,
    /// MCP servers whose tools models may call, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) mcp: mcp::McpServers,
    /// Services whose operations models may call as tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) openapi: openapi::OpenApis,
    /// Guardrails, redaction, quotas and audit that agents have around them, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) layers: LayerConfigs,
    /// The agents; an echo agent if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) agents: Vec<AgentConfig>,
}

impl Config {
    /// The agents to serve: those configured, else the echo agent.
    pub(crate) fn agents(&self) -> Vec<AgentConfig> {
        if self.agents.is_empty() {
            vec![AgentConfig::echo()]
        } else {
            self.agents.clone()
        }
    }

    /// The JSON Schema of the file.
    pub(crate) fn schema() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }
}
