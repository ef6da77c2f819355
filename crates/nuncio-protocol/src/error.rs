//! Why an operation failed, and its code in each binding: one table. Spec: §5.4

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::time;

/// Shorthand for what operations give.
pub type Result<T, E = A2aError> = std::result::Result<T, E>;

/// The domain of this protocol in `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Why an operation failed, as its caller sees it. Spec: §3.3.2
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct A2aError {
    /// Decides JSON-RPC code, gRPC status and HTTP status, in one table.
    pub kind: ErrorKind,
    /// For the caller: names the field or the id; never a query, a path or a stack.
    pub message: String,
    /// Facts for programs, text to text, in `ErrorInfo.metadata`.
    pub metadata: BTreeMap<String, String>,
    /// Further details, tagged by `@type`.
    pub details: Vec<ErrorDetail>,
}

/// A structured detail of an error beside its `ErrorInfo`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ErrorDetail {
    /// Which fields of the request are wrong (`google.rpc.BadRequest`).
    BadRequest(Vec<FieldViolation>),
    /// When to try again (`google.rpc.RetryInfo`).
    RetryAfter(Duration),
    /// A detail of a kind this version does not know, as it came.
    Other(Value),
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Its path in wire spelling, such as `message.parts[0]`.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

/// Which text of version 1.0 decides the status of five errors (ERR-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatusProfile {
    /// The table of 1.0.1.
    #[default]
    V1_0_1,
    /// The table of 1.0.0, which older peers and the conformance kit expect.
    V1_0_0,
}

macro_rules! catalogue {
    ($( $(#[$doc:meta])* $kind:ident: $rpc:literal, $http:literal, $grpc:ident, $reason:expr, ($old_http:literal, $old_grpc:ident); )*) => {
        /// What went wrong; sorted by what the reader can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $( $(#[$doc])* $kind, )*
            /// An error of a code or reason this version does not know (ERR-09).
            Other(i64),
        }

        impl ErrorKind {
            /// Every kind of the catalogue.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The JSON-RPC code. Spec: §9.5
            pub fn json_rpc_code(self) -> i64 {
                match self { $( Self::$kind => $rpc, )* Self::Other(code) => code }
            }

            /// The HTTP status. Spec: §11.6
            pub fn http_status(self, profile: StatusProfile) -> u16 {
                match (self, profile) {
                    $( (Self::$kind, StatusProfile::V1_0_1) => $http, )*
                    $( (Self::$kind, StatusProfile::V1_0_0) => $old_http, )*
                    (Self::Other(_), _) => 500,
                }
            }

            /// The gRPC status. Spec: §10.6
            pub fn grpc_status(self, profile: StatusProfile) -> GrpcStatus {
                match (self, profile) {
                    $( (Self::$kind, StatusProfile::V1_0_1) => GrpcStatus::$grpc, )*
                    $( (Self::$kind, StatusProfile::V1_0_0) => GrpcStatus::$old_grpc, )*
                    (Self::Other(_), _) => GrpcStatus::Unknown,
                }
            }

            /// The reason in `ErrorInfo`; `None` for errors that are not A2A's own.
            pub fn reason(self) -> Option<&'static str> {
                match self { $( Self::$kind => $reason, )* Self::Other(_) => None }
            }
        }
    };
}

