//! Secrets of the server itself, kept in its data folder for itself alone.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use nuncio_engine::WebhookSigning;
use nuncio_protocol::signing::SigningKey;
use nuncio_protocol::webhook::{WebhookSecret, WebhookSigner};

use crate::config::Config;
use crate::outcome::{Failure, Outcome};
use crate::surroundings::random_bytes;

const TOKEN_KEY: &str = "token.key";

/// The key that authenticates page tokens and seals the secrets of webhooks: made once, then the
/// same after every restart.
///
/// # Errors
/// If the folder cannot be written, or the file in it is not ours.
pub(crate) fn token_key(folder: &Path) -> Outcome<[u8; 32]> {
    let path = folder.join(TOKEN_KEY);
    let shown = path.display();
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = fresh_key()?;
            make(&path, &key).map_err(|e| super::failed(&format!("write {shown}"), &e))?;
            Ok(key)
        }
        _ => known_token_key(folder),
    }
}

/// As [`token_key`], without making one.
///
/// # Errors
/// If there is no such file, or it is not ours.
pub(crate) fn known_token_key(folder: &Path) -> Outcome<[u8; 32]> {
    let path = folder.join(TOKEN_KEY);
    let shown = path.display();
    match fs::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|_| {
            Failure::internal(format!(
                "failed to read {shown}: it is not a key of 32 bytes"
            ))
            .hint(
                "remove it to have a new one made; page tokens given out before become invalid, and \
                 the secrets of webhooks registered before cannot be read",
            )
        }),
        Err(error) => Err(super::failed(&format!("read {shown}"), &error)),
    }
}

/// The key that signs cards, for readers that follow the specification and for the official SDKs.
///
/// # Errors
/// If the file cannot be read or holds no private key.
pub(crate) fn card_key(path: &Path) -> Outcome<Arc<SigningKey>> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| super::failed(&format!("read {shown}"), &error))?;
    let key = SigningKey::parse(&text).map_err(|error| {
        Failure::usage(format!("failed to read {shown}: {error}"))
            .hint("`nuncio keys create --card FILE` makes a key that signs cards")
    })?;
    Ok(Arc::new(key.for_sdks_too()))
}

/// With what calls of webhooks are signed; `base` is the server's address, if no other is public.
///
/// # Errors
/// If a file cannot be read, or holds no secret or no Ed25519 key.
pub(crate) fn webhook_signing(config: &Config, base: &str) -> Outcome<WebhookSigning> {
    let webhooks = &config.webhooks;
    let mut signer = WebhookSigner::new();
    let said = webhooks.signing_secret.as_ref();
    let mut texts: Vec<String> = said
        .map(|text| text.reveal().to_owned())
        .into_iter()
        .collect();
    if let Some(path) = &webhooks.signing_secret_file {
        texts.push(read_secrets(path)?);
    }
    for text in texts {
        let secrets = WebhookSecret::parse_all(&text);
        let secrets = secrets.map_err(|wrong| no_secret(&wrong.to_string()))?;
        signer = secrets.into_iter().fold(signer, WebhookSigner::with_secret);
    }
    for path in &webhooks.signing_keys {
        signer = signer.with_key(webhook_key(path)?).map_err(|wrong| {
            Failure::usage(format!("failed to use {}: {wrong}", path.display()))
                .hint("`nuncio keys create --card FILE --algorithm EdDSA` makes one")
        })?;
    }
    let public_url = config.server.public_url.as_deref().unwrap_or(base);
    let mut signing = WebhookSigning::default();
    signing.signer = signer;
    signing.token_issuer = webhooks
        .jwt
        .then(|| public_url.trim_end_matches('/').to_owned());
    Ok(signing)
}

fn read_secrets(path: &Path) -> Outcome<String> {
    let text = fs::read_to_string(path)
        .map_err(|error| super::failed(&format!("read {}", path.display()), &error))?;
    match WebhookSecret::parse_all(&text) {
        Ok(secrets) if !secrets.is_empty() => Ok(text),
        _ => Err(no_secret(&format!("{} holds none", path.display()))),
    }
}

fn no_secret(why: &str) -> Failure {
    Failure::usage(format!(
        "failed to read the secrets that sign webhooks: {why}"
    ))
    .hint("`nuncio keys create --webhook FILE` makes one")
}

fn webhook_key(path: &Path) -> Outcome<Arc<SigningKey>> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| super::failed(&format!("read {shown}"), &error))?;
    let key = SigningKey::parse(&text).map_err(|error| {
        Failure::usage(format!("failed to read {shown}: {error}"))
            .hint("`nuncio keys create --card FILE --algorithm EdDSA` makes one")
    })?;
    Ok(Arc::new(key))
}

/// A key for a server that keeps nothing.
///
/// # Errors
/// If the system gives no random bytes.
pub(crate) fn fresh_key() -> Outcome<[u8; 32]> {
    random_bytes::<32>()
        .map_err(|error| Failure::internal(format!("failed to get random bytes: {error}")))
}

/// Makes the data folder, readable by its owner only.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn make_folder(folder: &Path) -> Outcome {
    let made = make_private_folder(folder);
    made.map_err(|error| super::failed(&format!("make the folder {}", folder.display()), &error))
}

pub(super) fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a whole file or none, for its owner only.
pub(super) fn make(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/b");
        make_folder(&data).unwrap();
        let key = token_key(&data).unwrap();
        assert_eq!(token_key(&data).unwrap(), key);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&data.join(TOKEN_KEY)), 0o600);
            assert_eq!(mode(&data), 0o700);
        }
        fs::write(data.join(TOKEN_KEY), "short").unwrap();
        assert!(token_key(&data).is_err());
    }
}
