//! Server-sent events, read piece by piece.
//!
//! Takes bytes cut anywhere and gives whole events: LF, CRLF and CR end a line, a missing blank
//! after the colon is fine, comments and unknown fields are passed over, several `data` lines are
//! one text, a byte order mark at the start is dropped, an event without its blank line at the end
//! is discarded (SSE-02). Events without content are not given at all: none of them means anything
//! in A2A. What the data says is left to others.

use std::time::Duration;

/// How many bytes an event may have unless told otherwise; 10 MiB (SSE-03).
pub const MAX_EVENT_BYTES: usize = 10 << 20;

/// How much text that is no field at all is kept, in case it turns out to be an error.
const MAX_STRAY_BYTES: usize = 64 << 10;

/// One event with content.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// The name; empty if the event has none.
    pub event: String,
    /// The data, its lines joined by LF; never empty.
    pub data: String,
    /// The id given with this very event.
    pub id: Option<String>,
    /// How long to wait before connecting again, if this event says so.
    pub retry: Option<Duration>,
}

/// An event grew beyond the limit; the decoder is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {max_bytes} bytes")]
pub struct EventTooLarge {
    /// The limit.
    pub max_bytes: usize,
}

/// What lay in the decoder when the stream ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leftover {
    /// The data of an event that never got its blank line.
    pub data: String,
    /// Lines that are no fields: the whole body, if it was never an event stream.
    pub stray: String,
}

/// The decoder of one stream.
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    /// The line that has begun but not ended.
    line: Vec<u8>,
    /// Whether the last byte was a CR, whose LF is still to be swallowed.
    after_cr: bool,
    at_start: bool,
    data: Vec<u8>,
    event: Vec<u8>,
    id: Option<Vec<u8>>,
    retry: Option<Duration>,
    stray: Vec<u8>,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder for a stream from its start.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            data: Vec::new(),
            event: Vec::new(),
            id: None,
            retry: None,
            stray: Vec::new(),
        }
    }

    /// Takes the next bytes and gives the events that they complete.
    ///
    /// # Errors
    /// [`EventTooLarge`]; events completed by the same bytes before it are lost.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLarge> {
        let mut events = Vec::new();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
            self.after_cr = rest == b"\r";
            if self.line.is_empty() {
                self.take_line(line, &mut events)?;
            } else {
                self.grow_line(line)?;
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, &mut events)?;
            }
        }
        self.grow_line(bytes)?;
        Ok(events)
    }

    /// Ends the stream and gives what was never completed.
    pub fn finish(mut self) -> Leftover {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            // Over the limit or not, it goes no further than here.
            let _ = self.take_line(&line, &mut Vec::new());
        }
        self.data.pop();
        Leftover {
            data: lossy(&self.data),
            stray: lossy(&self.stray),
        }
    }

    fn grow_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        self.check(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), EventTooLarge> {
        if self.data.len() + more > self.max_event_bytes {
            return Err(EventTooLarge {
                max_bytes: self.max_event_bytes,
            });
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], out: &mut Vec<SseEvent>) -> Result<(), EventTooLarge> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            out.extend(self.dispatch());
            return Ok(());
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return Ok(()),
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.check(value.len() + 1)?;
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = value.to_vec(),
            b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" => self.retry = milliseconds(value),
            b"id" => {}
            _ => self.keep_stray(line),
        }
        Ok(())
    }

    fn keep_stray(&mut self, line: &[u8]) {
        if self.stray.len() + line.len() < MAX_STRAY_BYTES {
            self.stray.extend_from_slice(line);
            self.stray.push(b'\n');
        }
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let mut data = std::mem::take(&mut self.data);
        let event = std::mem::take(&mut self.event);
        let id = self.id.take();
        let retry = self.retry.take();
        data.pop();
        if data.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(SseEvent {
            event: lossy(&event),
            data: into_text(data),
            id: id.map(|id| lossy(&id)).filter(|id| !id.is_empty()),
            retry,
        })
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As [`lossy`], without a copy for what is UTF-8 already.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| lossy(error.as_bytes()))
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| digits)?;
    text.parse().ok().map(Duration::from_millis)
}
