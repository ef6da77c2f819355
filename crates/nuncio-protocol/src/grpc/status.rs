//! Errors as gRPC carries them: a code, a text and `google.rpc.Status` (GRPC-03, GRPC-04).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message as _;
use prost_types::Any;
use serde_json::{Value, json};

use super::generated::google_rpc::bad_request::FieldViolation as ProtoViolation;
use super::generated::google_rpc::{BadRequest, ErrorInfo, RetryInfo, Status};
use crate::{
    A2aError, ERROR_DOMAIN, ErrorDetail, ErrorKind, FieldViolation, GrpcStatus, StatusProfile, time,
};

/// How long a message may be: many readers take no more than 8 KiB of trailers.
const MAX_MESSAGE_BYTES: usize = 1024;

/// How many bytes of violations are sent, at least one.
const MAX_VIOLATION_BYTES: usize = 2048;

const TYPES: &str = "type.googleapis.com/";

/// An error in the words of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusParts {
    /// For `grpc-status`.
    pub code: i32,
    /// For `grpc-message`, not yet escaped.
    pub message: String,
    /// For `grpc-status-details-bin`, not yet in base64: an encoded `google.rpc.Status`.
    pub details_bin: Vec<u8>,
}

/// Writes an error: `ErrorInfo` first, then wrong fields and the time to wait.
///
/// Trailers have little room: a long message is cut, and of many wrong fields only the first are
/// sent.
pub fn encode_status(error: &A2aError, profile: StatusProfile) -> StatusParts {
    let code = error.kind.grpc_status(profile).number();
    let message = shortened(&error.message).to_owned();
    let info = error.kind.reason().map(|reason| {
        any(
            "ErrorInfo",
            &ErrorInfo {
                reason: reason.to_owned(),
                domain: ERROR_DOMAIN.to_owned(),
                metadata: error.metadata.clone(),
            },
        )
    });
    let details = error.details.iter().filter_map(encode_detail);
    let status = Status {
        code,
        message: message.clone(),
        details: info.into_iter().chain(details).collect(),
    };
    StatusParts {
        code,
        message,
        details_bin: status.encode_to_vec(),
    }
}

fn encode_detail(detail: &ErrorDetail) -> Option<Any> {
    match detail {
        ErrorDetail::BadRequest(violations) => Some(any("BadRequest", &bad_request(violations))),
        ErrorDetail::RetryAfter(delay) => {
            let retry_delay = prost_types::Duration::try_from(*delay).ok();
            retry_delay.map(|delay| {
                any(
                    "RetryInfo",
                    &RetryInfo {
                        retry_delay: Some(delay),
                    },
                )
            })
        }
        ErrorDetail::Other(_) => None,
    }
}

fn bad_request(violations: &[FieldViolation]) -> BadRequest {
    let mut room = MAX_VIOLATION_BYTES;
    let mut list = Vec::new();
    for violation in violations {
        let violation = ProtoViolation {
            field: shortened(&violation.field).to_owned(),
            description: shortened(&violation.description).to_owned(),
        };
        let size = violation.encoded_len();
        if size > room && !list.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        list.push(violation);
    }
    BadRequest {
        field_violations: list,
    }
}

fn any(name: &str, message: &impl prost::Message) -> Any {
    Any {
        type_url: format!("{TYPES}google.rpc.{name}"),
        value: message.encode_to_vec(),
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)]
}

/// Reads an error by what says most: the reason of its `ErrorInfo`, the name that servers of 0.3
/// put before the message, the code (ERR-04).
///
/// FAILED_PRECONDITION alone names none of A2A's errors: it stays a generic one with its message
/// (BR-132). Details that cannot be read are passed over.
pub fn decode_status(code: i32, message: &str, details_bin: Option<&[u8]>) -> A2aError {
    let status = details_bin.and_then(|bytes| Status::decode(bytes).ok());
    let status = status.unwrap_or_default();
    let message = if message.is_empty() {
        &status.message
    } else {
        message
    };
    let (kind, message) = match named(message) {
        Some(known) => known,
        None => (kind_of_code(code), message),
    };
    let details: Vec<Value> = status.details.iter().filter_map(decode_detail).collect();
    A2aError::new(kind, message).with_details_json(&details)
}

