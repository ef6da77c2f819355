//! What other processes write: cells catch up with the store, and runs heed it.
//!
//! Several processes may share a store. Each holds cells of the tasks that somebody follows or runs
//! there. A cell catches up when the store tells of a change, when a caller opens it, when a write
//! finds that somebody was quicker, and once a second in any case, so that a change that was not
//! told costs a second and nothing more.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_protocol::{A2aError, Event, Result};
use nuncio_store::{Change, Head, StoreError};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::cell::Cell;
use crate::engine::{Core, store_error};

/// How often cells are compared with the store whatever is told.
const LOOK: Duration = Duration::from_secs(1);

/// Tasks compared at a time.
const HEADS: usize = 1_000;

/// Events read at a time.
const FETCH: usize = 256;

impl Core {
    /// Follows what other processes write until `shutdown` fires; at once over if there are none.
    pub(crate) async fn follow_others(self: &Arc<Self>, shutdown: &CancellationToken) {
        let Some(mut changes) = self.store.changes() else {
            return shutdown.cancelled().await;
        };
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let cells = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                told = self.told(&mut changes) => match told {
                    Some(cells) => cells,
                    None => return shutdown.cancelled().await,
                },
                _ = ticks.tick() => self.hub.open_cells(),
            };
            self.compare(cells).await;
        }
    }

    /// The cells that changes are about, as soon as there are some; `None` when nothing more comes.
    async fn told(&self, changes: &mut Receiver<Change>) -> Option<Vec<Arc<Cell>>> {
        let mut next = match changes.recv().await {
            Ok(change) => change,
            Err(RecvError::Lagged(_)) => Change::Unknown,
            Err(RecvError::Closed) => return None,
        };
        let mut cells = Vec::new();
        loop {
            match next {
                Change::Task(id) => {
                    let told = self.hub.of_task(&id);
                    // It may have got a webhook there, which is to be told of what happens here.
                    told.iter().for_each(|cell| cell.note_webhook());
                    cells.extend(told);
                }
                Change::Unknown => return Some(self.hub.open_cells()),
            }
            next = match changes.try_recv() {
                Ok(change) => change,
                Err(TryRecvError::Lagged(_)) => Change::Unknown,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(cells),
            };
        }
    }

    /// Lets those of the cells catch up that are behind, each in a task of its own: one that waits
    /// for its writer holds up no other.
    async fn compare(self: &Arc<Self>, mut cells: Vec<Arc<Cell>>) {
        cells.sort_by(|a, b| a.id.cmp(&b.id));
        cells.dedup_by(|a, b| Arc::ptr_eq(a, b));
        for cells in cells.chunks(HEADS) {
            let keys: Vec<_> = cells.iter().map(|cell| cell.key_of_store()).collect();
            let heads = match self.store.heads(&keys).await {
                Ok(heads) => heads,
                Err(error) => {
                    tracing::warn!(%error, "what other processes write is not seen");
                    return;
                }
            };
            for (id, head) in heads {
                for cell in cells.iter().filter(|cell| cell.id == id) {
                    if cell.is_behind(&head) {
                        self.catch_up_apart(cell, head.clone());
                    }
                }
            }
        }
    }

    fn catch_up_apart(self: &Arc<Self>, cell: &Arc<Cell>, head: Head) {
        let (core, cell) = (Arc::clone(self), Arc::clone(cell));
        tokio::spawn(async move {
            let _writing = cell.writing.lock().await;
            if let Err(error) = core.catch_up(&cell, head).await {
                tracing::warn!(task.id = %cell.id, %error, "a change of another process is not seen");
            }
        });
    }

    /// Lets a cell catch up with the store, if other processes may write there too.
    pub(crate) async fn look(&self, cell: &Cell) -> Result<()> {
        if !self.shared {
            return Ok(());
        }
        let heads = self.store.heads(&[cell.key_of_store()]).await;
        let heads = heads.map_err(|error| store_error(&error))?;
        let Some((_, head)) = heads.into_iter().next() else {
            return Err(A2aError::task_not_found(&cell.id));
        };
        if !cell.is_behind(&head) {
            return Ok(());
        }
        let _writing = cell.writing.lock().await;
        self.give_way(cell, head).await
    }

    /// Catches up after a write that found somebody quicker; the caller holds `writing`.
    pub(crate) async fn give_way(&self, cell: &Cell, head: Head) -> Result<()> {
        let caught_up = self.catch_up(cell, head).await;
        caught_up.map_err(|error| store_error(&error))
    }

    /// Takes over what somebody else has written up to `head`; the caller holds `writing`.
    ///
    /// A run of this process gets the messages among it to answer, and stops if it has lost the task.
    pub(crate) async fn catch_up(&self, cell: &Cell, head: Head) -> Result<(), StoreError> {
        if !cell.is_behind(&head) {
            return Ok(());
        }
        let events = self.missed(cell, &head).await?;
        let run = cell.view(|view| view.run.clone());
        if let Some(run) = &run {
            let lost = head.epoch != run.inner.epoch;
            if lost {
                let fenced = self.fenced.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::warn!(
                    task.id = %cell.id,
                    nuncio.fenced_runs = fenced,
                    "another process has taken over this run; nothing more is written by it"
                );
            }
            if lost || head.state.is_terminal() {
                run.inner.cancel.cancel();
                cell.end_run(run);
            } else {
                for message in self.to_answer(cell, &events).await? {
                    run.inner.queue.push(message);
                }
            }
        }
        if events.len() <= self.settings.ring_events
            && events.last().and_then(|event| event.position) == Some(head.last)
        {
            cell.publish(&events, head, None);
            return Ok(());
        }
        match self.store.load(&cell.scope, &cell.id).await? {
            Some(stored) => cell.replace(stored),
            None => tracing::warn!(task.id = %cell.id, "a task that is followed has expired"),
        }
        Ok(())
    }

    /// The events that a cell has missed; only the newest matter unless a run waits for messages.
    async fn missed(&self, cell: &Cell, head: &Head) -> Result<Vec<Event>, StoreError> {
        let (known, runs) = cell.view(|view| (view.head.last, view.run.is_some()));
        let mut events: Vec<Event> = Vec::new();
        let mut after = known;
        let many = head.last.saturating_sub(known) > self.settings.ring_events as u64;
        while after < head.last && (runs || !many) {
            let limit = usize::try_from(head.last - after)
                .unwrap_or(FETCH)
                .min(FETCH);
            let read = self
                .store
                .events(&cell.scope, &cell.id, after, limit)
                .await?;
            let Some(last) = read.last().and_then(|event| event.position) else {
                break;
            };
            events.extend(read);
            after = last;
        }
        Ok(events)
    }
}
