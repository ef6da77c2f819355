//! `nuncio card diff`: what two cards say differently, whatever the order and form of their members.

use std::collections::BTreeSet;

use nuncio_protocol::signing::normalized;
use serde_json::{Map, Value, json};

use super::options::said;
use super::session::Prepared;
use super::text::Text;
use crate::arguments::CardDiffArguments;
use crate::outcome::{Code, Failure, Outcome, print};
use crate::surroundings::Surroundings;

/// Prints one line per difference; cards that differ are exit code 1.
pub(crate) fn card_diff(arguments: &CardDiffArguments, around: &Surroundings) -> Outcome {
    let named = said([("agent-card", Some(arguments.before.clone()))]);
    let prepared = Prepared::new(&arguments.client, named, around)?;
    let printer = prepared.printer;
    let (before, after) = super::block_on(async {
        let before = card(&prepared, &arguments.before).await?;
        Ok((before, card(&prepared, &arguments.after).await?))
    })?;
    let differences = differences(&before, &after);
    if printer.is_json() {
        let list: Vec<Value> = differences.iter().map(Difference::json).collect();
        printer.json(&json!({ "differences": list }))?;
    } else {
        let lines: String = differences.iter().map(Difference::line).collect();
        print(&lines)?;
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(Failure::Shown)
    }
}

async fn card(prepared: &Prepared, reference: &str) -> Outcome<Value> {
    let found = prepared.find(reference).await?;
    let card = normalized(&found.raw).map_err(|error| {
        Failure::new(
            Code::CardInvalid,
            format!("failed to read {reference}: {error}"),
        )
    })?;
    Ok(Value::Object(card))
}

/// One thing that two cards say differently.
#[derive(Debug, PartialEq)]
struct Difference {
    path: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Difference {
    fn line(&self) -> String {
        let mut text = Text::new(false);
        let path = super::escape(&self.path);
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                text.field(&format!("~ {path}"), &format!("{before} -> {after}"));
            }
            (Some(before), None) => text.field(&format!("- {path}"), &before.to_string()),
            (None, after) => text.field(
                &format!("+ {path}"),
                &after.as_ref().map(ToString::to_string).unwrap_or_default(),
            ),
        }
        text.finish()
    }

    fn json(&self) -> Value {
        let mut out = Map::new();
        out.insert("path".to_owned(), self.path.clone().into());
        out.extend(
            self.before
                .clone()
                .map(|value| ("before".to_owned(), value)),
        );
        out.extend(self.after.clone().map(|value| ("after".to_owned(), value)));
        Value::Object(out)
    }
}

/// What two normalized cards say differently, in the order of the members' names.
fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    compare("", before, after, &mut out);
    out
}

fn compare(path: &str, before: &Value, after: &Value, out: &mut Vec<Difference>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => members(path, before, after, out),
        (Value::Array(before), Value::Array(after)) => entries(path, before, after, out),
        _ => out.push(Difference {
            path: path.to_owned(),
            before: Some(before.clone()),
            after: Some(after.clone()),
        }),
    }
}

fn either(path: String, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<Difference>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(&path, before, after, out),
        (None, None) => {}
        (before, after) => out.push(Difference {
            path,
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn members(
    path: &str,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    out: &mut Vec<Difference>,
) {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        either(path, before.get(name), after.get(name), out);
    }
}

fn entries(path: &str, before: &[Value], after: &[Value], out: &mut Vec<Difference>) {
    if let (Some(old), Some(new)) = (by_id(before), by_id(after)) {
        let ids: BTreeSet<&str> = old.iter().chain(&new).map(|(id, _)| *id).collect();
        for id in ids {
            let find = |list: &[(&str, &Value)]| {
                let mut list = list.iter();
                list.find_map(|(own, value)| (*own == id).then(|| (*value).clone()))
            };
            let (old, new) = (find(&old), find(&new));
            either(format!("{path}[{id}]"), old.as_ref(), new.as_ref(), out);
        }
        return;
    }
    let texts = before.iter().chain(after).all(Value::is_string);
    if texts {
        let gone = before.iter().filter(|entry| !after.contains(entry));
        let new = after.iter().filter(|entry| !before.contains(entry));
        for entry in gone {
            either(path.to_owned(), Some(entry), None, out);
        }
        for entry in new {
            either(path.to_owned(), None, Some(entry), out);
        }
        return;
    }
    // Of other lists the order says something: the best interface comes first.
    for index in 0..before.len().max(after.len()) {
        let path = format!("{path}[{index}]");
        either(path, before.get(index), after.get(index), out);
    }
}

/// Entries with an id of their own each, such as skills.
fn by_id(list: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let entries = list
        .iter()
        .map(|entry| Some((entry.get("id")?.as_str()?, entry)));
    let entries: Vec<(&str, &Value)> = entries.collect::<Option<_>>()?;
    let distinct: BTreeSet<&str> = entries.iter().map(|(id, _)| *id).collect();
    (distinct.len() == entries.len()).then_some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(before: &Value, after: &Value) -> String {
        let of = |card: &Value| Value::Object(normalized(&card.to_string()).unwrap());
        let differences = differences(&of(before), &of(after));
        differences.iter().map(Difference::line).collect()
    }

    #[test]
    fn only_what_is_said_differently_is_told() {
        let before = json!({
            "name": "n", "version": "1", "iconUrl": null, "default_input_modes": ["a", "b"],
            "skills": [{"id": "x", "name": "X", "tags": ["t", "u"], "examples": []}, {"id": "y"}],
            "supportedInterfaces": [{"url": "a"}, {"url": "b", "tenant": ""}],
            "capabilities": {"streaming": true, "extensions": []}
        });
        let same = json!({
            "version": "1", "name": "n", "defaultInputModes": ["b", "a"], "securityRequirements": [],
            "skills": [{"id": "y"}, {"tags": ["u", "t"], "name": "X", "id": "x"}],
            "supportedInterfaces": [{"url": "a"}, {"url": "b"}], "capabilities": {"streaming": true}
        });
        assert_eq!(lines(&before, &same), "");
        let after = json!({
            "name": "m", "version": "1", "defaultInputModes": ["a", "c"], "x-new": {"a": 1},
            "skills": [{"id": "x", "name": "X", "tags": ["t", "v\u{1b}"]}, {"id": "z"}],
            "supportedInterfaces": [{"url": "b"}], "capabilities": {"streaming": false}
        });
        assert_eq!(
            lines(&before, &after),
            "~ capabilities.streaming: true -> false\n\
             - defaultInputModes: \"b\"\n\
             + defaultInputModes: \"c\"\n\
             ~ name: \"n\" -> \"m\"\n\
             - skills[x].tags: \"u\"\n\
             + skills[x].tags: \"v\\u001b\"\n\
             - skills[y]: {\"id\":\"y\"}\n\
             + skills[z]: {\"id\":\"z\"}\n\
             ~ supportedInterfaces[0].url: \"a\" -> \"b\"\n\
             - supportedInterfaces[1]: {\"url\":\"b\"}\n\
             + x-new: {\"a\":1}\n"
        );
    }
}
