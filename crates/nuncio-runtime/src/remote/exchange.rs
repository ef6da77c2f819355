//! One message to a remote agent, and what comes of it.

use futures_util::StreamExt as _;
use nuncio_client::{Client, FollowPolicy};
use nuncio_engine::{EmitError, Input, Outcome, Pause, RunCx, Span};
use nuncio_protocol::{
    A2aError, AgentId, AgentService as _, Artifact, Call, CancelTaskRequest, ErrorKind,
    EventStream, ForwardedHeaders, GetTaskRequest, Message, Part, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskId, TaskState,
};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::agent::{RemoteError, RemoteSettings, Waiting};
use super::state::{RemoteState, question};

/// How long a remote agent has to take a cancel.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
/// How long a cancel waits to be told which task there it is about.
const OPENING_LIMIT: Duration = Duration::from_secs(1);
/// The first and the last time to wait for an agent that still shows the question it was answered;
/// each is twice the one before.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_millis(6400);

pub(super) struct Exchange<'a> {
    cx: &'a RunCx,
    span: &'a Span,
    agent: &'a AgentId,
    client: Client,
    settings: &'a RemoteSettings,
    state: RemoteState,
    /// Headers of the caller that are passed on.
    forwarded: ForwardedHeaders,
    /// The task as its events tell it.
    task: Task,
    said: Option<Message>,
    /// Fired when it is known which task there is ours.
    opened: CancellationToken,
}

/// Why an exchange is over before its task is.
enum Break {
    Refused(A2aError),
    /// The run here has ended.
    Ended,
}

impl From<A2aError> for Break {
    fn from(error: A2aError) -> Self {
        Self::Refused(error)
    }
}

