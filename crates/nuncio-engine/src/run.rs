//! A run: an agent at work on a task, and the writing of what it emits.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Fuse, FusedFuture as _};
use nuncio_protocol::{
    A2aError, AgentId, Caller, ErrorKind, Event, Message, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp, TraceContext,
    json,
};
use nuncio_store::{Append, Appended, Created, Head, LeaseChange, NewTask, NodeRow, StoreError};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::cell::{Cell, QueuedMessage, Unstored};
use crate::chain::Chain;
use crate::context::RunInner;
use crate::draft::DraftGuard;
use crate::end::End;
use crate::engine::{Core, store_error};
use crate::holder::Holder;
use crate::outbox::{Batch, Emitted, Outbox};
use crate::place::{Checkpoints, Place};
use crate::request::RequestParts;
use crate::session::Sessions;
use crate::span::{Node, RunTrace};
use crate::{Agent, AgentError, Input, Outcome, RunCx, SpanKind};

/// What a run begins with.
pub(crate) struct Start {
    pub(crate) cell: Arc<Cell>,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) message: QueuedMessage,
    /// The task, if it is not stored yet.
    pub(crate) draft: Option<Box<NewTask>>,
    /// Holds the key of the send meanwhile.
    pub(crate) guard: Option<DraftGuard>,
}

/// What an agent's future gives, a panic included.
pub(crate) type Returned = Result<Result<Outcome, AgentError>, Box<dyn Any + Send>>;

/// Why a batch was not written.
#[derive(Debug)]
enum Unwritten {
    /// The run is over without a word: somebody else has the task, or nobody will.
    Lost,
    /// Another process was quicker; the run would have ended with this batch, and is to look again.
    Overtaken(Batch),
}

/// What was quicker than a write.
#[derive(Debug, PartialEq, Eq)]
enum Overtaken {
    /// The same write, whose answer was lost.
    Itself,
    /// A message from outside; the run goes on.
    Message,
    /// The end of the task, or another run of it.
    AnotherRun,
}

struct Run {
    core: Arc<Core>,
    cell: Arc<Cell>,
    cx: RunCx,
    draft: Mutex<Option<Box<NewTask>>>,
    /// Whether the agent may answer without a task.
    direct: bool,
    _guard: Option<DraftGuard>,
}

impl Core {
    /// Makes the run known to its cell, so that messages and cancels find it.
    pub(crate) fn prepare(
        &self,
        cell: &Cell,
        caller: Caller,
        epoch: u64,
        attempt: u64,
        first: Option<TraceContext>,
        request: &RequestParts,
    ) -> RunCx {
        let (task, _) = cell.snapshot();
        let agent = &cell.scope.agent;
        let of_task = TraceContext::of_task(&task.id);
        let trace = RunTrace::new(first, request.trace, of_task, &*self.environment.ids);
        let cancel = CancellationToken::new();
        let place = Place {
            agent: agent.clone(),
            above: Arc::default(),
            path: "".into(),
            cancel: cancel.clone(),
            span: trace.span,
            text_artifact: Arc::default(),
            gathered: None,
            listener: None,
            apart: false,
        };
        let inner = RunInner {
            caller,
            agent: agent.clone(),
            context: task.context_id.clone().unwrap_or_default(),
            task: task.id.clone(),
            attempt: attempt.into(),
            epoch,
            cancel,
            deadline: Instant::now() + self.settings.run_deadline,
            trace,
            chain: Chain::read(request.metadata.as_ref(), self.settings.max_depth),
            environment: self.environment.clone(),
            spans: self.spans.get().cloned(),
            sessions: Sessions::new(Arc::clone(&self.store), Arc::clone(&self.environment.clock)),
            outbox: Outbox::new(&task, self.settings.outbox_events),
            queue: Default::default(),
            checkpoints: Mutex::default(),
            tree: Mutex::default(),
            cancel_metadata: Mutex::default(),
            rerun: OnceLock::new(),
        };
        let cx = RunCx {
            inner: Arc::new(inner),
            place: Arc::new(place),
        };
        cell.set_run(cx.clone());
        cx
    }

