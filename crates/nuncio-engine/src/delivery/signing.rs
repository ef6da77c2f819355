//! By what a receiver can tell that a call is ours.

use http::{HeaderName, HeaderValue, header};
use nuncio_protocol::signing::SigningError;
use nuncio_protocol::webhook::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookSigner};
use nuncio_protocol::{AuthenticationInfo, TaskPushNotificationConfig, Timestamp};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

/// How long a token is good for; a call has ended long before.
const TOKEN_SECONDS: i64 = 300;

/// With what calls of webhooks are signed; by default with nothing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WebhookSigning {
    /// The secrets and keys.
    pub signer: WebhookSigner,
    /// Who we are in tokens (`iss`): the server's public address. With `None` there are no tokens.
    ///
    /// A token goes to the webhooks whose authentication asks for `Bearer` without credentials, and
    /// is signed with the first key of `signer` (PUSH-14).
    pub token_issuer: Option<String>,
}

/// One attempt to tell something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    /// The same for each attempt.
    pub(super) message_id: &'a str,
    /// The time of this one.
    pub(super) at: Timestamp,
    pub(super) body: &'a [u8],
}

type Headers = Vec<(HeaderName, HeaderValue)>;

impl WebhookSigning {
    /// The headers of an attempt that carry its id, its time and its signatures.
    ///
    /// # Errors
    /// [`SigningError`] if the crypto library fails, or the id cannot stand in a header.
    pub(super) fn headers(&self, attempt: Attempt<'_>) -> Result<Headers, SigningError> {
        let Attempt {
            message_id,
            at,
            body,
        } = attempt;
        let seconds = at.unix_ms().div_euclid(1_000);
        let mut headers = vec![
            (HeaderName::from_static(ID_HEADER), value(message_id)?),
            (
                HeaderName::from_static(TIMESTAMP_HEADER),
                HeaderValue::from(seconds),
            ),
        ];
        if !self.signer.is_empty() {
            let signatures = self.signer.sign(message_id, at, body)?;
            let name = HeaderName::from_static(SIGNATURE_HEADER);
            headers.push((name, value(&signatures)?));
        }
        Ok(headers)
    }

    /// A token for `Authorization`, if the receiver waits for one.
    ///
    /// # Errors
    /// [`SigningError`] if the crypto library fails.
    pub(super) fn token(
        &self,
        config: &TaskPushNotificationConfig,
        url: &Url,
        attempt: Attempt<'_>,
    ) -> Result<Option<(HeaderName, HeaderValue)>, SigningError> {
        let (Some(issuer), Some(key)) = (&self.token_issuer, self.signer.token_key()) else {
            return Ok(None);
        };
        if !config.authentication.as_ref().is_some_and(wants_token) {
            return Ok(None);
        }
        let issued = attempt.at.unix_ms().div_euclid(1_000);
        let digest = Sha256::digest(attempt.body);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = key.sign_token(&json!({
            "iss": issuer,
            "aud": url.origin().ascii_serialization(),
            "iat": issued,
            "exp": issued + TOKEN_SECONDS,
            "jti": attempt.message_id,
            "taskId": config.task_id,
            "request_body_sha256": digest,
        }))?;
        let mut value = value(&format!("Bearer {token}"))?;
        value.set_sensitive(true);
        Ok(Some((header::AUTHORIZATION, value)))
    }
}

/// Whether a receiver asked for a bearer token and gave none.
fn wants_token(authentication: &AuthenticationInfo) -> bool {
    let credentials = authentication.credentials.as_deref().unwrap_or_default();
    authentication.scheme.eq_ignore_ascii_case("bearer") && credentials.is_empty()
}

fn value(text: &str) -> Result<HeaderValue, SigningError> {
    HeaderValue::from_str(text).map_err(|_| SigningError::Crypto("text for a header"))
}
