//! Sending a message: a new task, a further turn of one, or an answer without one.

use std::sync::Arc;

use nuncio_protocol::{
    A2aError, Call, ContextId, ErrorKind, Event, EventStream, Message, Metadata, PartContent,
    Result, SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskId, TaskState,
    TaskStatus, TaskStatusUpdateEvent, json, limit_history,
};
use nuncio_store::{
    Append, Appended, Created, Head, Idempotency, LeaseChange, NewTask, Scope, Webhook,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cell::{Cell, QueuedMessage, Recent};
use crate::chain::Chain;
use crate::draft::Joined;
use crate::engine::store_error;
use crate::hosted::ended;
use crate::reader::{Purpose, Reader, Settled, unavailable};
use crate::request::RequestParts;
use crate::rerun::Rerun;
use crate::run::{Start, not_before};
use crate::{HostedAgent, RunCx};

/// A message that has been taken: where to look for what comes of it.
struct Taken {
    cell: Arc<Cell>,
    /// The position of the message in the task's log.
    position: u64,
    /// Whether it had been taken before, so that this is a repetition.
    repeated: bool,
}

/// A message with what it came with.
struct Incoming {
    scope: Scope,
    message: Message,
    request: RequestParts,
    idempotency: Option<Idempotency>,
    /// The webhook that came along.
    webhook: Option<Webhook>,
    caller: nuncio_protocol::Caller,
    /// Whether the sender waits for the agent anyway, so that its first step may be made at once.
    at_once: bool,
    /// The earlier run that the one to begin repeats.
    rerun: Option<Rerun>,
}

impl HostedAgent {
    pub(crate) async fn send(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse> {
        let history = request.history_length();
        let immediately = request.returns_immediately();
        let limit = call.timeout.unwrap_or(self.core.settings.blocking_ceiling);
        let limit = limit.min(self.core.settings.blocking_ceiling);
        let taken = self.take(call, request).await?;
        let settled = match immediately {
            true => self.core.stored(&taken.cell).await?,
            false => {
                self.core
                    .settled(&taken.cell, taken.position, limit)
                    .await?
            }
        };
        Ok(match settled {
            Settled::Abandoned => return Err(unavailable()),
            Settled::Message(message) => SendMessageResponse::Message(message),
            Settled::Task(task) => {
                let mut task = Arc::unwrap_or_clone(task);
                limit_history(&mut task.history, history);
                SendMessageResponse::Task(task)
            }
        })
    }

    pub(crate) async fn send_streaming(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Result<EventStream> {
        let history = request.history_length();
        let taken = self.take(call, request).await?;
        // Nothing is streamed before it is known whether there is a task (OP-STRM-02, -05).
        match self.core.stored(&taken.cell).await? {
            Settled::Task(_) => {}
            Settled::Abandoned => return Err(unavailable()),
            Settled::Message(message) => {
                let only: Result<Event> = Ok(StreamResponse::Message(message).into());
                return Ok(Box::pin(futures_util::stream::iter([only])));
            }
        }
        let first = first_event(&taken, history);
        let purpose = Purpose::Send(taken.position);
        Ok(Reader::new(Arc::clone(&self.core), taken.cell, purpose, first).into_stream())
    }

    /// Stores the message and sees to it that it is answered.
    async fn take(&self, call: Call, mut request: SendMessageRequest) -> Result<Taken> {
        if self.core.is_draining() {
            return Err(shutting_down());
        }
        let rerun = self.rerun(&call, &mut request).await?;
        let mut incoming = self.incoming(call, request)?;
        incoming.rerun = rerun;
        let named = incoming.message.task_id.clone();
        match named {
            Some(id) => self.continue_task(incoming, &id).await,
            None if incoming.rerun.is_some() => self.new_task(incoming).await,
            None => match self.waiting_task(&incoming).await? {
                Some(id) => self.continue_task(incoming, &id).await,
                None => self.new_task(incoming).await,
            },
        }
    }

    fn incoming(&self, call: Call, request: SendMessageRequest) -> Result<Incoming> {
        let scope = self.scope(&call);
        let at_once = !request.returns_immediately();
        let message = request
            .message
            .ok_or_else(|| A2aError::invalid_field("message", "is required"))?;
        Chain::read(request.metadata.as_ref(), self.core.settings.max_depth)
            .check(&scope.agent, &self.core.environment.token_key)?;
        self.agent
            .check(&call.caller, &message, request.metadata.as_ref())?;
        let configuration = request.configuration.unwrap_or_default();
        let webhook = configuration
            .task_push_notification_config
            .map(|config| self.webhook(WEBHOOK, config, call.version))
            .transpose()?;
        let key = match &call.idempotency_key {
            Some(key) => Some(format!("key:{key}")),
            None if self.core.settings.deduplicate_by_message_id => {
                Some(format!("message:{}", message.message_id))
            }
            None => None,
        };
        let idempotency = key.map(|key| Idempotency {
            key,
            request_hash: request_hash(&message, request.metadata.as_ref()),
        });
        let request = RequestParts {
            metadata: request.metadata,
            accepted_output_modes: configuration.accepted_output_modes,
            extensions: call.extensions,
            trace: call.trace,
            forwarded: call.forwarded,
        };
        Ok(Incoming {
            scope,
            message,
            request,
            idempotency,
            webhook,
            caller: call.caller,
            at_once,
            rerun: None,
        })
    }

    /// The one task of the message's conversation that waits for input, if there is exactly one.
    async fn waiting_task(&self, incoming: &Incoming) -> Result<Option<TaskId>> {
        let Some(context) = &incoming.message.context_id else {
            return Ok(None);
        };
        if !self.core.settings.resume_by_context {
            return Ok(None);
        }
        // A repetition belongs to the task it went to, whatever waits now.
        if let Some(used) = self.used_key(incoming).await? {
            return Ok(Some(used.task));
        }
        let waiting = self.core.store.waiting(&incoming.scope, context).await;
        let mut waiting = waiting.map_err(|error| store_error(&error))?;
        Ok(if waiting.len() == 1 {
            waiting.pop()
        } else {
            None
        })
    }

    async fn used_key(&self, incoming: &Incoming) -> Result<Option<UsedKey>> {
        let Some(idempotency) = &incoming.idempotency else {
            return Ok(None);
        };
        let found = self
            .core
            .store
            .find_key(&incoming.scope, &idempotency.key)
            .await;
        Ok(found
            .map_err(|error| store_error(&error))?
            .map(|(task, hash)| UsedKey {
                task,
                same: hash == idempotency.request_hash,
            }))
    }

    async fn new_task(&self, mut incoming: Incoming) -> Result<Taken> {
        let context = match &incoming.message.context_id {
            Some(context) => context.clone(),
            None => ContextId::from(self.core.environment.ids.next()),
        };
        let task = self.first_task(&incoming, &context);
        self.claim_webhook(&mut incoming, &task.id)?;
        let cell = self
            .core
            .hub
            .begin(incoming.scope.clone(), Arc::clone(&task));
        let info = self.agent.info();
        // Where other processes may begin the same, the key is taken before the agent is asked.
        let may_wait = info.resumable && incoming.at_once && !self.core.shared;
        if info.answers_directly || may_wait {
            return self.begin_draft(incoming, context, task, cell).await;
        }
        let (scope, has_webhook) = (incoming.scope.clone(), incoming.webhook.is_some());
        let (new, start, cx, at_once) = self.beginning(incoming, context, &task, &cell);
        cell.publish(&new.events, created_head(), Some(task));
        self.core.hub.register(&cell);
        match self.core.store.create(new).await {
            Ok(Created::New) => {
                if has_webhook {
                    cell.note_webhook();
                    cell.wake_webhooks();
                }
                self.core.launch(start, cx, at_once);
                Ok(Taken {
                    cell,
                    position: 1,
                    repeated: false,
                })
            }
            Ok(Created::Existing { task, same_request }) => {
                self.repeated(&scope, task, same_request).await
            }
            Err(error) => Err(store_error(&error)),
        }
    }

    /// Begins a run whose first event, or end, stores the task.
    async fn begin_draft(
        &self,
        incoming: Incoming,
        context: ContextId,
        task: Arc<Task>,
        cell: Arc<Cell>,
    ) -> Result<Taken> {
        let mut guard = None;
        while let (None, Some(key)) = (&guard, &incoming.idempotency) {
            match self.core.drafts.join(&incoming.scope, key, &cell) {
                Joined::First(first) => guard = Some(first),
                Joined::Other {
                    cell,
                    same_request: true,
                } => {
                    if !matches!(self.core.stored(&cell).await?, Settled::Abandoned) {
                        return Ok(Taken {
                            cell,
                            position: 1,
                            repeated: true,
                        });
                    }
                }
                Joined::Other { .. } => return Err(other_content()),
            }
        }
        // Only now: a run that ended before the key was taken has left it in the store.
        if let Some(used) = self.used_key(&incoming).await? {
            return self.repeated(&incoming.scope, used.task, used.same).await;
        }
        let (new, start, cx, at_once) = self.beginning(incoming, context, &task, &cell);
        let start = Start {
            draft: Some(Box::new(new)),
            guard,
            ..start
        };
        self.core.launch(start, cx, at_once);
        Ok(Taken {
            cell,
            position: 1,
            repeated: false,
        })
    }

    /// What a first message begins: the task to store, and the run to launch.
    fn beginning(
        &self,
        incoming: Incoming,
        context: ContextId,
        task: &Arc<Task>,
        cell: &Arc<Cell>,
    ) -> (NewTask, Start, RunCx, bool) {
        let first = Event::new(Some(1), StreamResponse::Task(Task::clone(task)));
        let new = NewTask {
            scope: incoming.scope,
            context,
            events: vec![first],
            task: Arc::clone(task),
            snapshot: false,
            idempotency: incoming.idempotency,
            lease: Some(self.core.lease()),
            checkpoint: None,
            request: incoming.request.stored(),
            push_config: incoming.webhook,
        };
        let first = incoming.request.trace;
        let cx = self
            .core
            .prepare(cell, incoming.caller, 1, 1, first, &incoming.request);
        if let Some(rerun) = incoming.rerun {
            // It is the first: the run has just been prepared.
            let _ = cx.inner.rerun.set(rerun);
        }
        let (message, request) = (incoming.message, incoming.request);
        let message = QueuedMessage {
            position: 1,
            message,
            request,
        };
        let start = Start {
            cell: Arc::clone(cell),
            agent: Arc::clone(&self.agent),
            message,
            draft: None,
            guard: None,
        };
        (new, start, cx, incoming.at_once)
    }

    fn first_task(&self, incoming: &Incoming, context: &ContextId) -> Arc<Task> {
        let id = TaskId::from(self.core.environment.ids.next());
        let status = TaskStatus::new(TaskState::Submitted, self.core.now());
        let mut task = Task::new(id, context.clone(), status);
        task.history = vec![incoming.message.clone()];
        Arc::new(task)
    }

    /// What a message gets that has been sent before (BR-014).
    async fn repeated(&self, scope: &Scope, task: TaskId, same: bool) -> Result<Taken> {
        if !same {
            return Err(other_content());
        }
        let cell = self.open(scope, &task).await?;
        let position = cell.view(|view| view.head.turn);
        Ok(Taken {
            cell,
            position,
            repeated: true,
        })
    }

    async fn continue_task(&self, mut incoming: Incoming, id: &TaskId) -> Result<Taken> {
        self.claim_webhook(&mut incoming, id)?;
        let cell = self.open(&incoming.scope, id).await?;
        let writing = cell.writing.lock().await;
        loop {
            let (task, head, run) =
                cell.view(|view| (Arc::clone(&view.task), view.head.clone(), view.run.clone()));
            self.check_context(&incoming.message, &task)?;
            if task.status.state.is_terminal() {
                return self.ended_or_repeated(&incoming, &task).await;
            }
            let rests = task.status.state.is_interrupted();
            if run.is_some() || !rests {
                self.check_queue(run.as_ref().map_or(0, |run| run.inner.queue.len()))?;
            }
            if let Some(webhook) = &incoming.webhook
                && let Err(full) = self.check_room(&incoming.scope, id, webhook).await
            {
                drop(writing);
                return match self.used_key(&incoming).await? {
                    Some(used) => self.repeated(&incoming.scope, used.task, used.same).await,
                    None => Err(full),
                };
            }
            let begins = run.is_none() && rests;
            let append = self.recording(&incoming, &task, &head, begins);
            let (events, state) = (append.events.clone(), append.state);
            let stored = self.core.store.append(append).await;
            match stored.map_err(|error| store_error(&error))? {
                Appended::Done { epoch } => {
                    if incoming.webhook.is_some() {
                        cell.note_webhook();
                    }
                    let position = head.last + 1;
                    let last = head.last + events.len() as u64;
                    let (turn, attempt) = if begins {
                        (position, 1)
                    } else {
                        (head.turn, head.attempt)
                    };
                    cell.publish(
                        &events,
                        Head {
                            last,
                            state,
                            epoch,
                            turn,
                            attempt,
                            ..head
                        },
                        None,
                    );
                    let (message, request) = (incoming.message, incoming.request);
                    let message = QueuedMessage {
                        position,
                        message,
                        request,
                    };
                    match run {
                        Some(run) => run.inner.queue.push(message),
                        None if begins => self.resume(&cell, message, epoch, incoming.caller).await,
                        None => {}
                    }
                    drop(writing);
                    return Ok(Taken {
                        cell,
                        position,
                        repeated: false,
                    });
                }
                Appended::Conflict(head) => self.core.give_way(&cell, head).await?,
                Appended::Existing { task, same_request } => {
                    drop(writing);
                    return self.repeated(&incoming.scope, task, same_request).await;
                }
                Appended::Missing => return Err(A2aError::task_not_found(id)),
            }
        }
    }

    /// What records a message; one that begins a run takes the task to WORKING at once (ST-04).
    fn recording(&self, incoming: &Incoming, task: &Task, head: &Head, begins: bool) -> Append {
        let position = head.last + 1;
        // What is stored names its task and conversation, whatever the client left out.
        let mut message = incoming.message.clone();
        message.task_id = Some(task.id.clone());
        message.context_id.clone_from(&task.context_id);
        let mut events = vec![Event::new(Some(position), StreamResponse::Message(message))];
        let mut status = task.status.clone();
        if begins {
            status = TaskStatus::new(TaskState::Working, not_before(self.core.now(), task));
            let context = task.context_id.clone().unwrap_or_default();
            let update = TaskStatusUpdateEvent::new(task.id.clone(), context, status.clone());
            events.push(Event::new(
                Some(position + 1),
                StreamResponse::StatusUpdate(update),
            ));
        }
        let lease = if begins {
            LeaseChange::Take(self.core.lease())
        } else {
            LeaseChange::Keep
        };
        Append {
            scope: incoming.scope.clone(),
            task: task.id.clone(),
            after: head.last,
            epoch: None,
            events,
            state: status.state,
            status_time: status.timestamp.unwrap_or(self.core.now()),
            snapshot: None,
            lease,
            turn: begins.then_some(position),
            checkpoint: None,
            request: incoming.request.stored(),
            idempotency: incoming.idempotency.clone(),
            push_config: incoming.webhook.clone(),
        }
    }

    async fn resume(
        &self,
        cell: &Arc<Cell>,
        message: QueuedMessage,
        epoch: u64,
        caller: nuncio_protocol::Caller,
    ) {
        let first = self
            .core
            .first_trace(&cell.scope, &cell.id)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(task.id = %cell.id, %error, "the trace of a task is not found");
                message.request.trace
            });
        let cx = self
            .core
            .prepare(cell, caller, epoch, 1, first, &message.request);
        let (cell, agent) = (Arc::clone(cell), Arc::clone(&self.agent));
        self.core.launch(
            Start {
                cell,
                agent,
                message,
                draft: None,
                guard: None,
            },
            cx,
            false,
        );
    }

    /// Makes a webhook the task's and seals it; one that names another task is refused (OP-SEND-20).
    fn claim_webhook(&self, incoming: &mut Incoming, task: &TaskId) -> Result<()> {
        let Some(Webhook { config, .. }) = &mut incoming.webhook else {
            return Ok(());
        };
        let named = config.task_id.as_ref().filter(|named| !named.is_empty());
        if named.is_some_and(|named| named != task) {
            let field = format!("{WEBHOOK}taskId");
            return Err(A2aError::invalid_field(
                field,
                "is not the task of the message",
            ));
        }
        config.task_id = Some(task.clone());
        self.core.sealer.seal(&incoming.scope, config);
        Ok(())
    }

    fn check_context(&self, message: &Message, task: &Task) -> Result<()> {
        match &message.context_id {
            Some(context) if task.context_id.as_ref() != Some(context) => Err(
                A2aError::invalid_field("message.contextId", "is not the context of the task"),
            ),
            _ => Ok(()),
        }
    }

    fn check_queue(&self, waiting: usize) -> Result<()> {
        if !self.agent.info().queues_messages {
            let message = "this agent takes no message while it works on one";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, message));
        }
        if waiting >= self.core.settings.max_queued_messages {
            let message = format!("{waiting} messages wait for this task already");
            return Err(A2aError::new(ErrorKind::ResourceExhausted, message));
        }
        Ok(())
    }

    /// A message to an ended task is refused, unless it is the repetition of one that was taken.
    async fn ended_or_repeated(&self, incoming: &Incoming, task: &Task) -> Result<Taken> {
        match self.used_key(incoming).await? {
            Some(used) if used.task == task.id => {
                self.repeated(&incoming.scope, used.task, used.same).await
            }
            _ => Err(ended(task)),
        }
    }
}

