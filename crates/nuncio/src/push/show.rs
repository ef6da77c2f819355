//! Webhooks in text: a field a line.

use serde_json::Value;

use crate::client::Text;

/// One webhook and how its delivery stands.
pub(super) fn webhook(text: &mut Text, webhook: &Value) {
    text.field("Webhook", word(&webhook["config"]).as_str());
    for (label, member) in [
        ("Task", "task"),
        ("Agent", "agent"),
        ("Workspace", "workspace"),
        ("Caller", "caller"),
        ("URL", "url"),
        ("Version", "version"),
        ("State", "state"),
        ("Disabled", "disabled"),
        ("Delivered", "delivered"),
        ("Newest", "newest"),
        ("Failing Since", "failingSince"),
        ("Last Call", "lastCall"),
        ("Next Call", "nextCall"),
    ] {
        text.optional(label, Some(&word(&webhook[member])));
    }
    for (label, member) in [
        ("Attempts", "attempts"),
        ("Dead Letters", "deadLetters"),
        ("Redelivering", "redelivering"),
    ] {
        if webhook[member].as_u64().is_some_and(|count| count > 0) {
            text.field(label, &word(&webhook[member]));
        }
    }
}

/// One event that was given up.
pub(super) fn letter(text: &mut Text, letter: &Value) {
    text.field("Dead Letter", &word(&letter["position"]));
    text.field("Given Up", &word(&letter["givenUp"]));
    text.field("Attempts", &word(&letter["attempts"]));
    text.field("Outcome", &word(&letter["outcome"]));
}

/// One call.
pub(super) fn call(text: &mut Text, call: &Value) {
    text.field("Call", &word(&call["at"]));
    text.field("Webhook ID", &word(&call["webhookId"]));
    text.field("Attempt", &word(&call["attempt"]));
    outcome(text, call);
}

/// A call for trying out.
pub(super) fn tried(text: &mut Text, call: &Value) {
    text.field("Webhook ID", &word(&call["webhookId"]));
    outcome(text, call);
}

fn outcome(text: &mut Text, call: &Value) {
    text.field("Outcome", &word(&call["outcome"]));
    text.field("Duration", &format!("{} ms", word(&call["tookMs"])));
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
