//! Where work stands in a distributed trace, and what is told of it when it is done.
//!
//! W3C Trace Context, version 00; `tracestate` is not passed on.

use std::fmt::{self, Debug, Write as _};
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Ids, TaskId, Timestamp};

/// A place in a trace, as `traceparent` says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TraceContext {
    /// The trace; never all zeros.
    pub trace_id: [u8; 16],
    /// The span that the work belongs to; never all zeros.
    pub span_id: [u8; 8],
    /// Whether the caller keeps what it sees of this trace.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no traceparent: 00-<32 hexadecimal digits>-<16>-<2> is expected")]
pub struct NoTraceparent;

impl TraceContext {
    /// A new trace.
    pub fn new(ids: &dyn Ids) -> Self {
        let id = hash(&ids.next());
        Self {
            trace_id: first(&id),
            span_id: first(&id[16..]),
            sampled: true,
        }
    }

    /// The trace of a task whose caller names none: the same in every process.
    pub fn of_task(task: &TaskId) -> Self {
        let id = hash(task.as_str());
        Self {
            trace_id: first(&id),
            span_id: first(&id[16..]),
            sampled: true,
        }
    }

    /// A new span below this one.
    #[must_use]
    pub fn child(&self, ids: &dyn Ids) -> Self {
        Self {
            span_id: first(&hash(&ids.next())),
            ..*self
        }
    }

    /// The trace in hexadecimal digits.
    pub fn trace_hex(&self) -> String {
        hex(&self.trace_id)
    }

    /// The span in hexadecimal digits.
    pub fn span_hex(&self) -> String {
        hex(&self.span_id)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (self.trace_hex(), self.span_hex());
        write!(f, "00-{trace}-{span}-{:02x}", u8::from(self.sampled))
    }
}

impl Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TraceContext {
    type Err = NoTraceparent;

    /// Versions after 00 are read as far as 00 goes, as the specification asks.
    fn from_str(text: &str) -> Result<Self, NoTraceparent> {
        let mut fields = text.trim().split('-');
        let mut field = || fields.next().ok_or(NoTraceparent);
        let [version] = bytes::<1>(field()?)?;
        let (trace_id, span_id) = (bytes::<16>(field()?)?, bytes::<8>(field()?)?);
        let [flags] = bytes::<1>(field()?)?;
        let known = version != 0xff && (version != 0 || fields.next().is_none());
        if !known || trace_id == [0; 16] || span_id == [0; 8] {
            return Err(NoTraceparent);
        }
        Ok(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

fn hash(text: &str) -> [u8; 32] {
    first(digest(&SHA256, text.as_bytes()).as_ref())
}

/// The first bytes of a hash, none of which is all zeros in practice.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut some = [0; N];
    some.copy_from_slice(&bytes[..N]);
    some
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Small letters only, as the specification says.
fn bytes<const N: usize>(text: &str) -> Result<[u8; N], NoTraceparent> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != N * 2 || !text.bytes().all(digit) {
        return Err(NoTraceparent);
    }
    let mut read = [0; N];
    for (at, byte) in read.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).map_err(|_| NoTraceparent)?;
    }
    Ok(read)
}

/// On which side of a call a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanRole {
    /// It answers a call.
    Server,
    /// It waits for a call of another process.
    Client,
    /// It tells another process something, later.
    Producer,
    /// Neither.
    Internal,
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SpanRecord {
    /// Its place.
    pub context: TraceContext,
    /// The span it is below, if it does not begin its trace.
    pub parent: Option<[u8; 8]>,
    /// Another place it has to do with.
    pub link: Option<TraceContext>,
    /// On which side of a call it is.
    pub role: SpanRole,
    /// Its name: few different ones, no ids.
    pub name: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// What is told of it, by the names of OpenTelemetry.
    pub attributes: Map<String, Value>,
    /// Why it failed.
    pub error: Option<String>,
}

impl SpanRecord {
    /// A span of no length, to be told more about.
    pub fn new(context: TraceContext, name: impl Into<String>, started: Timestamp) -> Self {
        Self {
            context,
            parent: None,
            link: None,
            role: SpanRole::Internal,
            name: name.into(),
            started,
            ended: started,
            attributes: Map::new(),
            error: None,
        }
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.attributes.insert(name.to_owned(), value.into());
    }
}

/// Takes spans that have ended; must not block.
pub trait SpanSink: Send + Sync + Debug {
    /// Takes one.
    fn ended(&self, span: SpanRecord);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[derive(Debug)]
    struct Same;

    impl Ids for Same {
        fn next(&self) -> String {
            "id".to_owned()
        }
    }

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context: TraceContext = TEXT.parse().unwrap();
        assert_eq!(context.trace_hex(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_hex(), "00f067aa0ba902b7");
        assert!(context.sampled);
        assert_eq!(context.to_string(), TEXT);
        let unsampled: TraceContext = TEXT.replace("-01", "-00").parse().unwrap();
        assert!(!unsampled.sampled);
    }

    #[test]
    fn what_is_no_traceparent_is_refused() {
        let later = TEXT.replace("00-4", "01-4") + "-more";
        assert!(later.parse::<TraceContext>().is_ok());
        for wrong in [
            String::new(),
            TEXT.to_uppercase(),
            TEXT.replace("00-4", "ff-4"),
            format!("{TEXT}-more"),
            TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            TEXT.replace("-01", ""),
            TEXT.replace("-01", "-1"),
            TEXT.replace("4bf9", "4bé"),
        ] {
            assert_eq!(wrong.parse::<TraceContext>(), Err(NoTraceparent), "{wrong}");
        }
    }

    #[test]
    fn a_child_is_another_span_of_the_same_trace() {
        let context: TraceContext = TEXT.parse().unwrap();
        let child = context.child(&Same);
        assert_eq!(child.trace_id, context.trace_id);
        assert_ne!(child.span_id, context.span_id);
    }

    #[test]
    fn a_task_has_one_trace_everywhere() {
        let task = TaskId::from("task-1");
        assert_eq!(TraceContext::of_task(&task), TraceContext::of_task(&task));
        let text = TraceContext::of_task(&task).to_string();
        assert!(text.parse::<TraceContext>().is_ok(), "{text}");
        assert_ne!(
            text,
            TraceContext::of_task(&TaskId::from("task-2")).to_string()
        );
    }
}
