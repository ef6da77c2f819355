//! The Agent2Agent (A2A) protocol: what is said, free of how it travels.
//!
//! Types of version 1.0, the eleven operations, the rules for a task's states, the one reducer
//! that folds events into a task, errors with their three codes, and the JSON spellings of the
//! wire. There is no socket, no database and no clock in this crate: time and ids come through
//! [`Clock`] and [`Ids`].

mod artifact;
mod card;
pub mod dialect;
mod env;
mod error;
mod event;
pub mod grpc;
mod id;
pub mod json;
mod message;
mod operation;
mod page;
mod part;
mod push;
mod reduce;
mod security;
mod service;
pub mod signing;
mod task;
mod time;
mod trace;
pub mod v0_3;
pub mod v1;
mod validate;
mod version;
pub mod webhook;
mod wire;

pub use artifact::Artifact;
pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, Binding, SecuritySchemes,
};
pub use env::{Clock, Ids};
pub use error::{
    A2aError, ERROR_DOMAIN, ErrorDetail, ErrorKind, FieldViolation, GrpcStatus, Result,
    StatusProfile,
};
pub use event::{Event, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent};
pub use id::{
    AgentId, ArtifactId, CallerId, ContextId, MessageId, PushConfigId, TaskId, WorkspaceId,
};
pub use message::{Message, Role};
pub use operation::{
    CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, Operation, OperationKind, Outcome,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest,
};
pub use page::ListTasksResponse;
pub use part::{Part, PartContent};
pub use push::{AuthenticationInfo, TaskPushNotificationConfig};
pub use reduce::{ReduceError, limit_history};
pub use security::{
    ApiKeySecurityScheme, AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow,
    DeviceCodeOAuthFlow, HttpAuthSecurityScheme, ImplicitOAuthFlow, MutualTlsSecurityScheme,
    OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, PasswordOAuthFlow,
    SecurityRequirement, SecurityScheme, StringList,
};
pub use service::{AgentService, Call, Caller, EventStream, ForwardedHeaders, Reply};
pub use task::{IllegalTransition, Task, TaskState, TaskStatus};
pub use time::{Timestamp, TimestampError};
pub use trace::{NoTraceparent, SpanRecord, SpanRole, SpanSink, TraceContext};
pub use validate::{Limits, Validate, Violations};
pub use version::{UnsupportedVersion, Version};

/// Free-form JSON object of `metadata` and extension parameters: `google.protobuf.Struct`.
pub type Metadata = serde_json::Map<String, serde_json::Value>;
