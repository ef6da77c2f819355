//! A conversation: what must be remembered between one message and the next.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_protocol::{
    A2aError, AgentService as _, Call, ContextId, ErrorKind, Event, EventStream, GetTaskRequest,
    Ids, Message, Part, Result, SendMessageConfiguration, SendMessageRequest, StreamResponse, Task,
    TaskId, TaskState,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::failure::{Cause, bad_answer, cause};
use crate::reply::question_of;
use crate::{Client, Reply};

/// The format of [`ConversationState`]; a newer one is refused rather than misread.
const FORMAT: u32 = 1;

/// A conversation as it can be written to disk and taken up later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConversationState {
    /// The version of this format.
    pub format: u32,
    /// The conversation, once the agent has named it.
    pub context_id: Option<ContextId>,
    /// The task that goes on, or waits for an answer.
    pub open_task: Option<TaskId>,
    /// What the agent waits for.
    pub question: Option<Message>,
}

impl Default for ConversationState {
    fn default() -> Self {
        Self {
            format: FORMAT,
            context_id: None,
            open_task: None,
            question: None,
        }
    }
}

/// A saved conversation of a format that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conversation was saved in format {0}, which is newer than this program")]
pub struct RestoreError(pub u32);

/// A conversation with one agent.
///
/// Carries the context from message to message, sends an answer to the task that asked, and lets
/// go of a task once it has ended (GEN-09, BR-013).
#[derive(Debug)]
pub struct Conversation {
    client: Client,
    ids: Arc<dyn Ids>,
    call: Call,
    configuration: Option<SendMessageConfiguration>,
    max_wait: Option<Duration>,
    state: ConversationState,
    task: Option<Task>,
}

impl Conversation {
    /// A new conversation; `ids` makes the ids of its messages.
    pub fn new(client: Client, ids: Arc<dyn Ids>) -> Self {
        Self {
            client,
            ids,
            call: Call::client(),
            configuration: None,
            max_wait: None,
            state: ConversationState::default(),
            task: None,
        }
    }

    /// Takes up a conversation that was saved.
    ///
    /// # Errors
    /// [`RestoreError`] for a newer format.
    pub fn restore(
        client: Client,
        ids: Arc<dyn Ids>,
        state: ConversationState,
    ) -> Result<Self, RestoreError> {
        if state.format > FORMAT {
            return Err(RestoreError(state.format));
        }
        Ok(Self {
            state,
            ..Self::new(client, ids)
        })
    }

    /// What must be kept to take this conversation up later.
    pub fn save(&self) -> ConversationState {
        self.state.clone()
    }

