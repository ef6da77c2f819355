//! The answer: its head at once, its body piece by piece within limits.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use tokio::time::Instant;

use crate::egress::{innermost, within};
use crate::error::{EgressError, Limit};
use crate::wire;

/// An answer whose body has not been read yet.
///
/// Dropping it closes or reuses the connection; nothing is read in the background.
#[derive(Debug)]
pub struct EgressResponse {
    pub(crate) inner: http::Response<reqwest::Body>,
    pub(crate) trailers: Option<HeaderMap>,
    pub(crate) origin: String,
    pub(crate) proxy: Option<String>,
    pub(crate) idle: Option<Duration>,
    pub(crate) total: Option<(Instant, Duration)>,
    pub(crate) max_bytes: u64,
    pub(crate) wire: wire::Body,
}

impl EgressResponse {
    /// The status; redirects are not followed and show here.
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// A header as text, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// What came after the body; `None` before its end, and if nothing came.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// Bears any silence between pieces from now on; the total limit stays.
    ///
    /// For streams whose keep-alives are the connection's own, and thus no pieces of the body.
    pub fn bear_silence(&mut self) {
        self.idle = None;
    }

    /// Reads the next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`EgressError::Timeout`] for the idle or total limit, [`EgressError::Broken`] for a
    /// connection that ended too early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        let idle = self
            .idle
            .map(|idle| (Instant::now() + idle, Limit::Idle, idle));
        let total = self.total.map(|(at, after)| (at, Limit::Total, after));
        let nearest = [idle, total].into_iter().flatten().min_by_key(|l| l.0);
        let read = within(nearest, next_piece(self.inner.body_mut())).await;
        let read = read.map_err(|(limit, after)| EgressError::Timeout {
            origin: self.origin.clone(),
            limit,
            after,
        })?;
        let piece = read.map_err(|error| EgressError::Broken {
            origin: self.origin.clone(),
            proxy: self.proxy.clone(),
            reason: innermost(&error),
        })?;
        Ok(match piece {
            Piece::Data(bytes) => {
                self.wire.read(Some(&bytes));
                Some(bytes)
            }
            Piece::End(trailers) => {
                self.wire.read(None);
                if let Some(trailers) = &trailers {
                    wire::trailers(trailers);
                }
                self.trailers = trailers.or(self.trailers.take());
                None
            }
        })
    }

    /// Reads the whole body, at most as much as the policy allows.
    ///
    /// # Errors
    /// As [`Self::bytes_up_to`].
    pub async fn bytes(self) -> Result<Bytes, EgressError> {
        let max = self.max_bytes;
        self.bytes_up_to(max).await
    }

    /// Reads the whole body, at most `max_bytes`; a longer one is given up without buffering more.
    ///
    /// # Errors
    /// [`EgressError::TooLarge`], and as [`Self::chunk`].
    pub async fn bytes_up_to(mut self, max_bytes: u64) -> Result<Bytes, EgressError> {
        self.read_up_to(max_bytes).await
    }

    /// As [`Self::bytes_up_to`], for whoever wants to see the trailers afterwards.
    ///
    /// # Errors
    /// As [`Self::bytes_up_to`].
    pub async fn read_up_to(&mut self, max_bytes: u64) -> Result<Bytes, EgressError> {
        let too_large = |origin: &str| EgressError::TooLarge {
            origin: origin.to_owned(),
            max_bytes,
        };
        if self.inner.body().size_hint().lower() > max_bytes {
            return Err(too_large(&self.origin));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if (body.len() + chunk.len()) as u64 > max_bytes {
                return Err(too_large(&self.origin));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

/// A piece of a body.
enum Piece {
    Data(Bytes),
    /// With what came after the last of them.
    End(Option<HeaderMap>),
}

/// Waits for bytes or the end; dropping the future loses nothing.
async fn next_piece(body: &mut reqwest::Body) -> Result<Piece, reqwest::Error> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else {
            return Ok(Piece::End(None));
        };
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => return Ok(Piece::Data(data)),
            Err(frame) => {
                // Trailers are the last frame; what else there may be one day is passed over.
                if let Ok(trailers) = frame.into_trailers() {
                    return Ok(Piece::End(Some(trailers)));
                }
            }
        }
    }
}
