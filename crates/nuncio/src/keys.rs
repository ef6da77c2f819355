//! `nuncio keys create`: a key for a caller, known to the server by its hash only, a pair of keys
//! for cards, or a secret for webhooks.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use nuncio_protocol::signing::{Algorithm, SigningKey};
use nuncio_protocol::webhook::WebhookSecret;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::arguments::{CardAlgorithm, KeysCreateArguments};
use crate::outcome::{Failure, Outcome, print};
use crate::surroundings::random_bytes;

/// Prints a fresh key and what to put into the configuration, or makes the files of a pair.
pub(crate) fn create(arguments: &KeysCreateArguments) -> Outcome {
    if let Some(file) = &arguments.card {
        return create_for_cards(file, arguments.algorithm.unwrap_or_default());
    }
    if let Some(file) = &arguments.webhook {
        return create_for_webhooks(file);
    }
    let random = random()?;
    let key = format!("nuncio_{}", hex(&random));
    let hash = hex(&Sha256::digest(key.as_bytes()));
    let (caller, workspace) = (&arguments.caller, &arguments.workspace);
    let text = format!(
        "Key: {key}\nSHA-256: {hash}\nConfiguration:\n  [[auth.keys]]\n  sha256 = \"{hash}\"\n  \
         caller = {}\n  workspace = {}\n\n",
        toml::Value::from(caller.as_str()),
        toml::Value::from(workspace.as_str()),
    );
    Ok(print(&text)?)
}

fn random() -> Outcome<[u8; 32]> {
    random_bytes::<32>()
        .map_err(|error| Failure::internal(format!("failed to get random bytes: {error}")))
}

/// Makes a secret that signs webhooks in a new file, for its owner only.
fn create_for_webhooks(file: &Path) -> Outcome {
    let secret = WebhookSecret::text_of(&random()?);
    write_new(file, &format!("{secret}\n"), 0o600)?;
    let shown = file.display();
    let text = format!(
        "Secret: {shown}\nConfiguration:\n  [webhooks]\n  signing_secret_file = {}\n\n",
        toml::Value::from(shown.to_string()),
    );
    Ok(print(&text)?)
}

/// Makes a private key for cards in a new file, for its owner only, and the public one beside it.
fn create_for_cards(file: &Path, algorithm: CardAlgorithm) -> Outcome {
    let algorithm = match algorithm {
        CardAlgorithm::Es256 => Algorithm::Es256,
        CardAlgorithm::EdDsa => Algorithm::EdDsa,
    };
    let (key, pem) = SigningKey::generate(algorithm)
        .map_err(|error| Failure::internal(format!("failed to make a key: {error}")))?;
    let public = file.with_extension("jwks.json");
    let jwks = json!({"keys": [key.public_jwk()]});
    write_new(file, &pem, 0o600)?;
    write_new(&public, &format!("{jwks:#}\n"), 0o644)?;
    let (file, public) = (file.display(), public.display());
    let text = format!(
        "Key ID: {}\nAlgorithm: {algorithm}\nPrivate Key: {file}\nPublic Key: {public}\n",
        key.kid()
    );
    Ok(print(&text)?)
}

/// Writes a file that was not there: no key is ever overwritten.
fn write_new(path: &Path, content: &str, mode: u32) -> Outcome {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(content.as_bytes()));
    written.map_err(|error| {
        let shown = path.display();
        let failure = Failure::usage(format!("failed to write {shown}: {error}"));
        match error.kind() {
            io::ErrorKind::AlreadyExists => failure.hint("name a file that is not there yet"),
            _ => failure,
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
