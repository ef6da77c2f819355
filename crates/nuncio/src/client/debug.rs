//! `--debug`: the messages of the protocol as they go out and come in, to stderr, without secrets.

use std::time::Instant;

use nuncio_protocol::{A2aError, Operation};
use serde::Serialize;

use super::escape::escape;
use crate::outcome::warn;

/// Writes diagnostics, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Debug {
    on: bool,
    secrets: Vec<String>,
    began: Instant,
}

impl Debug {
    /// With `on`, everything is written; what the secrets say is not.
    pub(crate) fn new(on: bool, secrets: Vec<String>) -> Self {
        let secrets = secrets
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .collect();
        Self {
            on,
            secrets,
            began: Instant::now(),
        }
    }

    /// A remark.
    pub(crate) fn note(&self, text: &str) {
        if self.on {
            let ms = self.began.elapsed().as_millis();
            let shown = self.redact(&escape(text));
            // Diagnostics must not stop the work.
            let _ = warn(&format!("debug: {ms} ms: {shown}\n"));
        }
    }

    /// A request on its way.
    pub(crate) fn sent(&self, operation: &Operation) {
        if self.on {
            self.note(&format!(
                "> {} {}",
                operation.kind().as_str(),
                operation.encode()
            ));
        }
    }

    /// What came back.
    pub(crate) fn received<T: Serialize>(&self, answer: &Result<T, A2aError>) {
        if !self.on {
            return;
        }
        match answer {
            Ok(answer) => {
                self.note(&format!(
                    "< {}",
                    serde_json::to_string(answer).unwrap_or_default()
                ));
            }
            Err(error) => self.note(&format!(
                "< error {:?}: {error} {:?}",
                error.kind, error.metadata
            )),
        }
    }

    fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret, "(redacted)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_show() {
        let debug = Debug::new(true, vec!["s3cret".to_owned(), String::new()]);
        assert_eq!(
            debug.redact("a s3cret b s3cret"),
            "a (redacted) b (redacted)"
        );
    }
}
