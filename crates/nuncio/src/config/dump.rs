//! Writing a configuration out, with where each setting comes from.

use std::fmt::Write as _;

use toml::Value;

use super::Loaded;
use super::origin::{KeyPath, Segment};

/// The configuration in force as TOML, every setting with its origin as a comment.
///
/// There is no secret in it: keys are kept as hashes, and the store is named without user and
/// password.
pub(crate) fn dump(loaded: &Loaded) -> String {
    let mut out = String::new();
    let value = Value::try_from(&loaded.config).unwrap_or(Value::Boolean(false));
    let Value::Table(sections) = value else {
        return out;
    };
    for (section, value) in &sections {
        let Value::Table(settings) = value else {
            continue;
        };
        let _ = writeln!(out, "[{section}]");
        for (key, value) in settings {
            if is_tables(value) {
                continue;
            }
            let path = KeyPath(vec![
                Segment::Key(section.clone()),
                Segment::Key(key.clone()),
            ]);
            let origin = loaded.origin(&path);
            match without_secrets(section, key, value) {
                Some(shown) => {
                    let _ = writeln!(
                        out,
                        "{key} = {shown}  # {origin}, without user and password"
                    );
                }
                None => {
                    let _ = writeln!(out, "{key} = {value}  # {origin}");
                }
            }
        }
        for (key, value) in settings.iter().filter(|(_, value)| is_tables(value)) {
            let path = KeyPath(vec![
                Segment::Key(section.clone()),
                Segment::Key(key.clone()),
            ]);
            let _ = writeln!(out, "# {section}.{key}: {}", loaded.origin(&path));
            out.push_str(&tables(&[section, key], value));
        }
        out.push('\n');
    }
    if let Some(agents) = sections.get("agents") {
        let origin = loaded.origin(&KeyPath::parse("agents"));
        let _ = writeln!(out, "# agents: {origin}");
        out.push_str(&tables(&["agents"], agents));
    }
    out.trim_end().to_owned() + "\n"
}

/// What is written instead of a value that is not to be seen.
fn without_secrets(section: &str, key: &str, value: &Value) -> Option<Value> {
    let url = value
        .as_str()
        .filter(|_| section == "store" && ["url", "wake_ups"].contains(&key))?;
    let shown = nuncio_store::shown_url(url);
    (shown != url).then_some(Value::String(shown))
}

fn is_tables(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.first().is_some_and(Value::is_table))
}

fn tables(keys: &[&str], value: &Value) -> String {
    let wrapped = keys.iter().rev().fold(value.clone(), |inner, key| {
        Value::Table([((*key).to_owned(), inner)].into_iter().collect())
    });
    toml::to_string(&wrapped).unwrap_or_default()
}
