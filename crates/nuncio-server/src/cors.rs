//! Which web pages may call, as browsers ask (REST-11, BR-183).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};

use crate::reply::{self, Reply};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Accept, Authorization, X-API-Key, A2A-Version, A2A-Extensions, Last-Event-ID, Idempotency-Key, traceparent",
);
const EXPOSED: HeaderValue =
    HeaderValue::from_static("A2A-Extensions, WWW-Authenticate, Retry-After, ETag, Link");
const DAY: HeaderValue = HeaderValue::from_static("86400");

/// Answers OPTIONS, whether a browser's preflight or not; needs no credential.
pub(crate) fn options(parts: &Parts, allowed: &[String], is_card: bool) -> Option<Reply> {
    if parts.method != Method::OPTIONS {
        return None;
    }
    let mut reply = reply::empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    headers.insert(ALLOW, ALLOWED);
    let asked = parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let origin = parts.headers.get(ORIGIN);
    if asked && (is_card || origin.is_some_and(|origin| is_allowed(origin, allowed))) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, DAY);
    }
    if is_card {
        reply::open_to_every_origin(&mut reply);
    }
    Some(reply)
}

/// Lets pages of allowed origins read a reply; says nothing to others.
pub(crate) fn open(parts: &Parts, allowed: &[String], reply: &mut Reply) {
    let headers = reply.headers_mut();
    if allowed.is_empty() {
        return;
    }
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let origin = parts.headers.get(ORIGIN);
    if let Some(origin) = origin.filter(|origin| is_allowed(origin, allowed)) {
        if !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

fn is_allowed(origin: &HeaderValue, allowed: &[String]) -> bool {
    allowed
        .iter()
        .any(|known| known == "*" || known.as_bytes() == origin.as_bytes())
}
