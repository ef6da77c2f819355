//! Following a task to its end, whatever happens to the connection.
//!
//! A stream that is lost is asked for again from its last position; where that is refused, or
//! gives nothing new, the task is polled and the difference is told as events of the same shapes.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, stream};
use nuncio_protocol::{
    A2aError, AgentService as _, Call, ErrorKind, Event, EventStream, GetTaskRequest, Result,
    StreamResponse, SubscribeToTaskRequest, Task, TaskId,
};
use tokio::time::Instant;

use crate::Client;
use crate::failure::{Cause, about, cause, failure};
use crate::task_diff::events_between;

/// Whether an error says that streaming is not to be had here, rather than that the call is bad.
pub(crate) fn cannot_stream(error: &A2aError) -> bool {
    cause(error).is_none()
        && matches!(
            error.kind,
            ErrorKind::UnsupportedOperation
                | ErrorKind::MethodNotFound
                | ErrorKind::MethodNotAllowed
        )
}

/// Whether a later attempt may bring the stream back.
fn is_passing(error: &A2aError) -> bool {
    !matches!(cause(error), Some(Cause::TotalTimeout)) && error.kind.is_retryable()
}

pub(crate) enum Mode {
    /// Events come from an open stream.
    Reading(EventStream),
    /// The stream is to be asked for.
    Subscribe,
    /// The task is to be polled.
    Poll,
    /// Nothing more comes.
    Done,
}

/// A task being followed; see [`Client::stream`] and [`Client::follow`].
pub(crate) struct Following {
    client: Client,
    call: Call,
    ends: Option<Instant>,
    pub(crate) mode: Mode,
    pub(crate) id: Option<TaskId>,
    /// The task as the events so far tell it.
    task: Option<Task>,
    /// The position seen last.
    position: Option<u64>,
    /// On a connection that was asked for again: the position up to which everything was seen.
    /// Within one connection nothing is compared, since some agents number by the clock and give
    /// two events the same id.
    seen_to: Option<u64>,
    /// Whether the next event is the first of a connection that was asked for again.
    resumed: bool,
    /// Whether the present connection has brought anything new.
    fresh: bool,
    /// Attempts in a row that brought nothing.
    attempts: u32,
    polls: u32,
    quiet_since: Instant,
    pub(crate) queue: VecDeque<Result<Event>>,
}

impl Following {
    pub(crate) fn new(client: &Client, call: Call) -> Self {
        let now = Instant::now();
        let total = [call.timeout, client.limits().total].into_iter().flatten();
        Self {
            client: client.clone(),
            ends: total.min().map(|total| now + total),
            position: call.last_event_id,
            seen_to: None,
            call,
            mode: Mode::Done,
            id: None,
            task: None,
            resumed: false,
            fresh: false,
            attempts: 0,
            polls: 0,
            quiet_since: now,
            queue: VecDeque::new(),
        }
    }

    /// Whether there is neither an open stream nor an end yet.
    pub(crate) fn is_looking(&self) -> bool {
        matches!(self.mode, Mode::Subscribe | Mode::Poll)
    }

    pub(crate) fn into_stream(self) -> EventStream {
        Box::pin(stream::unfold(self, |mut this| async move {
            loop {
                if let Some(item) = this.queue.pop_front() {
                    return Some((item, this));
                }
                if matches!(this.mode, Mode::Done) {
                    return None;
                }
                this.step().await;
            }
        }))
    }

    /// The call for the next exchange, with what is left of the time.
    pub(crate) fn remaining(&self) -> Result<Call> {
        let mut call = self.call.clone();
        call.last_event_id = None;
        if let Some(ends) = self.ends {
            let left = ends.duration_since(Instant::now());
            if left.is_zero() {
                return Err(failure(
                    ErrorKind::DeadlineExceeded,
                    Cause::TotalTimeout,
                    "the task did not end in time: the total limit was hit",
                ));
            }
            call.timeout = Some(left);
        }
        Ok(call)
    }

    /// Makes one step; what comes of it lies in the queue.
    pub(crate) async fn step(&mut self) {
        let done = match std::mem::replace(&mut self.mode, Mode::Done) {
            Mode::Reading(stream) => self.read(stream).await,
            Mode::Subscribe => self.subscribe().await,
            Mode::Poll => self.poll().await,
            Mode::Done => Ok(()),
        };
        if let Err(error) = done {
            let error = match &self.id {
                Some(id) => about(id, error),
                None => error,
            };
            self.queue.push_back(Err(error));
            self.mode = Mode::Done;
        }
    }

