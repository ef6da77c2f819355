//! Agents of kind `openai`: endpoints that speak OpenAI's chat completions.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::Agent;
use nuncio_runtime::model::{GenaiModel, ModelChain, RetryPolicy};

use super::{AgentConfig, Workshop};
use crate::config::check::Found;

impl AgentConfig {
    /// A model agent without tools, with a model of its own.
    pub(super) fn build_openai(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        let url = self.address(workshop)?;
        let http = workshop.egress.client_for(&url);
        let http = http.map_err(|refusal| format!("url: {refusal}"))?;
        let name = self.model.as_deref().unwrap_or_default();
        let mut builder = GenaiModel::builder("openai", name, http).base_url(url);
        if let Some(given) = &self.bearer {
            let key = given.reveal(&workshop.environment);
            builder = builder.key(key.map_err(|why| format!("bearer: {why}"))?);
        }
        if let Some(seconds) = self.timeout_seconds {
            builder = builder.first_byte_timeout(Duration::from_secs(seconds));
        }
        if let Some(seconds) = self.idle_seconds {
            builder = builder.idle_timeout(Duration::from_secs(seconds));
        }
        let model = builder.build().map_err(|error| error.to_string())?;
        let mut policy = RetryPolicy::default();
        if let Some(retries) = self.retries {
            policy.tries = retries + 1;
        }
        let chain = ModelChain::new(Arc::new(model)).with_policy(policy);
        self.speaking(chain, None, workshop)
    }

    pub(super) fn check_openai(&self, path: &str, found: &mut Found) {
        self.check_address(path, "http://127.0.0.1:8000/v1", found);
        if self.model.as_ref().is_none_or(String::is_empty) {
            found.add(
                format!("{path}.model"),
                "the endpoint must be told which model",
                "for example `model = \"gpt-4o-mini\"`: its name there",
            );
        }
        self.check_times(path, found);
        self.check_speaking(path, found);
    }
}
