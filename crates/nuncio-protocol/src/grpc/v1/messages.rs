//! The messages of `lf.a2a.v1`, field by field.

use std::collections::BTreeMap;

use super::pb;
use super::pb::o_auth_flows::Flow;
use super::pb::part::Content;
use super::pb::security_scheme::Scheme;
use super::pb::{send_message_response, stream_response};
use crate::grpc::convert::{Proto, message, oneof, required, within};
use crate::json::DecodeError;
use crate::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, ApiKeySecurityScheme, Artifact, AuthenticationInfo,
    AuthorizationCodeOAuthFlow, CancelTaskRequest, ClientCredentialsOAuthFlow,
    DeleteTaskPushNotificationConfigRequest, DeviceCodeOAuthFlow, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, HttpAuthSecurityScheme,
    ImplicitOAuthFlow, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Message,
    MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, Part,
    PartContent, PasswordOAuthFlow, SecurityRequirement, SecurityScheme, SecuritySchemes,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse, StringList,
    SubscribeToTaskRequest, Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskStatus,
    TaskStatusUpdateEvent,
};

message!(
    SendMessageRequest = pb::SendMessageRequest {
        tenant,
        message,
        configuration,
        metadata
    }
);
message!(
    SendMessageConfiguration = pb::SendMessageConfiguration {
        accepted_output_modes,
        task_push_notification_config,
        history_length,
        return_immediately,
    }
);
message!(
    GetTaskRequest = pb::GetTaskRequest {
        tenant,
        id,
        history_length
    }
);
message!(
    ListTasksRequest = pb::ListTasksRequest {
        tenant,
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        status_timestamp_after,
        include_artifacts,
    }
);
message!(
    ListTasksResponse = pb::ListTasksResponse {
        tasks,
        next_page_token,
        page_size,
        total_size,
    }
);
message!(
    CancelTaskRequest = pb::CancelTaskRequest {
        tenant,
        id,
        metadata
    }
);
message!(SubscribeToTaskRequest = pb::SubscribeToTaskRequest { tenant, id });
message!(
    GetTaskPushNotificationConfigRequest = pb::GetTaskPushNotificationConfigRequest {
        tenant,
        task_id,
        id,
    }
);
message!(
    DeleteTaskPushNotificationConfigRequest = pb::DeleteTaskPushNotificationConfigRequest {
        tenant,
        task_id,
        id,
    }
);
message!(
    ListTaskPushNotificationConfigsRequest = pb::ListTaskPushNotificationConfigsRequest {
        tenant,
        task_id,
        page_size,
        page_token,
    }
);
message!(
    ListTaskPushNotificationConfigsResponse = pb::ListTaskPushNotificationConfigsResponse {
        configs,
        next_page_token,
    }
);
message!(GetExtendedAgentCardRequest = pb::GetExtendedAgentCardRequest { tenant });
message!(
    TaskPushNotificationConfig = pb::TaskPushNotificationConfig {
        tenant,
        id,
        task_id,
        url,
        token,
        authentication,
    }
);
message!(
    AuthenticationInfo = pb::AuthenticationInfo {
        scheme,
        credentials
    }
);

type Sent = send_message_response::Payload;
oneof!(SendMessageResponse = pb::SendMessageResponse.payload: Sent {
    Task = Task "task",
    Message = Message "message",
});

type Item = stream_response::Payload;
oneof!(StreamResponse = pb::StreamResponse.payload: Item {
    Task = Task "task",
    Message = Message "message",
    StatusUpdate = StatusUpdate "statusUpdate",
    ArtifactUpdate = ArtifactUpdate "artifactUpdate",
});

message!(
    Task = pb::Task {
        id,
        context_id,
        status,
        artifacts,
        history,
        metadata
    }
);
message!(
    TaskStatus = pb::TaskStatus {
        state,
        message,
        timestamp
    }
);
message!(
    Message = pb::Message {
        message_id,
        context_id,
        task_id,
        role,
        parts,
        metadata,
        extensions,
        reference_task_ids,
    }
);
message!(
    Artifact = pb::Artifact {
        artifact_id,
        name,
        description,
        parts,
        metadata,
        extensions,
    }
);
message!(
    TaskStatusUpdateEvent = pb::TaskStatusUpdateEvent {
        task_id,
        context_id,
        status,
        metadata,
    }
);
message!(
    TaskArtifactUpdateEvent = pb::TaskArtifactUpdateEvent {
        task_id,
        context_id,
        artifact,
        append,
        last_chunk,
        metadata,
    }
);
required!(
    TaskStatus = pb::TaskStatus,
    Artifact = pb::Artifact,
    AgentCapabilities = pb::AgentCapabilities,
);

impl Proto<pb::Part> for Part {
    fn to_proto(&self) -> pb::Part {
        let content = match &self.content {
            PartContent::Text(text) => Content::Text(text.clone()),
            PartContent::Raw(bytes) => Content::Raw(bytes.clone()),
            PartContent::Url(url) => Content::Url(url.clone()),
            PartContent::Data(value) => Content::Data(value.to_proto()),
        };
        pb::Part {
            content: Some(content),
            metadata: self.metadata.to_proto(),
            filename: self.filename.to_proto(),
            media_type: self.media_type.to_proto(),
        }
    }

