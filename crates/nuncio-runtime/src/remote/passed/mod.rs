//! A remote agent whose callers' operations are passed on to it as they are.

mod card;
mod failure;
mod list;
mod send;
mod stream;
mod webhooks;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_client::{Client, Timeouts};
use nuncio_engine::Passing;
use nuncio_protocol::{
    A2aError, AgentCard, AgentService, Call, CancelTaskRequest, ContextId,
    DeleteTaskPushNotificationConfigRequest, ErrorKind, EventStream, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Reply, Result,
    SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task, TaskId,
    TaskPushNotificationConfig,
};

use self::failure::{told, unreachable};
use super::RemoteAgent;
use super::connection::Connection;

/// An agent elsewhere as a service: each operation of a caller is one there, and what comes back is
/// what the agent has said. Tasks, conversations and webhooks are the agent's own, and nothing of
/// them is stored here but whose they are.
///
/// The agent knows one client, whoever calls here. So a caller reaches only tasks that came of its own
/// messages, and speaks only in conversations that nobody else has spoken in; all else is not there.
#[derive(Clone)]
pub struct PassThrough {
    connection: Arc<Connection>,
    passing: Passing,
    answer_limit: Option<Duration>,
}

impl RemoteAgent {
    /// The same agent for callers whose operations are passed on to it, over the same connections.
    pub fn passed_through(&self, passing: Passing) -> PassThrough {
        PassThrough {
            connection: Arc::clone(&self.connection),
            passing,
            answer_limit: None,
        }
    }
}

impl fmt::Debug for PassThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassThrough")
            .field("agent", self.passing.agent())
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl PassThrough {
    /// Sets how long the agent has until its answer to an operation begins, instead of ten minutes.
    #[must_use]
    pub fn with_answer_limit(mut self, limit: Option<Duration>) -> Self {
        self.answer_limit = limit;
        self
    }

    async fn client(&self) -> Result<Client> {
        let client = self.connection.client().await;
        let client = client.map_err(|why| unreachable(self.passing.agent(), &why))?;
        Ok(match self.answer_limit {
            None => client,
            limit => client.with_timeouts(Timeouts {
                first_byte: limit,
                ..client.timeouts()
            }),
        })
    }

    fn told(&self, error: A2aError) -> A2aError {
        told(self.passing.agent(), error)
    }

    /// Takes what the agent has answered with for the caller's own.
    async fn accept(
        &self,
        call: &Call,
        task: Option<&TaskId>,
        context: Option<&ContextId>,
    ) -> Result<()> {
        match self.passing.take(call, task, context).await? {
            true => Ok(()),
            false => Err(self.not_theirs(task, context)),
        }
    }

    /// The agent has answered one caller with what is another's.
    fn not_theirs(&self, task: Option<&TaskId>, context: Option<&ContextId>) -> A2aError {
        let agent = self.passing.agent();
        tracing::warn!(
            agent.id = %agent,
            task.id = task.map(TaskId::as_str),
            context.id = context.map(ContextId::as_str),
            "an agent elsewhere answers with a task or a context of another caller"
        );
        let message = "the agent's answer is about something else than was asked";
        A2aError::new(ErrorKind::InvalidAgentResponse, message)
    }

    /// Takes a task that was asked for by its id.
    async fn accept_task(&self, call: &Call, asked: &TaskId, task: Task) -> Result<Task> {
        if task.id != *asked {
            return Err(self.not_theirs(Some(&task.id), None));
        }
        self.accept(call, Some(asked), task.context_id.as_ref())
            .await?;
        Ok(task)
    }

    async fn get(&self, call: Call, mut request: GetTaskRequest) -> Result<Task> {
        self.passing.check_task(&call, &request.id).await?;
        request.tenant = None;
        let asked = request.id.clone();
        let got = self.client().await?.get_task(call.clone(), request).await;
        let task = got.map_err(|error| self.told(error))?;
        self.accept_task(&call, &asked, task).await
    }

    async fn cancel(&self, call: Call, mut request: CancelTaskRequest) -> Result<Task> {
        self.passing.check_task(&call, &request.id).await?;
        request.tenant = None;
        let asked = request.id.clone();
        let client = self.client().await?;
        let canceled = client.cancel_task(call.clone(), request).await;
        let task = canceled.map_err(|error| self.told(error))?;
        self.accept_task(&call, &asked, task).await
    }

    async fn subscribe(
        &self,
        call: Call,
        mut request: SubscribeToTaskRequest,
    ) -> Result<EventStream> {
        self.passing.check_task(&call, &request.id).await?;
        request.tenant = None;
        let client = self.client().await?;
        let events = client.subscribe_to_task(call.clone(), request).await;
        let events = events.map_err(|error| self.told(error))?;
        self.checked(call, events).await
    }
}

impl AgentService for PassThrough {
    fn send_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, SendMessageResponse> {
        Box::pin(self.send(call, request))
    }

    fn send_streaming_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, EventStream> {
        Box::pin(self.send_streaming(call, request))
    }

    fn get_task(&self, call: Call, request: GetTaskRequest) -> Reply<'_, Task> {
        Box::pin(self.get(call, request))
    }

    fn list_tasks(&self, call: Call, request: ListTasksRequest) -> Reply<'_, ListTasksResponse> {
        Box::pin(self.list(call, request))
    }

    fn cancel_task(&self, call: Call, request: CancelTaskRequest) -> Reply<'_, Task> {
        Box::pin(self.cancel(call, request))
    }

    fn subscribe_to_task(
        &self,
        call: Call,
        request: SubscribeToTaskRequest,
    ) -> Reply<'_, EventStream> {
        Box::pin(self.subscribe(call, request))
    }

    fn create_push_config(
        &self,
        call: Call,
        request: TaskPushNotificationConfig,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        Box::pin(self.create_webhook(call, request))
    }

    fn get_push_config(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        Box::pin(self.get_webhook(call, request))
    }

    fn list_push_configs(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Reply<'_, ListTaskPushNotificationConfigsResponse> {
        Box::pin(self.list_webhooks(call, request))
    }

    fn delete_push_config(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Reply<'_, ()> {
        Box::pin(self.delete_webhook(call, request))
    }

    /// What the agent shows to us, it does not show to our callers.
    fn get_extended_agent_card(
        &self,
        _call: Call,
        _request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard> {
        let message = "this agent has no extended card";
        Box::pin(async move { Err(A2aError::new(ErrorKind::UnsupportedOperation, message)) })
    }
}