impl From<EmitError> for Break {
    fn from(error: EmitError) -> Self {
        match error {
            EmitError::Ended => Self::Ended,
            EmitError::Invalid(why) => {
                Self::Refused(A2aError::new(ErrorKind::InvalidAgentResponse, why))
            }
        }
    }
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        cx: &'a RunCx,
        span: &'a Span,
        agent: &'a AgentId,
        client: Client,
        settings: &'a RemoteSettings,
    ) -> Self {
        Self {
            cx,
            span,
            agent,
            client,
            settings,
            state: RemoteState::default(),
            forwarded: ForwardedHeaders::default(),
            task: Task::default(),
            said: None,
            opened: CancellationToken::new(),
        }
    }

    pub(super) async fn answer(mut self, input: Input) -> Result<Outcome, RemoteError> {
        let kept = |error| RemoteError::NotKept(self.agent.clone(), error);
        self.state = RemoteState::of(self.cx).await.map_err(kept)?;
        self.forwarded = self.settings.of_callers(&input.forwarded);
        let opened = self.opened.clone();
        let heard = tokio::select! {
            biased;
            () = canceled(self.cx, &opened) => None,
            heard = self.converse(&input) => Some(heard),
        };
        match heard {
            None | Some(Err(Break::Ended)) => Ok(Outcome::Done),
            Some(Err(Break::Refused(error))) => Err(self.refused(error)),
            Some(Ok(())) => {
                let kept = |error| RemoteError::NotKept(self.agent.clone(), error);
                self.state.pass_on(self.cx).await.map_err(kept)?;
                self.outcome()
            }
        }
    }

    fn refused(&self, error: A2aError) -> RemoteError {
        RemoteError::Refused {
            agent: self.agent.clone(),
            error,
        }
    }

    async fn converse(&mut self, input: &Input) -> Result<(), Break> {
        // The same in every attempt, so that an agent that knows repetitions answers once.
        let id = match self.cx.place() {
            "" => format!("{}.{}", self.cx.task(), input.message.message_id),
            place => format!("{}.{place}.{}", self.cx.task(), input.message.message_id),
        };
        if self.state.open.is_some() {
            self.opened.cancel();
        }
        let stream = match self.state.open.clone() {
            Some(open) if self.state.sent.as_ref() == Some(&id) => {
                self.client.follow(self.call(), open).await?
            }
            _ => self.send(input, &id).await?,
        };
        self.hear(stream, &id).await?;
        self.wait_for_beginning(&id).await?;
        if self.task.status.state.is_interrupted() {
            self.state.asked = question(&self.task.status);
            self.state.keep(self.cx)?;
        }
        Ok(())
    }

    /// Some agents take an answer and show the question for a while before they begin with it.
    async fn wait_for_beginning(&mut self, id: &str) -> Result<(), Break> {
        let mut delay = FIRST_LOOK;
        while self.state.is_answered(&self.task.status) && delay <= LAST_LOOK {
            tokio::time::sleep(delay).await;
            delay *= 2;
            let stream = self
                .client
                .follow(self.call(), self.task.id.clone())
                .await?;
            self.hear(stream, id).await?;
        }
        Ok(())
    }

    async fn send(&mut self, input: &Input, id: &str) -> Result<EventStream, Break> {
        match self.ask(self.request(input, id)).await {
            Err(error) if self.has_ended(&error).await => {
                self.state.last = self.state.open.take();
                Ok(self.ask(self.request(input, id)).await?)
            }
            answer => Ok(answer?),
        }
    }

    async fn ask(&self, mut request: SendMessageRequest) -> Result<EventStream, A2aError> {
        let mut call = self.call();
        call.idempotency_key = request.message.as_ref().map(|m| m.message_id.to_string());
        if self.settings.waiting != Waiting::Send {
            return match self.client.stream(call.clone(), request.clone()).await {
                // It has no more streams for us; the message was not taken.
                Err(error) if error.kind == ErrorKind::ResourceExhausted => {
                    let policy = FollowPolicy {
                        streams: false,
                        ..FollowPolicy::default()
                    };
                    self.client.with_follow(policy).stream(call, request).await
                }
                answer => answer,
            };
        }
        let configuration = request.configuration.get_or_insert_default();
        configuration.return_immediately = false;
        match self.client.send_message(call, request).await? {
            SendMessageResponse::Task(task) if goes_on(task.status.state) => {
                self.client.follow(self.call(), task.id).await
            }
            answer => {
                let event = match answer {
                    SendMessageResponse::Task(task) => StreamResponse::Task(task),
                    SendMessageResponse::Message(message) => StreamResponse::Message(message),
                    _ => return Err(no_answer()),
                };
                Ok(Box::pin(futures_util::stream::iter([Ok(event.into())])))
            }
        }
    }

    fn request(&self, input: &Input, id: &str) -> SendMessageRequest {
        let mut message = Message::user(id, input.message.parts.clone());
        message.context_id.clone_from(&self.state.context);
        message.task_id.clone_from(&self.state.open);
        message.metadata.clone_from(&input.message.metadata);
        if self.state.open.is_none() {
            message.reference_task_ids.extend(self.state.last.clone());
        }
        let mut request = SendMessageRequest::new(message);
        request.metadata = Some(self.cx.call_metadata());
        let mut configuration = SendMessageConfiguration::default();
        configuration
            .accepted_output_modes
            .clone_from(&input.accepted_output_modes);
        request.configuration = Some(configuration);
        request
    }

    fn call(&self) -> Call {
        let mut call = Call::client();
        call.trace = Some(self.cx.trace());
        call.forwarded.clone_from(&self.forwarded);
        let left = self.cx.deadline().duration_since(Instant::now());
        call.timeout = Some(self.settings.max_wait.map_or(left, |max| max.min(left)));
        call
    }

    /// Whether an error only means that the open task has ended meanwhile.
    async fn has_ended(&self, error: &A2aError) -> bool {
        let possible = matches!(
            error.kind,
            ErrorKind::UnsupportedOperation | ErrorKind::InvalidParams | ErrorKind::TaskNotFound
        );
        let Some(open) = self.state.open.clone().filter(|_| possible) else {
            return false;
        };
        match self
            .client
            .get_task(self.call(), GetTaskRequest::new(open))
            .await
        {
            Ok(task) => task.status.state.is_terminal(),
            Err(error) => error.kind == ErrorKind::TaskNotFound,
        }
    }

    async fn hear(&mut self, mut stream: EventStream, sent: &str) -> Result<(), Break> {
        // The first snapshot after an answer may still show the question it answers.
        let mut answers = self.state.open.is_some() && self.state.sent.as_deref() != Some(sent);
        while let Some(event) = stream.next().await {
            let event = event?;
            if let StreamResponse::Task(task) = event.response()
                && !task.status.state.is_terminal()
            {
                // Before anything of it is told: whoever has seen it work finds it again.
                self.note(task, sent)?;
            }
            self.tell(event.response()).await?;
            let task = std::mem::take(&mut self.task);
            let noted = self.note(&task, sent);
            self.task = task;
            noted?;
            let snapshot = matches!(event.response(), StreamResponse::Task(_));
            let answered = std::mem::take(&mut answers) && snapshot;
            let answered = answered || (snapshot && self.state.is_answered(&self.task.status));
            if !answered && event.state().is_some_and(TaskState::is_interrupted) {
                break;
            }
        }
        if self.said.is_none() && self.task.id.is_empty() {
            return Err(no_answer().into());
        }
        Ok(())
    }

    fn note(&mut self, task: &Task, sent: &str) -> Result<(), EmitError> {
        if self.state.note(task, sent) {
            self.span.set("a2a.remote.task.id", task.id.as_str());
            self.state.keep(self.cx)?;
        }
        if !task.id.is_empty() {
            self.opened.cancel();
        }
        Ok(())
    }

    /// Makes an event of the task there one of the task here.
    async fn tell(&mut self, response: &StreamResponse) -> Result<(), EmitError> {
        match response {
            StreamResponse::Message(message) => {
                self.said = Some(message.clone());
                if let Some(context) = message.context_id.clone().filter(|id| !id.is_empty()) {
                    self.state.context = Some(context);
                    self.state.keep(self.cx)?;
                }
            }
            StreamResponse::Task(task) => {
                // What is there of a task that goes on may be added to, also after a restart here.
                let whole = task.status.state.is_terminal();
                for artifact in &task.artifacts {
                    if known(&self.task, artifact) != Some(artifact) {
                        self.cx.chunk(artifact.clone(), false, whole).await?;
                    }
                }
                if task.status.message != self.task.status.message {
                    self.status(&task.status.message, task.status.state).await?;
                }
                self.task = task.clone();
            }
            StreamResponse::ArtifactUpdate(update) => {
                let append = update.append && known(&self.task, &update.artifact).is_some();
                let artifact = update.artifact.clone();
                self.cx.chunk(artifact, append, update.last_chunk).await?;
                self.fold(response, &update.task_id);
            }
            StreamResponse::StatusUpdate(update) => {
                self.status(&update.status.message, update.status.state)
                    .await?;
                self.fold(response, &update.task_id);
            }
            _ => {}
        }
        Ok(())
    }

    fn fold(&mut self, response: &StreamResponse, id: &TaskId) {
        if self.task.id.is_empty() {
            self.task.id = id.clone();
        }
        self.task.apply_leniently(response);
    }

    async fn status(&self, message: &Option<Message>, state: TaskState) -> Result<(), EmitError> {
        match message.as_ref().map(Message::text) {
            Some(text) if state == TaskState::Working && !text.is_empty() => {
                self.cx.status(text).await
            }
            _ => Ok(()),
        }
    }

    /// Tells the agent there that nobody wants its task any more; not waited for.
    fn cancel(&self) {
        let (Some(open), Ok(runtime)) = (self.state.open.clone(), Handle::try_current()) else {
            return;
        };
        let (client, agent) = (self.client.clone(), self.agent.clone());
        let mut call = self.call();
        call.timeout = Some(CANCEL_LIMIT);
        let mut request = CancelTaskRequest::new(open);
        request.metadata = self.cx.cancel_metadata();
        runtime.spawn(async move {
            if let Err(error) = client.cancel_task(call, request).await
                && error.kind != ErrorKind::TaskNotCancelable
            {
                tracing::warn!(agent.id = %agent, %error, "a remote task is not canceled");
            }
        });
    }

    /// What the end of the task there means for the run here.
    fn outcome(&mut self) -> Result<Outcome, RemoteError> {
        let said = self.said.take().filter(|_| self.task.id.is_empty());
        if let Some(message) = said {
            return Ok(Outcome::Reply(self.cx.message(message.parts)));
        }
        let status = std::mem::take(&mut self.task.status);
        let said = status.message.map(|message| message.parts);
        let reason = |said: Option<Vec<Part>>| {
            let text = said.map(|parts| Message::agent("", parts).text());
            let text = text.filter(|text| !text.is_empty());
            text.unwrap_or_else(|| "it did not say why".to_owned())
        };
        let prompt = |said: Option<Vec<Part>>| {
            self.cx
                .message(said.unwrap_or_else(|| vec![Part::text("The agent waits for you.")]))
        };
        let agent = self.agent.clone();
        match status.state {
            TaskState::Completed => Ok(match said {
                Some(parts) => Outcome::Said(self.cx.message(parts)),
                None => Outcome::Done,
            }),
            TaskState::InputRequired => Ok(Outcome::Paused(Pause::input(prompt(said)))),
            TaskState::AuthRequired => Ok(Outcome::Paused(Pause::auth(prompt(said), "", None))),
            TaskState::Rejected => Ok(Outcome::Rejected(reason(said))),
            TaskState::Canceled => Err(RemoteError::Canceled(agent)),
            TaskState::Failed => Err(RemoteError::Failed {
                agent,
                reason: reason(said),
            }),
            _ => Err(RemoteError::Refused {
                agent,
                error: no_answer(),
            }),
        }
    }
}

/// Whoever is canceled may drop what it waits for at once.
impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if self.cx.cancellation().is_cancelled() {
            self.cancel();
        }
    }
}

/// Done when nobody wants the answer any more and the task there is known, or is slow to be.
async fn canceled(cx: &RunCx, opened: &CancellationToken) {
    cx.cancellation().cancelled().await;
    let _ = tokio::time::timeout(OPENING_LIMIT, opened.cancelled()).await;
}

fn goes_on(state: TaskState) -> bool {
    !state.is_terminal() && !state.is_interrupted()
}

fn known<'t>(task: &'t Task, artifact: &Artifact) -> Option<&'t Artifact> {
    let id = &artifact.artifact_id;
    task.artifacts.iter().find(|known| known.artifact_id == *id)
}

fn no_answer() -> A2aError {
    let message = "the answer ended before the task did";
    A2aError::new(ErrorKind::InvalidAgentResponse, message)
}
