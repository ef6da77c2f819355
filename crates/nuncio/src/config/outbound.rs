//! `[outbound]`: what agents may reach.

use nuncio_egress::EgressPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::network;

/// Calls of agents to services elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OutboundConfig {
    /// Networks that may be reached although they are private, such as "10.0.0.0/8" or
    /// "127.0.0.1".
    pub(crate) allow_networks: Vec<String>,
    /// How long a connection may take, in seconds.
    pub(crate) connect_seconds: u64,
}

impl Default for OutboundConfig {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_seconds: EgressPolicy::default().connect_timeout.as_secs(),
        }
    }
}

impl OutboundConfig {
    /// What may be called.
    pub(crate) fn policy(&self) -> EgressPolicy {
        let allowed = self.allow_networks.iter().filter_map(|net| network(net));
        let mut policy = allowed.fold(EgressPolicy::default(), EgressPolicy::allowing);
        policy.connect_timeout = std::time::Duration::from_secs(self.connect_seconds);
        policy
    }
}
