//! `[layers]`: guardrails, redaction, quotas and audit around agents, by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nuncio_engine::Agent;
use nuncio_runtime::Fault;
use nuncio_runtime::layer::{At, Audit, Layer, LayeredAgent, PatternError, Quota, Redact, Refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agents::AgentKind;
use super::check::{Found, unknown};
use super::{AgentConfig, Config, is_name};

/// What a layer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LayerKind {
    /// Takes out what matches.
    Redact,
    /// Refuses what matches.
    Refuse,
    /// Limits what each caller may have of each agent.
    Quota,
    /// Writes down what agents have done.
    Audit,
}

use LayerKind::{Audit as Audits, Quota as Quotas, Redact as Redacts, Refuse as Refuses};

/// One layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayerConfig {
    /// What it does.
    pub(crate) kind: LayerKind,
    /// Regular expressions that are looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) patterns: Vec<String>,
    /// What stands in the place of what is taken out; `[removed]` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) with: Option<String>,
    /// The words with which it refuses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Where it looks; everywhere if absent, or, to refuse, at input, tool and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Vec<At>>,
    /// Messages of a caller that are answered within a minute; without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) runs_per_minute: Option<u32>,
    /// Tokens of models that a caller may use in a day (UTC); without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_per_day: Option<u64>,
    /// The file that lines are appended to, from `server.data` on; the log if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// Whether lines have what was said too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) content: bool,
}

/// The settings that not every kind has.
const SETTINGS: &[(&str, &[LayerKind])] = &[
    ("patterns", &[Redacts, Refuses]),
    ("with", &[Redacts]),
    ("message", &[Refuses]),
    ("at", &[Redacts, Refuses]),
    ("runs_per_minute", &[Quotas]),
    ("tokens_per_day", &[Quotas]),
    ("file", &[Audits]),
    ("content", &[Audits]),
];

/// The layers of a configuration.
pub(crate) type LayerConfigs = BTreeMap<String, LayerConfig>;

/// The layers themselves: agents that name one share it.
pub(crate) type LayersByName = BTreeMap<String, Arc<dyn Layer>>;

/// Makes all layers; files are in `folder` unless they say otherwise.
///
/// # Errors
/// Which one cannot be made, and why.
pub(crate) fn make(layers: &LayerConfigs, folder: &Path) -> Result<LayersByName, String> {
    let made = |(name, layer): (&String, &LayerConfig)| {
        let made = layer.make(name, folder);
        let made = made.map_err(|why| format!("layers.{name}: {why}"))?;
        Ok((name.clone(), made))
    };
    layers.iter().map(made).collect()
}

impl LayerConfig {
    fn make(&self, name: &str, folder: &Path) -> Result<Arc<dyn Layer>, String> {
        let unusable = |error: PatternError| format!("patterns[{}]: {error}", error.index);
        let at = |usual: &[At]| self.at.clone().unwrap_or_else(|| usual.to_vec());
        Ok(match self.kind {
            Redacts => {
                let layer = Redact::new(&self.patterns).map_err(unusable)?;
                let at = at(&[At::Input, At::Model, At::Tool, At::Output]);
                let with = self.with.as_deref().unwrap_or(Redact::WITH);
                Arc::new(layer.with(with).at(at))
            }
            Refuses => {
                let words = self.message.clone().unwrap_or_default();
                let layer = Refuse::new(&self.patterns, words).map_err(unusable)?;
                Arc::new(layer.at(at(&[At::Input, At::Tool, At::Output])))
            }
            Quotas => {
                let mut layer = Quota::new(name);
                if let Some(runs) = self.runs_per_minute {
                    layer = layer.runs_per_minute(runs);
                }
                if let Some(tokens) = self.tokens_per_day {
                    layer = layer.tokens_per_day(tokens);
                }
                Arc::new(layer)
            }
            Audits => Arc::new(self.trail(folder)?.content(self.content)),
        })
    }

    fn trail(&self, folder: &Path) -> Result<Audit, String> {
        let Some(file) = &self.file else {
            return Ok(Audit::to_log());
        };
        let path = folder.join(file);
        let opened = Audit::to_file(&path);
        opened.map_err(|error| format!("file: failed to open {}: {error}", path.display()))
    }
}

impl AgentConfig {
    /// An agent within the layers that it names; one that a model speaks for has them inside.
    pub(crate) fn within_layers(
        &self,
        agent: Arc<dyn Agent>,
        layers: &LayersByName,
    ) -> Result<Arc<dyn Agent>, String> {
        if self.layers.is_empty() || self.kind.has_a_model() {
            return Ok(agent);
        }
        let layers = self.named_layers(layers)?;
        Ok(Arc::new(LayeredAgent::new(agent, layers)))
    }

    /// The layers that it names, in their order.
    pub(crate) fn named_layers(
        &self,
        layers: &LayersByName,
    ) -> Result<Vec<Arc<dyn Layer>>, String> {
        let named = self.layers.iter().map(|name| {
            let layer = layers.get(name).cloned();
            layer.ok_or_else(|| unknown("layer", "layers", layers, name))
        });
        named.collect()
    }

