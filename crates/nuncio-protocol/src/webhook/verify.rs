//! Judging the signatures of a call.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{ASYMMETRIC, SYMMETRIC, WebhookSecret, signed_content};
use crate::Timestamp;
use crate::signing::{Algorithm, KeySet};

/// The headers of a call that belong to its signature, as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedWebhook<'a> {
    /// `webhook-id`.
    pub id: &'a str,
    /// `webhook-timestamp`.
    pub timestamp: &'a str,
    /// `webhook-signature`.
    pub signature: &'a str,
}

/// Why a call is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookRefusal {
    /// The header with the time holds no number of seconds.
    #[error("webhook-timestamp is no number of seconds")]
    Timestamp,
    /// The call is older than the tolerance: it may be a replay.
    #[error("the call is too old")]
    TooOld,
    /// The call is from the future.
    #[error("the call is from the future")]
    TooNew,
    /// No signature is by a secret or key that is believed.
    #[error("no signature is by a known secret or key")]
    NoMatch,
}

/// Judges calls by the secrets and keys that somebody has decided to trust.
#[derive(Clone, Debug)]
pub struct WebhookVerifier {
    secrets: Vec<WebhookSecret>,
    keys: KeySet,
    tolerance: Duration,
}

impl Default for WebhookVerifier {
    fn default() -> Self {
        Self {
            secrets: Vec::new(),
            keys: KeySet::new(),
            tolerance: Duration::from_secs(300),
        }
    }
}

impl WebhookVerifier {
    /// Believes nobody yet; calls may be off by 5 minutes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, believing a shared secret too.
    #[must_use]
    pub fn with_secret(mut self, secret: WebhookSecret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// The same, believing the Ed25519 keys of a set too.
    #[must_use]
    pub fn with_keys(mut self, keys: KeySet) -> Self {
        self.keys.extend(keys);
        self
    }

    /// The same, with calls off by at most this.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Whether nobody is believed.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.keys.is_empty()
    }

    /// Judges a call; `now` is the receiver's time.
    ///
    /// # Errors
    /// [`WebhookRefusal`] says why the call is not believed.
    pub fn verify(
        &self,
        call: SignedWebhook<'_>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), WebhookRefusal> {
        let at: i64 = call
            .timestamp
            .parse()
            .map_err(|_| WebhookRefusal::Timestamp)?;
        let tolerance = i64::try_from(self.tolerance.as_secs()).unwrap_or(i64::MAX);
        let age = (now.unix_ms().div_euclid(1_000)).saturating_sub(at);
        if age > tolerance {
            return Err(WebhookRefusal::TooOld);
        }
        if age < tolerance.saturating_neg() {
            return Err(WebhookRefusal::TooNew);
        }
        let content = signed_content(call.id, call.timestamp, body);
        let mut signatures = call.signature.split(' ');
        if signatures.any(|signature| self.is_believed(signature, &content)) {
            return Ok(());
        }
        Err(WebhookRefusal::NoMatch)
    }

    fn is_believed(&self, signature: &str, content: &[u8]) -> bool {
        let Some((version, encoded)) = signature.split_once(',') else {
            return false;
        };
        let Ok(bytes) = STANDARD.decode(encoded) else {
            return false;
        };
        match version {
            SYMMETRIC => self.secrets.iter().any(|s| s.verifies(content, &bytes)),
            ASYMMETRIC => self.keys.keys().iter().any(|key| {
                let key = key.with_algorithm(Algorithm::EdDsa);
                key.is_some_and(|key| key.verify_sig(content, &bytes).is_ok())
            }),
            _ => false,
        }
    }
}
