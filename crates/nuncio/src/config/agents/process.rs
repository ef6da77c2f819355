//! Agents of kind `process`.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{Agent, AgentInfo};
use nuncio_runtime::{ProcessAgent, ProcessMode, ProcessSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentConfig, Workshop};
use crate::config::check::Found;

/// How many messages a program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessModeName {
    /// One.
    PerTask,
    /// One after another.
    Persistent,
}

/// Variables of the server that every program gets.
pub(crate) const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

impl AgentConfig {
    pub(super) fn build_process(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        let plain = self.plain_info("An agent that another program is.");
        let mut settings = ProcessSettings::new(self.command.clone());
        settings.folder.clone_from(&self.folder);
        settings.inherited = INHERITED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), workshop.environment.get(*name)?.clone())))
            .collect();
        for (name, given) in &self.env {
            let value = given.reveal(&workshop.environment);
            let value = value.map_err(|why| format!("env.{name}: {why}"))?;
            settings.env.insert(name.clone(), value);
        }
        settings.mode = match self.mode {
            Some(ProcessModeName::Persistent) => ProcessMode::Persistent,
            Some(ProcessModeName::PerTask) | None => ProcessMode::PerTask,
        };
        if let Some(count) = self.max_processes {
            settings.max_processes = count;
        }
        if let Some(bytes) = self.max_line_bytes {
            settings.max_line_bytes = bytes;
        }
        if let Some(seconds) = self.grace_seconds {
            settings.grace = Duration::from_secs(seconds);
        }
        let info: AgentInfo = self.info(plain);
        Ok(Arc::new(ProcessAgent::new(info, settings)))
    }

    pub(super) fn check_process(&self, path: &str, found: &mut Found) {
        if self.command.first().is_none_or(String::is_empty) {
            found.add(
                format!("{path}.command"),
                "there is no program to start",
                "for example `command = [\"python3\", \"agent.py\"]`",
            );
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            let hint = "write text without `\\u0000`";
            found.add(format!("{path}.command"), "a word has a NUL in it", hint);
        }
        for name in self.env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("\"{name}\" is no name of a variable");
                let hint = "letters, digits and `_`, such as API_KEY";
                found.add(format!("{path}.env"), message, hint);
            }
        }
        let ranges = [
            ("max_processes", self.max_processes, 1..=10_000),
            ("max_line_bytes", self.max_line_bytes, 1_024..=1 << 30),
        ];
        for (key, value, allowed) in ranges {
            if let Some(value) = value {
                found.range(&format!("{path}.{key}"), value as u64, allowed);
            }
        }
        if let Some(seconds) = self.grace_seconds {
            found.range(&format!("{path}.grace_seconds"), seconds, 0..=600);
        }
    }
}
