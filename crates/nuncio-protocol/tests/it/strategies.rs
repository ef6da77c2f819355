//! Any value of any message, as far as it has one spelling on the wire.
//!
//! Optional texts are never `Some("")`, which the wire cannot tell from an absent one.

use nuncio_protocol::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, ApiKeySecurityScheme, Artifact, AuthenticationInfo,
    AuthorizationCodeOAuthFlow, CancelTaskRequest, ClientCredentialsOAuthFlow,
    DeleteTaskPushNotificationConfigRequest, DeviceCodeOAuthFlow, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, HttpAuthSecurityScheme,
    ImplicitOAuthFlow, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Message,
    Metadata, MutualTlsSecurityScheme, OAuth2SecurityScheme, OAuthFlows,
    OpenIdConnectSecurityScheme, Operation, Part, PartContent, PasswordOAuthFlow, Role,
    SecurityRequirement, SecurityScheme, SecuritySchemes, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, StringList, SubscribeToTaskRequest,
    Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskState, TaskStatus,
    TaskStatusUpdateEvent, Timestamp,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::Value;

/// Any value of a message, from a strategy for each of its fields.
macro_rules! message {
    ($type:ty { $($field:ident: $strategy:expr),+ $(,)? }) => {
        ($($strategy,)+).prop_map(|($($field,)+)| {
            let mut message = <$type>::default();
            $( message.$field = $field; )+
            message
        })
        // Else the stack of a debug build does not hold the larger ones.
        .boxed()
    };
}

/// Text that is not empty, often with what paths, queries and JSON must escape.
pub(crate) fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9-]{1,8}",
        2 => "(?s).{1,6}",
        1 => select(vec![
            "/", ":", "%", "%2F", "a/b", "a:cancel", "a:b:subscribe", "a%3Acancel", "..", ".",
            " ", "+", "?", "#", "&=;", "ü", "東京", "🗼", "\u{0}", "\n", "\"", "\\", "\u{7f}",
            "\u{feff}", "e\u{301}", "null", "tasks", "v1", "message:send",
        ]).prop_map(str::to_owned),
    ]
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 9 => word()]
}

fn some<T: From<String> + std::fmt::Debug>() -> impl Strategy<Value = Option<T>> {
    option::of(word().prop_map(T::from))
}

fn id<T: From<String> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    text().prop_map(T::from)
}

fn path_id<T: From<String> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    word().prop_map(T::from)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

/// A tenant that a path can begin with.
fn tenant() -> impl Strategy<Value = Option<String>> {
    let reserved = nuncio_protocol::v1::rest::RESERVED_TENANTS;
    option::of(word().prop_filter("reserved", move |name| !reserved.contains(&name.as_str())))
}

/// Any JSON, with nested nulls, and numbers that are not all doubles (BR-134, BR-141).
pub(crate) fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        any::<f64>()
            .prop_filter("not in JSON", |number| number.is_finite())
            .prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(text(), inner, 0..3).prop_map(|map| Value::from(Metadata::from_iter(map))),
        ]
    })
    .boxed()
}

fn object() -> impl Strategy<Value = Metadata> {
    btree_map(text(), json(), 0..3).prop_map(Metadata::from_iter)
}

fn metadata() -> impl Strategy<Value = Option<Metadata>> {
    option::weighted(0.3, object())
}

pub(crate) fn timestamp() -> impl Strategy<Value = Timestamp> {
    let date = (1u16..9999, 1u8..=12, 1u8..=28);
    let time = (0u8..24, 0u8..60, 0u8..60);
    let nanos = prop_oneof![
        Just(0u32),
        (0u32..1000).prop_map(|n| n * 1_000_000),
        0u32..1_000_000_000
    ];
    (date, time, nanos).prop_map(|((y, m, d), (h, min, s), n)| {
        let text = format!("{y:04}-{m:02}-{d:02}T{h:02}:{min:02}:{s:02}.{n:09}Z");
        Timestamp::parse(&text).unwrap()
    })
}

