//! The content of one part of a task as it is, beside the HTTP+JSON binding: at
//! `/tasks/{id}/artifacts/{artifact}/parts/{n}` and `/tasks/{id}/messages/{message}/parts/{n}`.
//!
//! Large files need not be in memory whole, nor in base64, and a download that was cut off goes on
//! where it ended (`Range`).

use std::fmt;
use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use nuncio_protocol::{
    ArtifactId, Binding, Call, GetTaskRequest, MessageId, Operation, Result, TaskId, Validate as _,
    Version,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::body::ResponseBody;
use crate::failure::Failure;
use crate::parameters;
use crate::place::Who;
use crate::reply::{self, Reply};
use crate::server::{Server, Visit};

/// Pieces of content, in order; an error is the last one.
pub type FileStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// Who has the content of an agent's tasks.
pub trait Files: Send + Sync + fmt::Debug {
    /// The content of a part; `None` if there is no such part, or it only says where its content is.
    ///
    /// # Errors
    /// TaskNotFound, also for a task of somebody else.
    fn file(
        &self,
        call: Call,
        task: TaskId,
        place: FilePlace,
    ) -> nuncio_protocol::Reply<'_, Option<File>>;
}

/// Where in a task a part is; parts are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilePlace {
    /// In an artifact.
    Artifact(ArtifactId, usize),
    /// In a message of the history, or in that of the status.
    Message(MessageId, usize),
}

/// The content of a part, to be read.
pub struct File {
    /// What it is.
    pub media_type: Option<String>,
    /// A name to save it under.
    pub filename: Option<String>,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// Reads some of its bytes, or all.
    pub content: Box<dyn FileContent>,
}

/// The bytes of a file.
pub trait FileContent: Send + Sync {
    /// Reads some of them, in order.
    ///
    /// # Errors
    /// Unavailable, if they cannot be reached now.
    fn read(&self, range: Range<u64>) -> nuncio_protocol::Reply<'_, FileStream>;
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// A file that is asked for.
#[derive(Debug, PartialEq)]
pub(crate) struct Asked {
    task: TaskId,
    place: FilePlace,
}

impl Asked {
    /// Reads the path below an agent's address.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let decoded = |segment: &str| {
            percent_decode_str(segment)
                .decode_utf8()
                .ok()
                .map(String::from)
        };
        let segments: Vec<_> = path.strip_prefix("/tasks/")?.split('/').collect();
        let [task, holders, holder, "parts", number] = segments[..] else {
            return None;
        };
        let (holder, number) = (decoded(holder)?, number.parse().ok()?);
        let place = match holders {
            "artifacts" => FilePlace::Artifact(holder.into(), number),
            "messages" => FilePlace::Message(holder.into(), number),
            _ => return None,
        };
        let task = decoded(task)?.into();
        Some(Self { task, place })
    }
}

impl Server {
    /// Answers with the content of a part, to whoever may get the task.
    pub(crate) async fn file(
        &self,
        visit: &Visit<'_>,
        who: Who<'_>,
        asked: Asked,
    ) -> Result<Reply, Failure> {
        let headers = &visit.parts.headers;
        let admitted = self.authenticate(visit)?;
        let target = self.find(admitted, who, None)?;
        let endpoint = &target.endpoint;
        if !matches!(visit.parts.method, Method::GET | Method::HEAD) {
            return Err(Failure::method_not_allowed(&["GET", "HEAD"]));
        }
        let Some(files) = &endpoint.files else {
            return Err(nothing_there());
        };
        endpoint.check_binding(Binding::HttpJson)?;
        let operation = Operation::GetTask(GetTaskRequest::new(asked.task.clone()));
        operation.check(&endpoint.limits)?;
        let admitted = &target.admitted;
        admitted.usage.admit(&operation, self.settings())?;
        let call = parameters::call(headers, admitted.caller.clone(), Version::V1_0)?;
        let file = files.file(call, asked.task, asked.place).await?;
        let file = file.ok_or_else(nothing_there)?;
        let tag = format!("\"{}\"", hex(&file.sha256));
        let mut reply = match wanted(headers, file.size, &tag) {
            Wanted::Nothing => reply::empty(StatusCode::NOT_MODIFIED),
            Wanted::Whole => with_content(&file, 0..file.size).await?,
            Wanted::Piece(range) => {
                let mut reply = with_content(&file, range.clone()).await?;
                *reply.status_mut() = StatusCode::PARTIAL_CONTENT;
                let last = range.end - 1;
                let shown = format!("bytes {}-{last}/{}", range.start, file.size);
                reply.headers_mut().insert(CONTENT_RANGE, header(shown));
                reply
            }
            Wanted::Beyond => {
                let mut reply = reply::empty(StatusCode::RANGE_NOT_SATISFIABLE);
                let shown = format!("bytes */{}", file.size);
                reply.headers_mut().insert(CONTENT_RANGE, header(shown));
                reply
            }
        };
        describe(&mut reply, &file, tag);
        Ok(reply)
    }
}