    fn from_proto(proto: pb::Part) -> Result<Self, DecodeError> {
        let content = match proto.content {
            Some(Content::Text(text)) => PartContent::Text(text),
            Some(Content::Raw(bytes)) => PartContent::Raw(bytes),
            Some(Content::Url(url)) => PartContent::Url(url),
            Some(Content::Data(value)) => {
                PartContent::Data(Proto::from_proto(value).map_err(|error| within("data", error))?)
            }
            None => {
                return Err(DecodeError::data(
                    "",
                    "expected one of text, raw, url, data",
                ));
            }
        };
        let metadata = Proto::from_proto(proto.metadata);
        Ok(Self {
            content,
            metadata: metadata.map_err(|error| within("metadata", error))?,
            filename: Proto::from_proto(proto.filename)?,
            media_type: Proto::from_proto(proto.media_type)?,
        })
    }
}

message!(
    AgentCard = pb::AgentCard {
        name,
        description,
        supported_interfaces,
        provider,
        version,
        documentation_url,
        capabilities,
        security_schemes,
        security_requirements,
        default_input_modes,
        default_output_modes,
        skills,
        signatures,
        icon_url,
    }
);
message!(
    AgentInterface = pb::AgentInterface {
        url,
        protocol_binding,
        tenant,
        protocol_version,
    }
);
message!(AgentProvider = pb::AgentProvider { url, organization });
message!(
    AgentCapabilities = pb::AgentCapabilities {
        streaming,
        push_notifications,
        extensions,
        extended_agent_card,
    }
);
message!(
    AgentExtension = pb::AgentExtension {
        uri,
        description,
        required,
        params
    }
);
message!(
    AgentSkill = pb::AgentSkill {
        id,
        name,
        description,
        tags,
        examples,
        input_modes,
        output_modes,
        security_requirements,
    }
);
message!(
    AgentCardSignature = pb::AgentCardSignature {
        protected,
        signature,
        header
    }
);

impl Proto<BTreeMap<String, pb::SecurityScheme>> for SecuritySchemes {
    fn to_proto(&self) -> BTreeMap<String, pb::SecurityScheme> {
        self.0.to_proto()
    }

    /// Entries of unknown kind are skipped, as in JSON (CARD-09).
    fn from_proto(proto: BTreeMap<String, pb::SecurityScheme>) -> Result<Self, DecodeError> {
        let known = proto
            .into_iter()
            .filter_map(|(name, scheme)| Some((name, SecurityScheme::from_proto(scheme).ok()?)));
        Ok(Self(known.collect()))
    }
}

oneof!(SecurityScheme = pb::SecurityScheme.scheme: Scheme {
    ApiKey = ApiKeySecurityScheme "apiKeySecurityScheme",
    HttpAuth = HttpAuthSecurityScheme "httpAuthSecurityScheme",
    OAuth2 = Oauth2SecurityScheme "oauth2SecurityScheme",
    OpenIdConnect = OpenIdConnectSecurityScheme "openIdConnectSecurityScheme",
    MutualTls = MtlsSecurityScheme "mtlsSecurityScheme",
});
message!(SecurityRequirement = pb::SecurityRequirement { schemes });
message!(StringList = pb::StringList { list });
message!(
    ApiKeySecurityScheme = pb::ApiKeySecurityScheme {
        description,
        location,
        name
    }
);
message!(
    HttpAuthSecurityScheme = pb::HttpAuthSecurityScheme {
        description,
        scheme,
        bearer_format,
    }
);
message!(
    OAuth2SecurityScheme = pb::OAuth2SecurityScheme {
        description,
        flows,
        oauth2_metadata_url,
    }
);
message!(
    OpenIdConnectSecurityScheme = pb::OpenIdConnectSecurityScheme {
        description,
        open_id_connect_url,
    }
);
message!(MutualTlsSecurityScheme = pb::MutualTlsSecurityScheme { description });
oneof!(OAuthFlows = pb::OAuthFlows.flow: Flow {
    AuthorizationCode = AuthorizationCode "authorizationCode",
    ClientCredentials = ClientCredentials "clientCredentials",
    Implicit = Implicit "implicit",
    Password = Password "password",
    DeviceCode = DeviceCode "deviceCode",
});
message!(
    AuthorizationCodeOAuthFlow = pb::AuthorizationCodeOAuthFlow {
        authorization_url,
        token_url,
        refresh_url,
        scopes,
        pkce_required,
    }
);
message!(
    ClientCredentialsOAuthFlow = pb::ClientCredentialsOAuthFlow {
        token_url,
        refresh_url,
        scopes,
    }
);
message!(
    ImplicitOAuthFlow = pb::ImplicitOAuthFlow {
        authorization_url,
        refresh_url,
        scopes
    }
);
message!(
    PasswordOAuthFlow = pb::PasswordOAuthFlow {
        token_url,
        refresh_url,
        scopes
    }
);
message!(
    DeviceCodeOAuthFlow = pb::DeviceCodeOAuthFlow {
        device_authorization_url,
        token_url,
        refresh_url,
        scopes,
    }
);