catalogue! {
    /// No such task for this caller. Spec: §3.3.2
    TaskNotFound: -32001, 404, NotFound, Some("TASK_NOT_FOUND"), (404, NotFound);
    /// The task has ended otherwise than by cancel.
    TaskNotCancelable: -32002, 400, FailedPrecondition, Some("TASK_NOT_CANCELABLE"), (409, FailedPrecondition);
    /// The agent sends no notifications.
    PushNotificationNotSupported: -32003, 400, FailedPrecondition, Some("PUSH_NOTIFICATION_NOT_SUPPORTED"), (400, Unimplemented);
    /// The agent, or the task in its present state, does not do this.
    UnsupportedOperation: -32004, 400, FailedPrecondition, Some("UNSUPPORTED_OPERATION"), (400, Unimplemented);
    /// No skill takes, or gives, that media type.
    ContentTypeNotSupported: -32005, 400, InvalidArgument, Some("CONTENT_TYPE_NOT_SUPPORTED"), (415, InvalidArgument);
    /// The agent broke the protocol.
    InvalidAgentResponse: -32006, 500, Internal, Some("INVALID_AGENT_RESPONSE"), (502, Internal);
    /// The agent declares an extended card but has none.
    ExtendedAgentCardNotConfigured: -32007, 400, FailedPrecondition, Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"), (400, FailedPrecondition);
    /// The agent requires an extension that the client did not name.
    ExtensionSupportRequired: -32008, 400, FailedPrecondition, Some("EXTENSION_SUPPORT_REQUIRED"), (400, FailedPrecondition);
    /// The version asked for is not spoken here.
    VersionNotSupported: -32009, 400, FailedPrecondition, Some("VERSION_NOT_SUPPORTED"), (400, Unimplemented);
    /// A field of the request is wrong; details name it.
    InvalidParams: -32602, 400, InvalidArgument, None, (400, InvalidArgument);
    /// The envelope of the request is wrong.
    InvalidRequest: -32600, 400, InvalidArgument, None, (400, InvalidArgument);
    /// The body is not acceptable JSON.
    ParseError: -32700, 400, InvalidArgument, None, (400, InvalidArgument);
    /// No such method or route.
    MethodNotFound: -32601, 404, Unimplemented, None, (404, Unimplemented);
    /// The route exists, but not with this HTTP method.
    MethodNotAllowed: -32601, 405, Unimplemented, None, (405, Unimplemented);
    /// No agent at this address.
    AgentNotFound: -32601, 404, NotFound, None, (404, NotFound);
    /// The request's content type is not JSON.
    UnsupportedMediaType: -32005, 415, InvalidArgument, Some("CONTENT_TYPE_NOT_SUPPORTED"), (415, InvalidArgument);
    /// A stated limit is exceeded by the size of the request.
    PayloadTooLarge: -32600, 413, ResourceExhausted, None, (413, ResourceExhausted);
    /// A fault of ours.
    Internal: -32603, 500, Internal, None, (500, Internal);
    /// No valid credential.
    Unauthenticated: -32600, 401, Unauthenticated, None, (401, Unauthenticated);
    /// A valid credential without the right.
    PermissionDenied: -32600, 403, PermissionDenied, None, (403, PermissionDenied);
    /// Too much at once from this caller; a retry later may do.
    ResourceExhausted: -32603, 429, ResourceExhausted, None, (429, ResourceExhausted);
    /// Not at the moment; a retry later may do.
    Unavailable: -32603, 503, Unavailable, None, (503, Unavailable);
    /// No answer within the time allowed.
    DeadlineExceeded: -32603, 504, DeadlineExceeded, None, (504, DeadlineExceeded);
}

/// A gRPC status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are gRPC's own")]
pub enum GrpcStatus {
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl GrpcStatus {
    const ALL: &'static [Self] = &[
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::Unauthenticated,
    ];

    /// The number in `grpc-status`. Spec: §10.6
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The status of that number; `None` for those that no error here has.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|status| status.number() == number)
    }

    /// The name in REST error bodies, such as `NOT_FOUND`. Spec: §11.6
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|status| status.as_str() == name)
    }
}

impl ErrorKind {
    /// The kind of a JSON-RPC code; `Other` for codes of no kind.
    pub fn from_json_rpc_code(code: i64) -> Self {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.json_rpc_code() == code)
            .unwrap_or(Self::Other(code))
    }

    /// The A2A error of that reason.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.reason() == Some(reason))
    }

    /// What an HTTP status alone tells: never an A2A error (ERR-04).
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 => Self::InvalidRequest,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::MethodNotFound,
            405 => Self::MethodNotAllowed,
            408 | 504 => Self::DeadlineExceeded,
            413 => Self::PayloadTooLarge,
            415 => Self::UnsupportedMediaType,
            429 => Self::ResourceExhausted,
            502 | 503 => Self::Unavailable,
            _ => Self::Internal,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::ResourceExhausted | Self::Unavailable | Self::DeadlineExceeded
        )
    }
}

