//! Content types and what they are answered with (CT-*).

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use nuncio_protocol::{A2aError, ErrorKind, Result};

use crate::reply::{A2A_JSON, JSON};

/// Refuses bodies that are not plain JSON; without a type a body passes as JSON.
pub(crate) fn check_body_type(headers: &HeaderMap) -> Result<()> {
    for coding in headers.get_all(CONTENT_ENCODING) {
        if !coding.as_bytes().eq_ignore_ascii_case(b"identity") {
            return Err(unsupported("Content-Encoding must be identity"));
        }
    }
    match headers.get(CONTENT_TYPE).map(essence) {
        None | Some(b"") => Ok(()),
        Some(kind) if is_json(kind) || is_a2a_json(kind) => Ok(()),
        Some(_) => Err(unsupported(
            "Content-Type must be application/json or application/a2a+json",
        )),
    }
}

fn unsupported(message: &str) -> A2aError {
    A2aError::new(ErrorKind::UnsupportedMediaType, message)
}

/// The type of a reply of the HTTP+JSON binding (CT-02).
pub(crate) fn reply_type(headers: &HeaderMap) -> HeaderValue {
    let sent = headers.get(CONTENT_TYPE).map(essence);
    let named = accepted(headers).any(is_a2a_json);
    let open = accepted(headers).all(|kind| kind == b"*/*");
    if named || (open && sent.is_some_and(is_a2a_json)) {
        A2A_JSON
    } else {
        JSON
    }
}

/// Whether the caller takes any of the types that are ever sent (CT-05).
pub(crate) fn is_acceptable(headers: &HeaderMap) -> bool {
    let known = |kind: &[u8]| {
        let kind = kind.to_ascii_lowercase();
        matches!(
            kind.as_slice(),
            b"*/*" | b"*" | b"application/*" | b"text/*" | b"text/event-stream"
        ) || is_json(&kind)
            || is_a2a_json(&kind)
    };
    accepted(headers).next().is_none() || accepted(headers).any(known)
}

fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(ACCEPT)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .map(without_parameters)
        .filter(|kind| !kind.is_empty())
}

fn essence(value: &HeaderValue) -> &[u8] {
    without_parameters(value.as_bytes())
}

fn without_parameters(kind: &[u8]) -> &[u8] {
    let end = kind.iter().position(|b| *b == b';').unwrap_or(kind.len());
    kind[..end].trim_ascii()
}

fn is_json(kind: &[u8]) -> bool {
    kind.eq_ignore_ascii_case(b"application/json")
}

fn is_a2a_json(kind: &[u8]) -> bool {
    kind.eq_ignore_ascii_case(b"application/a2a+json")
}
