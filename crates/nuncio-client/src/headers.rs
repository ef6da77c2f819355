//! The headers that go with every operation, and those that are read from answers.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use nuncio_egress::EgressRequest;
use nuncio_protocol::{A2aError, Call, Operation};

use crate::Client;
use crate::client::Route;

pub(crate) const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

impl Client {
    /// The headers of one request, without what proves who is calling.
    pub(crate) fn headers(
        &self,
        call: &Call,
        operation: &Operation,
        route: &Route,
        request: &EgressRequest,
    ) -> Result<HeaderMap, A2aError> {
        let left = request.timeouts.total;
        let mut headers = route.sender.headers(&request.method, left);
        let version = HeaderValue::from_static(route.version.as_str());
        headers.insert(A2A_VERSION, version);
        let extensions_header = route.sender.dialect().extensions_header();
        let extensions = self.extensions_of(call).join(", ");
        let trace = call.trace.map(|trace| trace.to_string());
        let texts = [
            (
                HeaderName::from_static(extensions_header),
                Some(extensions.as_str()).filter(|e| !e.is_empty()),
            ),
            (IDEMPOTENCY_KEY, call.idempotency_key.as_deref()),
            (TRACEPARENT, trace.as_deref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                let value = HeaderValue::from_str(text)
                    .map_err(|_| A2aError::invalid_field(name.as_str(), "is no header value"))?;
                headers.insert(name, value);
            }
        }
        if let Some(position) = call.last_event_id
            && operation.kind().streams()
        {
            headers.insert(LAST_EVENT_ID, HeaderValue::from(position));
        }
        Ok(headers)
    }
}

/// Adds what a call passes on of its own caller's headers; what is there already stays alone.
pub(crate) fn forward(call: &Call, headers: &mut HeaderMap) {
    for (name, value) in call.forwarded.iter() {
        let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(mut value)) = pair {
            value.set_sensitive(true);
            headers.entry(name).or_insert(value);
        }
    }
}

/// The media type without parameters, in lower case; empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// Reads `Retry-After`: seconds, or a date to be compared with the answer's own.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let value = text(header::RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}