impl A2aError {
    /// An error of a kind with a message for the caller.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            metadata: BTreeMap::new(),
            details: Vec::new(),
        }
    }

    /// "No such task", the same for absent and foreign ones (ERR-08).
    pub fn task_not_found(id: &crate::TaskId) -> Self {
        Self::new(ErrorKind::TaskNotFound, format!("task {id} not found"))
            .with("taskId", id.as_str())
    }

    /// One wrong field.
    pub fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Self {
        let violation = FieldViolation {
            field: field.into(),
            description: description.into(),
        };
        Self::invalid_fields(vec![violation])
    }

    /// Several wrong fields; the message names each.
    pub fn invalid_fields(violations: Vec<FieldViolation>) -> Self {
        let named: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let mut error = Self::new(ErrorKind::InvalidParams, named.join("; "));
        error.details.push(ErrorDetail::BadRequest(violations));
        error
    }

    /// A fault of ours; what it was goes to the log, not to the caller.
    pub fn internal() -> Self {
        Self::new(ErrorKind::Internal, "internal error")
    }

    /// The same error with a fact for programs.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The same error with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail) -> Self {
        self.details.push(detail);
        self
    }

    /// The wrong fields, if it is about fields.
    pub fn violations(&self) -> &[FieldViolation] {
        self.details
            .iter()
            .find_map(|detail| match detail {
                ErrorDetail::BadRequest(violations) => Some(violations.as_slice()),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// How long to wait before a retry, if the peer said.
    pub fn retry_after(&self) -> Option<Duration> {
        self.details.iter().find_map(|detail| match detail {
            ErrorDetail::RetryAfter(delay) => Some(*delay),
            _ => None,
        })
    }

    /// All details as JSON objects tagged by `@type`, `ErrorInfo` first (ERR-01, ERR-02).
    pub fn details_json(&self) -> Vec<Value> {
        let info = self.kind.reason().map(|reason| {
            json!({"@type": ERROR_INFO, "reason": reason, "domain": ERROR_DOMAIN, "metadata": self.metadata})
        });
        info.into_iter()
            .chain(self.details.iter().map(ErrorDetail::to_json))
            .collect()
    }

    /// Takes kind, metadata and details from JSON details, as far as they are known (ERR-04).
    #[must_use]
    pub fn with_details_json(mut self, details: &[Value]) -> Self {
        for detail in details {
            let tag = detail["@type"].as_str().unwrap_or_default();
            match tag.rsplit('/').next().unwrap_or_default() {
                "google.rpc.ErrorInfo" => self.take_error_info(detail),
                "google.rpc.BadRequest" => self.details.push(ErrorDetail::bad_request(detail)),
                "google.rpc.RetryInfo" => self.details.extend(ErrorDetail::retry_info(detail)),
                _ => self.details.push(ErrorDetail::Other(detail.clone())),
            }
        }
        self
    }

    fn take_error_info(&mut self, info: &Value) {
        let ours = info["domain"] == ERROR_DOMAIN;
        let kind = info["reason"].as_str().and_then(ErrorKind::from_reason);
        let Some(kind) = kind.filter(|_| ours) else {
            // Of another domain, or of a newer version: kept whole (ERR-09).
            self.details.push(ErrorDetail::Other(info.clone()));
            return;
        };
        self.kind = kind;
        // Values should be text, but one SDK writes any JSON (TRAP-29).
        for (key, value) in info["metadata"].as_object().into_iter().flatten() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            self.metadata.insert(key.clone(), text);
        }
    }
}

impl ErrorDetail {
    fn to_json(&self) -> Value {
        match self {
            Self::BadRequest(violations) => {
                let list: Vec<Value> = violations
                    .iter()
                    .map(|v| json!({"field": v.field, "description": v.description}))
                    .collect();
                json!({"@type": BAD_REQUEST, "fieldViolations": list})
            }
            Self::RetryAfter(delay) => {
                json!({"@type": RETRY_INFO, "retryDelay": time::seconds_text(*delay)})
            }
            Self::Other(value) => value.clone(),
        }
    }

    fn bad_request(detail: &Value) -> Self {
        let list = detail["fieldViolations"].as_array().into_iter().flatten();
        Self::BadRequest(
            list.map(|v| FieldViolation {
                field: v["field"].as_str().unwrap_or_default().to_owned(),
                description: v["description"].as_str().unwrap_or_default().to_owned(),
            })
            .collect(),
        )
    }

    fn retry_info(detail: &Value) -> Option<Self> {
        let delay = time::read_seconds(detail["retryDelay"].as_str()?)?;
        Some(Self::RetryAfter(delay))
    }
}

impl fmt::Display for FieldViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.description),
            field => write!(f, "{field}: {}", self.description),
        }
    }
}

impl From<crate::json::DecodeError> for A2aError {
    fn from(error: crate::json::DecodeError) -> Self {
        match error.kind {
            crate::json::DecodeErrorKind::Syntax => Self::new(ErrorKind::ParseError, error.message),
            crate::json::DecodeErrorKind::Data => Self::invalid_field(error.path, error.message),
        }
    }
}