    /// Begins a prepared run on this runtime, detached from whoever asked for it.
    ///
    /// With `at_once` its first step is made here and now: a short answer then needs no task of
    /// its own. Whoever must not wait for the agent's first step says no.
    pub(crate) fn launch(self: &Arc<Self>, start: Start, cx: RunCx, at_once: bool) {
        let run = Run {
            core: Arc::clone(self),
            cell: start.cell,
            cx,
            draft: Mutex::new(start.draft),
            direct: start.agent.info().answers_directly,
            _guard: start.guard,
        };
        let going = self.runs.track_future(run.go(start.agent, start.message));
        let mut going = Box::pin(going);
        if !at_once || going.as_mut().now_or_never().is_none() {
            tokio::spawn(going);
        }
    }
}

impl Core {
    /// Ends a task whose run was cut off, once the store takes it.
    pub(crate) fn launch_end(self: &Arc<Self>, cell: Arc<Cell>, cx: RunCx, end: End) {
        let run = Run {
            core: Arc::clone(self),
            cell,
            cx,
            draft: Mutex::default(),
            direct: false,
            _guard: None,
        };
        tokio::spawn(self.runs.track_future(async move { run.finish(end).await }));
    }
}

impl Run {
    async fn go(self, agent: Arc<dyn Agent>, first: QueuedMessage) {
        let span = self.cx.run_span();
        let mut next = Some(first);
        let mut hand_overs = 0;
        while let Some(message) = next.take() {
            let stored = self.cell.view(|view| view.head.checkpoint.clone());
            *self.cx.inner.checkpoints.lock() = Checkpoints::read(stored.as_deref());
            let end = self.answer(agent.as_ref(), message, &mut hand_overs).await;
            next = self.finish(end).await;
            if next.is_some() {
                // Nobody has tried to answer it before, however often the one before was tried.
                self.cx.inner.attempt.store(1, Ordering::Relaxed);
            }
        }
        span.state(self.cell.view(super::cell::View::state));
        drop(span);
        self.keep_tree(true).await;
    }

    /// Lets the agent that has the task answer one message, then whoever it is handed over to.
    async fn answer(
        &self,
        agent: &dyn Agent,
        message: QueuedMessage,
        hand_overs: &mut usize,
    ) -> End {
        let position = message.position;
        loop {
            let end = match self.cx.holder() {
                None => self.turn(agent, &self.cx, message.clone(), None).await,
                Some(holder) => self.turn_of(&holder, message.clone()).await,
            };
            let End::HandOff(to, told) = end else {
                return end;
            };
            *hand_overs += 1;
            if let Err(why) = self.may_have_it(&to, *hand_overs) {
                return failed(&why);
            }
            self.cx.hand_over(to, told, position);
            // What may still be answered without a task makes none by this.
            if !(self.direct && self.is_draft()) {
                // A run that is over says so where it ends.
                let _ = self.cx.inner.outbox.checkpoint(self.cx.all_left());
            }
        }
    }

    /// Whether a task may be handed over to an agent.
    fn may_have_it(&self, agent: &AgentId, hand_overs: usize) -> Result<(), String> {
        if hand_overs > self.core.settings.max_hand_offs {
            return Err("too many hand-offs from agent to agent".to_owned());
        }
        let key = &self.core.environment.token_key;
        let checked = self.cx.inner.chain.check(agent, key);
        checked.map_err(|error| error.message)
    }

    /// Lets the agent that the task was handed over to answer one message.
    async fn turn_of(&self, holder: &Holder, message: QueuedMessage) -> End {
        let id = &holder.agent;
        let Some(agent) = self.core.agents.read().get(id).cloned() else {
            return failed(&format!(
                "agent {id}, which has the task now, does not exist"
            ));
        };
        let cx = self.cx.of_holder(id);
        let span = cx.span(SpanKind::Agent, format!("invoke_agent {id}"));
        let (cx, told) = (cx.within(&span), holder.told(message.position));
        let end = self.turn(agent.as_ref(), &cx, message, told).await;
        if let End::Stopped(TaskState::Failed, why) = &end {
            span.fail(why.as_str());
        }
        end
    }

