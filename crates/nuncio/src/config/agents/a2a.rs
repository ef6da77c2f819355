//! Agents of kind `a2a`: agents that speak A2A somewhere else.

use std::sync::Arc;
use std::time::Duration;

use nuncio_client::ClientBuilder;
use nuncio_engine::{Agent, Passing};
use nuncio_protocol::{AgentCard, Binding, Version};
use nuncio_runtime::{PassThrough, RemoteAgent, RemoteSettings, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentConfig, DialectName, Workshop};
use crate::config::check::Found;

/// How the tasks of a remote agent are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitingName {
    /// By a stream, if it has one.
    Stream,
    /// By a call that it answers at the end.
    Send,
    /// By asking again and again.
    Poll,
}

/// A binding of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum BindingName {
    /// JSON-RPC.
    #[serde(rename = "JSONRPC")]
    JsonRpc,
    /// gRPC.
    #[serde(rename = "GRPC")]
    Grpc,
    /// HTTP with JSON.
    #[serde(rename = "HTTP+JSON")]
    HttpJson,
}

impl BindingName {
    pub(crate) fn binding(self) -> Binding {
        match self {
            Self::JsonRpc => Binding::JsonRpc,
            Self::Grpc => Binding::Grpc,
            Self::HttpJson => Binding::HttpJson,
        }
    }
}

impl AgentConfig {
    /// The agent, described by this configuration alone; its card is read when it is first called.
    pub(super) fn build_a2a(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        Ok(self.build_remote(workshop)?)
    }

    /// The same, as the remote agent that it is.
    pub(crate) fn build_remote(&self, workshop: &Workshop) -> Result<Arc<RemoteAgent>, String> {
        if let Some(card) = self.card_at_hand()? {
            let client = self.client(workshop)?;
            let remote = RemoteAgent::of_card(self.id.as_str(), client, card);
            let remote = remote.map_err(|error| error.to_string())?;
            return Ok(self.as_here(remote));
        }
        self.address(workshop)?;
        let plain = self.plain_info("An agent that is somewhere else.");
        let url = self.url.as_deref().unwrap_or_default();
        Ok(self.as_here(RemoteAgent::new(plain, self.client(workshop)?, url)))
    }

    /// Whether the card of the agent is somewhere else and has to be read.
    pub(crate) fn is_described_elsewhere(&self) -> bool {
        self.kind == super::AgentKind::A2a && self.card.is_none()
    }

    /// The agent as its own card describes it, with what is said here over that; without the layers
    /// around it.
    pub(crate) async fn described(&self, workshop: &Workshop) -> Result<Arc<RemoteAgent>, String> {
        let url = self.url.as_deref().unwrap_or_default();
        let remote = RemoteAgent::connect(self.id.as_str(), self.client(workshop)?, url).await;
        Ok(self.as_here(remote.map_err(|error| error.to_string())?))
    }

    /// The remote agent as a service that passes calls on.
    pub(crate) fn passed_through(&self, remote: &RemoteAgent, passing: Passing) -> PassThrough {
        let limit = self.timeout_seconds.map(Duration::from_secs);
        remote.passed_through(passing).with_answer_limit(limit)
    }

    fn as_here(&self, remote: RemoteAgent) -> Arc<RemoteAgent> {
        let mut settings = RemoteSettings::default();
        settings.waiting = match self.waiting {
            None | Some(WaitingName::Stream) => Waiting::Stream,
            Some(WaitingName::Send) => Waiting::Send,
            Some(WaitingName::Poll) => Waiting::Poll,
        };
        let passed = self.forwarded().into_iter();
        settings.forward = Some(passed.map(|name| name.as_str().to_owned()).collect());
        settings.max_wait = self.timeout_seconds.map(Duration::from_secs);
        let info = self.info(remote.info().clone());
        Arc::new(remote.with_settings(settings).with_info(info))
    }

    fn card_at_hand(&self) -> Result<Option<AgentCard>, String> {
        let Some(path) = &self.card else {
            return Ok(None);
        };
        let bytes = std::fs::read(path)
            .map_err(|error| format!("card: failed to read {}: {error}", path.display()))?;
        let card = nuncio_protocol::json::decode(&bytes);
        card.map(Some)
            .map_err(|error| format!("card: {} is no agent card: {error}", path.display()))
    }

    fn client(&self, workshop: &Workshop) -> Result<ClientBuilder, String> {
        let mut client = ClientBuilder::new(workshop.egress.clone());
        let url = self.url.as_deref().unwrap_or_default();
        for (name, value) in &self.secret_headers(workshop)? {
            let value = value.to_str().map_err(|error| format!("{name}: {error}"))?;
            client = client.header_for(url, name.as_str(), value);
        }
        if !self.forward_headers.is_empty() {
            client = client.forward_to(url);
        }
        if let Some(binding) = self.binding {
            client = client.binding(binding.binding());
        }
        if let Some(version) = self.protocol {
            client = client.versions([match version {
                DialectName::V0_3 => Version::V0_3,
                DialectName::V1_0 => Version::V1_0,
            }]);
        }
        Ok(client)
    }

    pub(super) fn check_a2a(&self, path: &str, found: &mut Found) {
        self.check_address(path, "https://agents.example/planner", found);
        self.check_headers(path, found);
        if let Some(seconds) = self.timeout_seconds {
            found.range(&format!("{path}.timeout_seconds"), seconds, 1..=86_400);
        }
        if self.pass_through {
            self.check_passed_through(path, found);
        }
    }

    /// Finds settings of what happens to tasks here, where there are none.
    fn check_passed_through(&self, path: &str, found: &mut Found) {
        for (key, said) in [
            ("waiting", self.waiting.is_some()),
            ("resumable", self.resumable),
            ("queues_messages", !self.queues_messages),
            ("trace_content", self.trace_content),
            ("layers", !self.layers.is_empty()),
        ] {
            if said {
                found.add(
                    format!("{path}.{key}"),
                    format!(
                        "{key} is about tasks that are kept here, and with pass_through none are"
                    ),
                    format!("remove {key}, or pass_through"),
                );
            }
        }
    }
}
