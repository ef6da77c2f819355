//! What accompanies an operation in headers and query: the service parameters. Spec: §3.2.6

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use nuncio_protocol::{
    A2aError, AgentCapabilities, Call, Caller, ErrorKind, ForwardedHeaders, Result, Version,
};

use crate::reply::{A2A_EXTENSIONS, A2A_VERSION, X_A2A_EXTENSIONS};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

const MAX_KEY_BYTES: usize = 256;
const MAX_EXTENSIONS: usize = 64;
const MAX_EXTENSIONS_BYTES: usize = 8_192;

/// The version that a request names: in a header, else in the query (VER-02). Empty is absent.
pub(crate) fn version(parts: &Parts) -> Result<Option<String>> {
    let mut said: Option<Cow<'_, str>> = None;
    for value in parts.headers.get_all(A2A_VERSION) {
        let value = String::from_utf8_lossy(value.as_bytes());
        agree(&mut said, value)?;
    }
    let query = parts.uri.query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name.eq_ignore_ascii_case("A2A-Version") {
            agree(&mut said, value)?;
        }
    }
    Ok(said.map(Cow::into_owned))
}

fn agree<'a>(said: &mut Option<Cow<'a, str>>, value: Cow<'a, str>) -> Result<()> {
    if value.trim().is_empty() {
        return Ok(());
    }
    match said {
        Some(other) if other.trim() != value.trim() => Err(invalid(
            "A2A-Version",
            "is given twice with different values",
        )),
        _ => {
            *said = Some(value);
            Ok(())
        }
    }
}

/// Collects the parameters of a call.
pub(crate) fn call(headers: &HeaderMap, caller: Caller, version: Version) -> Result<Call> {
    let mut call = Call::new(caller);
    call.version = version;
    call.extensions = extensions(headers)?;
    call.idempotency_key = idempotency_key(headers)?;
    call.last_event_id = last_event_id(headers)?;
    call.trace = headers
        .get(TRACEPARENT)
        .and_then(|value| value.to_str().ok())
        .filter(|value| value.len() <= MAX_KEY_BYTES)
        .and_then(|value| value.parse().ok());
    Ok(call)
}

/// The headers of these names; several lines of one are joined, but of credentials the first counts.
pub(crate) fn forwarded(headers: &HeaderMap, names: &[HeaderName]) -> ForwardedHeaders {
    let mut forwarded = ForwardedHeaders::default();
    for name in names {
        let lines = headers.get_all(name).iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        let one = name == AUTHORIZATION;
        match lines.first() {
            Some(first) if one => forwarded.insert(name.as_str(), *first),
            Some(_) => forwarded.insert(name.as_str(), lines.join(", ")),
            None => {}
        }
    }
    forwarded
}

/// Joins all lines; blanks, empties and repetitions go (EXT-01).
fn extensions(headers: &HeaderMap) -> Result<Vec<String>> {
    let mut named: Vec<String> = Vec::new();
    let mut bytes = 0;
    let lines = [A2A_EXTENSIONS, X_A2A_EXTENSIONS];
    for line in lines.iter().flat_map(|name| headers.get_all(name)) {
        bytes += line.len();
        let line = line
            .to_str()
            .map_err(|_| invalid("A2A-Extensions", "must be ASCII"))?;
        for uri in line.split(',').map(str::trim).filter(|uri| !uri.is_empty()) {
            if !named.iter().any(|known| known == uri) {
                named.push(uri.to_owned());
            }
        }
        if bytes > MAX_EXTENSIONS_BYTES || named.len() > MAX_EXTENSIONS {
            let limit =
                format!("is longer than {MAX_EXTENSIONS} URIs or {MAX_EXTENSIONS_BYTES} bytes");
            return Err(invalid("A2A-Extensions", &limit));
        }
    }
    Ok(named)
}

/// The extensions that are both asked for and declared, as a reply names them (EXT-04).
pub(crate) fn activated(asked: &[String], card: &AgentCapabilities) -> Option<HeaderValue> {
    let declared = |uri: &&String| card.extensions.iter().any(|known| known.uri == **uri);
    let active: Vec<&str> = asked.iter().filter(declared).map(String::as_str).collect();
    let value = (!active.is_empty()).then(|| active.join(", "))?;
    HeaderValue::try_from(value).ok()
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let key = value.to_str().unwrap_or_default();
    if key.is_empty() || key.len() > MAX_KEY_BYTES || values.next().is_some() {
        let rule = format!("must be one value of 1 to {MAX_KEY_BYTES} ASCII characters");
        return Err(invalid("Idempotency-Key", &rule));
    }
    Ok(Some(key.to_owned()))
}

/// An empty value means none: a browser that has seen no event sends it so.
fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(value) = headers.get(LAST_EVENT_ID) else {
        return Ok(None);
    };
    let text = value.to_str().map(str::trim);
    match text {
        Ok("") => Ok(None),
        Ok(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits
            .parse()
            .map(Some)
            .map_err(|_| invalid("Last-Event-ID", "is no position of a stream")),
        _ => Err(invalid("Last-Event-ID", "is no position of a stream")),
    }
}

fn invalid(header: &str, what: &str) -> A2aError {
    A2aError::new(ErrorKind::InvalidRequest, format!("header {header} {what}"))
}