    /// Lets an agent answer one message, or what it was `told` instead, writing meanwhile what it emits.
    async fn turn(
        &self,
        agent: &dyn Agent,
        cx: &RunCx,
        message: QueuedMessage,
        told: Option<&Message>,
    ) -> End {
        let mut input = self.input(message).await;
        if let Some(told) = told {
            Arc::make_mut(&mut input.task).history.push(told.clone());
            input.message = told.clone();
        }
        let running = AssertUnwindSafe(agent.run(cx, input)).catch_unwind();
        tokio::pin!(running);
        // Most short answers are ready at once: then there is one write, and no timer.
        if let std::task::Poll::Ready(result) = futures_util::poll!(&mut running) {
            return self.canceled_or(End::of(result, &self.cell.id));
        }
        Box::pin(self.follow(running)).await
    }

    /// Follows an agent that takes its time: writes, cancels, ends it at its deadline.
    async fn follow(&self, mut running: Pin<&mut impl Future<Output = Returned>>) -> End {
        let outbox = &self.cx.inner.outbox;
        let drafting = self.direct && self.is_draft();
        if !drafting {
            outbox.ensure_working();
        }
        let flushing = Fuse::terminated();
        tokio::pin!(flushing);
        let settings = &self.core.settings;
        let deadline = sleep_until(self.cx.inner.deadline);
        let draft_limit = sleep(settings.draft_limit);
        let grace = sleep(Duration::ZERO);
        tokio::pin!(deadline, draft_limit, grace);
        let mut canceling = false;
        let result = loop {
            tokio::select! {
                biased;
                result = &mut running => break result,
                written = &mut flushing, if !flushing.is_terminated() => {
                    if Result::<(), Unwritten>::is_err(&written) { return End::Lost }
                    if !outbox.is_empty() { flushing.set(self.flush().fuse()) }
                }
                () = outbox.filled.notified(), if flushing.is_terminated() => {
                    if !outbox.is_empty() { flushing.set(self.flush().fuse()) }
                }
                () = &mut draft_limit, if drafting && !draft_limit.is_elapsed() => outbox.ensure_working(),
                () = self.cx.inner.cancel.cancelled(), if !canceling => {
                    canceling = true;
                    grace.as_mut().reset(Instant::now() + settings.cancel_grace);
                }
                () = &mut grace, if canceling => break Ok(Ok(Outcome::Done)),
                () = &mut deadline => {
                    let limit = settings.run_deadline.as_secs_f64();
                    return failed(&format!("the agent did not finish within {limit} seconds"));
                }
                () = self.core.stopping.cancelled() => return End::Lost,
            }
        };
        if !flushing.is_terminated() && flushing.await.is_err() {
            return End::Lost;
        }
        self.canceled_or(End::of(result, &self.cell.id))
    }

    fn canceled_or(&self, end: End) -> End {
        if self.cx.inner.cancel.is_cancelled() {
            return End::Stopped(TaskState::Canceled, String::new());
        }
        match end {
            End::Done(_) | End::Reply(_) | End::Paused(_) if self.cx.repeats() => {
                failed("the run came to its end before the step that was to be changed")
            }
            end => end,
        }
    }

    fn is_draft(&self) -> bool {
        self.draft.lock().is_some()
    }

    async fn input(&self, queued: QueuedMessage) -> Input {
        let (task, _) = self.cell.snapshot();
        let references = match queued.message.reference_task_ids.as_slice() {
            [] => Vec::new(),
            named => Box::pin(self.references(named)).await,
        };
        Input {
            message: queued.message,
            task,
            metadata: queued.request.metadata,
            references,
            accepted_output_modes: queued.request.accepted_output_modes,
            extensions: queued.request.extensions,
            forwarded: queued.request.forwarded,
            checkpoint: self.cx.left(),
        }
    }

