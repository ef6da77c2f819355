//! A notification as it came, and as it is shown.

use bytes::Bytes;
use http::HeaderMap;
use nuncio_protocol::Timestamp;
use nuncio_protocol::webhook::{
    ID_HEADER, SIGNATURE_HEADER, SignedWebhook, TIMESTAMP_HEADER, WebhookVerifier,
};
use serde_json::{Value, json};

use crate::client::{Printer, Text};
use crate::outcome::Outcome;

/// What came in one call.
#[derive(Debug)]
pub(super) struct Notification {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Whether the call is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nobody asked.
    Unchecked,
    /// It is.
    Valid,
    /// It is not, for this reason.
    Invalid(String),
}

impl Notification {
    /// Judges the signature.
    pub(super) fn judge(&self, verifier: &WebhookVerifier, now: Timestamp) -> Trust {
        if verifier.is_empty() {
            return Trust::Unchecked;
        }
        let call = SignedWebhook {
            id: self.header(ID_HEADER),
            timestamp: self.header(TIMESTAMP_HEADER),
            signature: self.header(SIGNATURE_HEADER),
        };
        match verifier.verify(call, &self.body, now) {
            Ok(()) => Trust::Valid,
            Err(why) => Trust::Invalid(why.to_string()),
        }
    }

    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// Writes it: its frame, and what it says. Its credentials are not shown.
    pub(super) fn print(
        &self,
        printer: Printer,
        trust: &Trust,
        forwarded: Option<&str>,
    ) -> Outcome {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let (signature, reason) = match trust {
            Trust::Unchecked => ("unchecked", None),
            Trust::Valid => ("valid", None),
            Trust::Invalid(why) => ("invalid", Some(why.as_str())),
        };
        if printer.is_json() {
            return printer.json(&json!({
                "webhookId": self.header(ID_HEADER),
                "timestamp": self.header(TIMESTAMP_HEADER),
                "path": self.path,
                "version": self.header("a2a-version"),
                "signature": signature,
                "reason": reason,
                "forwarded": forwarded,
                "body": body,
            }));
        }
        let mut text = Text::new(false);
        text.field("Webhook ID", self.header(ID_HEADER));
        text.field("Path", &self.path);
        text.field("Signature", signature);
        text.optional("Reason", reason);
        text.optional("Forwarded", forwarded);
        let shown = match &body {
            Some(body) => format!("{body:#}"),
            None => String::from_utf8_lossy(&self.body).into_owned(),
        };
        text.block("Notification", &shown);
        printer.text(text)
    }
}
