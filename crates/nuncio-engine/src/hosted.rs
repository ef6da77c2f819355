//! A hosted agent as the service that callers talk to.

use std::fmt;
use std::sync::Arc;

use nuncio_protocol::{
    A2aError, AgentCard, AgentService, Call, CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest, ErrorKind, Event, EventStream,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Reply, Result, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TaskState,
    TaskStatus, TaskStatusUpdateEvent, limit_history,
};
use nuncio_store::{Append, Appended, Head, LeaseChange, NodeRow, PartPlace, Scope, StoredPart};

use crate::cell::Cell;
use crate::engine::{Core, store_error};
use crate::reader::{Purpose, Reader};
use crate::run::{fold, not_before};
use crate::{Agent, AgentInfo, Node};

/// One agent of an engine, as callers see it.
pub struct HostedAgent {
    pub(crate) core: Arc<Core>,
    pub(crate) agent: Arc<dyn Agent>,
}

impl fmt::Debug for HostedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedAgent")
            .field("agent", &self.agent.info().id)
            .finish_non_exhaustive()
    }
}

impl HostedAgent {
    /// What the agent says about itself.
    pub fn info(&self) -> &AgentInfo {
        self.agent.info()
    }

    /// The call tree of a task: its runs and their steps, in the order in which they were first kept.
    ///
    /// A task whose runs had no steps has none. At most 2,000 steps of a task are kept.
    ///
    /// # Errors
    /// TaskNotFound, also for a task of somebody else.
    pub async fn call_tree(&self, call: &Call, id: &nuncio_protocol::TaskId) -> Result<Vec<Node>> {
        let scope = self.scope(call);
        self.read(&scope, id).await?;
        let rows = self.core.store.nodes(&scope, id).await;
        let rows = rows.map_err(|error| store_error(&error))?;
        let node = |row: &NodeRow| serde_json::from_str(&row.json);
        rows.iter()
            .map(node)
            .collect::<Result<_, _>>()
            .map_err(|error| {
                tracing::error!(task.id = %id, %error, "a stored call tree does not read");
                A2aError::internal()
            })
    }

    /// Opens one part of a task, to be read piece by piece: large ones need not be in memory whole.
    /// `None` if there is no such part, or it only says where its content is.
    ///
    /// # Errors
    /// TaskNotFound, also for a task of somebody else.
    pub async fn part(
        &self,
        call: &Call,
        id: &nuncio_protocol::TaskId,
        place: &PartPlace,
    ) -> Result<Option<StoredPart>> {
        let scope = self.scope(call);
        let found = self.core.store.part(&scope, id, place).await;
        let found = found.map_err(|error| store_error(&error))?;
        if found.is_none() {
            self.read(&scope, id).await?;
        }
        Ok(found)
    }

    pub(crate) fn scope(&self, call: &Call) -> Scope {
        Scope {
            workspace: call.caller.workspace.clone(),
            agent: self.agent.info().id.clone(),
            caller: call.caller.id.clone(),
        }
    }

    /// The task's cell, or "not found", whether it is absent or somebody else's.
    pub(crate) async fn open(
        &self,
        scope: &Scope,
        id: &nuncio_protocol::TaskId,
    ) -> Result<Arc<Cell>> {
        let opened = self
            .core
            .hub
            .open(self.core.store.as_ref(), scope, id)
            .await;
        let cell = opened
            .map_err(|error| store_error(&error))?
            .ok_or_else(|| A2aError::task_not_found(id))?;
        self.core.look(&cell).await?;
        Ok(cell)
    }

    async fn read(&self, scope: &Scope, id: &nuncio_protocol::TaskId) -> Result<Arc<Task>> {
        if !self.core.shared
            && let Some(cell) = self.core.hub.live(scope, id)
        {
            return Ok(cell.snapshot().0);
        }
        let stored = self
            .core
            .store
            .load(scope, id)
            .await
            .map_err(|error| store_error(&error))?;
        stored
            .map(|stored| stored.task)
            .ok_or_else(|| A2aError::task_not_found(id))
    }

    /// The task as it stood at a position, as the first event of a resumed stream.
    async fn replayed(&self, cell: &Cell, position: u64) -> Result<Event> {
        // The log of an ended task may have expired, whatever is remembered of it.
        let ended = cell.view(crate::cell::View::state).is_terminal();
        let (mut at, mut task) = match ended {
            true => Default::default(),
            false => cell.fold_before(position),
        };
        while at < position {
            let limit = usize::try_from(position - at)
                .unwrap_or(usize::MAX)
                .min(256);
            let read = self.core.store.events(&cell.scope, &cell.id, at, limit);
            let events = read.await.map_err(|error| store_error(&error))?;
            if events.is_empty() {
                return Err(gap(&cell.id));
            }
            for event in &events {
                at = event.position.unwrap_or(at + 1);
                match event.response() {
                    StreamResponse::Task(whole) => task = whole.clone(),
                    other => task.apply_leniently(other),
                }
                if !ended {
                    cell.keep_fold(at, &task);
                }
            }
        }
        Ok(Event::new(Some(position), StreamResponse::Task(task)))
    }