    /// The earlier tasks that a message names, as far as its sender may see them (OP-SEND-24).
    async fn references(&self, named: &[nuncio_protocol::TaskId]) -> Vec<Task> {
        let mut found = Vec::new();
        for id in named.iter().take(MAX_REFERENCES) {
            if let Ok(Some(stored)) = self.core.store.load(&self.cell.scope, id).await {
                found.push(Arc::unwrap_or_clone(stored.task));
            }
        }
        found
    }

    /// Writes what has been emitted so far.
    async fn flush(&self) -> Result<(), Unwritten> {
        {
            let _writing = self.cell.writing.lock().await;
            let batch = self.cx.inner.outbox.take();
            self.write(batch, false, None).await?;
        }
        self.keep_tree(false).await;
        Ok(())
    }

    /// Keeps the steps that have begun or ended; a run of one step is told by its task alone.
    async fn keep_tree(&self, over: bool) {
        let nodes = self.cx.inner.tree.lock().take(over);
        if nodes.is_empty() || self.is_draft() {
            return;
        }
        let row = |node: Node| NodeRow {
            json: json::encode(&node).into(),
            id: node.id.into(),
        };
        let rows = nodes.into_iter().map(row).collect();
        let (scope, task) = (&self.cell.scope, &self.cell.id);
        if let Err(error) = self.core.store.record_nodes(scope, task, rows).await {
            tracing::warn!(task.id = %task, %error, "a part of the call tree is not kept");
        }
    }

    /// Writes how the turn ended, and gives the next message to answer.
    async fn finish(&self, end: End) -> Option<QueuedMessage> {
        let unstored = self.direct && self.is_draft() && self.cx.inner.outbox.is_empty();
        if let (End::Reply(_), true) = (&end, unstored) {
            let End::Reply(mut message) = end else {
                return None;
            };
            message.context_id = Some(self.cx.context().clone());
            message.task_id = None;
            self.cx.inner.outbox.close();
            self.cell.resolve_unstored(Unstored::Answered(message));
            return None;
        }
        if let End::Lost = end {
            self.give_up();
            return None;
        }
        let _writing = self.cell.writing.lock().await;
        let mut batch = self.cx.inner.outbox.take();
        if batch.checkpoint.is_none() && self.cx.holder().is_some() {
            batch.checkpoint = Some(self.cx.all_left());
        }
        let goes_on = end.goes_on();
        let waiting = || goes_on.then(|| self.cx.inner.queue.take()).flatten();
        let mut next = waiting();
        end.finish(&mut batch, &self.cx, next.is_some());
        loop {
            let turn = next.as_ref().map(|message| message.position);
            match self.write(batch, next.is_none(), turn).await {
                Ok(()) => break,
                Err(Unwritten::Lost) => {
                    self.give_up();
                    return None;
                }
                Err(Unwritten::Overtaken(unwritten)) => {
                    batch = unwritten;
                    next = waiting();
                    if next.is_some() {
                        batch.go_on();
                    }
                }
            }
        }
        if next.is_none() {
            self.cx.inner.outbox.close();
            self.cell.end_run(&self.cx);
        } else {
            self.cx
                .inner
                .outbox
                .resume_from(self.cell.view(super::cell::View::state));
            *self.cx.place.text_artifact.lock() = None;
        }
        next
    }

    fn give_up(&self) {
        self.cx.inner.outbox.close();
        if self.is_draft() {
            let error = A2aError::new(ErrorKind::Unavailable, "the task was not stored, try again");
            self.cell.resolve_unstored(Unstored::Failed(error));
        } else {
            self.cell.end_run(&self.cx);
        }
    }

