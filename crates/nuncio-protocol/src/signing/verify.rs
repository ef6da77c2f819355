//! Judging the signatures of a card. Spec: §8.4.3

use std::fmt;

use serde_json::{Map, Value};

use super::canonical::{Form, empties, of_known, parse, whole};
use super::encoding::{base64url, from_base64url};
use super::key::Algorithm;
use super::key_set::KeySet;
use super::schema::{self, Known};
use super::sign::signing_input;
use crate::{AgentCardSignature, Timestamp, json};

/// How many signatures of a card are looked at; each may cost a few computations.
const MAX_SIGNATURES: usize = 16;

/// What the signatures of a card are worth (SIGN-09).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// One of them is by a trusted key, over this card.
    #[non_exhaustive]
    Valid {
        /// The name that the signature gives its key.
        kid: String,
        /// How it was made.
        algorithm: Algorithm,
        /// The form of the card that it is over (SIGN-10).
        form: Form,
        /// The paths of members that it says nothing about. Anybody may have added them: those
        /// that the protocol does not know, unless the form is [`Form::Whole`], and in the forms
        /// of the SDKs also those that are empty.
        uncovered: Vec<String>,
    },
    /// There are some, and none can be believed.
    #[non_exhaustive]
    Invalid {
        /// Why not, one by one.
        refusals: Vec<Refusal>,
    },
    /// There is none.
    Unsigned,
}

impl Verdict {
    /// Whether a signature is valid.
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Valid { .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid { kid, form, .. } => write!(f, "valid, by key {kid:?}, form {form}"),
            Self::Invalid { refusals } => {
                let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                write!(f, "invalid: {}", refusals.join("; "))
            }
            Self::Unsigned => f.write_str("unsigned"),
        }
    }
}

/// Why a signature is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Which one, counted from 0; `None` if it is about the card.
    pub index: Option<usize>,
    /// The name it gives its key, if that could be read.
    pub kid: Option<String>,
    /// Why.
    pub why: Why,
}

/// The reasons of a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It cannot be read; says what is wrong.
    Malformed(String),
    /// An algorithm that is not accepted, such as `none` or HMAC.
    Algorithm(String),
    /// No trusted key has this name.
    UnknownKey,
    /// The key of this name is for other algorithms.
    OtherAlgorithm,
    /// The key is not believed any more, since its time is over.
    Expired,
    /// The key is not believed any more, since it was revoked.
    Revoked,
    /// The computation says no: another key, or another card, than was signed.
    Mismatch,
    /// It comes after as many as are looked at.
    TooMany,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, &self.kid) {
            (Some(index), Some(kid)) => write!(f, "signatures[{index}] by key {kid:?}: ")?,
            (Some(index), None) => write!(f, "signatures[{index}]: ")?,
            (None, _) => {}
        }
        self.why.fmt(f)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => f.write_str(what),
            Self::Algorithm(name) => write!(f, "the algorithm {name:?} is not accepted"),
            Self::UnknownKey => f.write_str("no trusted key has this name"),
            Self::OtherAlgorithm => f.write_str("the key of this name is for another algorithm"),
            Self::Expired => f.write_str("the key has expired"),
            Self::Revoked => f.write_str("the key was revoked"),
            Self::Mismatch => f.write_str("the signature does not fit this card and key"),
            Self::TooMany => write!(f, "more than {MAX_SIGNATURES} signatures are not looked at"),
        }
    }
}

/// Judges the signatures of a card, given as the JSON text that came.
///
/// One good signature is enough. Each is tried on every [`Form`], the strict one first. Only the
/// protected header counts, as it was received; `jku` and the unprotected header are not read, and
/// a signature with `crit` is refused (SIGN-07, SIGN-08). The time decides whether keys have
/// expired.
///
/// Spec: §8.4.3
pub fn verify(card_json: &str, keys: &KeySet, now: Timestamp) -> Verdict {
    let card = match parse(card_json) {
        Ok(card) => card,
        Err(error) => return refused(None, Why::Malformed(error.to_string())),
    };
    let signatures = match card.get("signatures") {
        None | Some(Value::Null) => return Verdict::Unsigned,
        Some(Value::Array(list)) if list.is_empty() => return Verdict::Unsigned,
        Some(Value::Array(list)) => list.clone(),
        Some(_) => {
            return refused(
                None,
                Why::Malformed("`signatures` is not a list".to_owned()),
            );
        }
    };
    let payloads = Payloads::of(card);
    let mut refusals = Vec::new();
    for (index, signature) in signatures.iter().enumerate().take(MAX_SIGNATURES) {
        let read = Signature::read(signature);
        let kid = read.as_ref().ok().map(|read| read.kid.clone());
        let judged = read.and_then(|read| Ok((read.judge(&payloads, keys, now)?, read)));
        match judged {
            Ok((form, read)) => return payloads.valid(read.kid, read.algorithm, form),
            Err(why) => refusals.push(Refusal {
                index: Some(index),
                kid,
                why,
            }),
        }
    }
    if signatures.len() > MAX_SIGNATURES {
        refusals.push(Refusal {
            index: None,
            kid: None,
            why: Why::TooMany,
        });
    }
    Verdict::Invalid { refusals }
}

