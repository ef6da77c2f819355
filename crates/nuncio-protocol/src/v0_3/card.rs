//! Agent cards of 0.3, and cards that readers of both versions take (V03-CARD-01, MAP-02).
//!
//! | Lost | when |
//! |---|---|
//! | interfaces of other versions, `tenant` of an interface | written as 0.3 |
//! | the device code flow, `pkceRequired` | written as 0.3 |
//! | `capabilities.stateTransitionHistory` | read from 0.3 |
//! | all flows of an `oauth2` scheme but one | read from 0.3 |
//! | schemes of unknown `type` | read from 0.3 |
//! | signatures, which cover the other form | both ways; kept if the card has members of 1.0 too |

use serde_json::{Map, Value, json};

use super::{read, security};
use crate::json::DecodeError;
use crate::{AgentCard, AgentInterface, Binding, Version};

/// What a card of 0.3 says of the protocol.
const PROTOCOL_VERSION: &str = "0.3.0";

/// Writes a card as 0.3 has it.
///
/// The first interface of version 0.3 becomes the main address, and all of them are listed. A card
/// without any has an empty address: whoever serves it offers nothing to a client of 0.3.
pub fn encode(card: &AgentCard) -> Value {
    let mut object = security::object(json!(card));
    for member in [
        "supportedInterfaces",
        "signatures",
        "securityRequirements",
        "securitySchemes",
    ] {
        object.remove(member);
    }
    if let Some(capabilities) = object["capabilities"].as_object_mut() {
        capabilities.remove("extendedAgentCard");
    }
    object.insert("url".to_owned(), "".into());
    object.append(&mut older_members(card));
    object["skills"] = skills(card, true);
    let schemes = card.security_schemes.0.iter();
    let schemes: Map<String, Value> = schemes
        .map(|(name, scheme)| (name.clone(), security::encode_scheme(scheme)))
        .collect();
    if !schemes.is_empty() {
        object.insert("securitySchemes".to_owned(), schemes.into());
    }
    object.into()
}

/// Writes a card as 1.0 has it with the members of 0.3 beside them, for readers of both.
///
/// A card without an interface of version 0.3 is written as 1.0 alone. Signatures are left out:
/// they do not cover what is added (SIGN-12).
pub fn union(card: &AgentCard) -> Value {
    let mut object = security::object(json!(card));
    object.remove("signatures");
    if interfaces(card).next().is_none() {
        return object.into();
    }
    object.append(&mut older_members(card));
    object["skills"] = skills(card, false);
    for (name, scheme) in &card.security_schemes.0 {
        let older = security::object(security::encode_scheme(scheme));
        if let Some(both) = object["securitySchemes"][name].as_object_mut() {
            both.extend(older);
        }
    }
    object.into()
}

fn interfaces(card: &AgentCard) -> impl Iterator<Item = &AgentInterface> {
    card.supported_interfaces
        .iter()
        .filter(|interface| Version::parse(&interface.protocol_version) == Ok(Version::V0_3))
}

/// The members that only 0.3 has.
fn older_members(card: &AgentCard) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("protocolVersion".to_owned(), PROTOCOL_VERSION.into());
    if let Some(main) = interfaces(card).next() {
        members.insert("url".to_owned(), main.url.as_str().into());
        let transport = main.protocol_binding.as_str().into();
        members.insert("preferredTransport".to_owned(), transport);
        let all = interfaces(card)
            .map(|each| json!({"url": each.url, "transport": each.protocol_binding}));
        members.insert("additionalInterfaces".to_owned(), all.collect());
    }
    if let Some(extended) = card.capabilities.extended_agent_card {
        members.insert(
            "supportsAuthenticatedExtendedCard".to_owned(),
            extended.into(),
        );
    }
    if !card.security_requirements.is_empty() {
        let security = security::encode_requirements(&json!(card.security_requirements));
        members.insert("security".to_owned(), security);
    }
    members
}

fn skills(card: &AgentCard, only_older: bool) -> Value {
    let mut skills = json!(card.skills);
    for skill in skills.as_array_mut().into_iter().flatten() {
        let Some(skill) = skill.as_object_mut() else {
            continue;
        };
        if let Some(newer) = skill.get("securityRequirements") {
            let security = security::encode_requirements(newer);
            skill.insert("security".to_owned(), security);
        }
        if only_older {
            skill.remove("securityRequirements");
        }
    }
    skills
}

