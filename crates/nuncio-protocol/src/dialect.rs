//! The seam between bindings and versions: how one version of the protocol is spelt in each binding.
//!
//! A binding frames: envelopes, headers, status codes, server-sent events. A dialect spells: method
//! names, paths, members, enum values. Everything behind a dialect is of the newest version, the
//! types of this crate; what an older version cannot say is lost here and nowhere else.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::v0_3::{self, V0_3};
use crate::v1::V1_0;
use crate::v1::rest::{HttpRequest, Route, RouteError};
use crate::{
    A2aError, AgentCard, Event, Operation, OperationKind, Outcome, StatusProfile, StreamResponse,
    Task, Version, grpc, json,
};

/// The JSON-RPC dialect of a version.
pub fn json_rpc(version: Version) -> &'static dyn JsonRpcDialect {
    match version {
        Version::V0_3 => &V0_3,
        Version::V1_0 => &V1_0,
    }
}

/// The HTTP+JSON dialect of a version.
pub fn rest(version: Version) -> &'static dyn RestDialect {
    match version {
        Version::V0_3 => &V0_3,
        Version::V1_0 => &V1_0,
    }
}

/// The gRPC dialect of a version.
pub fn grpc(version: Version) -> &'static dyn GrpcDialect {
    match version {
        Version::V0_3 => &grpc::V0_3,
        Version::V1_0 => &grpc::V1,
    }
}

/// The text of a card that readers of each of these versions understand.
///
/// Signatures cover the members of 1.0 and stay where those are; 0.3 members beside them are not
/// covered, and readers that verify leave them out.
pub fn encode_card(card: &AgentCard, versions: &[Version]) -> String {
    match versions {
        [Version::V0_3] => v0_3::card::encode(card).to_string(),
        [Version::V1_0] => json::encode(card),
        _ => {
            let mut union = v0_3::card::union(card);
            if !card.signatures.is_empty() {
                union["signatures"] = serde_json::json!(card.signatures);
            }
            union.to_string()
        }
    }
}

/// What all bindings of one version have in common.
pub trait Dialect: Send + Sync + fmt::Debug {
    /// The version.
    fn version(&self) -> Version;

    /// The header, and the metadata key of gRPC, that names extensions; in lower case.
    fn extensions_header(&self) -> &'static str;

    /// What a server does instead when an operation fails, if this version wants it otherwise: the
    /// operation that answers for it.
    fn instead(&self, asked: &Operation, error: &A2aError) -> Option<Operation>;

    /// What a webhook is told of an event; `task` is the task with this event, and maybe later ones.
    ///
    /// The same whatever the binding the webhook was created over (PUSH-01, V03-PUSH-01).
    fn encode_notification(&self, event: &Event, task: &Task) -> Notification;

    /// Whether a notification tells the whole task: then, of several events that wait, only the
    /// newest need be told.
    fn notifies_of_whole_tasks(&self) -> bool;

    /// Whether the last item of a stream says that it is the last.
    fn marks_last_items(&self) -> bool;
}

/// The content of a call to a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Which kind of stream an item belongs to; an older version marks its last item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// What comes of a message: closes when the task has ended or waits for input.
    Send,
    /// A subscription: closes when the task has ended.
    Subscription,
}

impl StreamKind {
    /// The kind of the stream that an operation opens.
    pub fn of(kind: OperationKind) -> Self {
        match kind {
            OperationKind::SubscribeToTask => Self::Subscription,
            _ => Self::Send,
        }
    }
}

/// One version in the JSON-RPC binding; texts are `params`, `result` and `error` members.
///
/// # Errors
/// Servers get [`crate::ErrorKind::InvalidParams`] naming the member from what they read; clients
/// get [`crate::ErrorKind::InvalidAgentResponse`] from what they read, and
/// [`crate::ErrorKind::UnsupportedOperation`] for what this version cannot say.
pub trait JsonRpcDialect: Dialect {
    /// The operation that a method asks for; `None` if this version has no such method.
    fn kind(&self, method: &str) -> Option<OperationKind>;

    /// The method of an operation; `None` if this version has none.
    fn method(&self, kind: OperationKind) -> Option<&'static str>;

    /// Reads `params`, a JSON object whose depth and keys have been checked.
    fn decode_params(&self, kind: OperationKind, params: &str) -> Result<Operation, A2aError>;

