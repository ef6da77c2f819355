//! Skills, media types, links, members of protocol 0.3, and signatures.

use std::collections::BTreeSet;

use nuncio_engine::SystemClock;
use nuncio_protocol::Clock as _;
use nuncio_protocol::signing::{KeySet, Verdict, Why, verify, warnings};
use serde_json::Value;
use url::Url;

use super::{Findings, list, text};

impl Findings {
    pub(super) fn modes_and_skills(&mut self, card: &Value) {
        for name in ["defaultInputModes", "defaultOutputModes"] {
            self.media_types(name, list(card, name));
        }
        let mut ids = BTreeSet::new();
        for (index, skill) in list(card, "skills").iter().enumerate() {
            let path = format!("skills[{index}]");
            for name in ["inputModes", "outputModes"] {
                self.media_types(&format!("{path}.{name}"), list(skill, name));
            }
            let id = text(skill, "id");
            if !id.is_empty() && !ids.insert(id) {
                let message = format!("\"{id}\" is the id of another skill");
                self.error("BR-107", &format!("{path}.id"), &message);
            }
        }
        if list(card, "skills").is_empty() && card["skills"].is_array() {
            self.error("CARD-05", "skills", "needs at least one entry");
        }
    }

    fn media_types(&mut self, path: &str, modes: &[Value]) {
        for (index, mode) in modes.iter().enumerate() {
            let mode = mode.as_str().unwrap_or_default();
            let parts = mode.split_once('/');
            if parts.is_none_or(|(kind, name)| kind.is_empty() || name.is_empty()) {
                let message = format!("\"{mode}\" is no media type such as text/plain");
                self.warning("CARD-05", &format!("{path}[{index}]"), &message);
            }
        }
    }

    pub(super) fn links(&mut self, card: &Value) {
        let provider = &card["provider"];
        let links = [
            ("documentationUrl", &card["documentationUrl"]),
            ("iconUrl", &card["iconUrl"]),
            ("provider.url", &provider["url"]),
        ];
        for (path, link) in links {
            let link = link.as_str().filter(|link| !link.is_empty());
            if link.is_some_and(|link| Url::parse(link).is_err()) {
                self.warning("BR-098", path, "is not an absolute URL");
            }
        }
        if provider.is_object() && text(provider, "organization").trim().is_empty() {
            self.error("CARD-05", "provider.organization", "is required and a text");
        }
    }

    /// Members of protocol 0.3 beside those of 1.0 must say the same (CARD-14, MAP-02).
    pub(super) fn older(&mut self, card: &Value) {
        let main = text(card, "url");
        let interfaces = list(card, "supportedInterfaces");
        if main.is_empty() {
            return;
        }
        if interfaces.is_empty() {
            let message = "is of protocol 0.3; 1.0 has supportedInterfaces";
            self.warning("MAP-02", "url", message);
        }
        let transport = match text(card, "preferredTransport") {
            "" => "JSONRPC",
            named => named,
        };
        for (index, other) in list(card, "additionalInterfaces").iter().enumerate() {
            if text(other, "url") == main && text(other, "transport") != transport {
                let message = format!("names another transport for {main} than the card does");
                let path = format!("additionalInterfaces[{index}].transport");
                self.warning("V03-CARD-02", &path, &message);
            }
        }
        let listed = interfaces.iter().find(|entry| text(entry, "url") == main);
        let listed = listed.map(|entry| text(entry, "protocolBinding"));
        if listed.is_some_and(|binding| binding != transport) {
            let message = format!("{main} has the binding {transport} for 0.3, another for 1.0");
            self.warning("MAP-02", "preferredTransport", &message);
        }
        let version = text(card, "protocolVersion");
        if !version.is_empty() && !version.starts_with("0.") {
            let message = "is a member of protocol 0.3 and says its version";
            self.warning("V03-CARD-01", "protocolVersion", message);
        }
        let older = &card["supportsAuthenticatedExtendedCard"];
        let newer = &card["capabilities"]["extendedAgentCard"];
        if !older.is_null() && (older == true) != (newer == true) {
            self.warning(
                "CARD-14",
                "supportsAuthenticatedExtendedCard",
                "says another thing than capabilities.extendedAgentCard",
            );
        }
    }

    pub(super) fn signatures(&mut self, card: &Value, raw: &str) {
        match verify(raw, &KeySet::new(), SystemClock.now()) {
            Verdict::Invalid { refusals, .. } => {
                for refusal in refusals {
                    let path = refusal.index.map(|index| format!("signatures[{index}]"));
                    let path = path.unwrap_or_else(|| "signatures".to_owned());
                    if !matches!(refusal.why, Why::UnknownKey) {
                        self.error("SIGN-06", &path, &refusal.why.to_string());
                    }
                }
            }
            _ => return,
        }
        if list(card, "signatures").is_empty() {
            return;
        }
        for warning in warnings(raw).unwrap_or_default() {
            self.warning("TRAP-22", "", &warning);
        }
    }
}
