//! A scripted agent: answers by the first word of a message, counts and keeps what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream;
use nuncio_protocol::{
    A2aError, AgentCard, AgentService, Artifact, Call, CancelTaskRequest, ContextId,
    DeleteTaskPushNotificationConfigRequest, ErrorKind, Event, EventStream,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Message, Part, Reply, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskId,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
};
use tokio::sync::{Notify, mpsc};

/// The secret that faults of the fake hold and nobody may see.
pub(crate) const SECRET: &str = "/var/lib/secret.db: hunter2";

#[derive(Debug, Default)]
pub(crate) struct Fake {
    calls: AtomicUsize,
    last: Mutex<Option<Call>>,
    last_send: Mutex<Option<SendMessageRequest>>,
    feed: Mutex<Option<mpsc::UnboundedReceiver<Result<Event, A2aError>>>>,
    pub(crate) release: Notify,
    pub(crate) extended: Option<AgentCard>,
}

impl Fake {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn last(&self) -> Call {
        self.last.lock().unwrap().clone().expect("a call")
    }

    pub(crate) fn last_send(&self) -> SendMessageRequest {
        self.last_send.lock().unwrap().clone().expect("a send")
    }

    /// The next stream gives what is put into the sender.
    pub(crate) fn feed(&self) -> mpsc::UnboundedSender<Result<Event, A2aError>> {
        let (feed, events) = mpsc::unbounded_channel();
        *self.feed.lock().unwrap() = Some(events);
        feed
    }

    fn note(&self, call: &Call) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        *self.last.lock().unwrap() = Some(call.clone());
    }

    fn events(&self) -> EventStream {
        match self.feed.lock().unwrap().take() {
            Some(events) => Box::pin(stream::unfold(events, |mut events| async move {
                events.recv().await.map(|event| (event, events))
            })),
            None => Box::pin(stream::iter([
                Ok(task_event(1, TaskState::Working)),
                Ok(status_event(2, TaskState::Completed)),
            ])),
        }
    }
}

pub(crate) fn task(id: &str, state: TaskState) -> Task {
    let status = TaskStatus::new(state, Timestamp::from_unix_ms(1_700_000_000_000));
    let mut task = Task::new(TaskId::from(id), ContextId::from("c1"), status);
    let mut artifact = Artifact::default();
    artifact.artifact_id = "a1".into();
    artifact.parts = vec![Part::text("done")];
    task.artifacts.push(artifact);
    task
}

pub(crate) fn task_event(position: u64, state: TaskState) -> Event {
    Event::new(Some(position), StreamResponse::Task(task("t1", state)))
}

pub(crate) fn status_event(position: u64, state: TaskState) -> Event {
    let status = TaskStatus::new(state, Timestamp::from_unix_ms(1_700_000_000_000));
    let update = TaskStatusUpdateEvent::new("t1".into(), "c1".into(), status);
    Event::new(Some(position), StreamResponse::StatusUpdate(update))
}

fn known(id: &TaskId) -> Result<(), A2aError> {
    match id.as_str() {
        "t1" | "ended" | "a:b" | "a/b" => Ok(()),
        _ => Err(A2aError::task_not_found(id)),
    }
}

/// What the first word of a message makes of it.
async fn scripted(fake: &Fake, request: &SendMessageRequest) -> Result<(), A2aError> {
    let text = request.message.as_ref().expect("validated").text();
    let kind = match text.split(' ').next().unwrap_or_default() {
        "panic" => panic!("{SECRET}"),
        "wait" => {
            fake.release.notified().await;
            return Ok(());
        }
        "internal" => ErrorKind::Internal,
        "missing" => return Err(A2aError::task_not_found(&"t9".into())),
        "not-cancelable" => ErrorKind::TaskNotCancelable,
        "bad-agent" => ErrorKind::InvalidAgentResponse,
        "ended" => ErrorKind::UnsupportedOperation,
        "busy" => ErrorKind::Unavailable,
        _ => return Ok(()),
    };
    let message = if kind == ErrorKind::Internal {
        SECRET
    } else {
        "scripted"
    };
    Err(A2aError::new(kind, message))
}

