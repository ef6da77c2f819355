//! `card get --validate`: the rules a card must keep, on its JSON as it came. Spec: §4.4
//!
//! A card of 0.3 has an address and a version of the protocol instead of interfaces.

use nuncio_protocol::v0_3;
use serde_json::Value;

/// A rule that a card breaks.
#[derive(Debug)]
pub(crate) struct Violation {
    /// Where; empty for the whole card.
    pub(crate) place: String,
    pub(crate) what: String,
}

/// Every rule that a card breaks, in sentences.
pub(crate) fn violations(card: &Value) -> Vec<String> {
    let sentence = |Violation { place, what }| {
        if place.is_empty() {
            what
        } else {
            format!("{place} {what}")
        }
    };
    broken_rules(card).into_iter().map(sentence).collect()
}

/// Every rule that a card breaks.
pub(crate) fn broken_rules(card: &Value) -> Vec<Violation> {
    let mut found = Found(Vec::new());
    for name in ["name", "description", "version"] {
        found.text(card, "", name);
    }
    if !card["capabilities"].is_object() {
        found.add("capabilities", "is required and an object");
    }
    for name in ["defaultInputModes", "defaultOutputModes"] {
        if found.list(card, name).is_empty() {
            found.add(name, "needs at least one media type");
        }
    }
    let is_older = card["supportedInterfaces"].is_null() && card["url"].is_string();
    let interfaces = if is_older {
        found.older(card);
        Vec::new()
    } else {
        found.list(card, "supportedInterfaces")
    };
    if interfaces.is_empty() && !is_older {
        found.add("supportedInterfaces", "needs at least one entry");
    }
    for (index, interface) in interfaces.iter().enumerate() {
        let place = format!("supportedInterfaces[{index}].");
        for name in ["url", "protocolBinding", "protocolVersion"] {
            found.text(interface, &place, name);
        }
        let url = interface["url"].as_str().unwrap_or_default();
        let grpc = interface["protocolBinding"]
            .as_str()
            .is_some_and(|b| b.eq_ignore_ascii_case("grpc"));
        if !url.is_empty() && !grpc && url::Url::parse(url).is_err() {
            found.add(&format!("{place}url"), "is not an absolute URL");
        }
    }
    for (index, skill) in found.list(card, "skills").iter().enumerate() {
        let place = format!("skills[{index}].");
        for name in ["id", "name", "description"] {
            found.text(skill, &place, name);
        }
        if skill["tags"].as_array().is_none_or(Vec::is_empty) {
            found.add(&format!("{place}tags"), "needs at least one entry");
        }
    }
    // Kinds of members that none of the above looks at.
    if let Err(error) = v0_3::card::decode(card) {
        found.add(&error.path, &error.message);
    }
    found.0
}

struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, place: &str, what: &str) {
        self.0.push(Violation {
            place: place.to_owned(),
            what: what.to_owned(),
        });
    }

    /// What 0.3 has in the place of interfaces.
    fn older(&mut self, card: &Value) {
        for name in ["url", "protocolVersion"] {
            self.text(card, "", name);
        }
        let others = card["additionalInterfaces"].as_array();
        for (index, interface) in others.into_iter().flatten().enumerate() {
            let place = format!("additionalInterfaces[{index}].");
            for name in ["url", "transport"] {
                self.text(interface, &place, name);
            }
        }
    }

    fn text(&mut self, object: &Value, place: &str, name: &str) {
        if object[name]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
        {
            self.add(&format!("{place}{name}"), "is required and a text");
        }
    }

    fn list(&mut self, object: &Value, name: &str) -> Vec<Value> {
        match &object[name] {
            Value::Array(list) => list.clone(),
            Value::Null => {
                self.add(name, "is required");
                Vec::new()
            }
            _ => {
                self.add(name, "is not a list");
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_good_card_passes_and_each_gap_is_named() {
        let good = json!({
            "name": "n", "description": "d", "version": "1", "capabilities": {},
            "supportedInterfaces": [{"url": "https://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
        });
        assert_eq!(violations(&good), Vec::<String>::new());
        let cases = [
            ("/name", json!(""), "name is"),
            ("/capabilities", json!(null), "capabilities"),
            (
                "/supportedInterfaces",
                json!([]),
                "supportedInterfaces needs",
            ),
            (
                "/supportedInterfaces/0/url",
                json!("h"),
                "supportedInterfaces[0].url is not",
            ),
            ("/skills/0/tags", json!([]), "skills[0].tags"),
            (
                "/skills/0/description",
                json!(null),
                "skills[0].description",
            ),
            (
                "/defaultInputModes",
                json!("x"),
                "defaultInputModes is not a list",
            ),
        ];
        for (pointer, value, expected) in cases {
            let mut card = good.clone();
            *card.pointer_mut(pointer).unwrap() = value;
            let found = violations(&card);
            assert!(
                found.iter().any(|line| line.contains(expected)),
                "{pointer}: {found:?}"
            );
        }
    }
}