    async fn subscribe(&self, call: Call, request: SubscribeToTaskRequest) -> Result<EventStream> {
        let scope = self.scope(&call);
        let cell = self.open(&scope, &request.id).await?;
        let (task, last) = cell.snapshot();
        let first = match call.last_event_id {
            Some(position) if position > last => {
                return Err(A2aError::invalid_field(
                    "Last-Event-ID",
                    "is newer than the task",
                ));
            }
            Some(position) if position > 0 && position < last => {
                self.replayed(&cell, position).await?
            }
            _ if task.status.state.is_terminal() => return Err(ended(&task)),
            _ => Event::new(Some(last), StreamResponse::Task(Task::clone(&task))),
        };
        Ok(Reader::new(Arc::clone(&self.core), cell, Purpose::Subscribe, first).into_stream())
    }

    async fn cancel(&self, call: Call, request: CancelTaskRequest) -> Result<Task> {
        let scope = self.scope(&call);
        let cell = self.open(&scope, &request.id).await?;
        let running = {
            let _writing = cell.writing.lock().await;
            let (task, run) = cell.view(|view| (Arc::clone(&view.task), view.run.clone()));
            match task.status.state {
                TaskState::Canceled if !self.core.settings.refuse_second_cancel => {
                    return Ok(Task::clone(&task));
                }
                state if state.is_terminal() => return Err(not_cancelable(&task)),
                _ => {}
            }
            match run {
                Some(run) => {
                    *run.inner.cancel_metadata.lock() = request.metadata;
                    run.inner.cancel.cancel();
                    true
                }
                None => {
                    self.cancel_idle(&cell).await?;
                    false
                }
            }
        };
        if running {
            // The run ends within its grace, unless the store refuses: then tell how things stand.
            let limit = self.core.settings.cancel_grace * 2 + std::time::Duration::from_secs(1);
            self.core.settled_terminal(&cell, limit).await?;
        }
        let (task, _) = cell.snapshot();
        match task.status.state {
            TaskState::Canceled => Ok(Task::clone(&task)),
            state if state.is_terminal() => Err(not_cancelable(&task)),
            _ => Ok(Task::clone(&task)),
        }
    }

    /// Cancels a task that nobody works on; the caller holds `writing`.
    async fn cancel_idle(&self, cell: &Cell) -> Result<()> {
        loop {
            let (task, head) = cell.view(|view| (Arc::clone(&view.task), view.head.clone()));
            if task.status.state.is_terminal() {
                return Ok(());
            }
            let status = TaskStatus::new(TaskState::Canceled, not_before(self.core.now(), &task));
            let (state, status_time) = (status.state, status.timestamp.unwrap_or(self.core.now()));
            let context = task.context_id.clone().unwrap_or_default();
            let update = TaskStatusUpdateEvent::new(task.id.clone(), context, status);
            let events = vec![Event::new(
                Some(head.last + 1),
                StreamResponse::StatusUpdate(update),
            )];
            let folded = fold(&task, &events);
            let append = Append {
                scope: cell.scope.clone(),
                task: cell.id.clone(),
                after: head.last,
                epoch: None,
                events: events.clone(),
                state,
                status_time,
                snapshot: Some(Arc::clone(&folded)),
                lease: LeaseChange::Release,
                turn: None,
                checkpoint: None,
                request: None,
                idempotency: None,
                push_config: None,
            };
            match self
                .core
                .store
                .append(append)
                .await
                .map_err(|error| store_error(&error))?
            {
                Appended::Done { epoch } => {
                    let head = Head {
                        last: head.last + 1,
                        state,
                        epoch,
                        owner: None,
                        ..head
                    };
                    cell.publish(&events, head, Some(folded));
                    return Ok(());
                }
                Appended::Conflict(head) => self.core.give_way(cell, head).await?,
                Appended::Missing | Appended::Existing { .. } => {
                    return Err(A2aError::task_not_found(&cell.id));
                }
            }
        }
    }
}

pub(crate) fn ended(task: &Task) -> A2aError {
    let state = task.status.state.as_str();
    A2aError::new(
        ErrorKind::UnsupportedOperation,
        format!("task {} has ended ({state})", task.id),
    )
    .with("taskId", task.id.as_str())
    .with("state", state)
}

/// The events that a stream was to go on with have expired, which happens to ended tasks only.
pub(crate) fn gap(task: &nuncio_protocol::TaskId) -> A2aError {
    let message = "the events after this position are no longer kept; the task has ended: \
                   get it with GetTask instead of following it";
    A2aError::invalid_field("Last-Event-ID", message).with("taskId", task.as_str())
}

fn not_cancelable(task: &Task) -> A2aError {
    let state = task.status.state.as_str();
    A2aError::new(
        ErrorKind::TaskNotCancelable,
        format!("task {} has ended ({state})", task.id),
    )
    .with("taskId", task.id.as_str())
    .with("state", state)
}

impl AgentService for HostedAgent {
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
        Box::pin(async move {
            let task = self.read(&self.scope(&call), &request.id).await?;
            let mut task = Arc::unwrap_or_clone(task);
            limit_history(&mut task.history, request.history_length);
            Ok(task)
        })
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

    fn get_extended_agent_card(
        &self,
        _call: Call,
        _request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard> {
        let message = "this agent has no extended card";
        Box::pin(async move { Err(A2aError::new(ErrorKind::UnsupportedOperation, message)) })
    }
}
