//! `nuncio card verify`.

use std::fs;
use std::path::PathBuf;

use nuncio_engine::SystemClock;
use nuncio_protocol::Clock as _;
use nuncio_protocol::signing::{KeySet, Verdict, verify};
use serde_json::json;

use super::escape::escape;
use super::options::said;
use super::session::Prepared;
use super::text::Text;
use crate::arguments::CardVerifyArguments;
use crate::outcome::{Code, Failure, Outcome, warn};
use crate::surroundings::Surroundings;

/// Says by which key a card is signed; a card that is signed by none of them is a failure.
pub(crate) fn card_verify(arguments: &CardVerifyArguments, around: &Surroundings) -> Outcome {
    let keys = read_keys(&arguments.keys)?;
    let named = said([("agent-card", arguments.card.clone())]);
    let prepared = Prepared::new(&arguments.client, named, around)?;
    let found = super::block_on(prepared.bare_card())?;
    let printer = prepared.printer;
    let refused = |why: String| Failure::new(Code::CardInvalid, format!("the card is {why}"));
    match verify(&found.raw, &keys, SystemClock.now()) {
        Verdict::Valid {
            kid,
            algorithm,
            form,
            uncovered,
            ..
        } => {
            if !uncovered.is_empty() {
                let members = escape(&uncovered.join(", "));
                warn(&format!(
                    "warning: the signature does not cover {members}: anybody may have added them\n"
                ))?;
            }
            let (algorithm, form) = (algorithm.as_str(), form.as_str());
            if printer.is_json() {
                return printer.json(&json!({"signature": "valid", "keyId": kid,
                    "algorithm": algorithm, "form": form, "uncovered": uncovered}));
            }
            let mut text = Text::new(false);
            text.field("Signature", "valid");
            text.field("Key ID", &kid);
            text.field("Algorithm", algorithm);
            text.field("Form", form);
            printer.text(text)
        }
        Verdict::Unsigned => Err(refused("not signed".to_owned())),
        verdict => Err(refused(format!(
            "not signed by these keys; it is {verdict}"
        ))),
    }
}

/// The public keys in these files.
///
/// # Errors
/// A file that cannot be read or holds none.
pub(crate) fn read_keys(files: &[PathBuf]) -> Outcome<KeySet> {
    let mut keys = KeySet::new();
    for file in files {
        let failed =
            |why: String| Failure::usage(format!("failed to read {}: {why}", file.display()));
        let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        keys.extend(KeySet::parse(&text).map_err(|error| failed(error.to_string()))?);
    }
    Ok(keys)
}
