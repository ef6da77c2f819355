//! What JSON-RPC and HTTP+JSON have in common: JSON texts, and server-sent events around them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use nuncio_protocol::dialect::Dialect;
use nuncio_protocol::{
    A2aError, ErrorDetail, ErrorKind, Event, Operation, OperationKind, Outcome, StreamResponse,
};
use serde_json::{Map, Value};

use super::{Answer, Item, Items, Prepared, Sender, Sizes, single_header};
use crate::failure::bad_answer;
use crate::headers::{media_type, retry_after};
use crate::sse::{Leftover, SseDecoder, SseEvent};

/// One of the two bindings.
pub(super) trait Framing: Send + Sync + fmt::Debug + 'static {
    fn dialect(&self) -> &dyn Dialect;

    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError>;

    fn prepare_otherwise(&self, operation: &Operation) -> Option<Prepared>;

    /// The media types an answer may have.
    fn accept(&self) -> &'static str;

    /// Takes the envelope off: gives the JSON text of a result, or the agent's error.
    fn result<'a>(&self, body: &'a [u8]) -> Result<&'a str, A2aError>;

    /// Reads a result; what cannot be read is of no cause yet.
    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError>;

    /// Reads an item of a stream.
    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError>;

    /// Reads the body of an answer whose status says that something failed.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> A2aError;
}

pub(super) fn sender(framing: impl Framing) -> Arc<dyn Sender> {
    Arc::new(Json(Arc::new(framing)))
}

#[derive(Debug)]
struct Json<F>(Arc<F>);

impl<F: Framing> Sender for Json<F> {
    fn dialect(&self) -> &dyn Dialect {
        self.0.dialect()
    }

    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        self.0.prepare(operation)
    }

    fn prepare_otherwise(&self, operation: &Operation) -> Option<Prepared> {
        self.0.prepare_otherwise(operation)
    }

    fn headers(&self, method: &Method, _left: Option<Duration>) -> HeaderMap {
        let mut headers = single_header(header::ACCEPT, self.0.accept());
        if method == Method::POST {
            let json = HeaderValue::from_static("application/json");
            headers.insert(header::CONTENT_TYPE, json);
        }
        headers
    }

    fn outcome(&self, kind: OperationKind, answer: &Answer) -> Result<Outcome, A2aError> {
        if !answer.status.is_success() {
            return Err(refusal(&*self.0, answer));
        }
        let deleting = kind == OperationKind::DeleteTaskPushNotificationConfig;
        let content_type = media_type(&answer.headers);
        if !deleting && !content_type.is_empty() && !content_type.contains("json") {
            return Err(not_json(&content_type));
        }
        if deleting && answer.body.trim_ascii().is_empty() {
            return Ok(Outcome::Deleted);
        }
        outcome(&*self.0, kind, &answer.body)
    }

    fn items(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sizes: Sizes,
    ) -> Option<Box<dyn Items>> {
        let is_stream = matches!(media_type(headers).as_str(), "" | "text/event-stream");
        let items = || SseItems {
            framing: Arc::clone(&self.0),
            decoder: Some(SseDecoder::new(sizes.max_event_bytes)),
        };
        (status.is_success() && is_stream).then(|| Box::new(items()) as _)
    }

    fn only_item(&self, answer: &Answer) -> Result<Event, A2aError> {
        if !answer.status.is_success() {
            return Err(refusal(&*self.0, answer));
        }
        let content_type = media_type(&answer.headers);
        if !content_type.contains("json") {
            return Err(not_json(&content_type));
        }
        let text = self.0.result(&answer.body)?;
        if let Ok(Some(response)) = self.0.decode_event(text) {
            return Ok(response.into());
        }
        match self.0.decode_result(OperationKind::GetTask, text) {
            Ok(Outcome::Task(task)) if !task.id.is_empty() => Ok(StreamResponse::Task(task).into()),
            _ => Err(bad_answer(
                "the agent answered a stream call with JSON that is neither a task nor a message",
            )),
        }
    }
}

fn outcome(framing: &impl Framing, kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
    let text = framing.result(body)?;
    match kind {
        OperationKind::DeleteTaskPushNotificationConfig => return Ok(Outcome::Deleted),
        OperationKind::GetExtendedAgentCard => {
            let (card, _) = crate::card::read(text).map_err(bad_answer)?;
            return Ok(Outcome::Card(Box::new(card)));
        }
        _ => {}
    }
    framing.decode_result(kind, text).map_err(unreadable)
}

