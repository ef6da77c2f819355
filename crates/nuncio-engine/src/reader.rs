//! Everybody who follows a task: a reader with a cursor.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{
    A2aError, ErrorKind, Event, EventStream, Result, StreamResponse, Task, TaskState,
};

use crate::cell::{Cell, Recent, Unstored};
use crate::engine::{Core, store_error};
use crate::hosted::gap;

/// Why a stream was opened, which decides when it ends (OP-STRM-04, OP-SUB-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To see what comes of the message at this position.
    Send(u64),
    /// To follow the task to its end.
    Subscribe,
}

/// Reads a task's events in order, from memory where they are recent, else from the store.
pub(crate) struct Reader {
    core: Arc<Core>,
    cell: Arc<Cell>,
    purpose: Purpose,
    cursor: u64,
    first: Option<Event>,
    fetched: VecDeque<Event>,
    ended: bool,
}

const FETCH: usize = 256;

impl Reader {
    /// A reader that gives `first` and then everything after its position.
    pub(crate) fn new(core: Arc<Core>, cell: Arc<Cell>, purpose: Purpose, first: Event) -> Self {
        let cursor = first.position.unwrap_or_default();
        Self {
            core,
            cell,
            purpose,
            cursor,
            first: Some(first),
            fetched: VecDeque::new(),
            ended: false,
        }
    }

    pub(crate) fn into_stream(self) -> EventStream {
        Box::pin(futures_util::stream::unfold(
            self,
            |mut reader| async move { reader.next().await.map(|item| (item, reader)) },
        ))
    }

    async fn next(&mut self) -> Option<Result<Event>> {
        if let Some(first) = self.first.take() {
            self.ended = ends(&first);
            return Some(Ok(first));
        }
        loop {
            if self.ended {
                return None;
            }
            while let Some(event) = self.fetched.pop_front() {
                self.cursor = event.position.unwrap_or(self.cursor);
                // Messages of the user are part of the log, not of what is streamed.
                if !matches!(event.response(), StreamResponse::Message(_)) {
                    self.ended = ends(&event);
                    return Some(Ok(event));
                }
            }
            if let Err(error) = self.fetch().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Gets the next events, waiting for them if there are none.
    async fn fetch(&mut self) -> Result<()> {
        let changed = self.cell.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        match self.cell.read(self.cursor, FETCH) {
            Recent::Events(events) => self.fetched.extend(events),
            Recent::Nothing { ended: true, .. } => self.ended = true,
            Recent::Nothing {
                pause: Some((state, turn)),
                ..
            } if self.ends_at(state, turn) => {
                self.ended = true;
            }
            Recent::Nothing { trouble: true, .. } => return Err(unavailable()),
            Recent::Nothing { .. } => tokio::select! {
                biased;
                () = changed => {}
                () = self.core.closing.cancelled() => self.ended = true,
            },
            Recent::InStore => {
                let read =
                    self.core
                        .store
                        .events(&self.cell.scope, &self.cell.id, self.cursor, FETCH);
                let events = read.await.map_err(|error| store_error(&error))?;
                if events.is_empty() {
                    return Err(gap(&self.cell.id));
                }
                self.fetched.extend(events);
            }
        }
        Ok(())
    }

    /// Whether a pause ends this stream (OP-STRM-04, OP-SUB-05).
    fn ends_at(&self, state: TaskState, turn: u64) -> bool {
        let Purpose::Send(position) = self.purpose else {
            return false;
        };
        let settings = &self.core.settings;
        let closes = match state {
            TaskState::AuthRequired => settings.close_stream_at_auth_required,
            _ => settings.close_stream_at_input_required,
        };
        closes && turn >= position
    }
}

/// Whether nothing comes after this event.
fn ends(event: &Event) -> bool {
    event.state().is_some_and(TaskState::is_terminal)
}

pub(crate) fn unavailable() -> A2aError {
    A2aError::new(
        ErrorKind::Unavailable,
        "the store is unavailable, try again later",
    )
}

/// What became of a send that was waited for.
pub(crate) enum Settled {
    /// There is a task: ended, paused, or as it stood when the waiting ended.
    Task(Arc<Task>),
    /// There is a message and no task.
    Message(nuncio_protocol::Message),
    /// There is nothing: the send was given up before it began.
    Abandoned,
}

impl Core {
    /// Waits until the message at `position` has been answered, `limit` at most (OP-SEND-04, -08).
    pub(crate) async fn settled(
        &self,
        cell: &Cell,
        position: u64,
        limit: Duration,
    ) -> Result<Settled> {
        let waited = tokio::time::timeout(
            limit,
            self.wait(cell, |view| {
                let state = view.state();
                state.is_terminal() || view.pause().is_some_and(|(_, turn)| turn >= position)
            }),
        );
        match waited.await {
            Ok(settled) => settled,
            Err(_elapsed) => Ok(Settled::Task(cell.snapshot().0)),
        }
    }

    /// Waits until the task has ended, `limit` at most.
    pub(crate) async fn settled_terminal(&self, cell: &Cell, limit: Duration) -> Result<()> {
        match tokio::time::timeout(limit, self.wait(cell, |view| view.state().is_terminal())).await
        {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) | Err(_) => Ok(()),
        }
    }

    /// Waits until the task is stored, or answered without being stored.
    pub(crate) async fn stored(&self, cell: &Cell) -> Result<Settled> {
        self.wait(cell, |view| view.head.last > 0).await
    }

    async fn wait(
        &self,
        cell: &Cell,
        done: impl Fn(&crate::cell::View) -> bool,
    ) -> Result<Settled> {
        loop {
            let changed = cell.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = cell.view(|view| match &view.unstored {
                Some(Unstored::Answered(message)) => Some(Ok(Settled::Message(message.clone()))),
                Some(Unstored::Failed(error)) => Some(Err(error.clone())),
                Some(Unstored::Abandoned) => Some(Ok(Settled::Abandoned)),
                None if done(view) => Some(Ok(Settled::Task(Arc::clone(&view.task)))),
                None if view.trouble => Some(Err(unavailable())),
                None => None,
            });
            if let Some(found) = found {
                return found;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.stopping.cancelled() => {
                    return Err(A2aError::new(ErrorKind::Unavailable, "the server is shutting down, try again"));
                }
            }
        }
    }
}