pub(crate) fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(PartContent::Text),
        vec(any::<u8>(), 0..12).prop_map(|bytes| PartContent::Raw(bytes.into())),
        text().prop_map(PartContent::Url),
        json().prop_map(PartContent::Data),
    ];
    (content, metadata(), some(), some()).prop_map(|(content, metadata, filename, media_type)| {
        let mut part = Part::new(content);
        part.metadata = metadata;
        part.filename = filename;
        part.media_type = media_type;
        part
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    message!(Message {
        message_id: id(),
        context_id: some(),
        task_id: some(),
        role: select(Role::ALL),
        parts: vec(part(), 0..3),
        metadata: metadata(),
        extensions: texts(),
        reference_task_ids: vec(id(), 0..3),
    })
}

pub(crate) fn artifact() -> impl Strategy<Value = Artifact> {
    message!(Artifact {
        artifact_id: id(),
        name: some(),
        description: some(),
        parts: vec(part(), 0..3),
        metadata: metadata(),
        extensions: texts(),
    })
}

pub(crate) fn status() -> impl Strategy<Value = TaskStatus> {
    message!(TaskStatus {
        state: select(TaskState::ALL),
        message: option::weighted(0.3, message()),
        timestamp: option::of(timestamp()),
    })
}

pub(crate) fn task() -> impl Strategy<Value = Task> {
    message!(Task {
        id: id(),
        context_id: some(),
        status: status(),
        artifacts: vec(artifact(), 0..3),
        history: vec(message(), 0..3),
        metadata: metadata(),
    })
}

pub(crate) fn status_update() -> impl Strategy<Value = TaskStatusUpdateEvent> {
    message!(TaskStatusUpdateEvent {
        task_id: id(),
        context_id: id(),
        status: status(),
        metadata: metadata(),
    })
}

pub(crate) fn artifact_update() -> impl Strategy<Value = TaskArtifactUpdateEvent> {
    message!(TaskArtifactUpdateEvent {
        task_id: id(),
        context_id: id(),
        artifact: artifact(),
        append: any::<bool>(),
        last_chunk: any::<bool>(),
        metadata: metadata(),
    })
}

pub(crate) fn stream_response() -> impl Strategy<Value = StreamResponse> {
    prop_oneof![
        task().prop_map(StreamResponse::Task),
        message().prop_map(StreamResponse::Message),
        status_update().prop_map(StreamResponse::StatusUpdate),
        artifact_update().prop_map(StreamResponse::ArtifactUpdate),
    ]
}

pub(crate) fn send_response() -> impl Strategy<Value = SendMessageResponse> {
    prop_oneof![
        task().prop_map(SendMessageResponse::Task),
        message().prop_map(SendMessageResponse::Message),
    ]
}

pub(crate) fn list_response() -> impl Strategy<Value = ListTasksResponse> {
    message!(ListTasksResponse {
        tasks: vec(task(), 0..3),
        next_page_token: text(),
        page_size: any::<i32>(),
        total_size: any::<i32>(),
    })
}

pub(crate) fn push_config() -> impl Strategy<Value = TaskPushNotificationConfig> {
    message!(TaskPushNotificationConfig {
        tenant: tenant(),
        id: some(),
        task_id: path_id().prop_map(Some),
        url: text(),
        token: some(),
        authentication: option::of(message!(AuthenticationInfo {
            scheme: text(),
            credentials: some(),
        })),
    })
}

pub(crate) fn push_configs() -> impl Strategy<Value = ListTaskPushNotificationConfigsResponse> {
    message!(ListTaskPushNotificationConfigsResponse {
        configs: vec(push_config(), 0..3),
        next_page_token: some(),
    })
}

fn send() -> impl Strategy<Value = SendMessageRequest> {
    let configuration = message!(SendMessageConfiguration {
        accepted_output_modes: texts(),
        task_push_notification_config: option::of(push_config()),
        history_length: option::of(any::<i32>()),
        return_immediately: any::<bool>(),
    });
    message!(SendMessageRequest {
        tenant: tenant(),
        message: option::weighted(0.9, message()),
        configuration: option::of(configuration),
        metadata: metadata(),
    })
}

fn list() -> impl Strategy<Value = ListTasksRequest> {
    let states: Vec<TaskState> = TaskState::ALL[1..].to_vec();
    message!(ListTasksRequest {
        tenant: tenant(),
        context_id: some(),
        status: option::of(select(states)),
        page_size: option::of(any::<i32>()),
        page_token: some(),
        history_length: option::of(any::<i32>()),
        status_timestamp_after: option::of(timestamp()),
        include_artifacts: option::of(any::<bool>()),
    })
}

/// Any operation whose ids can stand in a path.
pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        send().prop_map(Operation::SendMessage),
        send().prop_map(Operation::SendStreamingMessage),
        message!(GetTaskRequest {
            tenant: tenant(),
            id: path_id(),
            history_length: option::of(any::<i32>()),
        })
        .prop_map(Operation::GetTask),
        list().prop_map(Operation::ListTasks),
        message!(CancelTaskRequest {
            tenant: tenant(),
            id: path_id(),
            metadata: metadata(),
        })
        .prop_map(Operation::CancelTask),
        message!(SubscribeToTaskRequest {
            tenant: tenant(),
            id: path_id(),
        })
        .prop_map(Operation::SubscribeToTask),
        push_config().prop_map(Operation::CreateTaskPushNotificationConfig),
        message!(GetTaskPushNotificationConfigRequest {
            tenant: tenant(),
            task_id: path_id(),
            id: path_id(),
        })
        .prop_map(Operation::GetTaskPushNotificationConfig),
        message!(ListTaskPushNotificationConfigsRequest {
            tenant: tenant(),
            task_id: path_id(),
            page_size: prop_oneof![Just(0), any::<i32>()],
            page_token: some(),
        })
        .prop_map(Operation::ListTaskPushNotificationConfigs),
        message!(DeleteTaskPushNotificationConfigRequest {
            tenant: tenant(),
            task_id: path_id(),
            id: path_id(),
        })
        .prop_map(Operation::DeleteTaskPushNotificationConfig),
        tenant().prop_map(|tenant| {
            let mut request = GetExtendedAgentCardRequest::default();
            request.tenant = tenant;
            Operation::GetExtendedAgentCard(request)
        }),
    ]
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    let scopes = message!(StringList { list: texts() });
    vec(
        message!(SecurityRequirement {
            schemes: btree_map(text(), scopes, 0..3),
        }),
        0..3,
    )
}