fn refused(index: Option<usize>, why: Why) -> Verdict {
    let kid = None;
    Verdict::Invalid {
        refusals: vec![Refusal { index, kid, why }],
    }
}

/// The card in every form that it has, each distinct one once.
struct Payloads {
    /// In base64url.
    distinct: Vec<(Form, String)>,
    /// `None` if the card is not as the protocol has it.
    known: Option<Known>,
}

impl Payloads {
    fn of(card: Map<String, Value>) -> Self {
        let mut payloads = Self {
            distinct: Vec::new(),
            known: schema::reduce(&card, false).ok(),
        };
        let raw = whole(card);
        for form in Form::ALL {
            let payload = match (form, &payloads.known) {
                (Form::Whole, _) => base64url(&raw),
                (_, Some(known)) => base64url(of_known(&known.card, form)),
                (_, None) => continue,
            };
            if payloads.distinct.iter().all(|(_, other)| *other != payload) {
                payloads.distinct.push((form, payload));
            }
        }
        payloads
    }

    fn valid(self, kid: String, algorithm: Algorithm, form: Form) -> Verdict {
        let uncovered = match (form, self.known) {
            (Form::Whole, _) | (_, None) => Vec::new(),
            (Form::Strict, Some(known)) => known.unknown,
            (Form::Sdk | Form::OldPython, Some(known)) => {
                let mut uncovered = known.unknown;
                empties(&known.card, &mut uncovered);
                uncovered
            }
        };
        Verdict::Valid {
            kid,
            algorithm,
            form,
            uncovered,
        }
    }
}

/// One entry of `signatures`, read.
struct Signature<'a> {
    protected: &'a str,
    bytes: Vec<u8>,
    kid: String,
    algorithm: Algorithm,
}

impl<'a> Signature<'a> {
    fn read(entry: &'a Value) -> Result<Self, Why> {
        let malformed = |what: &str| Why::Malformed(what.to_owned());
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        let protected = text("protected").ok_or_else(|| malformed("it has no protected header"))?;
        let bytes = text("signature").and_then(from_base64url);
        let bytes = bytes.ok_or_else(|| malformed("its `signature` is not base64url"))?;
        let header = header(protected)?;
        if header.contains_key("crit") {
            return Err(malformed(
                "its header asks for extensions that are not known here",
            ));
        }
        let named = member(&header, "alg");
        let named = named.ok_or_else(|| malformed("its header names no algorithm"))?;
        let algorithm =
            Algorithm::from_name(named).ok_or_else(|| Why::Algorithm(named.to_owned()))?;
        let kid = member(&header, "kid").ok_or_else(|| malformed("its header names no key"))?;
        Ok(Self {
            protected,
            bytes,
            kid: kid.to_owned(),
            algorithm,
        })
    }

    fn judge(&self, payloads: &Payloads, keys: &KeySet, now: Timestamp) -> Result<Form, Why> {
        if keys.is_revoked(&self.kid) {
            return Err(Why::Revoked);
        }
        let mut why = Why::UnknownKey;
        for key in keys.keys().iter().filter(|key| key.answers_to(&self.kid)) {
            let Some(public) = key.with_algorithm(self.algorithm) else {
                why = worse(why, Why::OtherAlgorithm);
                continue;
            };
            if key.has_expired(now) {
                why = worse(why, Why::Expired);
                continue;
            }
            for (form, payload) in &payloads.distinct {
                let input = signing_input(self.protected, payload);
                if public.verify_sig(&input, &self.bytes).is_ok() {
                    return Ok(*form);
                }
            }
            why = Why::Mismatch;
        }
        Err(why)
    }
}

/// The reason that says more, if several keys have been tried.
fn worse(known: Why, new: Why) -> Why {
    match known {
        Why::UnknownKey | Why::OtherAlgorithm => new,
        _ => known,
    }
}

fn header(protected: &str) -> Result<Map<String, Value>, Why> {
    let bytes = from_base64url(protected)
        .ok_or_else(|| Why::Malformed("its protected header is not base64url".to_owned()))?;
    json::decode(&bytes)
        .map_err(|_| Why::Malformed("its protected header is not a JSON object".to_owned()))
}

fn member<'a>(header: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    header.get(name).and_then(Value::as_str)
}

impl AgentCardSignature {
    /// The name that the protected header gives the key, if it can be read. Proves nothing.
    pub fn kid(&self) -> Option<String> {
        let header = header(&self.protected).ok()?;
        member(&header, "kid").map(str::to_owned)
    }
}
