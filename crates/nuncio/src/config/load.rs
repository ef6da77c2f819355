//! Reading a configuration: flags over environment over file over defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::check::check;
use super::origin::{KeyPath, Origin, Place, line_at, place_of};
use super::{Config, Refusal, Refusals};

/// Where a configuration comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The file, if one is named.
    pub(crate) file: Option<PathBuf>,
    /// The environment; only names beginning with `NUNCIO__` are looked at.
    pub(crate) environment: BTreeMap<String, String>,
    /// Settings by flag: the key, the flag's name, the value.
    pub(crate) flags: Vec<(&'static str, &'static str, Value)>,
    /// Whether an open server without authentication is wanted.
    pub(crate) insecure: bool,
}

/// A configuration that has been read and found good.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    /// What was said.
    pub(crate) config: Config,
    /// What may not be meant so.
    pub(crate) warnings: Vec<String>,
    /// The file's text.
    pub(crate) text: String,
    pub(crate) sources: Sources,
}

const PREFIX: &str = "NUNCIO__";

/// Reads and checks a configuration.
///
/// # Errors
/// Everything wrong with the values, or the first thing wrong with the form.
pub(crate) fn load(sources: Sources) -> Result<Loaded, Refusals> {
    let text = match &sources.file {
        Some(path) => read(path)?,
        None => String::new(),
    };
    let mut table = parse(&text, sources.file.as_deref())?;
    for (name, value) in variables(&sources.environment) {
        put(&mut table, &keys_of(name), value);
    }
    for (key, _, value) in &sources.flags {
        put(
            &mut table,
            &key.split('.').map(str::to_owned).collect::<Vec<_>>(),
            value.clone(),
        );
    }
    let mut loaded = Loaded {
        config: Config::default(),
        warnings: Vec::new(),
        text,
        sources,
    };
    loaded.config = serde_path_to_error::deserialize(Value::Table(table))
        .map_err(|error| loaded.refuse_form(&error))?;
    let (faults, warnings) = check(&loaded.config, loaded.sources.insecure);
    let refusals: Vec<Refusal> = faults
        .into_iter()
        .map(|fault| loaded.refuse(&KeyPath::parse(&fault.path), fault.message, fault.hint))
        .collect();
    if !refusals.is_empty() {
        return Err(Refusals(refusals));
    }
    loaded.warnings = warnings;
    Ok(loaded)
}

fn read(path: &Path) -> Result<String, Refusals> {
    let refuse = |message: String| Refusal {
        origin: Origin::File(path.to_owned()),
        key: String::new(),
        message,
        hint: "name a readable TOML file with --config".to_owned(),
    };
    let bytes = std::fs::read(path).map_err(|error| refuse(format!("failed to read: {error}")))?;
    let text = String::from_utf8(bytes);
    Ok(text.map_err(|error| refuse(format!("failed to read: {error}")))?)
}

fn parse(text: &str, path: Option<&Path>) -> Result<Table, Refusals> {
    text.parse::<Table>().map_err(|error| {
        let path = path.unwrap_or(Path::new("")).to_owned();
        let line = error.span().map_or(1, |span| line_at(text, span.start));
        Refusals::from(Refusal {
            origin: Origin::Line(path, line),
            key: String::new(),
            message: format!("failed to parse: {}", error.message().replace('\n', ", ")),
            hint: "the file must be TOML: `key = value` lines under `[section]` headers".to_owned(),
        })
    })
}

/// The variables that set something, with their values read as TOML where they are that.
fn variables(environment: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, Value)> {
    let ours = environment
        .iter()
        .filter(|(name, _)| name.starts_with(PREFIX));
    ours.map(|(name, text)| (name, value_of(text)))
}

fn keys_of(variable: &str) -> Vec<String> {
    variable[PREFIX.len()..]
        .split("__")
        .map(str::to_ascii_lowercase)
        .collect()
}

fn value_of(text: &str) -> Value {
    let read = format!("value = {text}").parse::<Table>().ok();
    let value = read.and_then(|mut table| table.remove("value"));
    match value {
        Some(
            value @ (Value::Boolean(_) | Value::Integer(_) | Value::Array(_) | Value::Table(_)),
        ) => value,
        Some(Value::String(text)) => Value::String(text),
        _ => Value::String(text.to_owned()),
    }
}

