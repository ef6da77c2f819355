//! Which headers may be set for a service, or passed on to it from a caller.

use http::{HeaderName, HeaderValue};

/// Names that belong to a connection or to what we say ourselves.
const RESERVED: [&str; 22] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "last-event-id",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// How names begin that say who asks, and on whose way: a caller must not say so for us.
const RESERVED_PREFIXES: [&str; 4] = ["a2a-", "x-a2a-", "x-forwarded-", "x-nuncio-"];

/// Why a header cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// It is no name.
    #[error("\"{0}\" is no name of a header")]
    Name(String),
    /// It belongs to the connection or to the server.
    #[error("\"{0}\" cannot be set: it belongs to the connection or to the server")]
    Reserved(String),
    /// The value has characters that no header can have; it is not shown.
    #[error("the value of \"{0}\" has characters that a header cannot have")]
    Value(String),
}

/// The name of a header that a configuration may set, or pass on from callers.
///
/// # Errors
/// [`HeaderFault::Name`] and [`HeaderFault::Reserved`].
pub fn header_name(text: &str) -> Result<HeaderName, HeaderFault> {
    let name = HeaderName::try_from(text).map_err(|_| HeaderFault::Name(text.to_owned()))?;
    let shown = name.as_str();
    let begins = |prefix: &&str| shown.starts_with(*prefix);
    if RESERVED.contains(&shown) || RESERVED_PREFIXES.iter().any(begins) {
        return Err(HeaderFault::Reserved(shown.to_owned()));
    }
    Ok(name)
}

/// A header whose value no log shows.
///
/// # Errors
/// [`HeaderFault`].
pub fn secret_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HeaderFault> {
    let name = header_name(name)?;
    let value = HeaderValue::try_from(value);
    let mut value = value.map_err(|_| HeaderFault::Value(name.to_string()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-150, the part that is decided when an agent is made.
    #[test]
    fn br_150_reserved_names_are_refused_and_values_are_not_shown() {
        for name in [
            "Host",
            "content-type",
            "TE",
            "X-Forwarded-For",
            "A2A-Version",
            "X-Nuncio-Caller",
        ] {
            let refused = header_name(name).unwrap_err();
            assert!(matches!(refused, HeaderFault::Reserved(_)), "{name}");
        }
        assert!(matches!(header_name("a b"), Err(HeaderFault::Name(_))));
        let refused = secret_header("X-Key", "s3cret\n").unwrap_err().to_string();
        assert!(!refused.contains("s3cret"), "{refused}");
        let (name, value) = secret_header("X-Key", "s3cret").unwrap();
        assert_eq!(
            (name.as_str(), format!("{value:?}").as_str()),
            ("x-key", "Sensitive")
        );
    }
}
