//! Making signatures. Spec: §8.4.2

use serde_json::{Value, json};

use super::canonical::{Form, of_known, parse, reduce};
use super::encoding::base64url;
use super::error::SigningError;
use super::key::SigningKey;
use super::schema::Known;
use crate::{AgentCard, AgentCardSignature, json};

/// What a key makes of a card.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Signed {
    /// The signatures, for the card's `signatures`: one over the strict form, and one over the
    /// form of the SDKs if the key signs that, too, and it is another.
    pub signatures: Vec<AgentCardSignature>,
    /// In sentences: what they do not cover, and which verifiers will not accept them.
    pub warnings: Vec<String>,
}

impl SigningKey {
    /// Signs a card, given as JSON text.
    ///
    /// The protected header holds `alg`, `kid` and `typ`. The card's `signatures` have no part in
    /// it, so that several keys can sign one after the other.
    ///
    /// # Errors
    /// As [`super::canonical`], and [`SigningError::Crypto`].
    ///
    /// Spec: §8.4.2
    pub fn sign(&self, card_json: &str) -> Result<Signed, SigningError> {
        let known = reduce(&parse(card_json)?)?;
        let header = json!({"alg": self.algorithm().as_str(), "kid": self.kid(), "typ": "JOSE"});
        let protected = base64url(header.to_string());
        let forms = self.forms().iter();
        let mut payloads: Vec<Vec<u8>> = forms.map(|form| of_known(&known.card, *form)).collect();
        payloads.dedup();
        let signatures = payloads.iter().map(|payload| {
            let input = signing_input(&protected, &base64url(payload));
            let signature = self.sign_bytes(&input)?;
            Ok(AgentCardSignature {
                protected: protected.clone(),
                signature: base64url(signature),
                header: None,
            })
        });
        Ok(Signed {
            signatures: signatures.collect::<Result<_, SigningError>>()?,
            warnings: warnings_about(known, self.forms()),
        })
    }

    /// Signs a card as it will be served, in place of older signatures under the same name.
    ///
    /// Signatures under other names stay, for rotation. Gives the warnings of [`Signed`]. Whoever
    /// changes the card afterwards must sign again (CACHE-05, SIGN-12).
    ///
    /// # Errors
    /// As [`Self::sign`]; the card is then as it was.
    pub fn sign_card(&self, card: &mut AgentCard) -> Result<Vec<String>, SigningError> {
        let signed = self.sign(&json::encode(card))?;
        card.signatures
            .retain(|older| older.kid().as_deref() != Some(self.kid()));
        card.signatures.extend(signed.signatures);
        Ok(signed.warnings)
    }
}

/// Says in sentences what a signature over the strict form of a card does not cover, and which
/// verifiers will not accept it, since they make other bytes of the card (TRAP-22).
///
/// # Errors
/// As [`super::canonical`].
pub fn warnings(card_json: &str) -> Result<Vec<String>, SigningError> {
    Ok(warnings_about(reduce(&parse(card_json)?)?, &[Form::Strict]))
}

fn warnings_about(known: Known, forms: &[Form]) -> Vec<String> {
    let unsigned = known.unknown.iter();
    let mut warnings: Vec<String> = unsigned
        .map(|path| format!("{path} is no member of the protocol: it is not signed"))
        .collect();
    let mut differences = Differences {
        forms,
        found: &mut warnings,
    };
    differences.look_at(&Value::Object(known.card), "");
    warnings
}

/// What a JWS is computed over: header and payload, in base64url (SIGN-01).
pub(super) fn signing_input(protected: &str, payload: &str) -> Vec<u8> {
    [protected, ".", payload].concat().into_bytes()
}

/// What verifiers make other bytes of than the forms that are signed.
struct Differences<'a> {
    forms: &'a [Form],
    found: &'a mut Vec<String>,
}

impl Differences<'_> {
    fn look_at(&mut self, value: &Value, path: &str) {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if empty && !path.is_empty() && !self.forms.contains(&Form::Sdk) {
            self.found.push(format!(
                "{path} is there and empty: the official SDKs leave it out and will not verify this signature"
            ));
        }
        match value {
            Value::String(text) if has_escapes(text) => {
                self.old_python(&format!("{path} has characters outside of ASCII"));
            }
            Value::Number(_) => self.old_python(&format!("{path} is a number")),
            Value::Array(list) => {
                for (index, entry) in list.iter().enumerate() {
                    self.look_at(entry, &format!("{path}[{index}]"));
                }
            }
            Value::Object(map) => {
                for (name, entry) in map {
                    let path = match path {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    if has_escapes(name) {
                        let what = format!("the name {path} has characters outside of ASCII");
                        self.old_python(&what);
                    }
                    self.look_at(entry, &path);
                }
            }
            _ => {}
        }
    }

    fn old_python(&mut self, what: &str) {
        self.found.push(format!(
            "{what}: the Python SDK before 1.1.4 will not verify this signature"
        ));
    }
}

/// Whether Python escapes a character that RFC 8785 does not.
fn has_escapes(text: &str) -> bool {
    text.chars().any(|c| !c.is_ascii() || c == '\u{7f}')
}
