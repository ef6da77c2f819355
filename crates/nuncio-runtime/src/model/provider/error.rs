//! genai's errors, sorted, without secrets.

use std::sync::Arc;
use std::time::Duration;

use genai::Error as GenaiError;
use genai::webc::{Error as WebError, StreamTimeout};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::model::ModelError;

/// Takes out of texts what must not be shown.
#[derive(Clone)]
pub(super) struct Redact(Option<Arc<str>>);

/// How many characters of a provider's words are passed on.
const WORDS: usize = 300;

impl Redact {
    pub(super) fn new(key: Option<String>) -> Self {
        Self(key.filter(|key| !key.is_empty()).map(Into::into))
    }

    /// The text without the key, and not longer than it need be.
    pub(super) fn text(&self, text: &str) -> String {
        let text = match &self.0 {
            Some(key) => text.replace(key.as_ref(), "***"),
            None => text.to_owned(),
        };
        match text.char_indices().nth(WORDS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// What a failure means.
    pub(super) fn error(&self, error: &GenaiError) -> ModelError {
        match error {
            GenaiError::WebStream { error, .. } => self.stream(error.as_ref()),
            GenaiError::HttpError {
                status,
                body,
                headers,
                ..
            } => self.status(*status, body, Some(headers)),
            GenaiError::WebModelCall { webc_error, .. }
            | GenaiError::WebAdapterCall { webc_error, .. } => self.web(webc_error),
            GenaiError::ChatResponse { body, .. } => self.event(body),
            GenaiError::StreamParse { .. } | GenaiError::JsonValueExt(_) => {
                ModelError::Cut("a piece of it cannot be read".to_owned())
            }
            other => ModelError::Invalid(self.text(&other.to_string())),
        }
    }

    /// A failure on the wire, which may be an answer with a bad status.
    fn stream(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) -> ModelError {
        if let Some(error) = error.downcast_ref::<GenaiError>() {
            return self.error(error);
        }
        if let Some(error) = error.downcast_ref::<WebError>() {
            return self.web(error);
        }
        if let Some(timeout) = error.downcast_ref::<StreamTimeout>() {
            return match timeout {
                StreamTimeout::Headers => {
                    ModelError::unavailable("it did not begin to answer in time")
                }
                StreamTimeout::Read => ModelError::Cut("it paused for too long".to_owned()),
            };
        }
        match error.downcast_ref::<reqwest::Error>() {
            Some(error) => self.transport(error),
            None => ModelError::Cut(self.text(&error.to_string())),
        }
    }

    fn web(&self, error: &WebError) -> ModelError {
        match error {
            WebError::ResponseFailedStatus {
                status,
                body,
                headers,
            } => self.status(*status, body, Some(headers)),
            WebError::Reqwest(error) => self.transport(error),
            WebError::ResponseFailedNotJson { .. } | WebError::ResponseFailedInvalidJson { .. } => {
                ModelError::unavailable("what answers is no model's provider")
            }
            WebError::JsonValueExt(_) => ModelError::Cut("a piece of it cannot be read".to_owned()),
        }
    }

    /// The network's words only: a URL may hold a token.
    fn transport(&self, error: &reqwest::Error) -> ModelError {
        let mut last: &dyn std::error::Error = error;
        while let Some(next) = last.source() {
            last = next;
        }
        let reason = match last.is::<reqwest::Error>() {
            true => "the request failed".to_owned(),
            false => self.text(&last.to_string()),
        };
        if error.is_body() || error.is_decode() {
            ModelError::Cut(reason)
        } else {
            ModelError::unavailable(reason)
        }
    }

    fn status(&self, status: StatusCode, body: &str, headers: Option<&HeaderMap>) -> ModelError {
        let words = self.text(&words(body));
        let retry_after = headers.and_then(retry_after);
        match status.as_u16() {
            401 | 403 => ModelError::Auth(status.as_u16()),
            429 => ModelError::RateLimited { retry_after },
            408 | 500..=599 => ModelError::Unavailable {
                reason: format!("HTTP status {status}: {words}"),
                retry_after,
            },
            413 => ModelError::ContextTooLong,
            _ if is_too_long(body) => ModelError::ContextTooLong,
            300..=399 => ModelError::Invalid(format!("it redirects (HTTP status {status})")),
            _ => ModelError::Invalid(format!("HTTP status {status}: {words}")),
        }
    }

    /// An error that comes as a piece of an answer.
    fn event(&self, body: &Value) -> ModelError {
        let body = body.to_string();
        let words = self.text(&words(&body));
        if is_too_long(&body) {
            ModelError::ContextTooLong
        } else if body.contains("rate_limit") {
            ModelError::RateLimited { retry_after: None }
        } else if body.contains("content_filter") || body.contains("content_policy") {
            ModelError::Refused(words)
        } else if body.contains("invalid_request") {
            ModelError::Invalid(words)
        } else {
            ModelError::unavailable(words)
        }
    }
}

/// The message in an error's JSON, wherever the provider has put it.
fn words(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return body.trim().to_owned();
    };
    [
        "/error/message",
        "/message",
        "/error/error/message",
        "/error",
    ]
    .iter()
    .find_map(|path| value.pointer(path).and_then(Value::as_str))
    .map_or_else(|| body.to_owned(), str::to_owned)
}

fn is_too_long(body: &str) -> bool {
    [
        "context_length_exceeded",
        "maximum context length",
        "prompt is too long",
        "exceeds the maximum number of tokens",
    ]
    .iter()
    .any(|sign| body.contains(sign))
}

/// `retry-after-ms`, or `retry-after` in seconds; a date is taken as no wish.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let ms = number("retry-after-ms").map(|ms| ms / 1000.0);
    let seconds = ms.or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
