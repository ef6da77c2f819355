//! Waiting for a task: to its end, to a pause, to the time limit, or to Ctrl-C.

use std::pin::pin;

use futures_util::StreamExt as _;
use nuncio_protocol::{
    AgentService as _, Call, EventStream, GetTaskRequest, Message, StreamResponse, Task,
};
use tokio::time::{Instant, sleep_until};

use super::session::Session;
use super::state::is_resting;
use crate::outcome::{Code, Failure, Outcome, warn};
use crate::signals::Signals;

/// What a wait has brought.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The task as it is now: ended or waiting.
    Task(Box<Task>),
    /// An answer without a task.
    Message(Box<Message>),
}

/// A wait in progress.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    session: &'a Session,
    /// Whether events are printed as they come.
    events: bool,
    /// The message whose answer is awaited, for repeating it.
    message_id: Option<String>,
    task: Option<Task>,
    told: bool,
    deadline: Option<Instant>,
}

impl<'a> Wait<'a> {
    /// A wait as long as `--timeout` says.
    ///
    /// # Errors
    /// A time limit that makes no sense.
    pub(crate) fn new(
        session: &'a Session,
        events: bool,
        message_id: Option<String>,
    ) -> Outcome<Self> {
        let timeout = session.settings.duration("timeout")?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Ok(Self {
            session,
            events,
            message_id,
            task: None,
            told: false,
            deadline,
        })
    }

    /// Opens a stream and sees it through, printing events if that is wanted.
    ///
    /// # Errors
    /// What the agent answers, a lost connection that does not come back, the time limit, Ctrl-C.
    pub(crate) async fn through(
        mut self,
        doing: &str,
        open: impl Future<Output = nuncio_protocol::Result<EventStream>>,
    ) -> Outcome<Ending> {
        let mut signals = Signals::listen()
            .map_err(|error| Failure::internal(format!("failed to listen to signals: {error}")))?;
        let mut open = pin!(open);
        let opened = self.unless_interrupted(&mut signals, open.as_mut()).await?;
        let mut stream = opened.map_err(|error| self.session.failed(doing, &error))?;
        loop {
            let Some(item) = self.unless_interrupted(&mut signals, stream.next()).await? else {
                break;
            };
            let event = item.map_err(|error| self.broken(doing, &error))?;
            if let StreamResponse::Message(message) = event.response()
                && self.task.is_none()
            {
                self.print(&event)?;
                return Ok(Ending::Message(Box::new(message.clone())));
            }
            self.fold(event.response());
            self.print(&event)?;
            self.tell_id()?;
            if self.rests() {
                break;
            }
        }
        match self.task.take() {
            Some(task) => self.ending(task).await,
            None => Err(Failure::new(
                Code::Protocol("InvalidAgentResponseError"),
                format!("failed to {doing}: the agent's stream ended without an event"),
            )),
        }
    }

    fn rests(&self) -> bool {
        self.task
            .as_ref()
            .is_some_and(|task| is_resting(task.status.state))
    }

    fn fold(&mut self, response: &StreamResponse) {
        match (&mut self.task, response) {
            (_, StreamResponse::Task(task)) => self.task = Some(task.clone()),
            (Some(task), other) => task.apply_leniently(other),
            (None, other) => {
                let (id, context) = match other {
                    StreamResponse::StatusUpdate(update) => (&update.task_id, &update.context_id),
                    StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id),
                    _ => return,
                };
                let mut task = Task::new(id.clone(), context.clone(), Default::default());
                task.apply_leniently(other);
                self.task = Some(task);
            }
        }
    }

    fn print(&self, event: &nuncio_protocol::Event) -> Outcome {
        if self.events {
            self.session
                .printer
                .event(event, self.task.as_ref(), &self.session.hints)?;
        }
        Ok(())
    }

    /// Says the task's id as soon as it is known, so that leaving loses nothing; events say it
    /// themselves.
    fn tell_id(&mut self) -> Outcome {
        let silent = self.told || self.events || self.rests();
        let Some(task) = self.task.as_ref().filter(|_| !silent) else {
            return Ok(());
        };
        warn(&format!("task: {}\n", super::escape(task.id.as_str())))?;
        self.told = true;
        Ok(())
    }

    /// The task as the agent has it now; as the events told it if it cannot be read.
    async fn ending(self, folded: Task) -> Outcome<Ending> {
        if self.events {
            return Ok(Ending::Task(Box::new(folded)));
        }
        let request = GetTaskRequest::new(folded.id.clone());
        let read = self.session.client.get_task(Call::client(), request).await;
        let still = |task: &Task| is_resting(task.status.state) || !is_resting(folded.status.state);
        Ok(Ending::Task(Box::new(
            read.ok().filter(still).unwrap_or(folded),
        )))
    }

    async fn unless_interrupted<T>(
        &self,
        signals: &mut Signals,
        work: impl Future<Output = T>,
    ) -> Outcome<T> {
        let until = self.deadline.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = signals.next() => self.interrupted(),
            () = sleep_until(until), if self.deadline.is_some() => Err(self.timed_out()),
        }
    }

    fn next_step(&self) -> Option<String> {
        let hints = &self.session.hints;
        match (&self.task, &self.message_id) {
            (Some(task), _) => Some(hints.wait(task.id.as_str())),
            (None, Some(message)) => Some(hints.repeat(message)),
            (None, None) => None,
        }
    }

    fn interrupted<T>(&self) -> Outcome<T> {
        let next = self
            .next_step()
            .map(|next| format!(": {next}"))
            .unwrap_or_default();
        warn(&format!("interrupted; the task goes on{next}\n"))?;
        Err(Failure::Interrupted)
    }

    fn timed_out(&self) -> Failure {
        let message = match &self.task {
            Some(task) => format!(
                "failed to wait for task {}: it is still {} when --timeout expires; it goes on",
                task.id,
                super::state::short(task.status.state)
            ),
            None => "failed to wait for the answer: none when --timeout expires".to_owned(),
        };
        let failure = Failure::new(Code::Timeout, message);
        match self.next_step() {
            Some(next) => failure.hint(next),
            None => failure,
        }
    }

    fn broken(&self, doing: &str, error: &nuncio_protocol::A2aError) -> Failure {
        let failure = self.session.failed(doing, error);
        match &self.task {
            Some(task) => failure.rather(self.session.hints.wait(task.id.as_str())),
            None => failure,
        }
    }
}
