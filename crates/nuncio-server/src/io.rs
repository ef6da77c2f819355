//! A connection that ends when its peer is too slow: with the head of a request, with the next
//! request, or with taking what is sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The requests of one connection that have not been answered completely.
#[derive(Debug)]
pub(crate) struct Requests {
    begun: AtomicUsize,
    open: AtomicUsize,
    /// When the last answer was written, in nanoseconds since `made`.
    ended: AtomicU64,
    made: Instant,
}

/// One of them; dropped when its answer has been written.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Requests>);

impl Requests {
    pub(crate) fn new() -> Self {
        Self {
            begun: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
            made: Instant::now(),
        }
    }

    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    fn last_end(&self) -> Instant {
        self.made + Duration::from_nanos(self.ended.load(Ordering::Relaxed))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let ended = u64::try_from(self.0.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.ended.store(ended, Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a connection waits for its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) head: Duration,
    pub(crate) keep_alive: Duration,
    pub(crate) write: Duration,
}

/// A socket with deadlines. Their timers are moved only when they fire early.
#[derive(Debug)]
pub(crate) struct GuardedIo<S> {
    inner: S,
    requests: Arc<Requests>,
    patience: Patience,
    phase: Phase,
    /// Requests begun when that was last looked at.
    begun: usize,
    reading: Alarm,
    writing: Alarm,
    /// Since when the peer has taken nothing.
    stuck_since: Option<Instant>,
}

/// What is expected of the peer.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The rest of a head, since then.
    Head(Instant),
    /// A next request, since then.
    Idle(Instant),
    /// Nothing: a request is in flight.
    Busy,
    /// HTTP/2, which has pings of its own.
    Multiplexed,
}

/// A timer that is made when first needed.
#[derive(Debug, Default)]
struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready once `deadline` has passed; else the task is woken by then, perhaps before.
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl<S> GuardedIo<S> {
    pub(crate) fn new(inner: S, requests: Arc<Requests>, patience: Patience) -> Self {
        Self {
            inner,
            requests,
            patience,
            phase: Phase::Head(Instant::now()),
            begun: 0,
            reading: Alarm::default(),
            writing: Alarm::default(),
            stuck_since: None,
        }
    }

    /// Bytes have come: they may begin a head.
    fn note_read(&mut self, bytes: &[u8]) {
        match self.phase {
            _ if bytes.is_empty() => {}
            Phase::Head(_) if bytes.starts_with(b"PRI ") => self.phase = Phase::Multiplexed,
            Phase::Idle(_) => self.phase = Phase::Head(Instant::now()),
            _ => {}
        }
    }

    /// Nothing has come: says until when that is all right, or when to look again.
    ///
    /// Hyper does not read anew when an answer has been written: a connection that was busy is
    /// looked at once the idle limit has passed, and is idle since its last answer.
    fn wait_until(&mut self) -> Option<Instant> {
        let begun = self.requests.begun.load(Ordering::Relaxed);
        let has_served = std::mem::replace(&mut self.begun, begun) != begun;
        match self.phase {
            Phase::Multiplexed => {}
            _ if self.requests.open.load(Ordering::Relaxed) > 0 => self.phase = Phase::Busy,
            Phase::Head(_) | Phase::Idle(_) if !has_served => {}
            _ => self.phase = Phase::Idle(self.requests.last_end()),
        }
        match self.phase {
            Phase::Head(since) => Some(since + self.patience.head),
            Phase::Idle(since) => Some(since + self.patience.keep_alive),
            Phase::Busy => Some(Instant::now() + self.patience.keep_alive),
            Phase::Multiplexed => None,
        }
    }

    /// A write that makes no progress for too long is an error.
    fn guard_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stuck_since = None;
            return polled;
        }
        let since = *self.stuck_since.get_or_insert_with(Instant::now);
        let late = self.writing.poll(cx, since + self.patience.write);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        match Pin::new(&mut this.inner).poll_read(cx, buf) {
            Poll::Ready(result) => {
                this.note_read(&buf.filled()[before..]);
                Poll::Ready(result)
            }
            Poll::Pending => {
                let Some(deadline) = this.wait_until() else {
                    return Poll::Pending;
                };
                let late = this.reading.poll(cx, deadline);
                late.map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.guard_write(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.guard_write(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.guard_write(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.guard_write(cx, polled)
    }
}
