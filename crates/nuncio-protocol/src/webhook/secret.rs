//! Secrets that sender and receiver share.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// How a secret begins.
const PREFIX: &str = "whsec_";
/// The fewest bytes of a secret that are enough, and the most that have a use.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Padding is optional, as in the reference libraries.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that sender and receiver share, written as `whsec_` and base64.
#[derive(Clone)]
pub struct WebhookSecret(hmac::Key);

/// Why a text is no secret of a webhook. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret of webhooks is `whsec_` and the base64 of 24 to 64 bytes")]
pub struct BadSecret;

/// Shows nothing that is secret.
impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// Reads a secret.
    ///
    /// # Errors
    /// [`BadSecret`] for another prefix, for what is not base64, and for fewer than 24 or more than
    /// 64 bytes.
    pub fn parse(text: &str) -> Result<Self, BadSecret> {
        let encoded = text.trim().strip_prefix(PREFIX).ok_or(BadSecret)?;
        let bytes = LENIENT.decode(encoded).map_err(|_| BadSecret)?;
        if !BYTES.contains(&bytes.len()) {
            return Err(BadSecret);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Reads the secrets of a text, one a word; during a change of secrets there are two.
    ///
    /// # Errors
    /// [`BadSecret`] if one of them is none.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, BadSecret> {
        text.split_whitespace().map(Self::parse).collect()
    }

    /// The text of a secret with these random bytes.
    pub fn text_of(bytes: &[u8; 32]) -> String {
        format!("{PREFIX}{}", STANDARD.encode(bytes))
    }

    pub(super) fn sign(&self, content: &[u8]) -> String {
        STANDARD.encode(hmac::sign(&self.0, content))
    }

    /// Compares in constant time.
    pub(super) fn verifies(&self, content: &[u8], signature: &[u8]) -> bool {
        hmac::verify(&self.0, content, signature).is_ok()
    }
}