impl From<crate::UnsupportedVersion> for A2aError {
    fn from(error: crate::UnsupportedVersion) -> Self {
        let supported: Vec<&str> = error.supported.iter().map(|v| v.as_str()).collect();
        Self::new(
            ErrorKind::VersionNotSupported,
            format!("{error}; supported: {}", supported.join(", ")),
        )
        .with("supportedVersions", supported.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CHECKLIST section 12, BR-125, BR-127.
    #[test]
    fn the_codes_of_the_nine_errors_are_the_specifications() {
        use GrpcStatus::{FailedPrecondition, Internal, InvalidArgument, NotFound};
        let table = [
            (
                ErrorKind::TaskNotFound,
                -32001,
                404,
                NotFound,
                "TASK_NOT_FOUND",
            ),
            (
                ErrorKind::TaskNotCancelable,
                -32002,
                400,
                FailedPrecondition,
                "TASK_NOT_CANCELABLE",
            ),
            (
                ErrorKind::PushNotificationNotSupported,
                -32003,
                400,
                FailedPrecondition,
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
            (
                ErrorKind::UnsupportedOperation,
                -32004,
                400,
                FailedPrecondition,
                "UNSUPPORTED_OPERATION",
            ),
            (
                ErrorKind::ContentTypeNotSupported,
                -32005,
                400,
                InvalidArgument,
                "CONTENT_TYPE_NOT_SUPPORTED",
            ),
            (
                ErrorKind::InvalidAgentResponse,
                -32006,
                500,
                Internal,
                "INVALID_AGENT_RESPONSE",
            ),
            (
                ErrorKind::ExtendedAgentCardNotConfigured,
                -32007,
                400,
                FailedPrecondition,
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            ),
            (
                ErrorKind::ExtensionSupportRequired,
                -32008,
                400,
                FailedPrecondition,
                "EXTENSION_SUPPORT_REQUIRED",
            ),
            (
                ErrorKind::VersionNotSupported,
                -32009,
                400,
                FailedPrecondition,
                "VERSION_NOT_SUPPORTED",
            ),
        ];
        for (kind, rpc, http, grpc, reason) in table {
            assert_eq!(kind.json_rpc_code(), rpc);
            assert_eq!(kind.http_status(StatusProfile::V1_0_1), http, "{kind:?}");
            assert_eq!(kind.grpc_status(StatusProfile::V1_0_1), grpc, "{kind:?}");
            assert_eq!(kind.reason(), Some(reason));
            assert_eq!(ErrorKind::from_json_rpc_code(rpc), kind);
            assert_eq!(ErrorKind::from_reason(reason), Some(kind));
        }
    }

    /// ERR-03: only the cells of the last column differ.
    #[test]
    fn the_older_profile_changes_only_its_own_cells() {
        let http: Vec<_> = ErrorKind::ALL
            .iter()
            .filter(|k| {
                k.http_status(StatusProfile::V1_0_0) != k.http_status(StatusProfile::V1_0_1)
            })
            .collect();
        let grpc: Vec<_> = ErrorKind::ALL
            .iter()
            .filter(|k| {
                k.grpc_status(StatusProfile::V1_0_0) != k.grpc_status(StatusProfile::V1_0_1)
            })
            .collect();
        use ErrorKind::{
            ContentTypeNotSupported, InvalidAgentResponse, PushNotificationNotSupported,
            TaskNotCancelable, UnsupportedOperation, VersionNotSupported,
        };
        assert_eq!(
            http,
            [
                &TaskNotCancelable,
                &ContentTypeNotSupported,
                &InvalidAgentResponse
            ]
        );
        assert_eq!(
            grpc,
            [
                &PushNotificationNotSupported,
                &UnsupportedOperation,
                &VersionNotSupported
            ]
        );
    }

    #[test]
    fn details_survive_the_way_through_json() {
        let error = A2aError::task_not_found(&"t1".into())
            .with_detail(ErrorDetail::BadRequest(vec![FieldViolation {
                field: "id".to_owned(),
                description: "unknown".to_owned(),
            }]))
            .with_detail(ErrorDetail::RetryAfter(Duration::from_millis(1500)));
        let read = A2aError::new(ErrorKind::Other(0), "x").with_details_json(&error.details_json());
        assert_eq!(read.kind, error.kind);
        assert_eq!(read.metadata, error.metadata);
        assert_eq!(read.details, error.details);
    }
}
