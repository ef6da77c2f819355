//! What is to be sent, and how long it may take.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

/// How long the stages of one exchange may take; `None` sets no limit.
///
/// The time for the connection is the policy's, since connections are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Timeouts {
    /// From the start until the head of the answer.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the answer.
    pub idle: Option<Duration>,
    /// From the start to the end of the answer.
    pub total: Option<Duration>,
}

impl Timeouts {
    /// One limit for everything.
    pub fn total(total: Duration) -> Self {
        Self {
            total: Some(total),
            ..Self::default()
        }
    }
}

/// One HTTP request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EgressRequest {
    /// The HTTP method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// The headers; secrets in them should be marked sensitive.
    pub headers: HeaderMap,
    /// The body; empty for none.
    pub body: Bytes,
    /// The limits.
    pub timeouts: Timeouts,
    /// Whether nothing but HTTP/2 will do, as gRPC wants it: without TLS it is spoken from the first
    /// byte. No proxy carries that without TLS.
    pub http2_only: bool,
    secret_query: SecretQuery,
}

/// Parameters that must not show in a log.
#[derive(Clone, Default)]
struct SecretQuery(Vec<(String, String)>);

impl fmt::Debug for SecretQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl EgressRequest {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url) -> Self {
        Self {
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeouts: Timeouts::default(),
            http2_only: false,
            secret_query: SecretQuery::default(),
        }
    }

    /// A GET.
    pub fn get(url: Url) -> Self {
        Self::new(Method::GET, url)
    }

    /// A POST of a body.
    pub fn post(url: Url, body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            ..Self::new(Method::POST, url)
        }
    }

    /// The same request with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// The same request with a parameter in its query that is a secret: sent, and never shown.
    #[must_use]
    pub fn secret_query(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.secret_query.0.push((name.into(), value.into()));
        self
    }

    /// The same request with time limits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The same request over HTTP/2 and nothing else.
    #[must_use]
    pub fn http2_only(mut self) -> Self {
        self.http2_only = true;
        self
    }

    /// The names of the secret parameters.
    pub(crate) fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.secret_query.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn into_reqwest(mut self) -> reqwest::Request {
        if !self.secret_query.0.is_empty() {
            self.url.query_pairs_mut().extend_pairs(self.secret_query.0);
        }
        let mut request = reqwest::Request::new(self.method, self.url);
        *request.headers_mut() = self.headers;
        if !self.body.is_empty() {
            *request.body_mut() = Some(self.body.into());
        }
        request
    }
}
