//! The kinds of agents, and which settings belong to which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AgentConfig;
use crate::config::check::Found;

/// What runs an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentKind {
    /// Gives back the text it gets.
    Echo,
    /// Plays rules.
    Script,
    /// A program in any language: JSON lines on its input and output.
    Process,
    /// A service that is asked over HTTP, in the same format.
    Http,
    /// An agent that speaks A2A somewhere else.
    A2a,
    /// A language model, with instructions and tools.
    Model,
    /// An endpoint that speaks OpenAI's chat completions.
    Openai,
    /// Asks other agents, one after another.
    Sequence,
    /// Asks other agents at the same time.
    Parallel,
    /// Asks other agents again and again.
    Repeat,
    /// Asks one of several agents.
    Route,
    /// Asks other agents along the edges of a graph.
    Graph,
}

use AgentKind::{
    A2a, Graph, Http, Model, Openai, Parallel, Process, Repeat, Route, Script, Sequence,
};

/// The settings that not every kind has.
const SETTINGS: &[(&str, &[AgentKind])] = &[
    ("rules", &[Script]),
    ("command", &[Process]),
    ("folder", &[Process]),
    ("env", &[Process]),
    ("mode", &[Process]),
    ("max_processes", &[Process]),
    ("max_line_bytes", &[Process]),
    ("grace_seconds", &[Process]),
    ("url", &[Http, A2a, Openai]),
    ("headers", &[Http, A2a]),
    ("bearer", &[Http, A2a, Openai]),
    (
        "forward_headers",
        &[Http, A2a, Model, Sequence, Parallel, Repeat, Route, Graph],
    ),
    ("timeout_seconds", &[Http, A2a, Openai]),
    ("idle_seconds", &[Http, Openai]),
    ("retries", &[Http, Openai]),
    ("card", &[A2a]),
    ("binding", &[A2a]),
    ("protocol", &[A2a]),
    ("waiting", &[A2a]),
    ("pass_through", &[A2a]),
    ("model", &[Model, Openai]),
    ("instructions", &[Model, Openai]),
    ("ask_user", &[Model]),
    ("params", &[Model, Openai]),
    ("budgets", &[Model, Openai]),
    ("output_schema", &[Model]),
    ("reruns", &[Model, Sequence, Parallel, Repeat, Route, Graph]),
    ("overrides", &[Model]),
    ("members", &[Sequence, Parallel, Repeat, Route, Model]),
    ("hand_over", &[Model]),
    ("mcp", &[Model]),
    ("openapi", &[Model]),
    ("emit", &[Sequence]),
    ("join", &[Parallel]),
    ("concurrency", &[Parallel]),
    ("until", &[Repeat]),
    ("limit", &[Repeat, Graph]),
    ("at_limit", &[Repeat]),
    ("routes", &[Route]),
    ("router", &[Route]),
    ("nodes", &[Graph]),
    ("edges", &[Graph]),
    ("start", &[Graph]),
];

impl AgentKind {
    /// Whether it is made of other agents.
    pub(crate) fn is_flow(self) -> bool {
        matches!(self, Sequence | Parallel | Repeat | Route | Graph)
    }

    /// Its name in the configuration.
    pub(crate) fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(name)) => name,
            _ => String::new(),
        }
    }
}

impl AgentConfig {
    /// Finds settings that another kind has.
    pub(super) fn check_placement(&self, path: &str, found: &mut Found) {
        let Ok(Value::Object(said)) = serde_json::to_value(self) else {
            return;
        };
        for (key, kinds) in SETTINGS {
            if said.contains_key(*key) && !kinds.contains(&self.kind) {
                let kinds: Vec<String> = kinds
                    .iter()
                    .map(|kind| format!("`kind = \"{}\"`", kind.name()))
                    .collect();
                found.add(
                    format!("{path}.{key}"),
                    format!("an agent of kind {} has no {key}", self.kind.name()),
                    format!("use {}, or remove it", kinds.join(" or ")),
                );
            }
        }
    }
}
