//! The eleven operations: what is asked and what is answered. Spec: §3.1

use crate::wire::{wire_message, wire_oneof};
use crate::{
    AgentCard, ContextId, ListTasksResponse, Message, Metadata, PushConfigId, Task, TaskId,
    TaskPushNotificationConfig, TaskState, Timestamp,
};

wire_message! {
    /// Sends a message, plain or streaming. Spec: §3.2.1
    pub struct SendMessageRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// What the user says; always required.
        message: Option<Message> => optional "message",
        /// How to answer.
        configuration: Option<SendMessageConfiguration> => optional "configuration",
        /// Free-form additions; reach the agent unchanged.
        metadata: Option<Metadata> => optional "metadata",
    }
}

impl SendMessageRequest {
    /// A request with nothing but its message.
    pub fn new(message: Message) -> Self {
        Self {
            message: Some(message),
            ..Self::default()
        }
    }

    /// Whether the answer is wanted at once rather than when the task ends or pauses.
    pub fn returns_immediately(&self) -> bool {
        self.configuration
            .as_ref()
            .is_some_and(|c| c.return_immediately)
    }

    /// How much history the answer is to carry.
    pub fn history_length(&self) -> Option<i32> {
        self.configuration.as_ref().and_then(|c| c.history_length)
    }
}

wire_message! {
    /// How to answer a message. Spec: §3.2.2
    pub struct SendMessageConfiguration {
        /// Media types the client can take; empty means no wish.
        accepted_output_modes: Vec<String> => list "acceptedOutputModes",
        /// A webhook to register on the task before work starts.
        task_push_notification_config: Option<TaskPushNotificationConfig> => optional "taskPushNotificationConfig",
        /// How many messages of history: `None` all, 0 none.
        history_length: Option<i32> => int "historyLength",
        /// Answer as soon as the task is stored.
        return_immediately: bool => flag "returnImmediately",
    }
}

wire_oneof! {
    /// The answer to a message. Spec: §3.2.3
    pub enum SendMessageResponse {
        /// The message became, or continued, a task.
        Task(Task) => "task",
        /// The agent answered at once, without a task.
        Message(Message) => "message",
    }
}

wire_message! {
    /// Reads one task. Spec: §3.1.3
    pub struct GetTaskRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        id: TaskId => required "id",
        /// How many messages of history: `None` all, 0 none.
        history_length: Option<i32> => int "historyLength",
    }
}

impl GetTaskRequest {
    /// Asks for a task with all its history.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

wire_message! {
    /// Lists the caller's tasks, newest status first. Spec: §3.1.4
    pub struct ListTasksRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// Only tasks of this conversation.
        context_id: Option<ContextId> => text "contextId",
        /// Only tasks in exactly this state.
        status: Option<TaskState> => choice "status",
        /// 1 to 100, 50 if absent.
        page_size: Option<i32> => int "pageSize",
        /// Where to go on; opaque, belongs to these filters and this caller.
        page_token: Option<String> => optional "pageToken",
        /// How many messages of history per task: 0 none.
        history_length: Option<i32> => int "historyLength",
        /// Only tasks whose status is at least this new.
        status_timestamp_after: Option<Timestamp> => optional "statusTimestampAfter",
        /// Whether artifacts come along; no if absent.
        include_artifacts: Option<bool> => optional "includeArtifacts",
    }
}

wire_message! {
    /// Cancels a task. Spec: §3.1.5
    pub struct CancelTaskRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        id: TaskId => required "id",
        /// Free-form additions; reach the agent.
        metadata: Option<Metadata> => optional "metadata",
    }
}

impl CancelTaskRequest {
    /// Asks to cancel a task.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

wire_message! {
    /// Follows a task until it ends. Spec: §3.1.6
    pub struct SubscribeToTaskRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        id: TaskId => required "id",
    }
}

impl SubscribeToTaskRequest {
    /// Asks to follow a task.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

wire_message! {
    /// Reads one webhook of a task. Spec: §3.1.8
    pub struct GetTaskPushNotificationConfigRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        task_id: TaskId => required "taskId",
        /// The webhook.
        id: PushConfigId => required "id",
    }
}

wire_message! {
    /// Lists the webhooks of a task. Spec: §3.1.9
    pub struct ListTaskPushNotificationConfigsRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        task_id: TaskId => required "taskId",
        /// How many at most; 0 means all.
        page_size: i32 => count "pageSize",
        /// Where to go on.
        page_token: Option<String> => text "pageToken",
    }
}

wire_message! {
    /// The webhooks of a task. Spec: §3.1.9
    pub struct ListTaskPushNotificationConfigsResponse {
        /// The webhooks, secrets left out.
        configs: Vec<TaskPushNotificationConfig> => required "configs",
        /// Where to go on; empty at the end.
        next_page_token: Option<String> => text "nextPageToken",
    }
}

wire_message! {
    /// Deletes a webhook. Spec: §3.1.10
    pub struct DeleteTaskPushNotificationConfigRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// The task.
        task_id: TaskId => required "taskId",
        /// The webhook.
        id: PushConfigId => required "id",
    }
}

