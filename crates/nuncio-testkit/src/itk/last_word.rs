//! Tasks as the kit reads them.

use std::sync::Arc;

use nuncio_protocol::{
    AgentCard, AgentService, Call, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    EventStream, GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Reply, Role, SendMessageRequest, SendMessageResponse,
    SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
};

/// An agent whose finished tasks have what it said last in their status.
///
/// The kit's agents look for an answer in the status message of the task that a plain send gives.
/// Runs of the engine complete their tasks without one, and what was said before stands in the
/// history.
#[derive(Debug)]
pub struct LastWord(Arc<dyn AgentService>);

impl LastWord {
    /// The same agent, shown so.
    pub fn of(agent: Arc<dyn AgentService>) -> Self {
        Self(agent)
    }
}

fn with_last_word(mut task: Task) -> Task {
    let is_said = |task: &Task| task.history.last().is_some_and(|m| m.role == Role::Agent);
    if task.status.state.is_terminal() && task.status.message.is_none() && is_said(&task) {
        task.status.message = task.history.pop();
    }
    task
}

impl AgentService for LastWord {
    fn send_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, SendMessageResponse> {
        Box::pin(async move {
            Ok(match self.0.send_message(call, request).await? {
                SendMessageResponse::Task(task) => SendMessageResponse::Task(with_last_word(task)),
                message => message,
            })
        })
    }

    fn send_streaming_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, EventStream> {
        self.0.send_streaming_message(call, request)
    }

    fn get_task(&self, call: Call, request: GetTaskRequest) -> Reply<'_, Task> {
        Box::pin(async move { self.0.get_task(call, request).await.map(with_last_word) })
    }

    fn list_tasks(&self, call: Call, request: ListTasksRequest) -> Reply<'_, ListTasksResponse> {
        self.0.list_tasks(call, request)
    }

    fn cancel_task(&self, call: Call, request: CancelTaskRequest) -> Reply<'_, Task> {
        self.0.cancel_task(call, request)
    }

    fn subscribe_to_task(
        &self,
        call: Call,
        request: SubscribeToTaskRequest,
    ) -> Reply<'_, EventStream> {
        self.0.subscribe_to_task(call, request)
    }

    fn create_push_config(
        &self,
        call: Call,
        request: TaskPushNotificationConfig,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        self.0.create_push_config(call, request)
    }

    fn get_push_config(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        self.0.get_push_config(call, request)
    }

    fn list_push_configs(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Reply<'_, ListTaskPushNotificationConfigsResponse> {
        self.0.list_push_configs(call, request)
    }

    fn delete_push_config(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Reply<'_, ()> {
        self.0.delete_push_config(call, request)
    }

    fn get_extended_agent_card(
        &self,
        call: Call,
        request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard> {
        self.0.get_extended_agent_card(call, request)
    }
}