/// The agent's error with what the headers say about it.
fn refusal(framing: &impl Framing, answer: &Answer) -> A2aError {
    let mut error = framing.refusal(answer.status, &answer.body);
    if error.retry_after().is_none()
        && let Some(delay) = retry_after(&answer.headers)
    {
        error = error.with_detail(ErrorDetail::RetryAfter(delay));
    }
    if let Some(challenge) = answer.headers.get(header::WWW_AUTHENTICATE)
        && let Ok(challenge) = challenge.to_str()
    {
        error = error.with("wwwAuthenticate", challenge);
    }
    error
}

fn not_json(content_type: &str) -> A2aError {
    bad_answer(format!(
        "the agent answered with {content_type}, which is no answer of the protocol"
    ))
}

fn unreadable(error: A2aError) -> A2aError {
    bad_answer(format!(
        "the agent's answer cannot be read: {}",
        error.message
    ))
}

/// Lets the HTTP status tell apart the kinds that share one JSON-RPC code (ERR-04).
///
/// A kind with a reason of its own is never touched.
pub(super) fn refine(mut error: A2aError, status: StatusCode) -> A2aError {
    let by_status = ErrorKind::from_http_status(status.as_u16());
    let same_code = by_status.json_rpc_code() == error.kind.json_rpc_code();
    if error.kind.reason().is_none() && same_code {
        error.kind = by_status;
    }
    error
}

/// Server-sent events with an item each.
struct SseItems<F> {
    framing: Arc<F>,
    decoder: Option<SseDecoder>,
}

impl<F: Framing> Items for SseItems<F> {
    fn push(&mut self, bytes: &Bytes) -> Vec<Result<Item, A2aError>> {
        let Some(decoder) = &mut self.decoder else {
            return Vec::new();
        };
        match decoder.push(bytes) {
            Ok(events) => events.iter().filter_map(|event| self.item(event)).collect(),
            Err(error) => vec![Err(bad_answer(error.to_string()))],
        }
    }

    fn finish(&mut self, _trailers: Option<&HeaderMap>) -> Option<A2aError> {
        let leftover = self.decoder.take().map(SseDecoder::finish);
        let Leftover { data, stray } = leftover.unwrap_or_default();
        [data, stray]
            .iter()
            .find_map(|text| self.as_error(text.trim()))
    }
}

impl<F: Framing> SseItems<F> {
    /// The item in an event; `None` for what is none.
    fn item(&self, event: &SseEvent) -> Option<Result<Item, A2aError>> {
        match self.read(event) {
            Ok(Some(item)) => Some(Ok(item)),
            Ok(None) => {
                tracing::warn!(event.name = %event.event, "unknown item in a stream");
                None
            }
            Err(_) if is_foreign(event) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn read(&self, event: &SseEvent) -> Result<Option<Item>, A2aError> {
        let text = self.framing.result(event.data.as_bytes())?;
        let response = self.framing.decode_event(text).map_err(unreadable)?;
        let position = event.id.as_deref().and_then(|id| id.parse().ok());
        Ok(response.map(|response| Item {
            event: Event::new(position, response),
            is_final: self.framing.dialect().marks_last_items() && is_final(text),
        }))
    }

    /// The error in a text that was never an event, if it is one.
    fn as_error(&self, text: &str) -> Option<A2aError> {
        let object: Map<String, Value> = serde_json::from_str(text).ok()?;
        if object.get("error").is_some_and(|error| !error.is_null()) {
            return self.framing.result(text.as_bytes()).err();
        }
        let bare = object.contains_key("code") && object.contains_key("message");
        bare.then(|| {
            self.framing
                .refusal(StatusCode::INTERNAL_SERVER_ERROR, text.as_bytes())
        })
    }
}

/// Whether an event has a name of its own and is thus nothing of A2A (BR-022).
fn is_foreign(event: &SseEvent) -> bool {
    !matches!(event.event.as_str(), "" | "message" | "error")
}

/// Whether an item says that nothing follows: bare, or in a wrapper.
fn is_final(text: &str) -> bool {
    if !text.contains("\"final\"") {
        return false;
    }
    let read: Result<Value, _> = serde_json::from_str(text);
    read.is_ok_and(|item| {
        let wrapped = ["statusUpdate", "status_update"];
        let wrapped = wrapped.iter().map(|name| &item[*name]["final"]);
        wrapped.chain([&item["final"]]).any(|value| value == true)
    })
}
