//! `--debug`: what the program does and what goes over the wire, to stderr, without secrets.
//!
//! The client crates tell the log; this module writes their events, each line with the time since
//! the start. What they know to be secret they leave out themselves (`nuncio::wire`); what the
//! secrets of this run say is left out here as well, wherever it stands.

use std::io;
use std::time::Instant;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::prelude::*;
use url::form_urlencoded;

use super::escape::escape;
use crate::outcome::warn;

const HIDDEN: &str = "(redacted)";

/// Writes diagnostics, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Debug {
    on: bool,
    /// Longest first, so that no piece of one is left beside a shorter one.
    secrets: Vec<String>,
    began: Instant,
}

impl Debug {
    /// With `on`, everything is written; what the secrets say is not.
    pub(crate) fn new(on: bool, secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets
            .into_iter()
            .filter(|secret| !secret.is_empty())
            .flat_map(|secret| spellings(&secret))
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self {
            on,
            secrets,
            began: Instant::now(),
        }
    }

    /// Writes what the client crates log from now on.
    pub(crate) fn listen(&self) {
        if !self.on {
            return;
        }
        let targets = Targets::new()
            .with_target("nuncio::wire", LevelFilter::TRACE)
            .with_target("nuncio_client", LevelFilter::DEBUG);
        let lines = fmt::layer()
            .with_writer(self.clone())
            .with_ansi(false)
            .without_time()
            .with_level(false)
            .with_target(false);
        // A second start changes nothing.
        let registry = tracing_subscriber::registry().with(targets);
        let _ = registry.with(lines).try_init();
    }

    /// A remark.
    pub(crate) fn note(&self, text: &str) {
        if !self.on {
            return;
        }
        let ms = self.began.elapsed().as_millis();
        for line in text.lines() {
            let shown = escape(&self.redact(line));
            // Diagnostics must not stop the work.
            let _ = warn(&format!("debug: {ms} ms: {shown}\n"));
        }
    }

    fn redact(&self, text: &str) -> String {
        self.secrets
            .iter()
            .fold(text.to_owned(), |text, secret| text.replace(secret, HIDDEN))
    }
}

/// A secret as it stands in a header, in JSON, and in the query of a URL.
fn spellings(secret: &str) -> [String; 3] {
    let json = serde_json::Value::from(secret).to_string();
    let json = &json[1..json.len() - 1];
    let query = form_urlencoded::byte_serialize(secret.as_bytes());
    [secret.to_owned(), json.to_owned(), query.collect()]
}

impl<'a> MakeWriter<'a> for Debug {
    type Writer = Lines<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Lines(self)
    }
}

/// Takes one event of the log at a time.
#[derive(Debug)]
pub(crate) struct Lines<'a>(&'a Debug);

impl io::Write for Lines<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.note(&String::from_utf8_lossy(event));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_never_show_in_any_spelling() {
        let secrets = ["s3", "s3cret", "a \"b\""].map(str::to_owned);
        let debug = Debug::new(true, secrets.into_iter().chain([String::new()]));
        for text in ["s3cret", "a \"b\"", "a \\\"b\\\"", "a+%22b%22"] {
            let shown = debug.redact(&format!("<{text}> <{text}>"));
            assert_eq!(shown, format!("<{HIDDEN}> <{HIDDEN}>"), "{text}");
        }
    }
}
