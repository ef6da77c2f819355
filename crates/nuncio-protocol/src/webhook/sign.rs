//! Making the signatures of a call.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ASYMMETRIC, SYMMETRIC, WebhookSecret, signed_content};
use crate::Timestamp;
use crate::signing::{Algorithm, SigningError, SigningKey};

/// Signs calls of webhooks with every secret and key that it has.
#[derive(Clone, Debug, Default)]
pub struct WebhookSigner {
    secrets: Vec<WebhookSecret>,
    keys: Vec<Arc<SigningKey>>,
}

impl WebhookSigner {
    /// Signs nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, signing with a shared secret too.
    #[must_use]
    pub fn with_secret(mut self, secret: WebhookSecret) -> Self {
        self.secrets.push(secret);
        self
    }

    /// The same, signing with a key pair too.
    ///
    /// # Errors
    /// [`SigningError::Key`] if the key is not of Ed25519.
    pub fn with_key(mut self, key: Arc<SigningKey>) -> Result<Self, SigningError> {
        if key.algorithm() != Algorithm::EdDsa {
            return Err(SigningError::Key(format!(
                "the key is for {}; webhooks are signed with Ed25519",
                key.algorithm()
            )));
        }
        self.keys.push(key);
        Ok(self)
    }

    /// Whether there is nothing to sign with.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.keys.is_empty()
    }

    /// The first key pair: the one for tokens.
    pub fn token_key(&self) -> Option<&SigningKey> {
        self.keys.first().map(AsRef::as_ref)
    }

    /// The signatures of one attempt, for the header; empty if there is nothing to sign with.
    ///
    /// Of `at` only the whole seconds count, as in the header with the time.
    ///
    /// # Errors
    /// [`SigningError::Crypto`] if the crypto library fails.
    pub fn sign(&self, id: &str, at: Timestamp, body: &[u8]) -> Result<String, SigningError> {
        let content = signed_content(id, &seconds(at).to_string(), body);
        let mut signatures: Vec<String> = Vec::new();
        for secret in &self.secrets {
            signatures.push(format!("{SYMMETRIC},{}", secret.sign(&content)));
        }
        for key in &self.keys {
            let signature = STANDARD.encode(key.sign_bytes(&content)?);
            signatures.push(format!("{ASYMMETRIC},{signature}"));
        }
        Ok(signatures.join(" "))
    }

    /// The public keys as a JWKS; `None` if there are none.
    pub fn public_keys(&self) -> Option<Value> {
        let keys: Vec<Value> = self.keys.iter().map(|key| key.public_jwk()).collect();
        (!keys.is_empty()).then(|| json!({ "keys": keys }))
    }
}

/// A time as the header has it.
fn seconds(at: Timestamp) -> i64 {
    at.unix_ms().div_euclid(1_000)
}
