//! What goes over the wire, as log events of the target `nuncio::wire` at level TRACE.
//!
//! One event per line, `>` for what goes out and `<` for what comes in. Values of headers that are
//! marked sensitive, of secret parameters and of cookies that are set are left out; what agents
//! and callers say in bodies is not, so that this belongs into no log that is kept.

use std::time::Duration;

use bytes::BytesMut;
use http::{HeaderMap, header};
use tracing::Level;

use crate::EgressRequest;

const TARGET: &str = "nuncio::wire";
const HIDDEN: &str = "(redacted)";

fn is_watched() -> bool {
    tracing::enabled!(target: TARGET, Level::TRACE)
}

pub(crate) fn request(request: &EgressRequest) {
    if !is_watched() {
        return;
    }
    let mut url = request.url.clone();
    for name in request.secret_names() {
        url.query_pairs_mut().append_pair(name, HIDDEN);
    }
    tracing::trace!(target: TARGET, "> {} {url}", request.method);
    headers('>', &request.headers);
    if is_binary(&request.headers) {
        tracing::trace!(target: TARGET, "> ({} bytes)", request.body.len());
        return;
    }
    for line in String::from_utf8_lossy(&request.body).lines() {
        tracing::trace!(target: TARGET, "> {line}");
    }
}

pub(crate) fn head<B>(response: &http::Response<B>, took: Duration) {
    if is_watched() {
        let status = response.status();
        tracing::trace!(target: TARGET, "< {status} after {} ms", took.as_millis());
        headers('<', response.headers());
    }
}

pub(crate) fn trailers(trailers: &HeaderMap) {
    if is_watched() {
        headers('<', trailers);
    }
}

/// Whether bodies are of gRPC, which nobody can read.
fn is_binary(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn headers(arrow: char, headers: &HeaderMap) {
    for (name, value) in headers {
        let secret = value.is_sensitive() || name == header::SET_COOKIE;
        let shown = if secret {
            HIDDEN.into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        tracing::trace!(target: TARGET, "{arrow} {name}: {shown}");
    }
}

/// A body on its way in, told line by line: a secret that is cut in two would not be recognised.
#[derive(Debug)]
pub(crate) struct Body {
    unfinished: BytesMut,
    is_binary: bool,
}

impl Body {
    /// The body that belongs to these headers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self {
            unfinished: BytesMut::new(),
            is_binary: is_binary(headers),
        }
    }

    /// Takes a piece, or the end.
    pub(crate) fn read(&mut self, piece: Option<&[u8]>) {
        if !is_watched() {
            return;
        }
        let Some(piece) = piece else {
            return self.finish();
        };
        if self.is_binary {
            tracing::trace!(target: TARGET, "< ({} bytes)", piece.len());
            return;
        }
        self.unfinished.extend_from_slice(piece);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            tell(&self.unfinished.split_to(end + 1));
        }
    }

    fn finish(&mut self) {
        tell(&self.unfinished.split());
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.finish();
    }
}

fn tell(line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end();
    if !line.is_empty() {
        tracing::trace!(target: TARGET, "< {line}");
    }
}
