//! Signatures of webhooks, as the Standard Webhooks specification has them.
//!
//! What is signed is the id of the message, the time of the attempt in seconds, and the body, with
//! a full stop between them. A header may carry several signatures, so that keys can be changed
//! while both sides run: `v1` is HMAC-SHA256 with a shared secret, `v1a` is Ed25519.
//!
//! [`WebhookSigner`] makes the header, [`WebhookVerifier`] judges it. The time comes from the caller.

mod secret;
mod sign;
#[cfg(test)]
mod tests;
mod verify;

pub use secret::{BadSecret, WebhookSecret};
pub use sign::WebhookSigner;
pub use verify::{SignedWebhook, WebhookRefusal, WebhookVerifier};

/// The header with the id of the message, the same for each attempt.
pub const ID_HEADER: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header with the signatures, separated by spaces.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// The version of a signature with a shared secret.
const SYMMETRIC: &str = "v1";
/// The version of a signature with a key pair.
const ASYMMETRIC: &str = "v1a";

/// What is signed.
fn signed_content(id: &str, timestamp: &str, body: &[u8]) -> Vec<u8> {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat()
}
