//! Signed tokens: a JWS in its compact form, with JSON claims.

use serde_json::{Value, json};

use super::encoding::base64url;
use super::error::SigningError;
use super::key::SigningKey;

impl SigningKey {
    /// Makes a signed JWT of these claims; its header holds `alg`, `kid` and `typ`.
    ///
    /// # Errors
    /// [`SigningError::Crypto`] if the crypto library fails.
    pub fn sign_token(&self, claims: &Value) -> Result<String, SigningError> {
        let header = json!({"alg": self.algorithm().as_str(), "kid": self.kid(), "typ": "JWT"});
        let mut token = base64url(header.to_string());
        token.push('.');
        token.push_str(&base64url(claims.to_string()));
        let signature = self.sign_bytes(token.as_bytes())?;
        token.push('.');
        token.push_str(&base64url(signature));
        Ok(token)
    }
}
