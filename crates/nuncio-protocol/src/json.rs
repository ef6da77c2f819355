//! Reading JSON from strangers: strict about form, with the path of what is wrong.
//!
//! Every text passes [`check`] once before a type reads it: UTF-8, nesting depth, and keys that
//! occur twice in one object (two layers may read such a key differently, so it is refused).

use std::borrow::Cow;
use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How deep objects and arrays may nest.
pub const MAX_DEPTH: usize = 64;

/// How deep the request of an operation may nest: what it carries comes back further inside, as a
/// message of a task of a list, and must be readable there too.
pub const MAX_REQUEST_DEPTH: usize = 56;

/// Why a text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DecodeError {
    /// What kind of fault it is.
    pub kind: DecodeErrorKind,
    /// Where: members joined by dots, list places in brackets, in wire spelling; empty at the top.
    pub path: String,
    /// What was expected there, in a sentence for the sender.
    pub message: String,
}

/// The kinds of [`DecodeError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// Not JSON, not UTF-8, too deep, or with one key twice.
    Syntax,
    /// JSON, but not of the type that is wanted.
    Data,
}

impl DecodeError {
    fn syntax(message: impl Into<String>) -> Self {
        Self {
            kind: DecodeErrorKind::Syntax,
            path: String::new(),
            message: message.into(),
        }
    }

    /// A well-formed text whose content is wrong at `path`.
    pub fn data(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: DecodeErrorKind::Data,
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Reads one JSON text from bytes as a `T`.
///
/// # Errors
/// [`DecodeError`] of kind `Syntax` for what [`check`] refuses and for malformed JSON, of kind
/// `Data` with the path for a value of the wrong type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    decode_checked(check(bytes)?)
}

/// Reads a text that has passed [`check`] already.
///
/// # Errors
/// As [`decode`].
pub fn decode_checked<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| locate::<T>(text, &error))
}

/// Writes `value` as JSON text.
pub fn encode<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("wire types have string keys and finite numbers")
}

/// Reads the text a second time, now keeping the path, since it is known to be wrong.
fn locate<'de, T: Deserialize<'de>>(text: &'de str, error: &serde_json::Error) -> DecodeError {
    if !error.is_data() {
        return DecodeError::syntax(without_position(&error.to_string()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(located) => {
            let path = wire_path(located.path());
            DecodeError::data(path, without_position(&located.inner().to_string()))
        }
        Ok(_) => DecodeError::data("", without_position(&error.to_string())),
    }
}

fn wire_path(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut out = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => out.push_str(&format!("[{index}]")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(&camel_case(key));
            }
            Segment::Unknown => {}
        }
    }
    out
}

pub(crate) fn camel_case(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut upper = false;
    for c in key.chars() {
        if c == '_' && !out.is_empty() {
            upper = true;
        } else if upper {
            out.extend(c.to_uppercase());
            upper = false;
        } else {
            out.push(c);
        }
    }
    out
}

fn without_position(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_owned(),
        None => message.to_owned(),
    }
}

/// Checks UTF-8, depth and repeated keys, and gives the text back.
///
/// Does not judge the rest of the grammar: the reader that follows does.
///
/// # Errors
/// [`DecodeError`] of kind `Syntax`.
pub fn check(bytes: &[u8]) -> Result<&str, DecodeError> {
    check_within(bytes, MAX_DEPTH)
}

/// As [`check`], with a depth of one's own.
pub(crate) fn check_within(bytes: &[u8], max_depth: usize) -> Result<&str, DecodeError> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| DecodeError::syntax("the text is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Scan {
        bytes: text.as_bytes(),
        at: 0,
    }
    .run(max_depth)?;
    Ok(text)
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The keys of one open object; arrays keep `None`.
type Keys<'a> = Option<KeySet<'a>>;

/// What the keys mean, escapes resolved: one key may be spelt in several ways.
#[derive(Default)]
struct KeySet<'a> {
    few: Vec<Cow<'a, [u8]>>,
    many: HashSet<Cow<'a, [u8]>>,
}

impl<'a> KeySet<'a> {
    const FEW: usize = 16;

