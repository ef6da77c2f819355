//! What was found, one line a check.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Printer, Text};
use crate::outcome::{Failure, Outcome};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Warning,
    Error,
}

impl Status {
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug)]
pub(super) struct Check {
    status: Status,
    what: String,
    message: String,
    hint: Option<String>,
    latency: Option<Duration>,
}

impl Check {
    fn new(status: Status, what: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self {
            status,
            what: what.into(),
            message: on_one_line(message.as_ref()),
            hint: None,
            latency: None,
        }
    }

    pub(super) fn ok(what: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self::new(Status::Ok, what, message)
    }

    pub(super) fn warning(what: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self::new(Status::Warning, what, message)
    }

    pub(super) fn error(what: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self::new(Status::Error, what, message)
    }

    /// A failure of another command, as an error.
    pub(super) fn failure(what: impl Into<String>, failure: Failure) -> Self {
        match failure {
            Failure::Told(told) => {
                let check = Self::error(what, &told.message);
                match told.hint {
                    Some(hint) => check.hint(hint),
                    None => check,
                }
            }
            _ => Self::error(what, "it was given up"),
        }
    }

    /// The same with what to do.
    pub(super) fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(on_one_line(hint.as_ref()));
        self
    }

    /// The same with how long the answer took.
    pub(super) fn took(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }

    fn line(&self) -> String {
        let mut line = format!("{}: {}", self.what, self.message);
        if let Some(latency) = self.latency {
            line += &format!(" ({} ms)", latency.as_millis());
        }
        if let Some(hint) = &self.hint {
            line += &format!("; hint: {hint}");
        }
        line
    }

    fn json(&self) -> Value {
        let mut value = json!({
            "status": self.status.label().to_ascii_lowercase(),
            "check": self.what,
            "message": self.message,
            "hint": self.hint,
        });
        if let Some(latency) = self.latency {
            value["latencyMs"] = json!(latency.as_millis() as u64);
        }
        value
    }
}

/// Everything that was looked at, in order.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Check>);

impl Report {
    pub(super) fn add(&mut self, check: Check) {
        self.0.push(check);
    }

    pub(super) fn add_if(&mut self, check: Option<Check>) {
        self.0.extend(check);
    }

    fn count(&self, status: Status) -> usize {
        self.0.iter().filter(|check| check.status == status).count()
    }

    pub(super) fn has_errors(&self) -> bool {
        self.count(Status::Error) > 0
    }

    /// Writes it: a line a check and the sums, or a list as JSON.
    pub(super) fn print(&self, printer: Printer) -> Outcome {
        if printer.is_json() {
            let list: Vec<Value> = self.0.iter().map(Check::json).collect();
            return printer.json(&list);
        }
        let mut text = Text::new(false);
        for check in &self.0 {
            text.field(check.status.label(), &check.line());
        }
        text.field("Errors", &self.count(Status::Error).to_string());
        text.field("Warnings", &self.count(Status::Warning).to_string());
        printer.text(text)
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