    /// What is wrong with the layers that it names; paths begin in the agent.
    pub(crate) fn check_layers(&self, layers: &LayerConfigs) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (at, name) in self.layers.iter().enumerate() {
            let mut fault = |message: String, hint: &str| {
                faults.push(Fault {
                    path: format!("layers[{at}]"),
                    message,
                    hint: hint.to_owned(),
                });
            };
            match layers.get(name) {
                None => fault(
                    unknown("layer", "layers", layers, name),
                    "a name of a table in [layers]",
                ),
                Some(_) if self.layers[..at].contains(name) => {
                    fault(
                        format!("layer \"{name}\" is named twice"),
                        "remove one of them",
                    );
                }
                Some(layer) if layer.counts_tokens_only() && !self.kind.has_a_model() => fault(
                    format!("layer \"{name}\" counts tokens of models, and this agent has none"),
                    "remove it, or add runs_per_minute to the layer",
                ),
                Some(_) => {}
            }
        }
        faults
    }
}

impl LayerConfig {
    fn counts_tokens_only(&self) -> bool {
        self.kind == Quotas && self.runs_per_minute.is_none()
    }
}

impl Found {
    /// Finds what is wrong with layers, and agents that name others.
    pub(super) fn layers(&mut self, config: &Config) {
        for (name, layer) in &config.layers {
            let path = format!("layers.{name}");
            if !is_name(name) {
                let hint = "letters, digits, `-`, `_`, `.`";
                self.add(path.as_str(), "no name for a layer", hint);
            }
            self.layer(&path, layer);
        }
        for (index, agent) in config.agents.iter().enumerate() {
            for fault in agent.check_layers(&config.layers) {
                let path = format!("agents[{index}].{}", fault.path);
                self.add(path, fault.message, fault.hint);
            }
        }
    }

    fn layer(&mut self, path: &str, layer: &LayerConfig) {
        self.layer_settings(path, layer);
        match layer.kind {
            Redacts | Refuses => self.patterns(path, layer),
            Quotas => {
                if layer.runs_per_minute.is_none() && layer.tokens_per_day.is_none() {
                    let hint = "for example `runs_per_minute = 30` or `tokens_per_day = 200000`";
                    self.add(path, "nothing is limited", hint);
                }
                if let Some(runs) = layer.runs_per_minute {
                    self.range(&format!("{path}.runs_per_minute"), runs.into(), 1..=100_000);
                }
                if let Some(tokens) = layer.tokens_per_day {
                    self.range(&format!("{path}.tokens_per_day"), tokens, 1..=u64::MAX);
                }
            }
            Audits => {}
        }
        if layer.kind == Refuses && layer.message.as_ref().is_none_or(String::is_empty) {
            let hint = "for example `message = \"this must not be asked here\"`";
            self.add(
                format!("{path}.message"),
                "there are no words to refuse with",
                hint,
            );
        }
    }

    fn patterns(&mut self, path: &str, layer: &LayerConfig) {
        if layer.patterns.is_empty() {
            let hint = "for example `patterns = [\"[0-9]{3}-[0-9]{2}-[0-9]{4}\"]`";
            self.add(format!("{path}.patterns"), "nothing is looked for", hint);
        }
        for (at, pattern) in layer.patterns.iter().enumerate() {
            if let Err(error) = Redact::new([pattern]) {
                let hint = "the syntax of https://docs.rs/regex, without looking around";
                self.add(format!("{path}.patterns[{at}]"), error.to_string(), hint);
            }
        }
        if layer.at.as_ref().is_some_and(Vec::is_empty) {
            let hint = "some of: input, model, tool, output";
            self.add(format!("{path}.at"), "it looks nowhere", hint);
        }
    }

    /// Finds settings that another kind has.
    fn layer_settings(&mut self, path: &str, layer: &LayerConfig) {
        let Ok(Value::Object(said)) = serde_json::to_value(layer) else {
            return;
        };
        let name = |kind: &LayerKind| match serde_json::to_value(kind) {
            Ok(Value::String(name)) => name,
            _ => String::new(),
        };
        for (key, kinds) in SETTINGS {
            if said.contains_key(*key) && !kinds.contains(&layer.kind) {
                let kinds: Vec<_> = kinds
                    .iter()
                    .map(|k| format!("`kind = \"{}\"`", name(k)))
                    .collect();
                let message = format!("a layer of kind {} has no {key}", name(&layer.kind));
                let hint = format!("use {}, or remove it", kinds.join(" or "));
                self.add(format!("{path}.{key}"), message, hint);
            }
        }
    }
}

impl AgentKind {
    /// Whether its models and tools are seen by layers.
    fn has_a_model(self) -> bool {
        matches!(self, Self::Model | Self::Openai)
    }
}