    /// Writes `params`.
    fn encode_params(&self, operation: &Operation) -> Result<String, A2aError>;

    /// Writes `result`; `asked` is the operation of the method, which need not be the one that was run.
    fn encode_result(&self, asked: OperationKind, outcome: &Outcome) -> Result<String, A2aError>;

    /// Reads `result`, checked like params.
    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError>;

    /// Writes an item of a stream as `result`.
    fn encode_event<'e>(&self, event: &'e Event, stream: StreamKind) -> Cow<'e, str>;

    /// Reads an item of a stream; `None` for a kind of item that a newer peer may send (JSON-07).
    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError>;

    /// Writes `error`.
    fn encode_error(&self, error: &A2aError) -> Value;

    /// Whether an error of a streaming method is the one event of its stream, and not a plain reply.
    fn streams_errors(&self) -> bool;
}

/// One version in the HTTP+JSON binding; texts are whole bodies and the data of events.
///
/// # Errors
/// As [`JsonRpcDialect`].
pub trait RestDialect: Dialect {
    /// Finds the operation for an HTTP method and a path below the interface's address.
    ///
    /// `path` begins with `/` and is still percent-encoded.
    fn route(&self, method: &str, path: &str) -> Result<Route, RouteError>;

    /// Reads the operation of a route from query and body.
    fn decode_request(
        &self,
        route: &Route,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Operation, A2aError>;

    /// Writes an operation as an HTTP request.
    fn encode_request(&self, operation: &Operation) -> Result<HttpRequest, A2aError>;

    /// Writes a result.
    fn encode_result(&self, asked: OperationKind, outcome: &Outcome) -> Result<String, A2aError>;

    /// Reads a result.
    fn decode_result(&self, kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError>;

    /// Writes an item of a stream.
    fn encode_event<'e>(&self, event: &'e Event, stream: StreamKind) -> Cow<'e, str>;

    /// Reads an item of a stream; `None` as in [`JsonRpcDialect::decode_event`].
    fn decode_event(&self, data: &[u8]) -> Result<Option<StreamResponse>, A2aError>;

    /// Writes an error body.
    fn encode_error(&self, error: &A2aError, profile: StatusProfile) -> String;

    /// Reads an error body of any shape met in the wild, under an HTTP status (ERR-04, ERR-05).
    ///
    /// Never fails: what tells nothing leaves what the status tells.
    fn decode_error(&self, status: u16, body: &[u8]) -> A2aError;

    /// Whether bodies may be of type `application/a2a+json`; else they are `application/json`.
    fn has_own_media_type(&self) -> bool;
}

/// One version in the gRPC binding; bytes are encoded protobuf messages.
///
/// # Errors
/// As [`JsonRpcDialect`]; bytes that are no such message are [`crate::ErrorKind::InvalidParams`]
/// to a server.
pub trait GrpcDialect: Dialect {
    /// The service's full name, such as `lf.a2a.v1.A2AService`.
    fn service(&self) -> &'static str;

    /// Whether requests can name a tenant.
    fn has_tenants(&self) -> bool;

    /// The operation that a method of the service asks for.
    fn kind(&self, method: &str) -> Option<OperationKind>;

    /// The method of an operation; `None` if this version has none.
    fn method(&self, kind: OperationKind) -> Option<&'static str>;

    /// Reads a request message.
    fn decode_request(&self, kind: OperationKind, message: &[u8]) -> Result<Operation, A2aError>;

    /// Writes a request message.
    fn encode_request(&self, operation: &Operation) -> Result<Vec<u8>, A2aError>;

    /// Writes a response message.
    fn encode_result(&self, asked: OperationKind, outcome: &Outcome) -> Result<Vec<u8>, A2aError>;

    /// Reads a response message.
    fn decode_result(&self, kind: OperationKind, message: &[u8]) -> Result<Outcome, A2aError>;

    /// Writes an item of a stream.
    fn encode_event(&self, event: &Event, stream: StreamKind) -> Result<Vec<u8>, A2aError>;

    /// Reads an item of a stream; `None` as in [`JsonRpcDialect::decode_event`].
    fn decode_event(&self, message: &[u8]) -> Result<Option<StreamResponse>, A2aError>;
}
