//! Reading an agent from a file, and writing it as one.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::outcome::{Failure, Outcome};

const EXAMPLE: &str = "for example `id = \"desk\"` and `kind = \"echo\"` on lines of their own";

/// Reads one agent: TOML or JSON, bare or as the only entry of `agents`; `-` is stdin.
///
/// # Errors
/// A file that cannot be read, or that holds another number of agents than one.
pub(super) fn read(path: &Path) -> Outcome<Value> {
    let shown = path.display();
    let wrong = |why: &str| Failure::usage(format!("failed to read {shown}: {why}"));
    let text = if path == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(path)
    };
    let text = text.map_err(|error| wrong(&error.to_string()))?;
    parse(&text).map_err(|why| wrong(&why).hint(EXAMPLE))
}

fn parse(text: &str) -> Result<Value, String> {
    // No TOML begins like this.
    let mut value = if text.trim_start().starts_with('{') {
        nuncio_protocol::json::decode::<Value>(text.as_bytes()).map_err(|e| e.to_string())?
    } else {
        let table: Value = toml::from_str(text).map_err(|error| {
            let told = error.to_string();
            told.trim().replace('\n', "\n  ")
        })?;
        table
    };
    if value.get("agents").is_some() {
        value = only(value["agents"].take())?;
    }
    if !value.is_object() {
        return Err("it is no agent".to_owned());
    }
    if !value["id"].is_string() {
        return Err("the agent has no `id`".to_owned());
    }
    Ok(value)
}

fn only(agents: Value) -> Result<Value, String> {
    match agents {
        Value::Array(agents) => {
            let count = agents.len();
            let [agent] = <[Value; 1]>::try_from(agents)
                .map_err(|_| format!("it has {count} agents; one is added at a time"))?;
            Ok(agent)
        }
        _ => Err("`agents` is no list".to_owned()),
    }
}

/// An agent's configuration as [`read`] takes it.
pub(super) fn as_toml(agent: &Value) -> String {
    toml::to_string(agent).unwrap_or_else(|_| format!("{agent:#}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_an_agent_is_read() {
        let agent = json!({"id": "a", "kind": "echo", "skills": [{"id": "s"}]});
        for text in [
            "id = \"a\"\nkind = \"echo\"\n[[skills]]\nid = \"s\"\n",
            "[[agents]]\nid = \"a\"\nkind = \"echo\"\n[[agents.skills]]\nid = \"s\"\n",
            r#"{"id": "a", "kind": "echo", "skills": [{"id": "s"}]}"#,
            r#" {"agents": [{"id": "a", "kind": "echo", "skills": [{"id": "s"}]}]}"#,
        ] {
            assert_eq!(parse(text).unwrap(), agent, "{text}");
        }
        assert_eq!(parse(&as_toml(&agent)).unwrap(), agent);
    }

    #[test]
    fn what_is_no_single_agent_is_told() {
        for (text, why) in [
            ("", "no `id`"),
            ("kind = \"echo\"", "no `id`"),
            ("id = 7", "no `id`"),
            ("agents = 1", "no list"),
            ("agents = []", "0 agents"),
            ("[[agents]]\nid = \"a\"\n[[agents]]\nid = \"b\"", "2 agents"),
            ("agents = [1]", "no agent"),
            ("id = ", "line 1"),
            ("{", "EOF"),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
