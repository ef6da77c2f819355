//! What proves who is calling, each for one origin only.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use nuncio_egress::EgressRequest;
use url::{Origin, Url};

/// How a client proves who it is. Never shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// A token in the `Authorization` header: OAuth 2, OpenID Connect and the like.
    Bearer(String),
    /// A key, in the place that the agent's card names.
    ApiKey {
        /// Which part of the request carries it.
        place: ApiKeyPlace,
        /// The name of the header, query parameter or cookie.
        name: String,
        /// The key.
        key: String,
    },
    /// A user name and a password in the `Authorization` header.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
}

/// Where a request carries an API key. Spec: §4.5.2
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiKeyPlace {
    /// In a header of its own.
    Header,
    /// In the query of the URL. Other parties may log URLs; this client does not show it.
    Query,
    /// In a cookie.
    Cookie,
}

impl ApiKeyPlace {
    /// The place that a card calls so; `None` for one that the protocol does not know.
    pub fn parse(location: &str) -> Option<Self> {
        match location.to_ascii_lowercase().as_str() {
            "header" => Some(Self::Header),
            "query" => Some(Self::Query),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(…)",
            Self::ApiKey { .. } => "ApiKey(…)",
            Self::Basic { .. } => "Basic(…)",
        })
    }
}

/// Why a header or a credential cannot be sent with every request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The client or HTTP itself sets this one.
    #[error("the header {0} is not for callers to set")]
    Reserved(HeaderName),
    /// The name has characters that names cannot have.
    #[error("\"{0}\" is no name of a header")]
    Name(String),
    /// The value has characters that cannot be sent there; it may be a secret and is not repeated.
    #[error("the value of {0} contains a character that cannot be sent there")]
    Value(String),
}

/// Whether [`crate::ClientBuilder::header`] takes a header.
///
/// # Errors
/// [`HeaderError`].
pub fn check_header(name: &str, value: &str) -> Result<(), HeaderError> {
    Attachment::header(name, value).map(|_| ())
}

/// Headers that say something about one request, or about the connection.
const RESERVED: &[&str] = &[
    "a2a-extensions",
    "a2a-version",
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "grpc-timeout",
    "host",
    "idempotency-key",
    "keep-alive",
    "last-event-id",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-a2a-extensions",
];

/// One piece of a request that is for one origin only.
#[derive(Clone)]
pub(crate) enum Attachment {
    Header(HeaderName, HeaderValue),
    Query(String, String),
    /// `name=value`.
    Cookie(HeaderValue),
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name, _) => write!(f, "Header({name})"),
            Self::Query(name, _) => write!(f, "Query({name})"),
            Self::Cookie(_) => f.write_str("Cookie"),
        }
    }
}

impl Attachment {
    /// A header of the caller's own.
    pub(crate) fn header(name: &str, value: &str) -> Result<Self, HeaderError> {
        let name = header_name(name)?;
        if RESERVED.contains(&name.as_str()) {
            return Err(HeaderError::Reserved(name));
        }
        let value = secret(&name, value)?;
        Ok(Self::Header(name, value))
    }

    pub(crate) fn credentials(credentials: &Credentials) -> Result<Self, HeaderError> {
        match credentials {
            Credentials::Bearer(token) => Self::authorization(&format!("Bearer {token}")),
            Credentials::Basic { user, password } => {
                let pair = format!("{user}:{password}");
                let coded = base64::engine::general_purpose::STANDARD.encode(pair);
                Self::authorization(&format!("Basic {coded}"))
            }
            Credentials::ApiKey { place, name, key } => match place {
                ApiKeyPlace::Header => Self::header(name, key),
                ApiKeyPlace::Query => Ok(Self::Query(name.clone(), key.clone())),
                ApiKeyPlace::Cookie => Self::cookie(name, key),
            },
        }
    }

    fn authorization(value: &str) -> Result<Self, HeaderError> {
        let value = secret(&header::AUTHORIZATION, value)?;
        Ok(Self::Header(header::AUTHORIZATION, value))
    }