impl AgentService for Fake {
    fn send_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, SendMessageResponse> {
        self.note(&call);
        *self.last_send.lock().unwrap() = Some(request.clone());
        Box::pin(async move {
            scripted(self, &request).await?;
            let message = request.message.expect("validated");
            Ok(if message.text().starts_with("message") {
                SendMessageResponse::Message(Message::agent("m9", vec![Part::text("hello")]))
            } else {
                SendMessageResponse::Task(task("t1", TaskState::Completed))
            })
        })
    }

    fn send_streaming_message(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Reply<'_, EventStream> {
        self.note(&call);
        Box::pin(async move {
            scripted(self, &request).await?;
            Ok(self.events())
        })
    }

    fn get_task(&self, call: Call, request: GetTaskRequest) -> Reply<'_, Task> {
        self.note(&call);
        Box::pin(async move {
            known(&request.id)?;
            Ok(task(request.id.as_str(), TaskState::Completed))
        })
    }

    fn list_tasks(&self, call: Call, request: ListTasksRequest) -> Reply<'_, ListTasksResponse> {
        self.note(&call);
        Box::pin(async move {
            let mut page = ListTasksResponse::default();
            page.page_size = request.page_size.unwrap_or(50);
            Ok(page)
        })
    }

    fn cancel_task(&self, call: Call, request: CancelTaskRequest) -> Reply<'_, Task> {
        self.note(&call);
        Box::pin(async move {
            known(&request.id)?;
            Ok(task(request.id.as_str(), TaskState::Canceled))
        })
    }

    fn subscribe_to_task(
        &self,
        call: Call,
        request: SubscribeToTaskRequest,
    ) -> Reply<'_, EventStream> {
        self.note(&call);
        Box::pin(async move {
            known(&request.id)?;
            if request.id.as_str() == "ended" {
                let message = "the task has ended";
                return Err(A2aError::new(ErrorKind::UnsupportedOperation, message));
            }
            Ok(self.events())
        })
    }

    fn create_push_config(
        &self,
        call: Call,
        mut request: TaskPushNotificationConfig,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        self.note(&call);
        Box::pin(async move {
            known(request.task_id.as_ref().expect("validated"))?;
            request.id.get_or_insert_with(|| "p1".into());
            Ok(request)
        })
    }

    fn get_push_config(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Reply<'_, TaskPushNotificationConfig> {
        self.note(&call);
        Box::pin(async move {
            known(&request.task_id)?;
            let mut config = TaskPushNotificationConfig::default();
            config.id = Some(request.id);
            config.task_id = Some(request.task_id);
            config.url = "https://example.com/hook".to_owned();
            Ok(config)
        })
    }

    fn list_push_configs(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Reply<'_, ListTaskPushNotificationConfigsResponse> {
        self.note(&call);
        Box::pin(async move {
            known(&request.task_id)?;
            Ok(ListTaskPushNotificationConfigsResponse::default())
        })
    }

    fn delete_push_config(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Reply<'_, ()> {
        self.note(&call);
        Box::pin(async move { known(&request.task_id) })
    }

    fn get_extended_agent_card(
        &self,
        call: Call,
        _request: GetExtendedAgentCardRequest,
    ) -> Reply<'_, AgentCard> {
        self.note(&call);
        Box::pin(async move {
            let unset = || A2aError::new(ErrorKind::ExtendedAgentCardNotConfigured, "no card");
            self.extended.clone().ok_or_else(unset)
        })
    }
}

/// A clock that stands still.
#[derive(Debug)]
pub(crate) struct StoppedClock;

impl nuncio_protocol::Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(1_700_000_000_000)
    }
}

/// Ids `id-1`, `id-2` …
#[derive(Debug, Default)]
pub(crate) struct CountedIds(std::sync::atomic::AtomicU64);

impl nuncio_protocol::Ids for CountedIds {
    fn next(&self) -> String {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!("id-{}", number + 1)
    }
}

pub(crate) type SharedFake = Arc<Fake>;