    /// Writes a batch; with `rest` the run is over and the task is kept whole.
    ///
    /// A store that refuses is asked again until it takes the batch or the process stops.
    async fn write(&self, batch: Batch, rest: bool, turn: Option<u64>) -> Result<(), Unwritten> {
        let draft = self.draft.lock().take();
        if let Some(draft) = draft {
            return self.create(*draft, &batch, rest).await;
        }
        let mut pause = Duration::from_millis(50);
        let (mut append, mut folded) = self.append_of(&batch, rest, turn);
        let mut unsure = false;
        loop {
            let error = match self.core.store.append(append.clone()).await {
                Ok(Appended::Done { epoch }) => {
                    self.written(&append, epoch, folded);
                    return Ok(());
                }
                Ok(Appended::Conflict(head)) => match self.overtaken(&append, head, unsure).await {
                    Ok(Overtaken::Itself) => return Ok(()),
                    Ok(Overtaken::Message) if rest => return Err(Unwritten::Overtaken(batch)),
                    Ok(Overtaken::Message) => {
                        (append, folded) = self.append_of(&batch, rest, turn);
                        unsure = false;
                        continue;
                    }
                    Ok(Overtaken::AnotherRun) => return Err(Unwritten::Lost),
                    Err(error) => error,
                },
                Ok(Appended::Missing | Appended::Existing { .. }) => return Err(Unwritten::Lost),
                Err(error) => {
                    unsure = true;
                    error
                }
            };
            tracing::error!(task.id = %self.cell.id, %error, "events are not stored yet");
            self.cell.set_trouble(true);
            tokio::select! {
                biased;
                () = self.core.stopping.cancelled() => return Err(Unwritten::Lost),
                () = sleep(pause) => pause = (pause * 2).min(Duration::from_secs(5)),
            }
        }
    }

    /// Shows what has been stored.
    fn written(&self, append: &Append, epoch: u64, folded: Option<Arc<Task>>) {
        let head = self.cell.view(|view| Head {
            last: view.head.last + append.events.len() as u64,
            state: append.state,
            epoch,
            turn: append.turn.unwrap_or(view.head.turn),
            attempt: match append.turn {
                Some(_) => 1,
                None => view.head.attempt,
            },
            owner: None,
            checkpoint: append
                .checkpoint
                .clone()
                .or_else(|| view.head.checkpoint.clone()),
        });
        self.cell.publish(&append.events, head, folded);
        self.cell.set_trouble(false);
    }

    /// Finds out who was quicker, and catches up with them.
    ///
    /// `unsure` says that the store may have taken the same events before without saying so.
    async fn overtaken(
        &self,
        append: &Append,
        head: Head,
        unsure: bool,
    ) -> Result<Overtaken, StoreError> {
        let itself = unsure && self.has_taken(append).await?;
        let is_ours = head.epoch == self.cx.inner.epoch && !head.state.is_terminal();
        self.core.catch_up(&self.cell, head).await?;
        self.cell.set_trouble(false);
        Ok(match (itself, is_ours) {
            (true, _) => Overtaken::Itself,
            (false, true) => Overtaken::Message,
            (false, false) => Overtaken::AnotherRun,
        })
    }

    /// Whether the log has exactly these events where they were to be written.
    async fn has_taken(&self, append: &Append) -> Result<bool, StoreError> {
        let (scope, task, count) = (&append.scope, &append.task, append.events.len());
        let stored = self
            .core
            .store
            .events(scope, task, append.after, count)
            .await?;
        let same = |(a, b): (&Event, &Event)| a.json() == b.json();
        Ok(count > 0 && stored.len() == count && stored.iter().zip(&append.events).all(same))
    }

    fn append_of(
        &self,
        batch: &Batch,
        rest: bool,
        turn: Option<u64>,
    ) -> (Append, Option<Arc<Task>>) {
        let (task, head) = self
            .cell
            .view(|view| (Arc::clone(&view.task), view.head.clone()));
        let now = not_before(self.core.now(), &task);
        let events = events_of(batch, &task, head.last, now);
        let (state, status_time) = last_status(&events, &task);
        let due = (head.last + events.len() as u64) / self.core.settings.snapshot_every
            > head.last / self.core.settings.snapshot_every;
        let folded = (rest || due).then(|| fold(&task, &events));
        let append = Append {
            scope: self.cell.scope.clone(),
            task: self.cell.id.clone(),
            after: head.last,
            epoch: Some(self.cx.inner.epoch),
            events,
            state,
            status_time,
            snapshot: folded.clone(),
            lease: if rest {
                LeaseChange::Release
            } else {
                LeaseChange::Keep
            },
            turn,
            checkpoint: batch.checkpoint.clone(),
            request: None,
            idempotency: None,
            push_config: None,
        };
        (append, folded)
    }