    /// The same conversation with a call whose extensions, trace and timeout go with every message.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.call = call;
        self
    }

    /// The same conversation with a configuration that goes with every message.
    #[must_use]
    pub fn with_configuration(mut self, configuration: SendMessageConfiguration) -> Self {
        self.configuration = Some(configuration);
        self
    }

    /// The same conversation, waiting at most so long for an answer; then it is
    /// [`Reply::StillRunning`].
    #[must_use]
    pub fn with_max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// The same conversation within a context that exists already.
    #[must_use]
    pub fn in_context(mut self, context: impl Into<ContextId>) -> Self {
        self.state.context_id = Some(context.into());
        self
    }

    /// The agent.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The context, once the agent has named it.
    pub fn context_id(&self) -> Option<&ContextId> {
        self.state.context_id.as_ref()
    }

    /// The task that goes on, or waits for an answer; the next message belongs to it.
    pub fn open_task(&self) -> Option<&TaskId> {
        self.state.open_task.as_ref()
    }

    /// The last task of this conversation, with its artifacts, as it was seen last.
    pub fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// What the agent wants to know, or needs a permission for (BR-067).
    pub fn pending_question(&self) -> Option<&Message> {
        self.state.question.as_ref()
    }

    /// Says something and waits until the agent has answered, asks back or needs a permission.
    ///
    /// # Errors
    /// The agent's error, or one of the way there. An open task stays open: [`Self::wait`] goes on
    /// with it.
    pub async fn ask(&mut self, text: impl Into<String>) -> Result<Reply> {
        self.ask_parts(vec![Part::text(text)], |_| {}).await
    }

    /// As [`Self::ask`], with any parts, telling each event as it comes.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub async fn ask_parts(
        &mut self,
        parts: Vec<Part>,
        mut on_event: impl FnMut(&Event),
    ) -> Result<Reply> {
        // The first snapshot after an answer may still show the question it answers.
        let answers = self.state.question.is_some();
        let sent = self.send(parts.clone()).await;
        let stream = match sent {
            Err(error) if self.has_ended(&error).await => {
                self.forget_task();
                self.send(parts).await?
            }
            sent => sent?,
        };
        self.hear(stream, answers, &mut on_event).await
    }

    /// Waits for the open task, without saying anything.
    ///
    /// # Errors
    /// As [`Self::ask`]; [`ErrorKind::InvalidRequest`] if there is no open task.
    pub async fn wait(&mut self) -> Result<Reply> {
        self.wait_with(|_| {}).await
    }

    /// As [`Self::wait`], telling each event as it comes.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn wait_with(&mut self, mut on_event: impl FnMut(&Event)) -> Result<Reply> {
        let Some(task) = self.state.open_task.clone() else {
            return Err(A2aError::new(
                ErrorKind::InvalidRequest,
                "the conversation has no open task to wait for",
            ));
        };
        let stream = self.client.follow(self.call.clone(), task).await?;
        self.hear(stream, false, &mut on_event).await
    }

    async fn send(&self, parts: Vec<Part>) -> Result<EventStream> {
        let mut message = Message::user(self.ids.next(), parts);
        message.context_id.clone_from(&self.state.context_id);
        message.task_id.clone_from(&self.state.open_task);
        message.extensions.clone_from(&self.call.extensions);
        let mut request = SendMessageRequest::new(message);
        request.configuration.clone_from(&self.configuration);
        self.client.stream(self.call.clone(), request).await
    }

    /// Whether an error only means that the open task has ended meanwhile (TRAP-03).
    async fn has_ended(&mut self, error: &A2aError) -> bool {
        let Some(id) = self.state.open_task.clone() else {
            return false;
        };
        let possible = matches!(
            error.kind,
            ErrorKind::UnsupportedOperation | ErrorKind::InvalidParams
        );
        if !possible {
            return false;
        }
        let asked = GetTaskRequest::new(id);
        let task = self.client.get_task(self.call.clone(), asked).await;
        task.is_ok_and(|task| task.status.state.is_terminal())
    }

    /// Listens until the task ends or waits for somebody; with `answers`, not at the first snapshot.
    async fn hear(
        &mut self,
        mut stream: EventStream,
        mut answers: bool,
        on_event: &mut impl FnMut(&Event),
    ) -> Result<Reply> {
        let gives_up = self.max_wait.map(|wait| Instant::now() + wait);
        let mut message = None;
        let mut task: Option<Task> = None;
        loop {
            let next = match gives_up {
                None => stream.next().await,
                Some(at) => match tokio::time::timeout_at(at, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => return still_running(task, None),
                },
            };
            let event = match next {
                None => break,
                Some(Ok(event)) => event,
                Some(Err(error)) if cause(&error) == Some(Cause::StillRunning) => {
                    return still_running(task, Some(error));
                }
                Some(Err(error)) => return Err(error),
            };
            on_event(&event);
            match event.response() {
                StreamResponse::Message(said) => {
                    self.join(said.context_id.as_ref());
                    message = Some(said.clone());
                }
                response => {
                    fold(&mut task, response);
                    if let Some(task) = &task {
                        self.note(task);
                    }
                }
            }
            let answered =
                std::mem::take(&mut answers) && matches!(event.response(), StreamResponse::Task(_));
            if !answered && event.state().is_some_and(TaskState::is_interrupted) {
                break;
            }
        }
        match (message, task) {
            (Some(message), None) => Ok(Reply::Message(message)),
            (_, Some(task)) => Ok(Reply::Task(task)),
            (None, None) => Err(bad_answer("the agent's answer contains nothing")),
        }
    }

    fn join(&mut self, context: Option<&ContextId>) {
        if let Some(context) = context.filter(|context| !context.is_empty()) {
            self.state.context_id = Some(context.clone());
        }
    }

    fn note(&mut self, task: &Task) {
        self.join(task.context_id.as_ref());
        let open = !task.status.state.is_terminal() && !task.id.is_empty();
        self.state.open_task = open.then(|| task.id.clone());
        self.state.question = question_of(task).cloned();
        self.task = Some(task.clone());
    }

    fn forget_task(&mut self) {
        self.state.open_task = None;
        self.state.question = None;
    }
}

fn still_running(task: Option<Task>, error: Option<A2aError>) -> Result<Reply> {
    match (task, error) {
        (Some(task), _) => Ok(Reply::StillRunning(task)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(crate::failure::failure(
            ErrorKind::DeadlineExceeded,
            Cause::TotalTimeout,
            "the agent did not answer within the time the conversation waits",
        )),
    }
}

fn fold(task: &mut Option<Task>, response: &StreamResponse) {
    let (id, context) = match response {
        StreamResponse::Task(whole) => {
            *task = Some(whole.clone());
            return;
        }
        StreamResponse::StatusUpdate(update) => (&update.task_id, &update.context_id),
        StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id),
        _ => return,
    };
    task.get_or_insert_with(|| {
        let mut begun = Task::default();
        begun.id = id.clone();
        begun.context_id = Some(context.clone()).filter(|context| !context.is_empty());
        begun
    })
    .apply_leniently(response);
}
