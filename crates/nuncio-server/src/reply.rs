//! Replies and the headers they share.

use bytes::Bytes;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body as _;

use crate::body::ResponseBody;
use crate::events::EventBody;
use crate::parameters::LAST_EVENT_ID;

/// What every request gets.
pub(crate) type Reply = Response<ResponseBody>;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");
pub(crate) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(crate) const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
pub(crate) const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
/// What clients of protocol 0.3 call it (V03-12).
pub(crate) const X_A2A_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) fn with_body(
    status: StatusCode,
    content_type: HeaderValue,
    body: impl Into<Bytes>,
) -> Reply {
    let mut reply = Response::new(ResponseBody::bytes(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = status;
    reply
}

pub(crate) fn events(body: EventBody) -> Reply {
    event_stream(ResponseBody::events(body))
}

/// A stream that is over after one frame.
pub(crate) fn one_event(frame: String) -> Reply {
    event_stream(ResponseBody::bytes(frame))
}

/// The head of a stream: nothing on the way may keep or squeeze it (SSE-01).
fn event_stream(body: ResponseBody) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    reply
}

/// A stream of messages. They have no room for positions: the head has that of the first one, and
/// each that follows is at least one further.
pub(crate) fn messages(body: EventBody) -> Reply {
    let first = body.first();
    let mut reply = Response::new(ResponseBody::events(body));
    reply.headers_mut().insert(CONTENT_TYPE, GRPC);
    if let Some(first) = first {
        reply.headers_mut().insert(LAST_EVENT_ID, first.into());
    }
    reply
}

/// One message with its trailers.
pub(crate) fn message(frame: Bytes, trailers: HeaderMap) -> Reply {
    let mut reply = Response::new(ResponseBody::message(frame, trailers));
    reply.headers_mut().insert(CONTENT_TYPE, GRPC);
    reply
}

/// Takes the body away and leaves its length, as HEAD asks.
pub(crate) fn head_only(reply: &mut Reply) {
    let length = reply.body().size_hint().exact();
    *reply.body_mut() = ResponseBody::empty();
    if let Some(length) = length {
        reply.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
}

pub(crate) fn open_to_every_origin(reply: &mut Reply) {
    let any = HeaderValue::from_static("*");
    reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, any);
}