    /// Stores a task that began as a draft, along with its first events.
    async fn create(&self, mut draft: NewTask, batch: &Batch, rest: bool) -> Result<(), Unwritten> {
        let first = Arc::clone(&draft.task);
        let now = not_before(self.core.now(), &first);
        draft.events.extend(events_of(batch, &first, 1, now));
        let task = fold(&first, &draft.events[1..]);
        let head = Head {
            last: draft.events.len() as u64,
            state: task.status.state,
            epoch: self.cx.inner.epoch,
            turn: 1,
            attempt: 1,
            owner: None,
            checkpoint: batch.checkpoint.clone(),
        };
        draft.task = Arc::clone(&task);
        draft.snapshot = rest;
        draft.checkpoint.clone_from(&batch.checkpoint);
        draft.lease = (!rest).then(|| self.core.lease());
        let events = draft.events.clone();
        let has_webhook = draft.push_config.is_some();
        self.core.hub.register(&self.cell);
        let error = match self.core.store.create(draft).await {
            Ok(Created::New) => {
                if has_webhook {
                    self.cell.note_webhook();
                }
                self.cell.publish(&events, head, Some(task));
                return Ok(());
            }
            Ok(Created::Existing { .. }) => A2aError::new(
                ErrorKind::Unavailable,
                "the same message is being answered already, try again",
            ),
            Err(error) => store_error(&error),
        };
        self.cell.resolve_unstored(Unstored::Failed(error));
        Err(Unwritten::Lost)
    }
}

/// Earlier tasks that one message may name.
const MAX_REFERENCES: usize = 10;

fn failed(text: &str) -> End {
    End::Stopped(TaskState::Failed, text.to_owned())
}

/// A time that is not before the task's last status (ST-03).
pub(crate) fn not_before(now: Timestamp, task: &Task) -> Timestamp {
    task.status.timestamp.map_or(now, |last| last.max(now))
}

pub(crate) fn fold(task: &Task, events: &[Event]) -> Arc<Task> {
    let mut folded = task.clone();
    for event in events {
        if let Err(error) = folded.apply(event.response()) {
            tracing::error!(task.id = %task.id, %error, "an event does not fold");
        }
    }
    Arc::new(folded)
}

/// The state and its time after these events.
pub(crate) fn last_status(events: &[Event], task: &Task) -> (TaskState, Timestamp) {
    let newest = events
        .iter()
        .rev()
        .find_map(|event| match event.response() {
            StreamResponse::StatusUpdate(update) => Some(&update.status),
            _ => None,
        });
    let status = newest.unwrap_or(&task.status);
    (
        status.state,
        status.timestamp.unwrap_or(Timestamp::from_unix_ms(0)),
    )
}

fn events_of(batch: &Batch, task: &Task, last: u64, now: Timestamp) -> Vec<Event> {
    let context = task.context_id.clone().unwrap_or_default();
    let response = |emitted: &Emitted| match emitted {
        Emitted::Status(state, message) => {
            let mut status = TaskStatus::new(*state, now);
            status.message.clone_from(message);
            let event = TaskStatusUpdateEvent::new(task.id.clone(), context.clone(), status);
            StreamResponse::StatusUpdate(event)
        }
        Emitted::Artifact {
            artifact,
            append,
            last_chunk,
        } => {
            let mut event =
                TaskArtifactUpdateEvent::new(task.id.clone(), context.clone(), artifact.clone());
            (event.append, event.last_chunk) = (*append, *last_chunk);
            StreamResponse::ArtifactUpdate(event)
        }
    };
    (last + 1..)
        .zip(&batch.events)
        .map(|(at, e)| Event::new(Some(at), response(e)))
        .collect()
}