/// Where a webhook stands in a send.
const WEBHOOK: &str = "configuration.taskPushNotificationConfig.";

pub(crate) fn shutting_down() -> A2aError {
    let message = "the server is shutting down, try again";
    A2aError::new(ErrorKind::Unavailable, message)
}

struct UsedKey {
    task: TaskId,
    same: bool,
}

/// What tells a request from another one of the same key. The order of members in free-form
/// objects says nothing: other clients and bindings write them in another one.
fn request_hash(message: &Message, metadata: Option<&Metadata>) -> [u8; 32] {
    let (mut message, mut metadata) = (message.clone(), metadata.cloned());
    let own = message.metadata.iter_mut().chain(&mut metadata);
    own.for_each(sort);
    for part in &mut message.parts {
        if let PartContent::Data(data) = &mut part.content {
            data.sort_all_objects();
        }
        part.metadata.iter_mut().for_each(sort);
    }
    Sha256::digest(json::encode(&(message, metadata))).into()
}

fn sort(object: &mut Metadata) {
    object.values_mut().for_each(Value::sort_all_objects);
    object.sort_keys();
}

fn other_content() -> A2aError {
    let description = "has been used for a message with another content";
    A2aError::invalid_field("message.messageId", description)
}

fn created_head() -> Head {
    Head {
        last: 1,
        state: TaskState::Submitted,
        epoch: 1,
        turn: 1,
        attempt: 1,
        owner: None,
        checkpoint: None,
    }
}

/// The task as it is once the message has been recorded (OP-STRM-02, OP-STRM-07): as it began, if
/// the message began it, so that the reader sees all that follows.
fn first_event(taken: &Taken, history: Option<i32>) -> Event {
    if taken.position == 1
        && !taken.repeated
        && let Recent::Events(events) = taken.cell.read(0, 1)
        && let Some(first) = events.into_iter().next()
    {
        return match (first.response(), history) {
            (StreamResponse::Task(task), Some(_)) => {
                as_first(task.clone(), first.position, history)
            }
            _ => first,
        };
    }
    let (task, last) = taken.cell.snapshot();
    as_first(Arc::unwrap_or_clone(task), Some(last), history)
}

fn as_first(mut task: Task, position: Option<u64>, history: Option<i32>) -> Event {
    limit_history(&mut task.history, history);
    Event::new(position, StreamResponse::Task(task))
}
