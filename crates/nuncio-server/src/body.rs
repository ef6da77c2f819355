//! Bodies: reading what arrives within its limits, and what is sent back.

use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use nuncio_protocol::{A2aError, ErrorKind};
use tokio::time::timeout;

use crate::events::EventBody;
use crate::failure::Failure;
use crate::io::InFlight;

/// How long an unwanted rest of a body is read and thrown away, so that the answer arrives.
const DISCARD_FOR: Duration = Duration::from_secs(5);
const DISCARD_BYTES: usize = 16 << 20;

/// The body of every response: nothing, bytes, or a stream of events.
pub struct ResponseBody {
    content: Content,
    /// Tells the connection that a response is under way until it has been written.
    in_flight: Option<InFlight>,
}

enum Content {
    Bytes(Bytes),
    /// A message and how it ended.
    Message(Bytes, Option<HeaderMap>),
    Events(Box<EventBody>),
    /// Of a service that is not ours.
    Foreign(Pin<Box<tonic::body::Body>>),
}

impl ResponseBody {
    pub(crate) fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self {
            content: Content::Bytes(bytes.into()),
            in_flight: None,
        }
    }

    pub(crate) fn empty() -> Self {
        Self::bytes(Bytes::new())
    }

    pub(crate) fn message(frame: Bytes, trailers: HeaderMap) -> Self {
        Self {
            content: Content::Message(frame, Some(trailers)),
            in_flight: None,
        }
    }

    pub(crate) fn events(events: EventBody) -> Self {
        Self {
            content: Content::Events(Box::new(events)),
            in_flight: None,
        }
    }

    pub(crate) fn foreign(body: tonic::body::Body) -> Self {
        Self {
            content: Content::Foreign(Box::pin(body)),
            in_flight: None,
        }
    }

    pub(crate) fn hold(&mut self, in_flight: InFlight) {
        self.in_flight = Some(in_flight);
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Bytes(bytes) => write!(f, "ResponseBody({} bytes)", bytes.len()),
            Content::Message(frame, _) => write!(f, "ResponseBody({} bytes)", frame.len()),
            Content::Events(_) => f.write_str("ResponseBody(events)"),
            Content::Foreign(_) => f.write_str("ResponseBody(foreign)"),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Content::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let all = std::mem::take(bytes);
                Poll::Ready(Some(Ok(Frame::data(all))))
            }
            Content::Message(frame, trailers) if frame.is_empty() => {
                let trailers = trailers.take().map(Frame::trailers);
                Poll::Ready(trailers.map(Ok))
            }
            Content::Message(frame, _) => {
                let all = std::mem::take(frame);
                Poll::Ready(Some(Ok(Frame::data(all))))
            }
            Content::Events(events) => {
                let frame = match ready!(events.poll_chunk(cx)) {
                    Some(chunk) => Some(Frame::data(chunk)),
                    None => events.trailers().map(Frame::trailers),
                };
                Poll::Ready(frame.map(Ok))
            }
            // Its only error is that it ends.
            Content::Foreign(body) => {
                let frame = ready!(body.as_mut().poll_frame(cx));
                Poll::Ready(frame.and_then(Result::ok).map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Bytes(bytes) => bytes.is_empty(),
            Content::Message(frame, trailers) => frame.is_empty() && trailers.is_none(),
            Content::Events(_) => false,
            Content::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Message(..) | Content::Events(_) | Content::Foreign(_) => SizeHint::default(),
        }
    }
}

/// What a request body may be and how slowly it may come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    pub(crate) max_bytes: usize,
    pub(crate) idle: Duration,
}

/// Reads a whole body: without copying if it comes in one piece.
///
/// Too large a body is refused before the limit is passed in memory, by its announced length if
/// it has one; the rest is thrown away in the background.
pub(crate) async fn read<B>(body: B, limits: BodyLimits) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
{
    let max = limits.max_bytes;
    if body.size_hint().lower() > max as u64 {
        discard(body);
        return Err(too_large(max));
    }
    let mut body = Box::pin(body);
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(data) = next_data(&mut body, limits.idle).await? {
        if first.len() + rest.len() + data.len() > max {
            discard(body);
            return Err(too_large(max));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut all = BytesMut::with_capacity(first.len() + rest.len());
    all.extend_from_slice(&first);
    all.unsplit(rest);
    Ok(all.freeze())
}

/// The next bytes, perhaps none; `None` at the end.
async fn next_data<B>(body: &mut Pin<Box<B>>, idle: Duration) -> Result<Option<Bytes>, Failure>
where
    B: Body<Data = Bytes>,
{
    let mut next = poll_fn(|cx| body.as_mut().poll_frame(cx).map(data_of));
    // Most bodies are there already: no timer for those.
    if let Some(arrived) = (&mut next).now_or_never() {
        return arrived;
    }
    let arrived = timeout(idle, next).await;
    arrived.unwrap_or_else(|_| Err(Failure::request_timeout()))
}

fn data_of<E>(frame: Option<Result<Frame<Bytes>, E>>) -> Result<Option<Bytes>, Failure> {
    match frame {
        None => Ok(None),
        Some(Ok(frame)) => Ok(Some(frame.into_data().unwrap_or_default())),
        Some(Err(_)) => {
            let message = "the body ended early";
            Err(A2aError::new(ErrorKind::InvalidRequest, message).into())
        }
    }
}

fn too_large(max: usize) -> Failure {
    A2aError::new(
        ErrorKind::PayloadTooLarge,
        format!("the body is larger than {max} bytes"),
    )
    .into()
}

/// Reads on for a while, so that a peer that is still sending gets its answer, not a reset.
pub(crate) fn discard<B>(body: B)
where
    B: Body<Data = Bytes> + Send + 'static,
{
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(timeout(DISCARD_FOR, async move {
        let mut body = Box::pin(body);
        let mut left = DISCARD_BYTES;
        while let Ok(Some(data)) = next_data(&mut body, DISCARD_FOR).await
            && data.len() < left
        {
            left -= data.len();
        }
    }));
}
