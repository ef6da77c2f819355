//! The eleven operations, one exchange each.

use nuncio_protocol::{
    AgentCard, AgentService, Call, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    ErrorKind, EventStream, GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest,
    GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Operation,
    Outcome, Reply, Result, SendMessageRequest, SendMessageResponse, SubscribeToTaskRequest, Task,
    TaskPushNotificationConfig, TaskState,
};

use crate::Client;
use crate::failure::bad_answer;

impl Client {
    /// Runs one operation and takes the outcome apart.
    fn run<'a, T: Send + 'a>(
        &'a self,
        call: Call,
        operation: Operation,
        take: fn(Outcome) -> Option<T>,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            if operation.kind().steers_work() {
                self.check_extensions(&call)?;
            }
            let outcome = self.exchange(&call, &operation).await?;
            take(outcome).ok_or_else(|| bad_answer("the answer belongs to another operation"))
        })
    }

    async fn open_stream(&self, call: &Call, operation: &Operation) -> Result<EventStream> {
        match self.exchange(call, operation).await? {
            Outcome::Stream(stream) => Ok(stream),
            _ => Err(bad_answer("the answer belongs to another operation")),
        }
    }

    /// OP-CANC-03: a second cancel of a canceled task is a success, whatever the agent says.
    async fn cancel(&self, call: Call, request: CancelTaskRequest) -> Result<Task> {
        let mut asked = GetTaskRequest::new(request.id.clone());
        asked.tenant.clone_from(&request.tenant);
        let canceled = self
            .run(call.clone(), Operation::CancelTask(request), task)
            .await;
        match canceled {
            Err(error) if error.kind == ErrorKind::TaskNotCancelable => {
                match self.get_task(call, asked).await {
                    Ok(task) if task.status.state == TaskState::Canceled => Ok(task),
                    _ => Err(error),
                }
            }
            other => other,
        }
    }
}

/// Leaves out messages that were not asked for: 0.3 over gRPC cannot ask for none (V03-07).
fn with_history(mut task: Task, most: Option<i32>) -> Task {
    if let Some(most) = most.and_then(|most| usize::try_from(most).ok()) {
        let more = task.history.len().saturating_sub(most);
        task.history.drain(..more);
    }
    task
}

fn task(outcome: Outcome) -> Option<Task> {
    match outcome {
        Outcome::Task(task) => Some(task),
        _ => None,
    }
}

fn push_config(outcome: Outcome) -> Option<TaskPushNotificationConfig> {
    match outcome {
        Outcome::PushConfig(config) => Some(config),
        _ => None,
    }
}

impl AgentService for Client {
    fn send_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, SendMessageResponse> {
        self.run(
            call,
            Operation::SendMessage(request),
            |outcome| match outcome {
                Outcome::Sent(sent) => Some(sent),
                _ => None,
            },
        )
    }

    fn send_streaming_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, EventStream> {
        Box::pin(async move {
            self.check_extensions(&call)?;
            self.open_stream(&call, &Operation::SendStreamingMessage(request))
                .await
        })
    }

    fn get_task(&self, call: Call, request: GetTaskRequest) -> Reply<'_, Task> {
        Box::pin(async move {
            let most = request.history_length;
            let got = self.run(call, Operation::GetTask(request), task).await;
            got.map(|task| with_history(task, most))
        })
    }

    fn list_tasks(&self, call: Call, request: ListTasksRequest) -> Reply<'_, ListTasksResponse> {
        self.run(
            call,
            Operation::ListTasks(request),
            |outcome| match outcome {
                Outcome::Tasks(page) => Some(page),
                _ => None,
            },
        )
    }

    fn cancel_task(&self, call: Call, request: CancelTaskRequest) -> Reply<'_, Task> {
        Box::pin(self.cancel(call, request))
    }

    fn subscribe_to_task(
        &self,
        call: Call,
        request: SubscribeToTaskRequest,
    ) -> Reply<'_, EventStream> {
        Box::pin(async move {
            self.open_stream(&call, &Operation::SubscribeToTask(request))
                .await
        })
    }

    fn create_push_config(
        &self,
        call: Call,
        request: TaskPushNotificationConfig,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        let operation = Operation::CreateTaskPushNotificationConfig(request);
        self.run(call, operation, push_config)
    }

    fn get_push_config(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        let operation = Operation::GetTaskPushNotificationConfig(request);
        self.run(call, operation, push_config)
    }

    fn list_push_configs(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Reply<'_, ListTaskPushNotificationConfigsResponse> {
        let operation = Operation::ListTaskPushNotificationConfigs(request);
        self.run(call, operation, |outcome| match outcome {
            Outcome::PushConfigs(list) => Some(list),
            _ => None,
        })
    }

    fn delete_push_config(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Reply<'_, ()> {
        let operation = Operation::DeleteTaskPushNotificationConfig(request);
        self.run(call, operation, |outcome| {
            matches!(outcome, Outcome::Deleted).then_some(())
        })
    }

    fn get_extended_agent_card(
        &self,
        call: Call,
        request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard> {
        self.run(
            call,
            Operation::GetExtendedAgentCard(request),
            |outcome| match outcome {
                Outcome::Card(card) => Some(*card),
                _ => None,
            },
        )
    }
}