fn nothing_there() -> Failure {
    Failure::with_status(StatusCode::NOT_FOUND, "there is no such content")
}

/// How much of a file is asked for.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// The caller has it.
    Nothing,
    Whole,
    Piece(Range<u64>),
    /// What is beyond its end.
    Beyond,
}

/// RFC 9110, sections 13 and 14: one range of bytes; several are answered with the whole.
fn wanted(headers: &HeaderMap, size: u64, tag: &str) -> Wanted {
    let said = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if said(IF_NONE_MATCH).is_some_and(|known| known.split(',').any(|known| known.trim() == tag)) {
        return Wanted::Nothing;
    }
    if said(IF_RANGE).is_some_and(|known| known != tag) {
        return Wanted::Whole;
    }
    let range = said(RANGE).and_then(|range| range.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Wanted::Whole;
    };
    let (start, end) = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, last.saturating_add(1).min(size)),
        (Ok(first), Err(_)) if last.is_empty() => (first, size),
        (Err(_), Ok(count)) if first.is_empty() => (size.saturating_sub(count), size),
        _ => return Wanted::Whole,
    };
    match start < end {
        true => Wanted::Piece(start..end),
        false => Wanted::Beyond,
    }
}

async fn with_content(file: &File, range: Range<u64>) -> Result<Reply> {
    let length = range.end - range.start;
    let pieces = file.content.read(range).await?;
    let frames = pieces.map(|piece| match piece {
        Ok(piece) => Ok(Frame::data(piece)),
        Err(error) => {
            // The length has been said: the connection is cut, and the caller knows.
            tracing::error!(%error, "a download breaks off");
            Err(tonic::Status::unavailable(error.message))
        }
    });
    let body = tonic::body::Body::new(StreamBody::new(frames));
    let mut reply = Response::new(ResponseBody::foreign(body));
    reply.headers_mut().insert(CONTENT_LENGTH, length.into());
    Ok(reply)
}

/// Browsers save it and run nothing of it, whatever an agent or a caller has put there.
fn describe(reply: &mut Reply, file: &File, tag: String) {
    let media_type = file
        .media_type
        .as_deref()
        .and_then(|text| HeaderValue::try_from(text).ok());
    let binary = HeaderValue::from_static("application/octet-stream");
    let disposition = match &file.filename {
        Some(name) => format!(
            "attachment; filename*=UTF-8''{}",
            utf8_percent_encode(name, NAMES)
        ),
        None => "attachment".to_owned(),
    };
    for (name, value) in [
        (CONTENT_TYPE, media_type.unwrap_or(binary)),
        (ETAG, header(tag)),
        (ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (CONTENT_DISPOSITION, header(disposition)),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("sandbox; default-src 'none'"),
        ),
    ] {
        reply.headers_mut().insert(name, value);
    }
}

/// RFC 8187: what a name in a header may have as it is.
const NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_artifacts_and_messages() {
        let asked = |path| Asked::of(path).map(|asked| (asked.task.to_string(), asked.place));
        let artifact = FilePlace::Artifact("a/1".into(), 2);
        assert_eq!(
            asked("/tasks/t/artifacts/a%2F1/parts/2"),
            Some(("t".to_owned(), artifact))
        );
        let message = FilePlace::Message("m".into(), 0);
        assert_eq!(
            asked("/tasks/t/messages/m/parts/0"),
            Some(("t".to_owned(), message))
        );
        for other in [
            "/tasks/t",
            "/tasks/t/artifacts/a/parts/x",
            "/tasks/t/others/a/parts/0",
            "/tasks/t/artifacts/a/parts/0/",
        ] {
            assert_eq!(asked(other), None, "{other}");
        }
    }

    #[test]
    fn one_range_is_answered() {
        let tag = "\"t\"";
        for (range, wants) in [
            ("bytes=0-", Wanted::Piece(0..10)),
            ("bytes=3-5", Wanted::Piece(3..6)),
            ("bytes=3-99", Wanted::Piece(3..10)),
            ("bytes=-4", Wanted::Piece(6..10)),
            ("bytes=-99", Wanted::Piece(0..10)),
            ("bytes=10-", Wanted::Beyond),
            ("bytes=-0", Wanted::Beyond),
            ("bytes=5-3", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, HeaderValue::from_static(range));
            assert_eq!(wanted(&headers, 10, tag), wants, "{range}");
            headers.insert(IF_RANGE, HeaderValue::from_static("\"other\""));
            assert_eq!(wanted(&headers, 10, tag), Wanted::Whole, "{range}");
            headers.insert(IF_NONE_MATCH, HeaderValue::from_static("\"x\", \"t\""));
            assert_eq!(wanted(&headers, 10, tag), Wanted::Nothing, "{range}");
        }
    }
}
