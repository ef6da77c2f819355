//! The one trait everything hangs on: what can be asked of an agent.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;

use crate::{
    AgentCard, CallerId, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, Event,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Operation, Outcome, Result, SendMessageRequest,
    SendMessageResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TraceContext,
    Version, WorkspaceId,
};

/// What an operation gives, some time later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// The items of a stream, in order; an error is its last item.
///
/// Dropping it leaves the task running.
pub type EventStream = Pin<Box<dyn Stream<Item = Result<Event>> + Send>>;

/// Who calls, as the credential says; ids in request bodies are never believed (AUTH-08).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Whose tasks are seen.
    pub id: CallerId,
    /// Where; no operation looks outside of it.
    pub workspace: WorkspaceId,
}

/// What accompanies every operation, whatever the binding. Spec: §3.2.6
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Call {
    /// Who calls.
    pub caller: Caller,
    /// The version spoken.
    pub version: Version,
    /// URIs of the extensions the client names.
    pub extensions: Vec<String>,
    /// Makes a send happen once however often it is repeated; else the message id does.
    pub idempotency_key: Option<String>,
    /// The position after which a stream goes on.
    pub last_event_id: Option<u64>,
    /// How long the caller will wait; the task goes on when it is over.
    pub timeout: Option<Duration>,
    /// Where the caller stands in its trace (`traceparent`).
    pub trace: Option<TraceContext>,
    /// Headers of the request that the agent may see.
    pub forwarded: ForwardedHeaders,
}

/// Headers of a request that an agent may see, as far as its server allows; never stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ForwardedHeaders(BTreeMap<String, String>);

impl ForwardedHeaders {
    /// A value by its name in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All names, in lower case, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds a value, or replaces the one of this name.
    pub fn insert(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_ascii_lowercase(), value.into());
    }
}

/// Shows names, since a value may be a credential.
impl fmt::Debug for ForwardedHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Call {
    /// A call with nothing but its caller.
    pub fn new(caller: Caller) -> Self {
        Self {
            caller,
            version: Version::default(),
            extensions: Vec::new(),
            idempotency_key: None,
            last_event_id: None,
            timeout: None,
            trace: None,
            forwarded: ForwardedHeaders::default(),
        }
    }

    /// A call of a client: who calls is the credential's business, not the call's.
    pub fn client() -> Self {
        Self::new(Caller {
            id: "client".into(),
            workspace: "default".into(),
        })
    }
}

/// What an A2A agent can be asked, free of bindings and protocol versions.
///
/// The task engine implements it; the client implements it over the network. A holder of
/// `Arc<dyn AgentService>` cannot tell which.
///
/// Spec: §3.1
pub trait AgentService: Send + Sync + fmt::Debug {
    /// Sends a message; answers when its task has ended or paused, unless told otherwise.
    /// Spec: §3.1.1
    fn send_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, SendMessageResponse>;

    /// Sends a message and streams what comes of it. Spec: §3.1.2
    fn send_streaming_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, EventStream>;

    /// Returns one task, with as much history as asked for. Spec: §3.1.3
    fn get_task(&self, call: Call, request: GetTaskRequest) -> Reply<'_, Task>;

    /// Lists the caller's tasks, most recently updated first. Spec: §3.1.4
    fn list_tasks(&self, call: Call, request: ListTasksRequest) -> Reply<'_, ListTasksResponse>;

    /// Cancels a task and returns it as it is then. Spec: §3.1.5
    fn cancel_task(&self, call: Call, request: CancelTaskRequest) -> Reply<'_, Task>;

    /// Streams the task as it is now, then every event until it ends. Spec: §3.1.6
    fn subscribe_to_task(
        &self,
        call: Call,
        request: SubscribeToTaskRequest,
    ) -> Reply<'_, EventStream>;

    /// Registers a webhook, or replaces the one of the same id. Spec: §3.1.7
    fn create_push_config(
        &self,
        call: Call,
        request: TaskPushNotificationConfig,
    ) -> Reply<'_, TaskPushNotificationConfig>;

    /// Returns one webhook. Spec: §3.1.8
    fn get_push_config(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Reply<'_, TaskPushNotificationConfig>;

    /// Lists the webhooks of a task. Spec: §3.1.9
    fn list_push_configs(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Reply<'_, ListTaskPushNotificationConfigsResponse>;

    /// Deletes a webhook; an absent one is no error. Spec: §3.1.10
    fn delete_push_config(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Reply<'_, ()>;

    /// Returns the card that authenticated callers see. Spec: §3.1.11
    fn get_extended_agent_card(
        &self,
        call: Call,
        request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard>;

    /// Runs whichever operation it is.
    fn call(&self, call: Call, operation: Operation) -> Reply<'_, Outcome> {
        Box::pin(async move {
            Ok(match operation {
                Operation::SendMessage(r) => Outcome::Sent(self.send_message(call, r).await?),
                Operation::SendStreamingMessage(r) => {
                    Outcome::Stream(self.send_streaming_message(call, r).await?)
                }
                Operation::GetTask(r) => Outcome::Task(self.get_task(call, r).await?),
                Operation::ListTasks(r) => Outcome::Tasks(self.list_tasks(call, r).await?),
                Operation::CancelTask(r) => Outcome::Task(self.cancel_task(call, r).await?),
                Operation::SubscribeToTask(r) => {
                    Outcome::Stream(self.subscribe_to_task(call, r).await?)
                }
                Operation::CreateTaskPushNotificationConfig(r) => {
                    Outcome::PushConfig(self.create_push_config(call, r).await?)
                }
                Operation::GetTaskPushNotificationConfig(r) => {
                    Outcome::PushConfig(self.get_push_config(call, r).await?)
                }
                Operation::ListTaskPushNotificationConfigs(r) => {
                    Outcome::PushConfigs(self.list_push_configs(call, r).await?)
                }
                Operation::DeleteTaskPushNotificationConfig(r) => {
                    self.delete_push_config(call, r).await?;
                    Outcome::Deleted
                }
                Operation::GetExtendedAgentCard(r) => {
                    Outcome::Card(Box::new(self.get_extended_agent_card(call, r).await?))
                }
            })
        })
    }
}
