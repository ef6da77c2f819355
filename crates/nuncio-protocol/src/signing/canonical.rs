//! The bytes that a signature is over. Spec: §8.4.1

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use super::error::SigningError;
use super::schema::{self, Known};
use crate::json;

/// The canonical forms of a card that signers are known to use.
///
/// A card without empty members, outside of ASCII or beyond the protocol has one and the same in
/// all of them, but for numbers in `params`. Only [`Self::Whole`] says anything about members that
/// the protocol does not know; the last two also leave out whatever is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// As the specification has it: the members that the protocol knows, REQUIRED ones and those
    /// that were set explicitly also when empty, in RFC 8785 form (SIGN-02 to SIGN-05).
    Strict,
    /// All members as they came, in RFC 8785 form: what a signer of a newer protocol has signed.
    Whole,
    /// As the official SDKs have it: the strict form without anything empty (TRAP-22). JavaScript
    /// in every version from 1.0.1 to 1.3.0, Python from 1.1.4 to 1.3.0. Of a security requirement
    /// without scopes nothing is left, so that such a signature does not say which schemes are
    /// required.
    Sdk,
    /// As the Python SDK has it from 1.0.0 to 1.1.3: without anything empty, everything outside of
    /// ASCII escaped, keys in the order of code points, numbers as Python writes floats (TRAP-22).
    OldPython,
}

impl Form {
    /// Every form, in the order in which they are tried.
    pub const ALL: [Self; 4] = [Self::Strict, Self::Whole, Self::Sdk, Self::OldPython];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Whole => "whole",
            Self::Sdk => "sdk",
            Self::OldPython => "old-python",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Gives the bytes that a signature of a card is over, in one form.
///
/// The text is the card's JSON as it came; its `signatures` are left out.
///
/// # Errors
/// [`SigningError::Syntax`] for what is no JSON object or has a key twice or half a surrogate
/// pair; [`SigningError::Card`] for members of the wrong type, except in [`Form::Whole`].
///
/// Spec: §8.4.1
pub fn canonical(card_json: &str, form: Form) -> Result<Vec<u8>, SigningError> {
    let card = parse(card_json)?;
    match form {
        Form::Whole => Ok(whole(card)),
        _ => Ok(of_known(&reduce(&card)?.card, form)),
    }
}

/// The members of a card in their one spelling, without those that mean nothing; members that the
/// protocol does not know and `signatures` stay as they are.
///
/// Two cards that say the same have the same normalized form.
///
/// # Errors
/// As [`canonical`].
pub fn normalized(card_json: &str) -> Result<Map<String, Value>, SigningError> {
    let mut card = parse(card_json)?;
    let signatures = card.remove("signatures");
    let mut known = schema::reduce(&card, true)
        .map_err(SigningError::Card)?
        .card;
    known.extend(signatures.map(|signatures| ("signatures".to_owned(), signatures)));
    Ok(known)
}

/// Reads a card's text as an object in which each key stands once.
pub(super) fn parse(card_json: &str) -> Result<Map<String, Value>, SigningError> {
    json::decode(card_json.as_bytes()).map_err(|error| SigningError::Syntax(error.message))
}

pub(super) fn reduce(card: &Map<String, Value>) -> Result<Known, SigningError> {
    schema::reduce(card, false).map_err(SigningError::Card)
}

pub(super) fn whole(mut card: Map<String, Value>) -> Vec<u8> {
    card.remove("signatures");
    jcs(&Value::Object(card))
}

/// A form of the members that the protocol knows.
pub(super) fn of_known(card: &Map<String, Value>, form: Form) -> Vec<u8> {
    let card = Value::Object(card.clone());
    match form {
        Form::Strict | Form::Whole => jcs(&card),
        Form::Sdk => jcs(&without_empties(&card)),
        Form::OldPython => {
            let mut out = String::new();
            write_python(&without_empties(&card), &mut out);
            out.into_bytes()
        }
    }
}

fn jcs(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).expect("a parsed JSON value has a canonical form")
}

fn without_empties(card: &Value) -> Value {
    filled(card).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The value without empty texts, lists, objects and nulls at any depth; `None` if nothing is left.
fn filled(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| value.clone()),
        Value::Array(list) => {
            let list: Vec<Value> = list.iter().filter_map(filled).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::Object(map) => {
            let entries = map.iter();
            let entries = entries.filter_map(|(key, value)| Some((key.clone(), filled(value)?)));
            let map: Map<String, Value> = entries.collect();
            (!map.is_empty()).then_some(Value::Object(map))
        }
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
    }
}

/// Adds the paths of what a form without empties leaves out, the outermost only.
pub(super) fn empties(card: &Map<String, Value>, paths: &mut Vec<String>) {
    for (name, value) in card {
        add_empties(value, name.clone(), paths);
    }
}

fn add_empties(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        _ if filled(value).is_none() => paths.push(path),
        Value::Array(list) => {
            for (index, entry) in list.iter().enumerate() {
                add_empties(entry, format!("{path}[{index}]"), paths);
            }
        }
        Value::Object(map) => {
            for (name, entry) in map {
                add_empties(entry, format!("{path}.{name}"), paths);
            }
        }
        _ => {}
    }
}

/// Writes what `json.dumps` with sorted keys and without blanks does.
fn write_python(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(set) => out.push_str(if *set { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&python_float(number.as_f64().unwrap_or_default())),
        Value::String(text) => write_ascii(text, out),
        Value::Array(list) => {
            out.push('[');
            for (index, entry) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_python(entry, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // UTF-8 sorts as code points do.
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, entry)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_ascii(key, out);
                out.push(':');
                write_python(entry, out);
            }
            out.push('}');
        }
    }
}

fn write_ascii(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

/// A double as Python's `repr` has it: always with a point or an exponent.
fn python_float(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("`e` is in this format");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    if (-4..16).contains(&exponent) {
        return format!("{number:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