wire_message! {
    /// Asks for the card that authenticated callers see. Spec: §3.1.11
    pub struct GetExtendedAgentCardRequest {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
    }
}

macro_rules! operations {
    ($( $(#[$doc:meta])* $name:ident($request:ty), )*) => {
        /// What is asked of an agent. Spec: §3.1
        #[derive(Clone, Debug, PartialEq)]
        pub enum Operation {
            $( $(#[$doc])* $name($request), )*
        }

        /// Which operation, without its request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum OperationKind {
            $( $(#[$doc])* $name, )*
        }

        impl OperationKind {
            /// All eleven.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in the specification, which is the JSON-RPC method of 1.0. Spec: §5.3
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            /// The operation of that name, in exactly its spelling.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( stringify!($name) => Some(Self::$name), )* _ => None }
            }
        }

        impl Operation {
            /// Which one it is.
            pub fn kind(&self) -> OperationKind {
                match self { $( Self::$name(_) => OperationKind::$name, )* }
            }

            /// The tenant named in the request.
            pub fn tenant(&self) -> Option<&str> {
                match self { $( Self::$name(request) => request.tenant.as_deref(), )* }
            }

            /// Sets or clears the tenant.
            pub fn set_tenant(&mut self, tenant: Option<String>) {
                match self { $( Self::$name(request) => request.tenant = tenant, )* }
            }

            /// Reads the request of one operation from its JSON object; text checked before.
            ///
            /// # Errors
            /// [`crate::json::DecodeError`] with the path of what is wrong.
            pub fn decode(kind: OperationKind, text: &str) -> Result<Self, crate::json::DecodeError> {
                Ok(match kind {
                    $( OperationKind::$name => Self::$name(crate::json::decode_checked(text)?), )*
                })
            }

            /// Writes the request as a JSON object.
            pub fn encode(&self) -> String {
                match self { $( Self::$name(request) => crate::json::encode(request), )* }
            }
        }

        impl crate::Validate for Operation {
            fn validate(&self, found: &mut crate::Violations<'_>) {
                match self { $( Self::$name(request) => request.validate(found), )* }
            }
        }
    };
}

operations! {
    /// Sends a message. Spec: §3.1.1
    SendMessage(SendMessageRequest),
    /// Sends a message and follows what comes of it. Spec: §3.1.2
    SendStreamingMessage(SendMessageRequest),
    /// Reads one task. Spec: §3.1.3
    GetTask(GetTaskRequest),
    /// Lists tasks. Spec: §3.1.4
    ListTasks(ListTasksRequest),
    /// Cancels a task. Spec: §3.1.5
    CancelTask(CancelTaskRequest),
    /// Follows a task. Spec: §3.1.6
    SubscribeToTask(SubscribeToTaskRequest),
    /// Registers a webhook. Spec: §3.1.7
    CreateTaskPushNotificationConfig(TaskPushNotificationConfig),
    /// Reads a webhook. Spec: §3.1.8
    GetTaskPushNotificationConfig(GetTaskPushNotificationConfigRequest),
    /// Lists webhooks. Spec: §3.1.9
    ListTaskPushNotificationConfigs(ListTaskPushNotificationConfigsRequest),
    /// Deletes a webhook. Spec: §3.1.10
    DeleteTaskPushNotificationConfig(DeleteTaskPushNotificationConfigRequest),
    /// Reads the extended card. Spec: §3.1.11
    GetExtendedAgentCard(GetExtendedAgentCardRequest),
}

impl OperationKind {
    /// Whether it starts or steers work, rather than only reading (EXT-02).
    pub fn steers_work(self) -> bool {
        matches!(
            self,
            Self::SendMessage | Self::SendStreamingMessage | Self::CancelTask
        )
    }

    /// Whether it answers with a stream.
    pub fn streams(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

/// What an operation answers.
pub enum Outcome {
    /// To SendMessage.
    Sent(SendMessageResponse),
    /// To SendStreamingMessage and SubscribeToTask.
    Stream(crate::EventStream),
    /// To GetTask and CancelTask.
    Task(Task),
    /// To ListTasks.
    Tasks(ListTasksResponse),
    /// To creating and reading a webhook.
    PushConfig(TaskPushNotificationConfig),
    /// To listing webhooks.
    PushConfigs(ListTaskPushNotificationConfigsResponse),
    /// To deleting a webhook.
    Deleted,
    /// To GetExtendedAgentCard.
    Card(Box<AgentCard>),
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sent(sent) => f.debug_tuple("Sent").field(sent).finish(),
            Self::Stream(_) => f.write_str("Stream"),
            Self::Task(task) => f.debug_tuple("Task").field(task).finish(),
            Self::Tasks(page) => f.debug_tuple("Tasks").field(page).finish(),
            Self::PushConfig(config) => f.debug_tuple("PushConfig").field(config).finish(),
            Self::PushConfigs(list) => f.debug_tuple("PushConfigs").field(list).finish(),
            Self::Deleted => f.write_str("Deleted"),
            Self::Card(card) => f.debug_tuple("Card").field(card).finish(),
        }
    }
}
