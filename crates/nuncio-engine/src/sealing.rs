//! Secrets of webhooks, sealed before they are stored.
//!
//! Whoever has the database, or a copy of it, but not the server's key, learns none. A sealed text
//! belongs to its webhook: moved to another one it does not open.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use nuncio_protocol::TaskPushNotificationConfig;
use nuncio_store::Scope;

/// How a sealed text begins. No header can hold the first character, and so no secret of a client.
const MARK: &str = "\u{1}sealed-1:";

/// Seals and opens the secrets of webhooks.
pub(crate) struct Sealer(RandomizedNonceKey);

/// A sealed text that does not open: another key, another place, or damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sealed secret does not open with the key of this server")]
pub struct Unopened;

/// Opens the secrets of a stored webhook with the key of the server that sealed them, as
/// [`Environment::token_key`](crate::Environment::token_key) has it: for a copy that another server
/// is to seal anew. Secrets that are not sealed stay as they are.
///
/// # Errors
/// [`Unopened`] for another key, and for a webhook of another task.
pub fn open_webhook_secrets(
    server_key: &[u8; 32],
    scope: &Scope,
    config: &mut TaskPushNotificationConfig,
) -> Result<(), Unopened> {
    Sealer::new(server_key).open(scope, config)
}

/// Seals texts that a server keeps in files of its own.
#[derive(Debug)]
pub struct TextSealer(Sealer);

impl TextSealer {
    /// Seals with a key derived from the server's, which [`Environment::token_key`] has too.
    ///
    /// [`Environment::token_key`]: crate::Environment::token_key
    pub fn new(server_key: &[u8; 32]) -> Self {
        Self(Sealer::new(server_key))
    }

    /// Seals a text for a place: it opens nowhere else.
    pub fn seal(&self, place: &str, text: &str) -> String {
        self.0.sealed(&Self::bound(place), text)
    }

    /// Opens a sealed text.
    ///
    /// # Errors
    /// [`Unopened`] for another key or place, and for what was never sealed.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String, Unopened> {
        let sealed = sealed.strip_prefix(MARK).ok_or(Unopened)?;
        self.0.opened(&Self::bound(place), sealed)
    }

    /// No place of a webhook looks like this: it has six fields.
    fn bound(place: &str) -> Vec<u8> {
        let mut bound = Vec::new();
        put(&mut bound, "file");
        put(&mut bound, place);
        bound
    }
}

/// Shows nothing that is secret.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// Derives the key for sealing from the server's.
    pub(crate) fn new(server_key: &[u8; 32]) -> Self {
        let derived = Salt::new(HKDF_SHA256, b"nuncio webhook secrets").extract(server_key);
        let mut key = [0; 32];
        let expanded = derived.expand(&[b"aes-256-gcm 1"], HKDF_SHA256);
        expanded
            .and_then(|expanded| expanded.fill(&mut key))
            .expect("32 bytes can be derived");
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key);
        Self(key.expect("the key has the length that AES-256 wants"))
    }

    /// Seals the secrets of a webhook whose task and id are set; sealed ones stay as they are.
    pub(crate) fn seal(&self, scope: &Scope, config: &mut TaskPushNotificationConfig) {
        let places = Places::of(scope, config);
        for (name, secret) in secrets(config) {
            if !secret.starts_with(MARK) {
                *secret = self.sealed(&places.of_secret(name), secret);
            }
        }
    }

    /// Opens the secrets of a webhook; those that were never sealed stay as they are.
    pub(crate) fn open(
        &self,
        scope: &Scope,
        config: &mut TaskPushNotificationConfig,
    ) -> Result<(), Unopened> {
        let places = Places::of(scope, config);
        for (name, secret) in secrets(config) {
            if let Some(sealed) = secret.strip_prefix(MARK) {
                *secret = self.opened(&places.of_secret(name), sealed)?;
            }
        }
        Ok(())
    }

    fn sealed(&self, place: &[u8], secret: &str) -> String {
        let mut bytes = secret.as_bytes().to_vec();
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(place), &mut bytes)
            .expect("a secret is short enough to be sealed");
        let bytes = [nonce.as_ref().as_slice(), &bytes].concat();
        format!("{MARK}{}", STANDARD_NO_PAD.encode(bytes))
    }

    fn opened(&self, place: &[u8], sealed: &str) -> Result<String, Unopened> {
        let bytes = STANDARD_NO_PAD.decode(sealed).map_err(|_| Unopened)?;
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_LEN>().ok_or(Unopened)?;
        let (nonce, mut rest) = (Nonce::from(nonce), rest.to_vec());
        let opened = self.0.open_in_place(nonce, Aad::from(place), &mut rest);
        let opened = opened.map_err(|_| Unopened)?;
        String::from_utf8(opened.to_vec()).map_err(|_| Unopened)
    }
}

/// Whether a webhook has a secret that is not sealed.
pub(crate) fn has_plain_secret(config: &mut TaskPushNotificationConfig) -> bool {
    secrets(config).any(|(_, secret)| !secret.starts_with(MARK))
}