    async fn read(&mut self, mut stream: EventStream) -> Result<()> {
        match stream.next().await {
            Some(Ok(event)) if self.resumed && tells_nothing_of_before(&event) => {
                // What happened in between is unknown (V03-06), and what the stream says next may be
                // in the task already: polls alone lose and double nothing.
                self.resumed = false;
                self.attempts = 0;
                self.polls = 0;
                self.quiet_since = Instant::now();
                self.poll_now().await
            }
            Some(Ok(event)) => {
                self.mode = Mode::Reading(stream);
                self.take(event);
                Ok(())
            }
            // A stream that lost nothing says so by ending; see `reading`.
            None => Ok(()),
            Some(Err(error)) if is_passing(&error) && self.id.is_some() => {
                tracing::debug!("the stream is lost: {error}");
                self.mode = if self.resumed_in_vain() {
                    Mode::Poll
                } else {
                    Mode::Subscribe
                };
                Ok(())
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Some agents send the snapshot and close: asking again would go on for ever (TRAP-05).
    fn resumed_in_vain(&self) -> bool {
        self.attempts > 0 && !self.fresh
    }

    async fn subscribe(&mut self) -> Result<()> {
        let policy = *self.client.follow_policy();
        let Some(id) = self.id.clone() else {
            return Ok(());
        };
        if self.task.is_some() || self.attempts > 0 {
            self.pause(policy.reconnect.delay(self.attempts)).await;
        }
        self.attempts += 1;
        let mut call = self.remaining()?;
        call.last_event_id = self.position;
        let request = SubscribeToTaskRequest::new(id);
        match self.client.subscribe_to_task(call, request).await {
            Ok(stream) => {
                self.resumed = true;
                self.seen_to = self.position;
                self.fresh = false;
                self.mode = Mode::Reading(stream);
                Ok(())
            }
            Err(error) if is_passing(&error) && self.attempts < policy.attempts => {
                self.mode = Mode::Subscribe;
                Ok(())
            }
            // It has ended, or streams are not to be had: the task itself knows (BR-054, TRAP-05).
            // Some call a task that has ended a wrong parameter, as in TRAP-03.
            Err(error)
                if cannot_stream(&error)
                    || matches!(
                        error.kind,
                        ErrorKind::TaskNotFound | ErrorKind::InvalidParams
                    )
                    || cause(&error) == Some(Cause::BadAnswer) =>
            {
                self.polls = 0;
                self.quiet_since = Instant::now();
                self.poll_now().await
            }
            Err(error) => Err(error),
        }
    }

    async fn poll(&mut self) -> Result<()> {
        if self.task.as_ref().is_some_and(stops) {
            return Ok(());
        }
        let policy = *self.client.follow_policy();
        if self.attempts > 0 {
            self.pause(policy.reconnect.delay(self.attempts - 1)).await;
        } else if self.task.is_some() {
            if self.quiet_since.elapsed() >= policy.max_quiet {
                return Err(failure(
                    ErrorKind::DeadlineExceeded,
                    Cause::StillRunning,
                    format!(
                        "the task is still running, but nothing of it was heard for {:?}",
                        policy.max_quiet
                    ),
                ));
            }
            self.pause(policy.poll.delay(self.polls)).await;
            self.polls += 1;
        }
        self.poll_now().await
    }

    async fn poll_now(&mut self) -> Result<()> {
        let Some(id) = self.id.clone() else {
            return Ok(());
        };
        let call = self.remaining()?;
        match self.client.get_task(call, GetTaskRequest::new(id)).await {
            Ok(task) => {
                self.attempts = 0;
                self.tell_difference(task);
                self.mode = Mode::Poll;
                Ok(())
            }
            Err(error) if is_passing(&error) => {
                self.attempts += 1;
                if self.attempts >= self.client.follow_policy().attempts {
                    return Err(error);
                }
                self.mode = Mode::Poll;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn tell_difference(&mut self, task: Task) {
        let events = match &self.task {
            None => vec![StreamResponse::Task(task.clone())],
            Some(known) => events_between(known, &task),
        };
        if !events.is_empty() {
            self.polls = 0;
            self.quiet_since = Instant::now();
        }
        self.id = Some(task.id.clone());
        self.task = Some(task);
        self.queue
            .extend(events.into_iter().map(|event| Ok(event.into())));
    }

    /// Takes an event in, and passes it on unless it was seen before.
    pub(crate) fn take(&mut self, event: Event) {
        let first = std::mem::take(&mut self.resumed);
        if first && event.position < self.seen_to {
            // Its positions count anew, or it has none: they say nothing about what was seen.
            self.seen_to = None;
        }
        let snapshot = matches!(event.response(), StreamResponse::Task(_));
        if !snapshot && event.position.is_some() && event.position <= self.seen_to {
            return;
        }
        self.position = event.position.or(self.position);
        if let StreamResponse::Task(task) = event.response() {
            let known = self.task.as_ref() == Some(task);
            self.id = Some(task.id.clone());
            self.task = Some(task.clone());
            self.made_progress(!(first && known));
            if first && known {
                return;
            }
        } else {
            self.fold(event.response());
            self.made_progress(true);
        }
        self.queue.push_back(Ok(event));
    }

    fn made_progress(&mut self, progress: bool) {
        if progress {
            self.fresh = true;
            self.attempts = 0;
        }
    }

    fn fold(&mut self, response: &StreamResponse) {
        let id = match response {
            StreamResponse::StatusUpdate(update) => &update.task_id,
            StreamResponse::ArtifactUpdate(update) => &update.task_id,
            _ => return,
        };
        if self.id.is_none() && !id.is_empty() {
            self.id = Some(id.clone());
        }
        let task = self.task.get_or_insert_with(|| {
            let mut task = Task::default();
            task.id = id.clone();
            task
        });
        task.apply_leniently(response);
    }

    async fn pause(&mut self, delay: std::time::Duration) {
        let wakes = Instant::now() + delay;
        tokio::time::sleep_until(self.ends.map_or(wakes, |ends| wakes.min(ends))).await;
    }
}

/// Whether the first event of a subscription leaves open how the task came to it: 0.3 need not begin
/// with the task.
fn tells_nothing_of_before(event: &Event) -> bool {
    let whole = matches!(
        event.response(),
        StreamResponse::Task(_) | StreamResponse::Message(_)
    );
    !whole && event.position.is_none()
}

/// Whether polling further would show nothing new by itself.
fn stops(task: &Task) -> bool {
    task.status.state.is_terminal() || task.status.state.is_interrupted()
}