fn put(table: &mut Table, keys: &[String], value: Value) {
    let [key, rest @ ..] = keys else { return };
    if rest.is_empty() {
        table.insert(key.clone(), value);
        return;
    }
    let inner = table
        .entry(key.clone())
        .or_insert_with(|| Value::Table(Table::new()));
    if !inner.is_table() {
        *inner = Value::Table(Table::new());
    }
    if let Value::Table(inner) = inner {
        put(inner, rest, value);
    }
}

impl Loaded {
    /// Where a setting was said; [`Origin::Default`] if nowhere.
    pub(crate) fn origin(&self, path: &KeyPath) -> Origin {
        self.place(path, |place| place.whole)
    }

    fn place(&self, path: &KeyPath, counts: impl FnOnce(&Place) -> bool) -> Origin {
        let head = path.head();
        let by_flag = |key: &str| key.split('.').eq(head.iter().copied());
        if let Some((_, flag, _)) = self.sources.flags.iter().find(|(key, ..)| by_flag(key)) {
            return Origin::Flag((*flag).to_owned());
        }
        // `NUNCIO__AUTH` says all of `auth`; `NUNCIO__STORE__URL__X` is a mistake about `store.url`.
        let by_name = |name: &str| {
            !head.is_empty() && keys_of(name).iter().zip(&head).all(|(key, at)| key == at)
        };
        if let Some((name, _)) =
            variables(&self.sources.environment).find(|(name, _)| by_name(name.as_str()))
        {
            return Origin::Variable(name.clone());
        }
        match (
            &self.sources.file,
            place_of(&self.text, path).filter(counts),
        ) {
            (Some(file), Some(place)) => Origin::Line(file.clone(), place.line),
            _ => Origin::Default,
        }
    }

    fn refuse(&self, path: &KeyPath, message: String, hint: String) -> Refusal {
        // What is missing is told with the line of what it is missing in.
        Refusal {
            origin: self.place(path, |_| true),
            key: path.to_string(),
            message,
            hint,
        }
    }

    /// What is wrong with the form: an unknown key, a missing one, a value of the wrong kind.
    fn refuse_form(&self, error: &serde_path_to_error::Error<toml::de::Error>) -> Refusals {
        let path = KeyPath::of(error.path());
        let message = error.inner().message().trim().to_owned();
        let hint = hint(&path, &message);
        let message = match quoted(&message, "unknown field ") {
            Some((key, _)) => format!("unknown key `{key}`"),
            None => message
                .replace("unknown variant", "unknown value")
                .replace("missing field", "missing key"),
        };
        self.refuse(&path, message, hint).into()
    }
}

/// The first name in backquotes after some words, and what comes after it.
fn quoted<'a>(message: &'a str, words: &str) -> Option<(&'a str, &'a str)> {
    message
        .strip_prefix(words)?
        .strip_prefix('`')?
        .split_once('`')
}

fn hint(path: &KeyPath, message: &str) -> String {
    let unknown = quoted(message, "unknown field ").or_else(|| quoted(message, "unknown variant "));
    if let Some((found, rest)) = unknown {
        let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        return match closest(found, &known) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
    }
    if let Some((key, _)) = quoted(message, "missing field ") {
        return format!("add `{key} = …`");
    }
    match example(path) {
        Some(value) => format!(
            "for example `{} = {value}`",
            path.last_key().unwrap_or_default()
        ),
        None => "`nuncio config schema` shows what is expected".to_owned(),
    }
}

/// The known name that somebody who wrote this may have meant.
pub(crate) fn closest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(found, name), *name));
    let (distance, name) = near.min()?;
    let likely = distance <= 1 + name.len() / 6 || strsim::jaro_winkler(found, name) > 0.9;
    likely.then_some(name)
}

/// What the default says there.
fn example(path: &KeyPath) -> Option<String> {
    let defaults = Value::try_from(Config::default()).ok()?;
    let [section, key] = path.head()[..] else {
        return None;
    };
    Some(defaults.get(section)?.get(key)?.to_string())
}
