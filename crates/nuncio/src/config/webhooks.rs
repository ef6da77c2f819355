//! `[webhooks]`: calling those who want to be told of their tasks.

use std::path::PathBuf;
use std::time::Duration;

use nuncio_egress::EgressPolicy;
use nuncio_engine::{DeliverySettings, Settings, WebhookSigning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::secret::Secret;
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
    /// How long a webhook may take nothing at all before it is disabled.
    pub(crate) disable_after_hours: u64,
    /// Calls going on at once.
    pub(crate) concurrency: usize,
    /// Calls going on at once to one host.
    pub(crate) concurrency_per_host: usize,
    /// Webhooks that a task may have.
    pub(crate) max_per_task: usize,
    /// Whether token and credentials of a webhook are given back to the caller who set them.
    pub(crate) return_secrets: bool,
    /// How long calls stay in the log.
    pub(crate) log_days: u64,
    /// How many calls of one webhook stay in the log.
    pub(crate) log_calls: usize,
    /// Secrets (`whsec_…`) that sign calls, separated by blanks; two while they are changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signing_secret: Option<Secret>,
    /// A file with such secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) signing_secret_file: Option<PathBuf>,
    /// Files with Ed25519 keys that sign calls: PEM (PKCS#8) or a JWK. The first signs tokens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) signing_keys: Vec<PathBuf>,
    /// Whether webhooks that ask for `Bearer` without credentials get a signed token.
    pub(crate) jwt: bool,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        let settings = DeliverySettings::default();
        Self {
            enabled: true,
            allow_networks: Vec::new(),
            timeout_seconds: settings.call_timeout.as_secs(),
            max_attempt_hours: settings.give_up_after.as_secs() / 3_600,
            disable_after_hours: settings.disable_after.as_secs() / 3_600,
            concurrency: settings.max_calls,
            concurrency_per_host: settings.max_calls_per_host,
            max_per_task: Settings::default().max_webhooks_per_task,
            return_secrets: false,
            log_days: settings.keep_calls_for.as_secs() / 86_400,
            log_calls: settings.keep_calls,
            signing_secret: None,
            signing_secret_file: None,
            signing_keys: Vec::new(),
            jwt: false,
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
    pub(crate) fn settings(&self, signing: WebhookSigning) -> DeliverySettings {
        let mut settings = DeliverySettings::default();
        settings.call_timeout = Duration::from_secs(self.timeout_seconds);
        settings.give_up_after = Duration::from_secs(self.max_attempt_hours * 3_600);
        settings.disable_after = Duration::from_secs(self.disable_after_hours * 3_600);
        settings.max_calls = self.concurrency;
        settings.max_calls_per_host = self.concurrency_per_host;
        settings.keep_calls_for = Duration::from_secs(self.log_days * 86_400);
        settings.keep_calls = self.log_calls;
        settings.signing = signing;
        settings
    }
}
