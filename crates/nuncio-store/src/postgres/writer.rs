//! The writers: each takes what waits for it, commits it together, then answers.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::connection::{Connection, Connector};
use super::failure::{Failure, Remedy};
use super::feed::Feed;
use super::link::{Link, MAX_REPEATS};
use super::options::PostgresOptions;
use super::rows::column;
use super::write::{Columns, Outcome, Write};
use crate::StoreError;

/// Gives a connection a part of the totals that no other live one has: the lock is held until the
/// connection ends.
const PART: &str = "SELECT n FROM generate_series(0, 9999) AS n
    WHERE pg_try_advisory_lock(x'6e756e63'::int, n) LIMIT 1";

/// A write with its caller.
struct Pending {
    write: Write,
    reply: oneshot::Sender<Result<Outcome, StoreError>>,
}

/// The way to the writers.
#[derive(Debug)]
pub(super) struct Writers {
    queues: Mutex<Option<Arc<[mpsc::Sender<Pending>]>>>,
    running: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
}

impl Writers {
    pub(super) fn start(
        connector: &Arc<Connector>,
        feed: &Arc<Feed>,
        options: &PostgresOptions,
    ) -> Self {
        let mut running = Vec::new();
        let queues = (0..options.writers.max(1))
            .map(|_| {
                let (queue, inbox) = mpsc::channel(options.max_waiting.max(1));
                let writer = Writer {
                    link: Link::new(Arc::clone(connector)),
                    feed: Arc::clone(feed),
                    part: None,
                    max_batch: options.max_batch.max(1),
                };
                running.push(connector.runtime().spawn(writer.run(inbox)));
                queue
            })
            .collect();
        Self {
            queues: Mutex::new(Some(queues)),
            running: tokio::sync::Mutex::new(running),
        }
    }

    /// Has `write` done; the reply comes when it is on disk.
    pub(super) async fn run(&self, write: Write) -> Result<Outcome, StoreError> {
        let queues = self.queues.lock().clone().ok_or(StoreError::Closed)?;
        let mut hasher = DefaultHasher::new();
        write.task().hash(&mut hasher);
        let queue = &queues[hasher.finish() as usize % queues.len()];
        let (reply, result) = oneshot::channel();
        let sent = queue.send(Pending { write, reply }).await;
        sent.map_err(|_| StoreError::Closed)?;
        drop(queues);
        let lost = |_| StoreError::Unavailable("the write was lost".to_owned());
        result.await.map_err(lost)?
    }

    /// Waits for what has been asked for, and ends.
    pub(super) async fn close(&self) {
        drop(self.queues.lock().take());
        for writer in self.running.lock().await.drain(..) {
            // A panic has been told to those who waited for it.
            let _ = writer.await;
        }
    }
}

struct Writer {
    link: Link,
    feed: Arc<Feed>,
    /// The part of the totals that this connection counts on.
    part: Option<(Arc<Connection>, i32)>,
    max_batch: usize,
}

impl Writer {
    async fn run(mut self, mut inbox: mpsc::Receiver<Pending>) {
        let mut waiting = Vec::new();
        while inbox.recv_many(&mut waiting, self.max_batch).await > 0 {
            let mut batch = std::mem::take(&mut waiting);
            // Whoever locks several tasks does so in this order. Those of one task keep theirs.
            batch.sort_by(|a, b| a.write.task().cmp(b.write.task()));
            self.write(batch).await;
        }
    }

    /// Writes all in one commit; if one of them spoils it, each in one of its own.
    async fn write(&mut self, batch: Vec<Pending>) {
        match self.commit(&batch).await {
            Ok(outcomes) => self.answer(batch, outcomes),
            Err(failure) if failure.remedy() == Remedy::Again || batch.len() > 1 => {
                self.write_apart(batch, failure).await;
            }
            Err(failure) => refuse(batch, &failure.told("a commit")),
        }
    }

    async fn write_apart(&mut self, batch: Vec<Pending>, failure: Failure) {
        if !matches!(failure.remedy(), Remedy::Again | Remedy::Alone) {
            return refuse(batch, &failure.told("a commit"));
        }
        for pending in batch {
            let alone = vec![pending];
            let mut repeats = 0;
            let committed = loop {
                repeats += 1;
                match self.commit(&alone).await {
                    Err(failure) if failure.remedy() == Remedy::Again && repeats < MAX_REPEATS => {}
                    committed => break committed,
                }
            };
            match committed {
                Ok(outcomes) => self.answer(alone, outcomes),
                Err(failure) => refuse(alone, &failure.told("a commit")),
            }
        }
    }

    /// One call, one commit. If its connection broke, whether it has been is unknown.
    async fn commit(&mut self, batch: &[Pending]) -> Result<Vec<Outcome>, Failure> {
        let connection = self.link.connection_in_time().await?;
        let result = self.commit_on(&connection, batch).await;
        if let Err(failure) = &result
            && failure.remedy() == Remedy::NewConnection
        {
            self.part = None;
            self.link.discard(&connection).await;
        }
        result
    }

    async fn commit_on(
        &mut self,
        connection: &Arc<Connection>,
        batch: &[Pending],
    ) -> Result<Vec<Outcome>, Failure> {
        let part = self.part_on(connection).await?;
        let columns = Columns::of(batch.iter().map(|pending| &pending.write));
        columns.write(connection, part).await
    }

    async fn part_on(&mut self, connection: &Arc<Connection>) -> Result<i32, Failure> {
        if let Some((of, part)) = &self.part
            && Arc::ptr_eq(of, connection)
        {
            return Ok(*part);
        }
        let rows = connection.query(PART, &[]).await?;
        let part = rows.first().map_or(Ok(0), |row| column(row, 0))?;
        self.part = Some((Arc::clone(connection), part));
        Ok(part)
    }

    fn answer(&self, batch: Vec<Pending>, outcomes: Vec<Outcome>) {
        for (Pending { write, reply }, outcome) in batch.into_iter().zip(outcomes) {
            if write.is_append() && matches!(outcome, Outcome::Written(_)) {
                self.feed.tell(write.task());
            }
            // A caller that has gone away does not undo its write.
            let _ = reply.send(write.judged(outcome));
        }
    }
}

fn refuse(batch: Vec<Pending>, error: &StoreError) {
    for Pending { reply, .. } in batch {
        let _ = reply.send(Err(error.clone()));
    }
}