fn flows() -> impl Strategy<Value = OAuthFlows> {
    let scopes = || btree_map(text(), text(), 0..3);
    prop_oneof![
        message!(AuthorizationCodeOAuthFlow {
            authorization_url: text(),
            token_url: text(),
            refresh_url: some(),
            scopes: scopes(),
            pkce_required: any::<bool>(),
        })
        .prop_map(OAuthFlows::AuthorizationCode),
        message!(ClientCredentialsOAuthFlow {
            token_url: text(),
            refresh_url: some(),
            scopes: scopes(),
        })
        .prop_map(OAuthFlows::ClientCredentials),
        message!(ImplicitOAuthFlow {
            authorization_url: some(),
            refresh_url: some(),
            scopes: scopes(),
        })
        .prop_map(OAuthFlows::Implicit),
        message!(PasswordOAuthFlow {
            token_url: some(),
            refresh_url: some(),
            scopes: scopes(),
        })
        .prop_map(OAuthFlows::Password),
        message!(DeviceCodeOAuthFlow {
            device_authorization_url: text(),
            token_url: text(),
            refresh_url: some(),
            scopes: scopes(),
        })
        .prop_map(OAuthFlows::DeviceCode),
    ]
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    prop_oneof![
        message!(ApiKeySecurityScheme {
            description: some(),
            location: text(),
            name: text(),
        })
        .prop_map(SecurityScheme::ApiKey),
        message!(HttpAuthSecurityScheme {
            description: some(),
            scheme: text(),
            bearer_format: some(),
        })
        .prop_map(SecurityScheme::HttpAuth),
        message!(OAuth2SecurityScheme {
            description: some(),
            flows: option::of(flows()),
            oauth2_metadata_url: some(),
        })
        .prop_map(SecurityScheme::OAuth2),
        message!(OpenIdConnectSecurityScheme {
            description: some(),
            open_id_connect_url: text(),
        })
        .prop_map(SecurityScheme::OpenIdConnect),
        some().prop_map(|description| {
            let mut scheme = MutualTlsSecurityScheme::default();
            scheme.description = description;
            SecurityScheme::MutualTls(scheme)
        }),
    ]
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    message!(AgentSkill {
        id: text(),
        name: text(),
        description: text(),
        tags: texts(),
        examples: texts(),
        input_modes: texts(),
        output_modes: texts(),
        security_requirements: requirements(),
    })
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let extension = message!(AgentExtension {
        uri: text(),
        description: some(),
        required: any::<bool>(),
        params: metadata(),
    });
    message!(AgentCapabilities {
        streaming: option::of(any::<bool>()),
        push_notifications: option::of(any::<bool>()),
        extensions: vec(extension, 0..3),
        extended_agent_card: option::of(any::<bool>()),
    })
}

pub(crate) fn card() -> BoxedStrategy<AgentCard> {
    let interface = message!(AgentInterface {
        url: text(),
        protocol_binding: text(),
        tenant: some(),
        protocol_version: text(),
    });
    let provider = message!(AgentProvider {
        url: text(),
        organization: text(),
    });
    let signature = message!(AgentCardSignature {
        protected: text(),
        signature: text(),
        header: metadata(),
    });
    let head = message!(AgentCard {
        name: text(),
        description: text(),
        supported_interfaces: vec(interface, 0..3),
        provider: option::of(provider),
        version: text(),
        documentation_url: option::of(text()),
        capabilities: capabilities(),
    });
    let tail = message!(AgentCard {
        security_schemes: btree_map(text(), scheme(), 0..3).prop_map(SecuritySchemes),
        security_requirements: requirements(),
        default_input_modes: texts(),
        default_output_modes: texts(),
        skills: vec(skill(), 0..3),
        signatures: vec(signature, 0..3),
        icon_url: option::of(text()),
    });
    (head, tail)
        .prop_map(|(mut card, tail)| {
            card.security_schemes = tail.security_schemes;
            card.security_requirements = tail.security_requirements;
            card.default_input_modes = tail.default_input_modes;
            card.default_output_modes = tail.default_output_modes;
            card.skills = tail.skills;
            card.signatures = tail.signatures;
            card.icon_url = tail.icon_url;
            card
        })
        .boxed()
}
