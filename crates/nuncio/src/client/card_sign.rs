//! `nuncio card sign`.

use std::fs;
use std::path::Path;

use nuncio_protocol::AgentCardSignature;
use nuncio_protocol::signing::{SigningError, SigningKey};
use serde_json::{Map, Value, json};

use super::escape::escape;
use super::options::{ClientOptions, Layer};
use super::printer::Printer;
use super::settings::Settings;
use super::text::Text;
use crate::arguments::CardSignArguments;
use crate::outcome::{Code, Failure, Outcome, print, warn};
use crate::surroundings::Surroundings;

/// Signs a card in a file and writes it, its members in the order they had.
pub(crate) fn card_sign(arguments: &CardSignArguments, around: &Surroundings) -> Outcome {
    let printer = printer(arguments, around)?;
    let mut key = key(&arguments.key, arguments.kid.as_deref())?;
    if arguments.sdk {
        key = key.for_sdks_too();
    }
    let found = super::found::read_file(&arguments.file)?;
    let shown = arguments.file.display();
    let failed = |error: SigningError| {
        let code = match error {
            SigningError::Crypto(_) => Code::Internal,
            _ => Code::CardInvalid,
        };
        Failure::new(code, format!("failed to sign {shown}: {error}"))
    };
    let signed = key.sign(&found.raw).map_err(failed)?;
    for warning in &signed.warnings {
        warn(&format!("warning: {}\n", escape(warning)))?;
    }
    let card = with_signatures(&found.raw, &key, &signed.signatures)
        .map_err(|why| failed(SigningError::Syntax(why)))?;
    let Some(out) = &arguments.out else {
        if printer.is_json() {
            let card: Value = serde_json::from_str(&card)
                .map_err(|error| Failure::internal(format!("failed to read the card: {error}")))?;
            return printer.json(&card);
        }
        return Ok(print(&card)?);
    };
    write(out, &card)?;
    let file = out.display().to_string();
    let algorithm = key.algorithm().as_str();
    if printer.is_json() {
        let told = json!({"keyId": key.kid(), "algorithm": algorithm, "file": file});
        return printer.json(&told);
    }
    let mut text = Text::new(false);
    text.field("Key ID", key.kid());
    text.field("Algorithm", algorithm);
    text.field("Signed Card", &file);
    printer.text(text)
}

fn printer(arguments: &CardSignArguments, around: &Surroundings) -> Outcome<Printer> {
    let options = ClientOptions {
        output: arguments.output,
        ..ClientOptions::default()
    };
    let settings = Settings::gather(&options, Layer::new(), around)?;
    Ok(Printer::new(settings.output()?, false, false))
}

fn key(path: &Path, kid: Option<&str>) -> Outcome<SigningKey> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("failed to read {shown}: {error}")))?;
    let key = SigningKey::parse(&text).map_err(|error| {
        Failure::usage(format!("failed to read {shown}: {error}"))
            .hint("`nuncio keys create --card card-key.pem` makes a key")
    })?;
    Ok(match kid {
        Some(kid) => key.with_kid(kid),
        None => key,
    })
}

/// The card with these signatures more, everything else in it as it was written.
///
/// Older signatures of the same name go.
fn with_signatures(
    card: &str,
    key: &SigningKey,
    new: &[AgentCardSignature],
) -> Result<String, String> {
    let said = |error: serde_json::Error| error.to_string();
    let value: Map<String, Value> = serde_json::from_str(card).map_err(said)?;
    let older = value.get("signatures").and_then(Value::as_array).cloned();
    let mut signatures = older.unwrap_or_default();
    signatures.retain(|entry| {
        let older = serde_json::from_value::<AgentCardSignature>(entry.clone());
        older.is_err() || older.is_ok_and(|older| older.kid().as_deref() != Some(key.kid()))
    });
    for signature in new {
        signatures.push(serde_json::to_value(signature).map_err(said)?);
    }
    let signatures = format!("{:#}", Value::Array(signatures)).replace('\n', "\n  ");

    let members: Members<'_> = serde_json::from_str(card).map_err(said)?;
    let kept = members.0.iter().filter(|(name, _)| name != "signatures");
    let mut lines: Vec<String> = kept
        .map(|(name, text)| format!("  {}: {text}", Value::from(name.as_str())))
        .collect();
    lines.push(format!("  \"signatures\": {signatures}"));
    Ok(format!("{{\n{}\n}}\n", lines.join(",\n")))
}

/// The members of an object in their order, as they were written.
struct Members<'a>(Vec<(String, &'a serde_json::value::RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Writes a whole file or none.
fn write(path: &Path, content: &str) -> Outcome {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let written = fs::write(&draft, content).and_then(|()| fs::rename(&draft, path));
    written
        .map_err(|error| Failure::internal(format!("failed to write {}: {error}", path.display())))
}
