//! How an operation is framed, once per binding. How its version spells it is the dialect's, and
//! sending itself is `exchange`'s.

mod grpc;
mod json;
mod json_rpc;
mod rest;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use nuncio_protocol::dialect::{self, Dialect};
use nuncio_protocol::{A2aError, Binding, Event, Operation, OperationKind, Outcome};
use url::Url;

use crate::choose::Choice;
use crate::headers::retry_after;

/// An HTTP request without the headers that all bindings share.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) body: Bytes,
}

/// An answer that has been read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

/// How large things may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) max_response_bytes: u64,
    pub(crate) max_event_bytes: usize,
}

/// The framing of one interface.
pub(crate) trait Sender: Send + Sync + fmt::Debug {
    /// What all dialects of the interface's version have in common.
    fn dialect(&self) -> &dyn Dialect;

    /// Writes an operation.
    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError>;

    /// Another way to ask for the same, if the agent does not know the first (REST-01).
    fn prepare_otherwise(&self, _operation: &Operation) -> Option<Prepared> {
        None
    }

    /// The headers that belong to the binding; `left` is the time that the call has.
    fn headers(&self, method: &Method, left: Option<Duration>) -> HeaderMap;

    /// Whether nothing but HTTP/2 will do.
    fn is_http2_only(&self) -> bool {
        false
    }

    /// How long the agent asks to wait, if it did not begin and says so at once.
    fn declined(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let declined = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status);
        retry_after(headers).filter(|_| declined)
    }

    /// Reads the answer to an operation that does not stream, or the agent's error.
    fn outcome(&self, kind: OperationKind, answer: &Answer) -> Result<Outcome, A2aError>;

    /// How to read the body as a stream; `None` if it is none and must be read as a whole.
    fn items(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sizes: Sizes,
    ) -> Option<Box<dyn Items>>;

    /// Reads what answered a stream call as a whole: an error, or what came of it (BR-043).
    fn only_item(&self, answer: &Answer) -> Result<Event, A2aError>;

    /// What is told of an answer that is larger than allowed.
    fn too_large(&self, error: A2aError) -> A2aError {
        error
    }
}

/// Cuts the body of a stream into its items, however the network has split it.
pub(crate) trait Items: Send {
    /// Takes the next bytes and gives the items that they complete; nothing counts after an error.
    fn push(&mut self, bytes: &Bytes) -> Vec<Result<Item, A2aError>>;

    /// Ends the body: gives the error that it ended with, if it tells one.
    fn finish(&mut self, trailers: Option<&HeaderMap>) -> Option<A2aError>;
}

/// One item of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) event: Event,
    /// Whether the agent says that it is the last one, as 0.3 does.
    pub(crate) is_final: bool,
}

/// The sender for an interface.
pub(crate) fn sender(choice: &Choice) -> Arc<dyn Sender> {
    let (url, version) = (choice.url.clone(), choice.version);
    match choice.binding {
        Binding::JsonRpc => json::sender(json_rpc::JsonRpc::new(url, dialect::json_rpc(version))),
        Binding::HttpJson => json::sender(rest::Rest::new(url, dialect::rest(version))),
        Binding::Grpc => Arc::new(grpc::Grpc::new(url, dialect::grpc(version))),
    }
}

fn single_header(name: header::HeaderName, value: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(name, HeaderValue::from_static(value));
    headers
}
