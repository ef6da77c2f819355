//! The gRPC binding: calls framed over HTTP/2, errors in trailers. Spec: §10

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use nuncio_protocol::dialect::{Dialect, GrpcDialect};
use nuncio_protocol::grpc::{self, frame, frame::FrameDecoder};
use nuncio_protocol::v1::rest;
use nuncio_protocol::{A2aError, ErrorKind, Event, Operation, OperationKind, Outcome};
use url::Url;

use super::{Answer, Item, Items, Prepared, Sender, Sizes, single_header};
use crate::failure::{Cause, bad_answer, cut, failure, of_the_agent};
use crate::headers::media_type;

const GRPC: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Some write the padding, some do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Debug)]
pub(super) struct Grpc {
    base: Url,
    dialect: &'static dyn GrpcDialect,
}

impl Grpc {
    pub(super) fn new(base: Url, dialect: &'static dyn GrpcDialect) -> Self {
        Self { base, dialect }
    }
}

impl Sender for Grpc {
    fn dialect(&self) -> &dyn Dialect {
        self.dialect
    }

    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        let message = self.dialect.encode_request(operation)?;
        let kind = operation.kind();
        let method = self.dialect.method(kind).ok_or_else(|| {
            let version = self.dialect.version();
            A2aError::new(
                ErrorKind::UnsupportedOperation,
                format!("protocol {version} has no {} over gRPC", kind.as_str()),
            )
        })?;
        let mut url = self.base.clone();
        let base = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{base}/{}/{method}", self.dialect.service()));
        Ok(Prepared {
            method: Method::POST,
            url,
            body: frame::encode(&message),
        })
    }

    fn headers(&self, _method: &Method, left: Option<Duration>) -> HeaderMap {
        let mut headers = single_header(header::CONTENT_TYPE, GRPC);
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        if let Some(left) = left
            && let Ok(text) = HeaderValue::try_from(frame::format_timeout(left))
        {
            headers.insert(TIMEOUT, text);
        }
        headers
    }

    fn is_http2_only(&self) -> bool {
        true
    }

    /// Also what comes as a status and nothing else, with the time to wait in its details.
    fn declined(&self, status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
        let error = refusal(status, headers, &[])?;
        let declined = matches!(
            error.kind,
            ErrorKind::Unavailable | ErrorKind::ResourceExhausted
        );
        let delay = error.retry_after();
        delay
            .or_else(|| crate::headers::retry_after(headers))
            .filter(|_| declined)
    }

    fn outcome(&self, kind: OperationKind, answer: &Answer) -> Result<Outcome, A2aError> {
        let message = only_message(answer)?;
        match message {
            None if kind == OperationKind::DeleteTaskPushNotificationConfig => Ok(Outcome::Deleted),
            None => Err(bad_answer("the agent's answer has no message")),
            Some(message) => {
                let outcome = self.dialect.decode_result(kind, &message);
                outcome.map_err(|error| bad_answer(error.message))
            }
        }
    }

    fn items(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sizes: Sizes,
    ) -> Option<Box<dyn Items>> {
        if refusal(status, headers, &[]).is_some() || headers.contains_key(STATUS) {
            return None;
        }
        Some(Box::new(Messages {
            dialect: self.dialect,
            decoder: FrameDecoder::new(max_message(sizes.max_response_bytes)),
        }))
    }

    fn only_item(&self, answer: &Answer) -> Result<Event, A2aError> {
        match only_message(answer)? {
            None => Err(bad_answer("the agent's stream ended without any event")),
            Some(_) => Err(bad_answer(
                "the agent's answer has its end at its beginning",
            )),
        }
    }

    fn too_large(&self, error: A2aError) -> A2aError {
        failure(ErrorKind::PayloadTooLarge, Cause::BadAnswer, error.message)
    }
}

fn max_message(max_response_bytes: u64) -> usize {
    usize::try_from(max_response_bytes).unwrap_or(usize::MAX)
}