/// Takes the secrets out of a webhook, and says whether there were any.
pub(crate) fn redact(config: &mut TaskPushNotificationConfig) -> bool {
    let token = config.token.take();
    let authentication = config.authentication.as_mut();
    let credentials = authentication.and_then(|info| info.credentials.take());
    token.is_some() || credentials.is_some()
}

/// What of a webhook is secret, by name.
fn secrets(
    config: &mut TaskPushNotificationConfig,
) -> impl Iterator<Item = (&'static str, &mut String)> {
    let token = config.token.as_mut().map(|token| ("token", token));
    let authentication = config.authentication.as_mut();
    let credentials = authentication.and_then(|info| info.credentials.as_mut());
    let credentials = credentials.map(|credentials| ("credentials", credentials));
    token.into_iter().chain(credentials)
}

/// Where a webhook is: what its sealed texts are bound to.
struct Places(Vec<u8>);

impl Places {
    fn of(scope: &Scope, config: &TaskPushNotificationConfig) -> Self {
        let mut place = Vec::new();
        for field in [
            scope.workspace.as_str(),
            scope.agent.as_str(),
            scope.caller.as_str(),
            config.task_id.as_ref().map_or("", |id| id.as_str()),
            config.id.as_ref().map_or("", |id| id.as_str()),
        ] {
            put(&mut place, field);
        }
        Self(place)
    }

    fn of_secret(&self, name: &str) -> Vec<u8> {
        let mut place = self.0.clone();
        put(&mut place, name);
        place
    }
}

/// With its length, so that no two lists of fields look alike.
fn put(place: &mut Vec<u8>, field: &str) {
    place.extend((field.len() as u64).to_be_bytes());
    place.extend(field.as_bytes());
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::AuthenticationInfo;

    use super::*;

    fn scope(caller: &str) -> Scope {
        Scope {
            workspace: "w".into(),
            agent: "a".into(),
            caller: caller.into(),
        }
    }

    fn config(task: &str, id: &str) -> TaskPushNotificationConfig {
        let mut config = TaskPushNotificationConfig::default();
        (config.task_id, config.id) = (Some(task.into()), Some(id.into()));
        config.token = Some("the token".to_owned());
        let mut authentication = AuthenticationInfo::default();
        authentication.scheme = "Bearer".to_owned();
        authentication.credentials = Some("the credentials".to_owned());
        config.authentication = Some(authentication);
        config
    }

    /// S08, PUSH-13.
    #[test]
    fn secrets_are_sealed_and_opened() {
        let (sealer, plain) = (Sealer::new(&[7; 32]), config("t", "h"));
        let mut sealed = plain.clone();
        assert!(has_plain_secret(&mut sealed));
        sealer.seal(&scope("c"), &mut sealed);
        assert!(!has_plain_secret(&mut sealed));
        let text = nuncio_protocol::json::encode(&sealed);
        assert!(!text.contains("the token") && !text.contains("the credentials"));
        let once = sealed.clone();
        sealer.seal(&scope("c"), &mut sealed);
        assert_eq!(sealed, once, "sealed already");
        let mut other = plain.clone();
        sealer.seal(&scope("c"), &mut other);
        assert_ne!(sealed.token, other.token, "another nonce each time");
        sealer.open(&scope("c"), &mut sealed).unwrap();
        assert_eq!(sealed, plain);
        sealer.open(&scope("c"), &mut sealed).unwrap();
        assert_eq!(sealed, plain, "what is not sealed stays");
    }

    /// Each part of the place counts, and each byte of the text.
    #[test]
    fn a_sealed_text_opens_only_in_its_place() {
        let sealer = Sealer::new(&[7; 32]);
        let mut sealed = config("t", "h");
        sealer.seal(&scope("c"), &mut sealed);
        let opens = |scope: &Scope, config: &TaskPushNotificationConfig, sealer: &Sealer| {
            sealer.open(scope, &mut config.clone())
        };
        assert_eq!(opens(&scope("c"), &sealed, &sealer), Ok(()));
        assert_eq!(opens(&scope("d"), &sealed, &sealer), Err(Unopened));
        let stranger = Sealer::new(&[8; 32]);
        assert_eq!(opens(&scope("c"), &sealed, &stranger), Err(Unopened));
        for (task, id) in [("u", "h"), ("t", "i"), ("th", "")] {
            let mut moved = sealed.clone();
            (moved.task_id, moved.id) = (Some(task.into()), Some(id.into()));
            assert_eq!(opens(&scope("c"), &moved, &sealer), Err(Unopened));
        }
        let mut swapped = sealed.clone();
        let authentication = swapped.authentication.as_mut().unwrap();
        std::mem::swap(&mut swapped.token, &mut authentication.credentials);
        assert_eq!(opens(&scope("c"), &swapped, &sealer), Err(Unopened));
        let token = sealed.token.clone().unwrap();
        for at in MARK.len()..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let mut altered = sealed.clone();
            altered.token = Some(String::from_utf8(bytes).unwrap());
            assert_eq!(opens(&scope("c"), &altered, &sealer), Err(Unopened), "{at}");
        }
    }
}
