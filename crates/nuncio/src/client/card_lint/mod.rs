//! `nuncio card lint`: everything that is wrong or doubtful in a card, each by the id of its rule.
//!
//! The ids are those of the protocol requirements and public bug reports that a rule stands for,
//! as in the tests.

mod interfaces;
mod members;
mod security;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use url::Url;

use super::options::said;
use super::session::Prepared;
use super::text::Text;
use super::validate::{Violation, broken_rules};
use crate::arguments::CardLintArguments;
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// Lists what is wrong with a card; an error among it is exit code 1.
pub(crate) fn card_lint(arguments: &CardLintArguments, around: &Surroundings) -> Outcome {
    let named = said([("agent-card", arguments.card.clone())]);
    let prepared = Prepared::new(&arguments.client, named, around)?;
    let found = super::block_on(prepared.bare_card())?;
    let findings = lint(&found.raw, found.url.as_ref());
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let printer = prepared.printer;
    if printer.is_json() {
        let list: Vec<Value> = findings.iter().map(Finding::json).collect();
        printer.json(&json!({"findings": list, "errors": errors, "warnings": warnings}))?;
    } else {
        let mut text = Text::new(false);
        for finding in &findings {
            text.field(finding.severity.label(), &finding.line());
        }
        text.field("Errors", &errors.to_string());
        text.field("Warnings", &warnings.to_string());
        printer.text(text)?;
    }
    if errors == 0 {
        Ok(())
    } else {
        Err(Failure::Shown)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The protocol forbids it, or nobody can reach the agent.
    Error,
    /// It works with some, or only here.
    Warning,
}

impl Severity {
    fn label(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
        }
    }
}

/// One thing that is wrong with a card.
#[derive(Debug)]
pub(crate) struct Finding {
    id: &'static str,
    pub(crate) severity: Severity,
    /// The member, in wire spelling; empty for the whole card.
    path: String,
    message: String,
}

impl Finding {
    /// The rule, where, and what.
    pub(crate) fn line(&self) -> String {
        let place = match self.path.as_str() {
            "" => String::new(),
            path => format!("{path}: "),
        };
        format!("{} {place}{}", self.id, self.message)
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "severity": self.severity.label().to_ascii_lowercase(),
            "path": self.path,
            "message": self.message,
        })
    }
}

/// Everything that is wrong with a card that was found at this address.
pub(crate) fn lint(raw: &str, at: Option<&Url>) -> Vec<Finding> {
    let card = match nuncio_protocol::json::decode::<Value>(raw.as_bytes()) {
        Ok(card) => card,
        Err(error) => {
            let mut findings = Findings::default();
            findings.error("SIGN-05", "", &error.message);
            return findings.0;
        }
    };
    let mut findings = Findings::default();
    for Violation { place, what } in broken_rules(&card) {
        findings.error(rule_of(&place), &place, &what);
    }
    for (index, interface) in list(&card, "supportedInterfaces").iter().enumerate() {
        findings.interface(&format!("supportedInterfaces[{index}]"), interface, at);
    }
    findings.modes_and_skills(&card);
    findings.links(&card);
    findings.security(&card);
    findings.older(&card);
    findings.signatures(&card, raw);
    findings.0
}

/// The rule behind a member that is missing or of the wrong type.
fn rule_of(place: &str) -> &'static str {
    if place.starts_with("supportedInterfaces") {
        "CARD-02"
    } else if place.starts_with("skills[") {
        "BR-107"
    } else {
        "CARD-05"
    }
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, id: &'static str, path: &str, message: &str) {
        self.0.push(Finding {
            id,
            severity,
            path: path.to_owned(),
            message: message.to_owned(),
        });
    }

    fn error(&mut self, id: &'static str, path: &str, message: &str) {
        self.add(Severity::Error, id, path, message);
    }

    fn warning(&mut self, id: &'static str, path: &str, message: &str) {
        self.add(Severity::Warning, id, path, message);
    }
}