/// Reads a card of 0.2 or 0.3, in either JSON form, or one for both versions.
///
/// Interfaces found in members of 0.3 get that version, the main address first. Of a card for both
/// versions the members of 1.0 count, and those of 0.3 add what is missing.
///
/// # Errors
/// [`DecodeError`] for what is no object, and with the path for a member of a wrong type.
pub fn decode(value: &Value) -> Result<AgentCard, DecodeError> {
    let Value::Object(members) = value else {
        return Err(DecodeError::data("", "expected an object (AgentCard)"));
    };
    let mut older = Older(members.clone());
    let found = older.interfaces();
    let extended = older.take("supportsAuthenticatedExtendedCard");
    older.raise_security();
    older.raise_schemes();
    let is_newer = match older.take("supportedInterfaces") {
        Value::Null => false,
        newer => older.put("supportedInterfaces", newer),
    };
    let text = crate::json::encode(&older.0);
    let mut card: AgentCard = crate::json::decode(text.as_bytes())?;
    for interface in found {
        if !card
            .supported_interfaces
            .iter()
            .any(|i| same(i, &interface))
        {
            card.supported_interfaces.push(interface);
        }
    }
    let said = &mut card.capabilities.extended_agent_card;
    *said = said.or(extended.as_bool());
    if !is_newer {
        card.signatures.clear();
    }
    Ok(card)
}

fn same(a: &AgentInterface, b: &AgentInterface) -> bool {
    a.url == b.url
        && a.protocol_binding == b.protocol_binding
        && Version::parse(&a.protocol_version) == Version::parse(&b.protocol_version)
}

/// The members of a foreign card, turned into those of 1.0 one by one.
struct Older(Map<String, Value>);

impl Older {
    /// Takes a member out by its name in JSON or in the proto; null if absent.
    fn take(&mut self, name: &str) -> Value {
        let found = self.0.remove(name);
        let other = self.0.remove(&read::snake_case(name));
        found.or(other).unwrap_or_default()
    }

    /// Puts a list; whether it holds anything.
    fn put(&mut self, name: &str, value: Value) -> bool {
        let filled = value != json!([]);
        self.0.insert(name.to_owned(), value);
        filled
    }

    /// The main address first, then those of the list that it does not repeat (V03-CARD-02).
    fn interfaces(&mut self) -> Vec<AgentInterface> {
        let url = self.take("url");
        let transport = self.take("preferredTransport");
        let listed = self.take("additionalInterfaces");
        let listed: Vec<AgentInterface> = listed
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| interface(&entry["url"], &entry["transport"]))
            .collect();
        let mut all: Vec<AgentInterface> = Vec::new();
        if let Some(mut main) = interface(&url, &transport) {
            let of_this_url = || listed.iter().filter(|entry| entry.url == main.url);
            if !of_this_url().any(|entry| same(entry, &main))
                && let Some(entry) = of_this_url().next()
            {
                main = entry.clone();
            }
            all.push(main);
        }
        for entry in listed {
            if !all.iter().any(|known| same(known, &entry)) {
                all.push(entry);
            }
        }
        all
    }

    fn raise_security(&mut self) {
        raise_security(&mut self.0);
        let skills = self.0.get_mut("skills").and_then(Value::as_array_mut);
        for skill in skills.into_iter().flatten() {
            if let Some(skill) = skill.as_object_mut() {
                raise_security(skill);
            }
        }
    }

    fn raise_schemes(&mut self) {
        let schemes = self.take("securitySchemes");
        let Value::Object(schemes) = schemes else {
            return;
        };
        let known: Map<String, Value> = schemes
            .iter()
            .filter_map(|(name, scheme)| Some((name.clone(), security::decode_scheme(scheme)?)))
            .collect();
        self.0.insert("securitySchemes".to_owned(), known.into());
    }
}

fn raise_security(object: &mut Map<String, Value>) {
    let Some(older) = object.remove("security") else {
        return;
    };
    let newer = ["securityRequirements", "security_requirements"];
    if !newer.iter().any(|name| object.contains_key(*name)) {
        let requirements = security::decode_requirements(&older);
        object.insert("securityRequirements".to_owned(), requirements);
    }
}

fn interface(url: &Value, transport: &Value) -> Option<AgentInterface> {
    let url = url.as_str().filter(|url| !url.is_empty())?;
    let mut interface = AgentInterface::new(url, Binding::JsonRpc);
    interface.protocol_version = Version::V0_3.as_str().to_owned();
    if let Some(transport) = transport.as_str().filter(|name| !name.is_empty()) {
        interface.protocol_binding = transport.to_owned();
    }
    Some(interface)
}
