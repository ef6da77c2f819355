//! Secrets of agents that come over the wire: not read back, and sealed where they are kept.

use nuncio_engine::TextSealer;
use nuncio_runtime::Fault;

use super::{AgentConfig, AgentKind, Given};
use crate::config::secret::Secret;

impl AgentConfig {
    /// All that may be secret, each with where it is said.
    fn secrets(&mut self) -> Vec<(String, &mut Given)> {
        let env = self.env.iter_mut();
        let env = env.map(|(name, given)| (format!("env.{name}"), given));
        let headers = self.headers.iter_mut();
        let headers = headers.map(|(name, given)| (format!("headers.{name}"), given));
        let bearer = self.bearer.iter_mut();
        let bearer = bearer.map(|given| ("bearer".to_owned(), given));
        env.chain(headers).chain(bearer).collect()
    }

    /// Takes over from the agent as it was before what is only shown as hidden here, so that what
    /// has been read can be written back. Nothing is taken over where it would go somewhere else
    /// than before.
    ///
    /// # Errors
    /// The places where no secret is known.
    pub(crate) fn keep_hidden(&mut self, before: Option<&Self>) -> Result<(), Vec<Fault>> {
        let goes = |agent: &Self| (agent.kind, agent.url.clone(), agent.command.clone());
        let mut before = before.filter(|before| goes(before) == goes(self)).cloned();
        let mut faults = Vec::new();
        for (path, given) in self.secrets() {
            let is_hidden = matches!(given, Given::Text(secret) if secret.is_hidden());
            if !is_hidden {
                continue;
            }
            let known = before.iter_mut().flat_map(Self::secrets);
            match known.into_iter().find(|(known, _)| *known == path) {
                Some((_, known)) => *given = known.clone(),
                None => faults.push(Fault {
                    path,
                    message: "this stands for a secret, and none is known for this address"
                        .to_owned(),
                    hint: "say the secret itself".to_owned(),
                }),
            }
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults)
        }
    }

    /// The same agent with all secrets sealed, to be kept in a file.
    pub(crate) fn sealed(&self, sealer: &TextSealer) -> Self {
        let mut sealed = self.clone();
        let id = sealed.id.clone();
        for (path, given) in sealed.secrets() {
            if let Given::Text(secret) = given {
                let text = sealer.seal(&place(&id, &path), secret.reveal());
                *given = Given::Sealed(text);
            }
        }
        sealed
    }

    /// Opens what [`Self::sealed`] has sealed.
    ///
    /// # Errors
    /// If it was sealed with another key or for another place.
    pub(crate) fn open(&mut self, sealer: &TextSealer) -> Result<(), String> {
        let id = self.id.clone();
        for (path, given) in self.secrets() {
            if let Given::Sealed(text) = given {
                let opened = sealer.open(&place(&id, &path), text);
                let opened = opened.map_err(|error| format!("{path}: {error}"))?;
                *given = Given::Text(Secret::new(opened));
            }
        }
        Ok(())
    }

    /// Finds what would start a program or read something of this machine, and what only the
    /// server itself writes.
    pub(crate) fn reaches_for(&self) -> Vec<Fault> {
        let hint = "say it in the configuration file, or set server.admin_host_access there";
        let mut faults = Vec::new();
        let mut add = |path: &str, message: &str, hint: &str| {
            faults.push(Fault {
                path: path.to_owned(),
                message: message.to_owned(),
                hint: hint.to_owned(),
            });
        };
        if self.kind == AgentKind::Process {
            add("kind", "no programs are started from here", hint);
        }
        if self.card.is_some() {
            add("card", "no files are read from here", hint);
        }
        for (path, given) in self.clone().secrets() {
            match given {
                Given::Text(_) => {}
                Given::Variable(_) => add(&path, "no variables are read from here", hint),
                Given::File(_) => add(&path, "no files are read from here", hint),
                Given::Sealed(_) => {}
            }
        }
        faults
    }

    /// Finds secrets that are sealed: only the server itself writes those.
    pub(super) fn check_secrets(&self, path: &str, found: &mut crate::config::check::Found) {
        for (at, given) in self.clone().secrets() {
            if let Given::Sealed(_) = given {
                let message = "only the server itself writes `sealed`";
                found.add(format!("{path}.{at}"), message, "say the secret itself");
            }
        }
    }
}

/// A sealed text belongs to its agent and its place there.
fn place(id: &str, path: &str) -> String {
    format!("{id}\n{path}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(id: &str, key: serde_json::Value) -> AgentConfig {
        let agent = json!({"id": id, "kind": "http", "url": "http://h/", "bearer": "b3arer",
            "headers": {"X-Key": key}});
        serde_json::from_value(agent).unwrap()
    }

    #[test]
    fn sealed_secrets_open_in_their_place_only() {
        let sealer = TextSealer::new(&[7; 32]);
        let plain = agent("a", json!("s3cret"));
        let sealed = plain.sealed(&sealer);
        let text = json!(sealed).to_string();
        assert!(
            !text.contains("s3cret") && !text.contains("b3arer"),
            "{text}"
        );
        let mut opened: AgentConfig = serde_json::from_str(&text).unwrap();
        opened.open(&sealer).unwrap();
        assert_eq!(opened, plain);
        let mut moved = sealed.clone();
        moved.id = "b".to_owned();
        assert!(moved.open(&sealer).is_err());
        let mut stranger = sealed;
        assert!(stranger.open(&TextSealer::new(&[8; 32])).is_err());
    }

    #[test]
    fn what_is_hidden_stays_as_it_was() {
        let before = agent("a", json!("s3cret"));
        let mut shown: AgentConfig = serde_json::from_value(json!(before)).unwrap();
        shown.keep_hidden(Some(&before)).unwrap();
        assert_eq!(shown, before);
        let mut fresh = agent("a", json!("***"));
        let faults = fresh.keep_hidden(None).unwrap_err();
        assert_eq!(faults[0].path, "headers.X-Key");
        let mut led_away: AgentConfig = serde_json::from_value(json!(before)).unwrap();
        led_away.url = Some("http://elsewhere/".to_owned());
        assert_eq!(led_away.keep_hidden(Some(&before)).unwrap_err().len(), 2);
    }

    #[test]
    fn what_reaches_for_the_machine_is_found() {
        let reaches = |agent: serde_json::Value| {
            let agent: AgentConfig = serde_json::from_value(agent).unwrap();
            let faults = agent.reaches_for().into_iter();
            faults.map(|fault| fault.path).collect::<Vec<_>>()
        };
        let none: [&str; 0] = [];
        assert_eq!(reaches(json!({"id": "a", "kind": "echo"})), none);
        assert_eq!(
            reaches(
                json!({"id": "a", "kind": "process", "command": ["x"], "env": {"A": {"file": "f"}}})
            ),
            ["kind", "env.A"]
        );
        assert_eq!(
            reaches(json!({"id": "a", "kind": "http", "bearer": {"env": "A"}})),
            ["bearer"]
        );
    }
}
