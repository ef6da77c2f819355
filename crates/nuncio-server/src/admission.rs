//! How much one caller may do at once (LIM-01, SEC-06).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_protocol::{A2aError, ErrorDetail, ErrorKind, Operation, Result};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::{RateLimit, Settings};

/// What a caller has going on, shared by all its credentials.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    streams: AtomicUsize,
    sends: AtomicUsize,
    bucket: Mutex<Option<Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// The right to a stream or a waiting send, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Permit(Option<(Arc<Usage>, Counted)>);

#[derive(Clone, Copy, Debug)]
enum Counted {
    Stream,
    Send,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((usage, counted)) = &self.0 {
            usage.counter(*counted).fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Usage {
    /// Admits an operation, or says which limit it meets.
    pub(crate) fn admit(self: &Arc<Self>, operation: &Operation, to: &Settings) -> Result<Permit> {
        if let Some(limit) = to.rate_limit {
            self.take_token(limit)?;
        }
        let (counted, max) = match operation {
            Operation::SendStreamingMessage(_) | Operation::SubscribeToTask(_) => {
                (Counted::Stream, to.max_streams_per_caller)
            }
            Operation::SendMessage(request) if !request.returns_immediately() => {
                (Counted::Send, to.max_blocking_sends_per_caller)
            }
            _ => return Ok(Permit::default()),
        };
        let before = self.counter(counted).fetch_add(1, Ordering::Relaxed);
        let permit = Permit(Some((Arc::clone(self), counted)));
        if before < max {
            return Ok(permit);
        }
        let what = match counted {
            Counted::Stream => "streams",
            Counted::Send => "waiting sends",
        };
        let message = format!("at most {max} {what} at once for one caller");
        Err(exhausted(message, Duration::from_secs(1)))
    }

    fn counter(&self, counted: Counted) -> &AtomicUsize {
        match counted {
            Counted::Stream => &self.streams,
            Counted::Send => &self.sends,
        }
    }

    fn take_token(&self, limit: RateLimit) -> Result<()> {
        let now = Instant::now();
        let burst = f64::from(limit.burst.max(1));
        let mut bucket = self.bucket.lock();
        let bucket = bucket.get_or_insert(Bucket {
            tokens: burst,
            at: now,
        });
        let gained = now.duration_since(bucket.at).as_secs_f64() * limit.per_second;
        bucket.tokens = (bucket.tokens + gained).min(burst);
        bucket.at = now;
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Ok(());
        }
        let wait = (1.0 - bucket.tokens) / limit.per_second.max(0.001);
        let message = format!("at most {} operations per second", limit.per_second);
        Err(exhausted(message, Duration::from_secs_f64(wait)))
    }
}

/// "Too much at once, try again then."
pub(crate) fn exhausted(message: String, retry: Duration) -> A2aError {
    A2aError::new(ErrorKind::ResourceExhausted, message).with_detail(ErrorDetail::RetryAfter(retry))
}
