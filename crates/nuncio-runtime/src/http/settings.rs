//! How a service is asked.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use nuncio_client::Backoff;
use url::Url;

/// How a service is asked; every limit has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpSettings {
    /// Where messages are posted to.
    pub url: Url,
    /// Headers that go with each of them, from [`secret_header`](super::secret_header).
    pub headers: HeaderMap,
    /// Headers of callers that are passed on, from [`header_name`](super::header_name); none. One
    /// of `headers` with the same name goes instead.
    pub forward: Vec<HeaderName>,
    /// How long the head of the answer may take; 300 seconds.
    pub first_byte: Duration,
    /// How long the answer may pause; 300 seconds.
    pub idle: Duration,
    /// How often a message is sent again; 2. Only while nothing has been received, after a failed
    /// connection and the statuses 408, 429 and 5xx.
    pub retries: u32,
    /// The pauses before that, where the service names none: half a second, doubling, 10 at most.
    pub backoff: Backoff,
    /// The longest `Retry-After` that is waited for; 30 seconds. A longer one fails the task.
    pub max_retry_after: Duration,
    /// How large one event of a stream may be, in bytes; 8 MiB.
    pub max_event_bytes: usize,
}

impl HttpSettings {
    /// A service at this address.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            headers: HeaderMap::new(),
            forward: Vec::new(),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
            retries: 2,
            backoff: Backoff {
                first: Duration::from_millis(500),
                factor: 2.0,
                cap: Duration::from_secs(10),
            },
            max_retry_after: Duration::from_secs(30),
            max_event_bytes: 8 << 20,
        }
    }
}
