//! What is to be sent, and how long it may take.

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

    /// The same request with time limits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }
}
