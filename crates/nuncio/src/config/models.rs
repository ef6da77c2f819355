//! `[models]`: the models that agents speak with, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_egress::Egress;
use nuncio_runtime::Prices;
use nuncio_runtime::model::{FakeModel, FakeRule, GenaiModel, Model, ModelChain};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::agents::{AgentKind, Given};
use super::check::{Found, unknown};
use super::{AgentConfig, Config};

/// A model of a provider, or a scripted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelConfig {
    /// Who runs it: `openai` (and everything compatible, with `base_url`), `anthropic`, `gemini`,
    /// `ollama`, `groq`, `mistral` and others; `fake` plays `rules`.
    pub(crate) provider: String,
    /// Its name there; the name of this table if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Where the provider is; its usual place if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<String>,
    /// The key with which the provider knows us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<Given>,
    /// Models of this file that are asked, in order, if this one is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fallback: Vec<String>,
    /// What it costs for a million tokens, in any currency; then answers say their cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<Prices>,
    /// What a scripted model answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<FakeRule>,
}

/// The provider of scripted models.
const FAKE: &str = "fake";
/// The providers that a refusal names.
const PROVIDERS: &str =
    "openai, anthropic, gemini, ollama, groq, mistral, deepseek, open_router, fake";
/// Where Ollama is unless said otherwise.
const OLLAMA: &str = "http://localhost:11434/v1/";

/// The models of a configuration.
pub(crate) type Models = BTreeMap<String, ModelConfig>;

/// A model of this name with those that it falls back on.
///
/// # Errors
/// If there is none, or it cannot be made.
pub(crate) fn chain(
    models: &Models,
    name: &str,
    environment: &BTreeMap<String, String>,
    egress: &Egress,
) -> Result<ModelChain, String> {
    let get = |name: &str| {
        let found = models
            .get(name)
            .ok_or_else(|| unknown("model", "models", models, name))?;
        let made = found.make(name, environment, egress);
        made.map_err(|why| format!("models.{name}: {why}"))
    };
    let mut chain = ModelChain::new(get(name)?);
    for next in models
        .get(name)
        .into_iter()
        .flat_map(|model| &model.fallback)
    {
        chain = chain.or(get(next)?);
    }
    Ok(chain)
}

impl ModelConfig {
    /// A model without anything but its place and its key, which a variable of the server has.
    pub(crate) fn of(
        provider: &str,
        model: Option<&str>,
        base_url: Option<&str>,
        key: Option<&str>,
    ) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            base_url: base_url.map(str::to_owned),
            key: key.map(|name| Given::Variable(name.to_owned())),
            fallback: Vec::new(),
            prices: None,
            rules: Vec::new(),
        }
    }

    fn make(
        &self,
        name: &str,
        environment: &BTreeMap<String, String>,
        egress: &Egress,
    ) -> Result<Arc<dyn Model>, String> {
        let name = self.model.as_deref().unwrap_or(name);
        if self.provider == FAKE {
            let model = FakeModel::new(name, self.rules.clone()).map_err(|faults| {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                faults.join("; ")
            })?;
            return Ok(Arc::new(model));
        }
        let base = match (&self.base_url, self.provider.as_str()) {
            (Some(url), _) => Some(url.as_str()),
            (None, "ollama") => Some(OLLAMA),
            (None, _) => None,
        };
        // A provider's usual place is public, so that any public place stands for it here.
        let place = Url::parse(base.unwrap_or("https://provider.example/"));
        let place = place.map_err(|error| format!("base_url: {error}"))?;
        let http = egress.client_for(&place).map_err(|refusal| {
            format!("base_url: {refusal}; outbound.allow_networks says what may be reached")
        })?;
        let mut builder = GenaiModel::builder(&self.provider, name, http);
        if let Some(url) = base {
            builder = builder.base_url(url);
        }
        if let Some(given) = &self.key {
            let key = given.reveal(environment);
            builder = builder.key(key.map_err(|why| format!("key: {why}"))?);
        }
        let model = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(model))
    }
}

impl Found {
    /// Finds what is wrong with models, and agents without theirs.
    pub(super) fn models(&mut self, config: &Config) {
        for (name, model) in &config.models {
            self.model(&format!("models.{name}"), model, &config.models);
        }
        for (index, agent) in config.agents.iter().enumerate() {
            self.model_of(&format!("agents[{index}]"), agent, &config.models);
        }
    }

    fn model(&mut self, path: &str, model: &ModelConfig, models: &Models) {
        let fake = model.provider == FAKE;
        if !fake && !GenaiModel::is_provider(&model.provider) {
            let message = format!("there is no provider \"{}\"", model.provider);
            self.add(
                format!("{path}.provider"),
                message,
                format!("one of: {PROVIDERS}"),
            );
        }
        if !fake && !model.rules.is_empty() {
            let hint = "use `provider = \"fake\"`, or remove them";
            self.add(
                format!("{path}.rules"),
                "only a scripted model has rules",
                hint,
            );
        }
        if fake {
            for fault in FakeModel::new(path, model.rules.clone())
                .err()
                .into_iter()
                .flatten()
            {
                let hint = "a rule has `when` or `otherwise = true`, and a `reply`";
                self.add(format!("{path}.{}", fault.path), fault.message, hint);
            }
        }
        let good = |url: &String| {
            Url::parse(url).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.username().is_empty()
                    && url.password().is_none()
            })
        };
        if model.base_url.as_ref().is_some_and(|url| !good(url)) {
            let message = "not an http or https URL without user and password";
            let hint = "for example `base_url = \"https://gateway.example/v1\"`";
            self.add(format!("{path}.base_url"), message, hint);
        }
        for (index, name) in model.fallback.iter().enumerate() {
            if !models.contains_key(name) {
                let hint = "a name of a table in [models]";
                self.add(
                    format!("{path}.fallback[{index}]"),
                    unknown("model", "models", models, name),
                    hint,
                );
            }
        }
        let costs = model
            .prices
            .iter()
            .flat_map(|p| [("input", p.input), ("output", p.output)]);
        for (key, price) in costs {
            if !price.is_finite() || price < 0.0 {
                let message = format!("{price} is no price");
                self.add(format!("{path}.prices.{key}"), message, "a number from 0");
            }
        }
    }

    fn model_of(&mut self, path: &str, agent: &AgentConfig, models: &Models) {
        if agent.kind == AgentKind::Model
            && let Some(name) = &agent.model
            && !models.contains_key(name)
        {
            let hint = "for example `[models.main]` with `provider` and `model`";
            self.add(
                format!("{path}.model"),
                unknown("model", "models", models, name),
                hint,
            );
        }
    }
}
