//! Server-sent events: the frames of a stream, written as fast as they come.

use std::fmt;
use std::future::Future;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use nuncio_protocol::v1::json_rpc::RequestId;
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{A2aError, ErrorKind, Event, EventStream, Result, StatusProfile};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::admission::Permit;
use crate::failure;

/// Events that are ready together travel together, up to about this many bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How an event is wrapped: what stands before and after its JSON.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Each event is the result of a response with the request's id (RPC-09).
    JsonRpc { id: RequestId, prefix: Box<str> },
    /// Each event stands alone (REST-09).
    Rest { profile: StatusProfile },
}

impl Framing {
    pub(crate) fn json_rpc(id: RequestId) -> Self {
        let prefix = format!(r#"data: {{"jsonrpc":"2.0","id":{},"result":"#, id.as_json());
        Self::JsonRpc {
            id,
            prefix: prefix.into(),
        }
    }

    fn write_event(&self, out: &mut Vec<u8>, event: &Event) {
        if let Some(position) = event.position {
            let _ = writeln!(out, "id: {position}");
        }
        let json = event.json();
        let (before, after) = match self {
            Self::JsonRpc { prefix, .. } => (&**prefix, "}\n\n"),
            Self::Rest { .. } => ("data: ", "\n\n"),
        };
        out.reserve(before.len() + json.len() + after.len());
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(json.as_bytes());
        out.extend_from_slice(after.as_bytes());
    }

    /// The last frame of a stream that broke (OP-STRM-08, BR-036).
    ///
    /// A bare event has no member that says it is an error: without the name, the official SDKs
    /// take it for an empty event.
    fn write_error(&self, out: &mut Vec<u8>, error: &A2aError) {
        let (name, json) = match self {
            Self::JsonRpc { id, .. } => ("", json_rpc::encode_error(id, error)),
            Self::Rest { profile } => ("event: error\n", rest::encode_error(error, *profile)),
        };
        let _ = write!(out, "{name}data: {json}\n\n");
    }
}

/// What a stream needs besides its events.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub(crate) heartbeat: Duration,
    /// When the server stops, streams end so that their readers resume elsewhere.
    pub(crate) closing: CancellationToken,
    /// When the credential expires (AUTH-10).
    pub(crate) expires: Option<Instant>,
    /// Given back when the stream ends.
    pub(crate) _permit: Permit,
}

/// A stream of events as the body of a response.
///
/// Memory is bounded: the reader pulls, and no more than one batch is written ahead of it.
pub(crate) struct SseBody {
    events: Option<EventStream>,
    framing: Framing,
    written: Vec<u8>,
    context: StreamContext,
    waiting: Option<Pin<Box<Waiting>>>,
}

/// What an idle stream waits for besides its next event; made when it first has to wait.
struct Waiting {
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    sleep: Pin<Box<Sleep>>,
}

impl fmt::Debug for SseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseBody").finish_non_exhaustive()
    }
}

impl SseBody {
    /// Waits for the first event, so that a failure before it is an ordinary error (RPC-10).
    ///
    /// The wait ends with the first heartbeat: a slow agent does not keep the head back for ever.
    pub(crate) async fn open(
        events: EventStream,
        framing: Framing,
        context: StreamContext,
    ) -> Result<Self> {
        let mut body = Self {
            events: Some(events),
            framing,
            written: Vec::new(),
            context,
            waiting: None,
        };
        std::future::poll_fn(|cx| body.poll_first(cx)).await?;
        Ok(body)
    }

    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.poll_event(cx) {
            Poll::Ready(Some(Ok(event))) => self.framing.write_event(&mut self.written, &event),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => {
                let message = "the agent ended its stream without an event";
                let error = A2aError::new(ErrorKind::InvalidAgentResponse, message);
                return Poll::Ready(Err(error));
            }
            Poll::Pending => match ready!(self.poll_waiting(cx)) {
                Woken::Heartbeat => self.comment("ping"),
                Woken::Closing => {
                    let message = "the server is stopping";
                    let error = A2aError::new(ErrorKind::Unavailable, message);
                    return Poll::Ready(Err(error));
                }
                Woken::Expired => return Poll::Ready(Err(expired())),
            },
        }
        Poll::Ready(Ok(()))
    }

    /// The next piece of the body; `None` at its end.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.events.is_some() && self.written.len() < BATCH_BYTES {
            match self.poll_event(cx) {
                Poll::Ready(Some(Ok(event))) => {
                    self.framing.write_event(&mut self.written, &event);
                }
                Poll::Ready(Some(Err(error))) => self.break_off(error),
                Poll::Ready(None) => self.events = None,
                Poll::Pending if self.written.is_empty() => match ready!(self.poll_waiting(cx)) {
                    Woken::Heartbeat => self.comment("ping"),
                    Woken::Closing => {
                        self.comment("server stopping, resume with Last-Event-ID");
                        self.events = None;
                    }
                    Woken::Expired => self.break_off(expired()),
                },
                Poll::Pending => break,
            }
        }
        let chunk = std::mem::take(&mut self.written);
        Poll::Ready((!chunk.is_empty()).then(|| chunk.into()))
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        let Some(events) = &mut self.events else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| events.as_mut().poll_next(cx)));
        polled.unwrap_or_else(|_| {
            let message = "the agent's stream panicked";
            let error = A2aError::new(ErrorKind::Internal, message);
            Poll::Ready(Some(Err(error)))
        })
    }

    fn break_off(&mut self, error: A2aError) {
        failure::log(&error, None);
        self.framing
            .write_error(&mut self.written, &failure::outward(error));
        self.events = None;
    }

    fn comment(&mut self, text: &str) {
        let _ = write!(self.written, ": {text}\n\n");
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let context = &self.context;
        let waiting = self.waiting.get_or_insert_with(|| {
            Box::pin(Waiting {
                closing: Box::pin(context.closing.clone().cancelled_owned()),
                sleep: Box::pin(sleep_until(context.next_wake(Instant::now()))),
            })
        });
        if waiting.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::Closing);
        }
        ready!(waiting.sleep.as_mut().poll(cx));
        let now = Instant::now();
        if context.expires.is_some_and(|expires| expires <= now) {
            return Poll::Ready(Woken::Expired);
        }
        waiting.sleep.as_mut().reset(context.next_wake(now));
        Poll::Ready(Woken::Heartbeat)
    }
}

impl StreamContext {
    fn next_wake(&self, now: Instant) -> Instant {
        let beat = now + self.heartbeat;
        self.expires.map_or(beat, |expires| expires.min(beat))
    }
}

enum Woken {
    Heartbeat,
    Closing,
    Expired,
}

fn expired() -> A2aError {
    A2aError::new(ErrorKind::Unauthenticated, "the credential has expired")
}
