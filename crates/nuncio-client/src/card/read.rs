//! Reading the cards of strangers: what cannot be read is left out with a warning.

use nuncio_protocol::{AgentCard, json, v0_3};
use serde_json::{Map, Value};

/// Reads a card from JSON text, with warnings about what is odd in it.
///
/// Members and list entries that cannot be read are left out (CARD-05, CARD-09). A card of protocol
/// 0.2 or 0.3 is read as one of 1.0 whose interfaces are of version 0.3; a card for both versions
/// as one of 1.0 with the interfaces of 0.3 that it does not list (MAP-02).
///
/// # Errors
/// Says in a sentence why the text is no agent card at all.
pub fn read(text: &str) -> Result<(AgentCard, Vec<String>), String> {
    let value: Value =
        json::decode(text.as_bytes()).map_err(|error| format!("not a JSON text: {error}"))?;
    let Value::Object(mut object) = value else {
        return Err("not a JSON object".to_owned());
    };
    let typical = ["supportedInterfaces", "supported_interfaces", "skills"];
    let named = object.get("name").is_some_and(Value::is_string);
    let looks_like_one = typical.iter().any(|name| object.contains_key(*name))
        || (object.contains_key("url") && object.contains_key("capabilities"));
    if !named || !looks_like_one {
        return Err("a JSON object, but not an agent card".to_owned());
    }
    let mut warnings = Vec::new();
    if decode(&object).is_err() {
        object = object
            .into_iter()
            .filter_map(|(name, value)| readable(&name, value, &mut warnings))
            .collect();
    }
    let card = decode(&object)?;
    check(&card, &mut warnings);
    Ok((card, warnings))
}

fn decode(object: &Map<String, Value>) -> Result<AgentCard, String> {
    v0_3::card::decode(&Value::Object(object.clone())).map_err(|error| {
        if error.path.is_empty() {
            error.to_string()
        } else {
            format!("{}: {error}", error.path)
        }
    })
}

/// Gives back a member of the card with whatever in it cannot be read left out.
fn readable(name: &str, value: Value, warnings: &mut Vec<String>) -> Option<(String, Value)> {
    let fits = |value: Value| decode(&Map::from_iter([(name.to_owned(), value)]));
    let Err(why) = fits(value.clone()) else {
        return Some((name.to_owned(), value));
    };
    let kept = match value {
        Value::Array(entries) => {
            let whole = entries.len();
            let good: Vec<Value> = entries
                .into_iter()
                .filter(|entry| fits(Value::Array(vec![entry.clone()])).is_ok())
                .collect();
            (good.len() < whole).then_some(Value::Array(good))
        }
        Value::Object(members) => {
            let good = members.into_iter().filter(|(key, member)| {
                let alone = Map::from_iter([(key.clone(), member.clone())]);
                fits(Value::Object(alone)).is_ok()
            });
            Some(Value::Object(good.collect()))
        }
        _ => None,
    };
    warnings.push(format!("a part of the card is left out: {why}"));
    kept.filter(|kept| fits(kept.clone()).is_ok())
        .map(|kept| (name.to_owned(), kept))
}

fn check(card: &AgentCard, warnings: &mut Vec<String>) {
    let mut warn = |what: String| warnings.push(what);
    if card.supported_interfaces.is_empty() {
        warn("the card names no interface".to_owned());
    }
    for (n, skill) in card.skills.iter().enumerate() {
        let missing = [
            ("id", skill.id.is_empty()),
            ("name", skill.name.is_empty()),
            ("description", skill.description.is_empty()),
            ("tags", skill.tags.is_empty()),
        ];
        for (field, _) in missing.iter().filter(|(_, missing)| *missing) {
            warn(format!("skills[{n}] has no {field}"));
        }
    }
    let empty = [
        ("description", card.description.is_empty()),
        ("version", card.version.is_empty()),
        ("skills", card.skills.is_empty()),
        ("defaultInputModes", card.default_input_modes.is_empty()),
        ("defaultOutputModes", card.default_output_modes.is_empty()),
    ];
    for (field, _) in empty.iter().filter(|(_, empty)| *empty) {
        warn(format!("the card has no {field}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-107, CARD-05, CARD-09, TRAP-31.
    #[test]
    fn odd_parts_are_left_out_and_named() {
        let (card, warnings) = read(
            r#"{"name":"n","description":"d","version":"1","skills":[{"id":"a","name":"A"},{"id":7}],
            "supportedInterfaces":[{"url":"https://h/","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
            {"url":5}],"capabilities":{"streaming":true,"pushNotifications":"yes"},"defaultInputModes":null,
            "securitySchemes":{"good":{"mtlsSecurityScheme":{}},"odd":3,"new":{"quantum":{}}},"iconUrl":{}}"#,
        )
        .unwrap();
        assert_eq!(card.skills.len(), 1);
        assert_eq!(card.supported_interfaces.len(), 1);
        assert_eq!(card.capabilities.streaming, Some(true));
        assert_eq!(card.capabilities.push_notifications, None);
        assert_eq!(card.security_schemes.0.len(), 1);
        for part in [
            "skills[1].id",
            "skills[0] has no tags",
            "capabilities",
            "iconUrl",
            "no description",
        ] {
            let named = warnings.iter().any(|w| w.contains(part));
            assert!(named, "{part}: {warnings:?}");
        }
    }

    #[test]
    fn what_is_no_card_is_refused_in_a_sentence() {
        for text in ["<html>", "[]", "{}", r#"{"name":"x"}"#, r#"{"skills":[]}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(r#"{"name":"x","skills":null}"#).is_ok());
    }

    #[test]
    fn the_addresses_of_an_older_card_are_listed_with_their_version() {
        let (card, _) = read(
            r#"{"name":"n","url":"https://h/a","preferredTransport":"JSONRPC","capabilities":{},"skills":[],
            "additionalInterfaces":[{"url":"https://h/a","transport":"JSONRPC"},{"url":"https://h/r","transport":"HTTP+JSON"}]}"#,
        )
        .unwrap();
        let listed: Vec<_> = card
            .supported_interfaces
            .iter()
            .map(|i| (i.url.as_str(), i.protocol_version.as_str()))
            .collect();
        assert_eq!(listed, [("https://h/a", "0.3"), ("https://h/r", "0.3")]);
    }
}
