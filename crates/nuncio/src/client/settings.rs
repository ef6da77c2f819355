//! Where each setting of the client comes from: flag, environment, local file, global file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuncio_protocol::Binding;

use super::options::{ClientOptions, Layer, OutputFormat};
use super::{dotenv, duration};
use crate::outcome::{Failure, Outcome, warn};
use crate::surroundings::Surroundings;

/// Every setting by the name of its flag, with what holds when nothing is said.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("a2a-version", "1.0"),
    ("agent-card", ""),
    ("api-key", ""),
    ("async", "false"),
    ("bearer", ""),
    ("context-id", ""),
    ("debug", "false"),
    ("insecure", "false"),
    ("metadata", ""),
    ("output", "text"),
    ("poll-interval", "2s"),
    ("server", "http://127.0.0.1:8080"),
    ("svc-param", ""),
    ("task-id", ""),
    ("timeout", "none"),
    ("transport", "the card's order"),
    ("verbose", "false"),
    ("wait", "true"),
];

/// Settings that are never shown.
const SECRETS: &[&str] = &["api-key", "bearer", "svc-param"];

/// Where a setting was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Variable,
    File(PathBuf),
    Default,
}

/// Everything that was said, best source first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    layers: Vec<(Source, BTreeMap<String, String>)>,
}

impl Settings {
    /// Gathers what is said by these flags, the environment and the files.
    ///
    /// # Errors
    /// A file that is named but cannot be read, or is malformed.
    pub(crate) fn gather(
        options: &ClientOptions,
        more: Layer,
        surroundings: &Surroundings,
    ) -> Outcome<Self> {
        let mut flags: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in options.layer().into_iter().chain(more) {
            flags.insert(name.to_owned(), value);
        }
        let config = options.config.clone();
        let config = config.or_else(|| surroundings.variable("A2ACLI_CONFIG").map(str::to_owned));
        let mut settings = Self::default();
        settings.layers.push((Source::Flag, flags));
        settings
            .layers
            .push((Source::Variable, ours(&surroundings.environment)));
        for path in files(config.as_deref(), surroundings) {
            let values = read(&path, config.is_some())?;
            settings.layers.push((Source::File(path), values));
        }
        Ok(settings)
    }

    /// What was said about a setting, and where.
    pub(crate) fn find(&self, name: &str) -> Option<(&str, &Source)> {
        self.layers
            .iter()
            .find_map(|(source, values)| Some((values.get(name)?.as_str(), source)))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.find(name)
            .map(|(value, _)| value.to_owned())
            .filter(|value| !value.is_empty())
    }

    /// The entries of a setting that may be repeated.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        let entries = text
            .lines()
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        entries.map(str::to_owned).collect()
    }

    fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Outcome<Option<T>> {
        let Some((value, source)) = self.find(name).filter(|(value, _)| !value.is_empty()) else {
            return Ok(None);
        };
        let wrong = |why| Failure::usage(format!("failed to read {}: {why}", source.of(name)));
        parse(value).map(Some).map_err(wrong)
    }

    pub(crate) fn flag(&self, name: &str) -> Outcome<bool> {
        let parse = |value: &str| match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(format!("\"{value}\" is neither true nor false")),
        };
        Ok(self.parsed(name, parse)?.unwrap_or(false))
    }

    pub(crate) fn duration(&self, name: &str) -> Outcome<Option<Duration>> {
        self.parsed(name, duration::parse)
    }

    pub(crate) fn output(&self) -> Outcome<OutputFormat> {
        let parse = |value: &str| match value {
            "text" => Ok(OutputFormat::Text),
            "json" => Ok(OutputFormat::Json),
            _ => Err(format!("\"{value}\" is neither text nor json")),
        };
        Ok(self.parsed("output", parse)?.unwrap_or_default())
    }

    /// Whether to return at once; a better source's `wait` wins over a worse one's `async`.
    pub(crate) fn returns_at_once(&self) -> Outcome<bool> {
        for (_, values) in &self.layers {
            if values.contains_key("wait") && self.flag("wait")? {
                return Ok(false);
            }
            if values.contains_key("async") {
                return self.flag("async");
            }
        }
        Ok(false)
    }

    /// The preferred bindings, best first; ones not known here are kept out.
    pub(crate) fn transports(&self) -> Outcome<Vec<Binding>> {
        let parse = |value: &str| {
            let names = value
                .split(['\n', ','])
                .map(str::trim)
                .filter(|name| !name.is_empty());
            names.map(binding).collect::<Result<Vec<_>, _>>()
        };
        Ok(self.parsed("transport", parse)?.unwrap_or_default())
    }

    /// Every setting with its value as it may be shown, and where it comes from.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String, Source)> {
        SETTINGS
            .iter()
            .map(|(name, default)| match self.find(name) {
                Some((value, source)) => (*name, redacted(name, value), source.clone()),
                None => (*name, (*default).to_owned(), Source::Default),
            })
    }
}

