//! `[webhooks]`: calling those who want to be told of their tasks.

use std::time::Duration;

use nuncio_egress::EgressPolicy;
use nuncio_engine::DeliverySettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server::network;

/// Calling those who want to be told of their tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebhooksConfig {
    /// Whether webhooks are taken and called at all.
    pub(crate) enabled: bool,
    /// Networks that may be called though they are private, such as `10.0.0.0/8`.
    pub(crate) allow_networks: Vec<String>,
    /// How long one call may take.
    pub(crate) timeout_seconds: u64,
    /// How long an event is tried before it is given up.
    pub(crate) max_attempt_hours: u64,
    /// Calls going on at once.
    pub(crate) concurrency: usize,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        let settings = DeliverySettings::default();
        Self {
            enabled: true,
            allow_networks: Vec::new(),
            timeout_seconds: settings.call_timeout.as_secs(),
            max_attempt_hours: settings.give_up_after.as_secs() / 3_600,
            concurrency: settings.max_calls,
        }
    }
}

impl WebhooksConfig {
    /// What may be called.
    pub(crate) fn policy(&self) -> EgressPolicy {
        let allowed = self.allow_networks.iter().filter_map(|net| network(net));
        allowed.fold(EgressPolicy::default(), EgressPolicy::allowing)
    }

    /// The deliverer's own settings.
    pub(crate) fn settings(&self) -> DeliverySettings {
        let mut settings = DeliverySettings::default();
        settings.call_timeout = Duration::from_secs(self.timeout_seconds);
        settings.give_up_after = Duration::from_secs(self.max_attempt_hours * 3_600);
        settings.max_calls = self.concurrency;
        settings
    }
}
