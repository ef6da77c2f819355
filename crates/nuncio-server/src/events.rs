//! The body of a stream: server-sent events or gRPC messages, written as fast as they come.

use std::fmt;
use std::future::Future;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use nuncio_protocol::dialect::{GrpcDialect, JsonRpcDialect, RestDialect, StreamKind};
use nuncio_protocol::grpc::frame;
use nuncio_protocol::v1::json_rpc::{self, RequestId};
use nuncio_protocol::{A2aError, ErrorKind, Event, EventStream, Result, StatusProfile};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::admission::Permit;
use crate::{failure, grpc};

/// Events that are ready together travel together, up to about this many bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How an event is wrapped: what stands before and after its JSON.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Each event is the result of a response with the request's id (RPC-09).
    JsonRpc {
        id: RequestId,
        prefix: Box<str>,
        dialect: &'static dyn JsonRpcDialect,
        kind: StreamKind,
    },
    /// Each event stands alone (REST-09).
    Rest {
        dialect: &'static dyn RestDialect,
        kind: StreamKind,
        profile: StatusProfile,
    },
    /// Each event is a message; how it ended stands in the trailers.
    Grpc {
        dialect: &'static dyn GrpcDialect,
        kind: StreamKind,
        profile: StatusProfile,
    },
}

impl Framing {
    pub(crate) fn json_rpc(
        id: RequestId,
        dialect: &'static dyn JsonRpcDialect,
        kind: StreamKind,
    ) -> Self {
        let prefix = format!(r#"data: {{"jsonrpc":"2.0","id":{},"result":"#, id.as_json());
        Self::JsonRpc {
            id,
            prefix: prefix.into(),
            dialect,
            kind,
        }
    }

    fn write_event(&self, out: &mut Vec<u8>, event: &Event) -> Result<()> {
        if let Self::Grpc { dialect, kind, .. } = self {
            let message = dialect.encode_event(event, *kind)?;
            out.extend_from_slice(&frame::encode(&message));
            return Ok(());
        }
        self.write_json(out, event);
        Ok(())
    }

    fn write_json(&self, out: &mut Vec<u8>, event: &Event) {
        if let Some(position) = event.position {
            let _ = writeln!(out, "id: {position}");
        }
        let (before, json, after) = match self {
            Self::JsonRpc {
                prefix,
                dialect,
                kind,
                ..
            } => (&**prefix, dialect.encode_event(event, *kind), "}\n\n"),
            Self::Rest { dialect, kind, .. } => {
                ("data: ", dialect.encode_event(event, *kind), "\n\n")
            }
            Self::Grpc { .. } => return,
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
    fn write_error(&self, out: &mut Vec<u8>, error: &A2aError) -> Option<HeaderMap> {
        let (name, json) = match self {
            Self::JsonRpc { id, dialect, .. } => {
                let error = dialect.encode_error(error);
                ("", json_rpc::encode_failure(id, &error))
            }
            Self::Rest {
                dialect, profile, ..
            } => ("event: error\n", dialect.encode_error(error, *profile)),
            Self::Grpc { profile, .. } => return Some(grpc::status(error, *profile)),
        };
        let _ = write!(out, "{name}data: {json}\n\n");
        None
    }
}

/// What a stream needs besides its events.
#[derive(Debug)]
pub(crate) struct StreamContext {
    pub(crate) heartbeat: Duration,
    /// When the server stops, streams end so that their readers resume elsewhere.
    pub(crate) leaving: CancellationToken,
    /// When the credential expires (AUTH-10).
    pub(crate) expires: Option<Instant>,
    /// Given back when the stream ends.
    pub(crate) _permit: Permit,
}

/// A stream of events as the body of a response.
///
/// Memory is bounded: the reader pulls, and no more than one batch is written ahead of it.
pub(crate) struct EventBody {
    events: Option<EventStream>,
    /// The position of the first event.
    first: Option<u64>,
    framing: Framing,
    written: Vec<u8>,
    /// Sent when the events are over, in gRPC only.
    trailers: Option<HeaderMap>,
    context: StreamContext,
    waiting: Option<Pin<Box<Waiting>>>,
}

/// What an idle stream waits for besides its next event; made when it first has to wait.
struct Waiting {
    leaving: Pin<Box<WaitForCancellationFutureOwned>>,
    sleep: Pin<Box<Sleep>>,
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").finish_non_exhaustive()
    }
}

impl EventBody {
    /// Waits for the first event, so that a failure before it is an ordinary error (RPC-10).
    ///
    /// The wait ends with the first heartbeat: a slow agent does not keep the head back for ever.
    pub(crate) async fn open(
        events: EventStream,
        framing: Framing,
        context: StreamContext,
    ) -> Result<Self> {
        let trailers = matches!(framing, Framing::Grpc { .. }).then(grpc::ok);
        let mut body = Self {
            events: Some(events),
            first: None,
            framing,
            trailers,
            written: Vec::new(),
            context,
            waiting: None,
        };
        std::future::poll_fn(|cx| body.poll_first(cx)).await?;
        Ok(body)
    }

    /// The position at which the stream begins, if its events have positions.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.poll_event(cx) {
            Poll::Ready(Some(Ok(event))) => {
                self.first = event.position;
                return Poll::Ready(self.framing.write_event(&mut self.written, &event));
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => {
                let message = "the agent ended its stream without an event";
                let error = A2aError::new(ErrorKind::InvalidAgentResponse, message);
                return Poll::Ready(Err(error));
            }
            Poll::Pending => match ready!(self.poll_waiting(cx)) {
                Woken::Heartbeat => self.comment("ping"),
                Woken::Leaving => {
                    let message = "the server is stopping, try again";
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
                    if let Err(error) = self.framing.write_event(&mut self.written, &event) {
                        self.break_off(error);
                    }
                }
                Poll::Ready(Some(Err(error))) => self.break_off(error),
                Poll::Ready(None) => self.events = None,
                Poll::Pending if self.written.is_empty() => match ready!(self.poll_waiting(cx)) {
                    Woken::Heartbeat => self.comment("ping"),
                    Woken::Leaving => self.close(),
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
        let error = failure::outward(error);
        if let Some(status) = self.framing.write_error(&mut self.written, &error) {
            self.trailers = Some(status);
        }
        self.events = None;
    }

    /// Ends a stream whose task goes on, so that its reader resumes elsewhere.
    fn close(&mut self) {
        if let Framing::Grpc { profile, .. } = self.framing {
            let message = "the server is stopping, subscribe again";
            let error = failure::outward(A2aError::new(ErrorKind::Unavailable, message));
            self.trailers = Some(grpc::status(&error, profile));
        } else {
            self.comment("server stopping, resume with Last-Event-ID");
        }
        self.events = None;
    }

    /// What follows the last chunk, once.
    pub(crate) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// Shows that the stream lives; HTTP/2 has its own ways.
    fn comment(&mut self, text: &str) {
        if !matches!(self.framing, Framing::Grpc { .. }) {
            let _ = write!(self.written, ": {text}\n\n");
        }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<Woken> {
        let context = &self.context;
        let waiting = self.waiting.get_or_insert_with(|| {
            Box::pin(Waiting {
                leaving: Box::pin(context.leaving.clone().cancelled_owned()),
                sleep: Box::pin(sleep_until(context.next_wake(Instant::now()))),
            })
        });
        if waiting.leaving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Woken::Leaving);
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
    Leaving,
    Expired,
}

fn expired() -> A2aError {
    A2aError::new(ErrorKind::Unauthenticated, "the credential has expired")
}