    /// Whether the key is new.
    fn insert(&mut self, key: &'a [u8]) -> bool {
        let key = if key.contains(&b'\\') {
            Cow::Owned(unescape(key))
        } else {
            Cow::Borrowed(key)
        };
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

impl<'a> Scan<'a> {
    fn run(mut self, max_depth: usize) -> Result<(), DecodeError> {
        let mut open: Vec<Keys<'a>> = Vec::new();
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'{' => open.push(Some(KeySet::default())),
                b'[' => open.push(None),
                b'}' | b']' => {
                    open.pop();
                }
                b'"' => {
                    let text = self.string();
                    if self.next_is_colon()
                        && let Some(Some(keys)) = open.last_mut()
                    {
                        Self::note(keys, text)?;
                    }
                }
                _ => {}
            }
            if open.len() > max_depth {
                return Err(DecodeError::syntax(format!(
                    "the text nests deeper than {max_depth}"
                )));
            }
        }
        Ok(())
    }

    fn note(keys: &mut KeySet<'a>, key: &'a [u8]) -> Result<(), DecodeError> {
        if keys.insert(key) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(key);
        Err(DecodeError::syntax(format!(
            "the key \"{name}\" occurs twice in one object"
        )))
    }

    /// Passes over a string whose opening quote has been read and gives its raw content.
    fn string(&mut self) -> &'a [u8] {
        let start = self.at;
        loop {
            match memchr::memchr2(b'"', b'\\', &self.bytes[self.at..]) {
                None => {
                    self.at = self.bytes.len();
                    return &self.bytes[start..];
                }
                Some(offset) if self.bytes[self.at + offset] == b'"' => {
                    let end = self.at + offset;
                    self.at = end + 1;
                    return &self.bytes[start..end];
                }
                Some(offset) => self.at = (self.at + offset + 2).min(self.bytes.len()),
            }
        }
    }

    fn next_is_colon(&self) -> bool {
        self.bytes[self.at..]
            .iter()
            .find(|b| !b.is_ascii_whitespace())
            == Some(&b':')
    }
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let quoted = [b"\"", raw, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or_else(|_| raw.to_vec(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_key_twice_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"x":[{"a":1,"b":{},"a":null}]}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"\u0061":1,"a":2}"#,
            r#"{"a" : 1, "a"	: 2}"#,
        ] {
            assert_eq!(
                check(text.as_bytes()).unwrap_err().kind,
                DecodeErrorKind::Syntax,
                "{text}"
            );
        }
        let wide: Vec<String> = (0..40).map(|n| format!("\"k{n}\":0")).collect();
        assert!(check(format!("{{{}}}", wide.join(",")).as_bytes()).is_ok());
        assert!(check(format!("{{{},\"k39\":1}}", wide.join(",")).as_bytes()).is_err());
        let late = format!("{{{},\"\\u0061\":1,\"a\":2}}", wide.join(","));
        assert!(
            check(late.as_bytes()).is_err(),
            "also past the first few keys"
        );
        assert!(check(br#"{"a":{"a":1},"b":[{"a":1},{"a":"a"}]}"#).is_ok());
    }

    /// Work grows with the text, not with its square: this takes milliseconds or, once, minutes.
    #[test]
    fn many_escaped_keys_are_read_in_linear_time() {
        let keys: Vec<String> = (0..100_000).map(|n| format!("\"\\n{n}\":0")).collect();
        assert!(check(format!("{{{}}}", keys.join(",")).as_bytes()).is_ok());
    }

    #[test]
    fn counts_depth_outside_strings() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(check(deep(MAX_DEPTH).as_bytes()).is_ok());
        assert!(check(deep(MAX_DEPTH + 1).as_bytes()).is_err());
        assert!(check(format!("\"{}\"", "[".repeat(500)).as_bytes()).is_ok());
        assert!(check(br#""a\"[[[[" "#).is_ok());
    }

    #[test]
    fn names_the_path_in_wire_spelling() {
        #[derive(Debug, Deserialize)]
        struct Inner {
            #[expect(dead_code, reason = "only its type matters")]
            page_size: Option<u8>,
        }
        let error = decode::<Vec<Inner>>(br#"[{"page_size":1},{"page_size":"x"}]"#).unwrap_err();
        assert_eq!(
            (error.kind, error.path.as_str()),
            (DecodeErrorKind::Data, "[1].pageSize")
        );
        assert!(!error.message.contains("line"), "{}", error.message);
    }
}