    /// A cookie cannot quote anything (RFC 6265 §4.1.1).
    fn cookie(name: &str, value: &str) -> Result<Self, HeaderError> {
        header_name(name)?;
        let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | ',' | ';' | '\\');
        if !value.chars().all(fits) {
            return Err(HeaderError::Value(name.to_owned()));
        }
        secret(&header::COOKIE, &format!("{name}={value}")).map(Self::Cookie)
    }

    fn is_authorization(&self) -> bool {
        matches!(self, Self::Header(name, _) if name == header::AUTHORIZATION)
    }

    fn attach(&self, request: EgressRequest) -> EgressRequest {
        match self {
            Self::Query(name, value) if request.http2_only => {
                // gRPC has no queries (GRPC-02). What fits no metadata is not for gRPC.
                match Self::header(name, value) {
                    Ok(Self::Header(name, value)) => request.header(name, value),
                    _ => request,
                }
            }
            Self::Query(name, value) => request.secret_query(name, value),
            Self::Header(name, value) => request.header(name.clone(), value.clone()),
            Self::Cookie(pair) => {
                let mut request = request;
                add_cookie(&mut request.headers, pair);
                request
            }
        }
    }
}

fn header_name(name: &str) -> Result<HeaderName, HeaderError> {
    HeaderName::try_from(name).map_err(|_| HeaderError::Name(name.to_owned()))
}

fn secret(name: &HeaderName, text: &str) -> Result<HeaderValue, HeaderError> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_| HeaderError::Value(name.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// All cookies stand in one header.
fn add_cookie(headers: &mut HeaderMap, pair: &HeaderValue) {
    let known = headers.get(header::COOKIE).map(HeaderValue::as_bytes);
    let all = match known {
        Some(known) => [known, b"; ", pair.as_bytes()].concat(),
        None => pair.as_bytes().to_vec(),
    };
    // Two good values with a good character between them are a good value.
    if let Ok(mut value) = HeaderValue::from_bytes(&all) {
        value.set_sensitive(true);
        headers.insert(header::COOKIE, value);
    }
}

/// What a client proves itself with, by the origin it is for (AUTH-09).
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyring {
    by_origin: HashMap<Origin, Vec<Attachment>>,
}

impl Keyring {
    pub(crate) fn put(&mut self, url: &Url, attachment: Attachment) {
        let known = self.by_origin.entry(url.origin()).or_default();
        if attachment.is_authorization() {
            // A request has one at most (RFC 9110 §11.6.2).
            known.retain(|earlier| !earlier.is_authorization());
        }
        known.push(attachment);
    }

    /// The request with what is for its origin.
    pub(crate) fn attach(&self, request: EgressRequest) -> EgressRequest {
        let ours = self.by_origin.get(&request.url.origin());
        let ours = ours.into_iter().flatten();
        ours.fold(request, |request, attachment| attachment.attach(request))
    }

    pub(crate) fn covers(&self, url: &Url) -> bool {
        self.by_origin.contains_key(&url.origin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_refused_without_repeating_it() {
        for name in ["Host", "a2a-version", "Content-Length", "idempotency-key"] {
            let refused = Attachment::header(name, "x").unwrap_err();
            assert!(matches!(refused, HeaderError::Reserved(_)), "{name}");
        }
        assert!(Attachment::header("x y", "x").is_err());
        assert!(Attachment::header("authorization", "Basic x").is_ok());
        let key = |place, key: &str| Credentials::ApiKey {
            place,
            name: "k".to_owned(),
            key: key.to_owned(),
        };
        for bad in [
            Credentials::Bearer("s3cret\n".to_owned()),
            key(ApiKeyPlace::Header, "s3cret\r"),
            key(ApiKeyPlace::Cookie, "s3cret;"),
        ] {
            let refused = Attachment::credentials(&bad).unwrap_err().to_string();
            assert!(!refused.contains("s3cret"), "{refused}");
        }
        assert!(Attachment::credentials(&key(ApiKeyPlace::Query, "a&b c")).is_ok());
    }

    #[test]
    fn places_are_read_in_any_case() {
        assert_eq!(ApiKeyPlace::parse("Query"), Some(ApiKeyPlace::Query));
        assert_eq!(ApiKeyPlace::parse("body"), None);
    }
}