impl Source {
    /// The source of one setting in words.
    pub(crate) fn of(&self, name: &str) -> String {
        match self {
            Self::Flag => format!("--{name}"),
            Self::Variable => variable(name),
            Self::File(path) => format!("{} in {}", variable(name), path.display()),
            Self::Default => format!("the default of --{name}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Variable => f.write_str("environment"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

fn binding(name: &str) -> Result<Binding, String> {
    let plain = name.to_ascii_uppercase().replace(['-', '_'], "");
    match plain.as_str() {
        "JSONRPC" => Ok(Binding::JsonRpc),
        "HTTP+JSON" | "HTTPJSON" | "REST" => Ok(Binding::HttpJson),
        "GRPC" => Ok(Binding::Grpc),
        _ => Err(format!(
            "\"{name}\" is no binding; there are JSONRPC, HTTP+JSON and GRPC"
        )),
    }
}

fn redacted(name: &str, value: &str) -> String {
    match name {
        // The names of service parameters are not secret, their values may be.
        "svc-param" => {
            let names = value
                .lines()
                .filter_map(|entry| Some(entry.split_once(':')?.0.trim()));
            names
                .map(|name| format!("{name}:(redacted)"))
                .collect::<Vec<_>>()
                .join(", ")
        }
        _ if SECRETS.contains(&name) && !value.is_empty() => "(redacted)".to_owned(),
        _ => value.to_owned(),
    }
}

/// The variable of a setting.
pub(crate) fn variable(name: &str) -> String {
    format!("A2ACLI_{}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Our settings among variables, by the names of their flags.
fn ours(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let setting = |(name, _): &(&str, &str)| {
        let value = variables
            .get(&variable(name))
            .filter(|value| !value.is_empty())?;
        Some(((*name).to_owned(), value.clone()))
    };
    SETTINGS.iter().filter_map(setting).collect()
}

/// The local file, unless another is named, and the global one; those that exist.
fn files(named: Option<&str>, surroundings: &Surroundings) -> Vec<PathBuf> {
    let local = match named {
        Some(named) => Some(surroundings.directory.join(named)),
        None => {
            let folders = surroundings.directory.ancestors();
            folders
                .map(|folder| folder.join(".env"))
                .find(|path| path.is_file())
        }
    };
    let folder = surroundings.configuration_folder();
    let global = folder
        .map(|folder| folder.join("a2a-cli/.env"))
        .filter(|path| path.is_file());
    local.into_iter().chain(global).collect()
}

fn read(path: &Path, named: bool) -> Outcome<BTreeMap<String, String>> {
    let failed = |why: String| {
        Failure::usage(format!("failed to read {}: {why}", path.display()))
            .hint("a settings file has lines such as A2ACLI_AGENT_CARD=https://agents.example.com")
    };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named => return Err(failed(error.to_string())),
        // A `.env` that is none of our business must not stop us.
        Err(_) => return Ok(BTreeMap::new()),
    };
    let values = match dotenv::parse(&text) {
        Ok(values) => ours(&values),
        Err(error) if named || text.contains("A2ACLI_") => return Err(failed(error.to_string())),
        Err(_) => return Ok(BTreeMap::new()),
    };
    if SECRETS.iter().any(|name| values.contains_key(*name)) && others_may_read(path) {
        let path = path.display();
        warn(&format!(
            "warning: {path} holds a credential and others may read it: chmod 600 {path}\n"
        ))?;
    }
    Ok(values)
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

/// The output format as environment and files have it, for telling a mistake in the arguments.
pub(crate) fn configured_output(arguments: &[&str], surroundings: &Surroundings) -> Option<String> {
    let command = arguments.get(1);
    let named = arguments.iter().position(|text| *text == "--config");
    let named = named.and_then(|at| arguments.get(at + 1)).copied();
    // There it is a server's.
    let named = named.filter(|_| command != Some(&"doctor"));
    let is_client = command.is_some_and(|command| {
        matches!(*command, "send" | "card" | "task" | "agents" | "doctor")
            || (*command == "config" && arguments.get(2) == Some(&"show"))
    });
    if !is_client {
        return None;
    }
    let variable = surroundings.variable("A2ACLI_OUTPUT").map(str::to_owned);
    variable.or_else(|| {
        let named = named.or_else(|| surroundings.variable("A2ACLI_CONFIG"));
        let texts = files(named, surroundings).into_iter().filter_map(|path| {
            let values = dotenv::parse(&std::fs::read_to_string(path).ok()?).ok()?;
            values.get("A2ACLI_OUTPUT").cloned()
        });
        texts.into_iter().next()
    })
}