/// The message of an answer that went well; `None` if it has none.
fn only_message(answer: &Answer) -> Result<Option<Bytes>, A2aError> {
    if let Some(error) = refusal(answer.status, &answer.headers, &answer.body) {
        return Err(error);
    }
    let ends = [Some(&answer.headers), answer.trailers.as_ref()];
    let end = ends
        .into_iter()
        .flatten()
        .find(|end| end.contains_key(STATUS));
    let Some(end) = end else {
        return Err(no_status());
    };
    if let Some(error) = status(end) {
        return Err(error);
    }
    // The body as a whole has been limited.
    let mut decoder = FrameDecoder::new(usize::MAX);
    decoder.push(&answer.body);
    let message = decoder.next_message().map_err(unframed)?;
    decoder.finish().map_err(unframed)?;
    Ok(message)
}

/// What an agent says instead of an answer: a status and nothing else, or HTTP that is no gRPC.
fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Option<A2aError> {
    if let Some(error) = self::status(headers) {
        return Some(error);
    }
    if status != StatusCode::OK {
        return Some(of_the_agent(rest::decode_error(status.as_u16(), body)));
    }
    let content_type = media_type(headers);
    let is_grpc = content_type.starts_with(GRPC) || content_type.is_empty();
    (!is_grpc).then(|| {
        bad_answer(format!(
            "the agent answered with {content_type}, which is no answer of gRPC"
        ))
    })
}

/// The error in the headers that end a call; `None` if it went well or they say nothing.
fn status(headers: &HeaderMap) -> Option<A2aError> {
    let code = headers.get(STATUS)?.to_str().ok();
    // What is no number is still no success.
    let code = code.and_then(|code| code.trim().parse().ok()).unwrap_or(2);
    if code == 0 {
        return None;
    }
    let message = headers.get(MESSAGE).map(HeaderValue::as_bytes);
    let message = String::from_utf8_lossy(message.unwrap_or_default());
    let details = headers.get(DETAILS);
    let details = details.and_then(|text| BASE64.decode(text.as_bytes()).ok());
    let message = frame::decode_message(&message);
    let error = grpc::decode_status(code, &message, details.as_deref());
    Some(of_the_agent(error))
}

/// Without a status nobody knows how the call ended.
fn no_status() -> A2aError {
    cut("the agent's answer ended without a status")
}

fn unframed(error: A2aError) -> A2aError {
    match error.kind {
        ErrorKind::PayloadTooLarge => {
            failure(ErrorKind::PayloadTooLarge, Cause::BadAnswer, error.message)
        }
        _ => bad_answer(format!(
            "the agent's answer cannot be read: {}",
            error.message
        )),
    }
}

/// Messages with an item each.
struct Messages {
    dialect: &'static dyn GrpcDialect,
    decoder: FrameDecoder,
}

impl Messages {
    fn next(&mut self) -> Result<Option<Bytes>, A2aError> {
        self.decoder.next_message().map_err(unframed)
    }

    fn item(&self, message: &[u8]) -> Result<Option<Item>, A2aError> {
        let response = self.dialect.decode_event(message);
        let response = response.map_err(|error| bad_answer(error.message))?;
        if response.is_none() {
            tracing::warn!("unknown item in a stream");
        }
        Ok(response.map(|response| Item {
            event: response.into(),
            is_final: false,
        }))
    }
}

impl Items for Messages {
    fn push(&mut self, bytes: &Bytes) -> Vec<Result<Item, A2aError>> {
        self.decoder.push(bytes);
        let mut items = Vec::new();
        loop {
            let item = match self.next() {
                Ok(Some(message)) => self.item(&message),
                Ok(None) => return items,
                Err(error) => Err(error),
            };
            let failed = item.is_err();
            items.extend(item.transpose());
            if failed {
                return items;
            }
        }
    }

    fn finish(&mut self, trailers: Option<&HeaderMap>) -> Option<A2aError> {
        let ended = trailers.is_some_and(|trailers| trailers.contains_key(STATUS));
        match trailers.and_then(status) {
            Some(error) => Some(error),
            None if ended => self.decoder.finish().map_err(unframed).err(),
            None => Some(no_status()),
        }
    }
}
