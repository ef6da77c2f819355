//! `nuncio keys create`: a key for a caller, known to the server by its hash only.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::arguments::KeysCreateArguments;
use crate::outcome::{Failure, Outcome, print};
use crate::surroundings::random_bytes;

/// Prints a fresh key and what to put into the configuration.
pub(crate) fn create(arguments: &KeysCreateArguments) -> Outcome {
    let random = random_bytes::<32>()
        .map_err(|error| Failure::internal(format!("failed to get random bytes: {error}")))?;
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