/// The classes of errors in SDKs of 0.3, which write them before the message.
const NAMES: &[(&str, ErrorKind)] = &[
    ("TaskNotFoundError", ErrorKind::TaskNotFound),
    ("TaskNotCancelableError", ErrorKind::TaskNotCancelable),
    (
        "PushNotificationNotSupportedError",
        ErrorKind::PushNotificationNotSupported,
    ),
    ("UnsupportedOperationError", ErrorKind::UnsupportedOperation),
    (
        "ContentTypeNotSupportedError",
        ErrorKind::ContentTypeNotSupported,
    ),
    ("InvalidAgentResponseError", ErrorKind::InvalidAgentResponse),
    (
        "AuthenticatedExtendedCardNotConfiguredError",
        ErrorKind::ExtendedAgentCardNotConfigured,
    ),
    ("InvalidParamsError", ErrorKind::InvalidParams),
    ("InvalidRequestError", ErrorKind::InvalidRequest),
    ("JSONParseError", ErrorKind::ParseError),
    ("MethodNotFoundError", ErrorKind::MethodNotFound),
    ("InternalError", ErrorKind::Internal),
];

fn named(message: &str) -> Option<(ErrorKind, &str)> {
    let (name, rest) = message.split_once(": ")?;
    let (_, kind) = NAMES.iter().find(|(known, _)| *known == name)?;
    Some((*kind, rest))
}

fn kind_of_code(code: i32) -> ErrorKind {
    let Some(status) = GrpcStatus::from_number(code) else {
        return ErrorKind::Internal;
    };
    match status {
        GrpcStatus::InvalidArgument => ErrorKind::InvalidParams,
        GrpcStatus::DeadlineExceeded => ErrorKind::DeadlineExceeded,
        GrpcStatus::NotFound => ErrorKind::TaskNotFound,
        GrpcStatus::PermissionDenied => ErrorKind::PermissionDenied,
        GrpcStatus::ResourceExhausted => ErrorKind::ResourceExhausted,
        GrpcStatus::FailedPrecondition => ErrorKind::InvalidRequest,
        GrpcStatus::Unimplemented => ErrorKind::MethodNotFound,
        GrpcStatus::Unknown | GrpcStatus::Internal => ErrorKind::Internal,
        GrpcStatus::Unavailable => ErrorKind::Unavailable,
        GrpcStatus::Unauthenticated => ErrorKind::Unauthenticated,
    }
}

/// The JSON form, which [`A2aError::with_details_json`] knows how to read.
fn decode_detail(detail: &Any) -> Option<Value> {
    let tag = detail.type_url.as_str();
    let bytes = detail.value.as_slice();
    Some(match tag.rsplit('/').next().unwrap_or_default() {
        "google.rpc.ErrorInfo" => {
            let info = ErrorInfo::decode(bytes).ok()?;
            json!({"@type": tag, "reason": info.reason, "domain": info.domain, "metadata": info.metadata})
        }
        "google.rpc.BadRequest" => {
            let violations = BadRequest::decode(bytes).ok()?.field_violations;
            let violations: Vec<Value> = violations
                .iter()
                .map(|v| json!({"field": v.field, "description": v.description}))
                .collect();
            json!({"@type": tag, "fieldViolations": violations})
        }
        "google.rpc.RetryInfo" => {
            let delay = RetryInfo::decode(bytes).ok()?.retry_delay?;
            let delay = Duration::try_from(delay).ok()?;
            json!({"@type": tag, "retryDelay": time::seconds_text(delay)})
        }
        _ => json!({"@type": tag, "value": STANDARD.encode(bytes)}),
    })
}
