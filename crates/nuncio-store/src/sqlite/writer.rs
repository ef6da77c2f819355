//! The one thread that writes: takes what waits, commits it together, then answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::batch::{Batch, Origin, Pending, Queued, ScopeNumbers, Write};
use super::connection::{BUSY_TIMEOUT, ProcessLock, SqliteOptions, open_writer};
use super::failure::{is_of_one_write, translate};
use super::lease::LeaseTime;
use crate::StoreError;

/// How long the writer waits for readers that keep the write-ahead log from being emptied.
const PATIENCE_WITH_READERS: Duration = Duration::from_millis(100);

enum Request {
    Write(Box<dyn Queued>),
    Close,
}

/// The way to the writer.
#[derive(Debug)]
pub(super) struct Writer {
    requests: mpsc::Sender<Request>,
    /// Ends when the thread has, and with it the lock.
    running: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl Writer {
    /// Opens the database and starts the thread, which holds the lock as long as it runs.
    pub(super) fn start(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let lock = ProcessLock::take(path)?;
        let mut thread = WriterThread {
            path: path.to_owned(),
            options: options.clone(),
            connection: None,
            scopes: ScopeNumbers::new(),
            time: None,
            wal: WalSize::default(),
        };
        thread.connect()?;
        let (requests, inbox) = mpsc::channel(options.max_waiting.max(1));
        let (alive, running) = mpsc::channel(1);
        thread::Builder::new()
            .name("nuncio-write".to_owned())
            .spawn(move || {
                thread.run(inbox);
                drop((lock, alive));
            })
            .map_err(|error| StoreError::Unavailable(error.kind().to_string()))?;
        Ok(Self {
            requests,
            running: tokio::sync::Mutex::new(running),
        })
    }

    /// Has `write` done; the reply comes when it is on disk.
    pub(super) async fn run<W: Write>(&self, write: W) -> Result<W::Reply, StoreError> {
        let (reply, result) = oneshot::channel();
        let pending = Pending {
            write,
            outcome: None,
            reply,
            origin: Origin::here(),
        };
        let request = Request::Write(Box::new(pending));
        let sent = self.requests.send(request).await;
        sent.map_err(|_| StoreError::Closed)?;
        let lost = |_| StoreError::Unavailable("the write was lost".to_owned());
        result.await.map_err(lost)?
    }

    /// Waits for what has been asked for, closes the database, and lets the lock go.
    pub(super) async fn close(&self) {
        // An error says that it is closing already.
        let _ = self.requests.send(Request::Close).await;
        while self.running.lock().await.recv().await.is_some() {}
    }
}

/// How many pages the write-ahead log has, as SQLite tells after each commit.
#[derive(Debug, Default)]
struct WalSize {
    pages: Arc<AtomicI32>,
    /// At how many pages to carry it over next, if it has not begun anew by then.
    again_at: i32,
}

/// What befell a transaction.
enum Fault {
    Sql(rusqlite::Error),
    Store(StoreError),
    Panic,
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

struct WriterThread {
    path: PathBuf,
    options: SqliteOptions,
    /// Opened anew after a fault that leaves its state unknown.
    connection: Option<Connection>,
    scopes: ScopeNumbers,
    /// Begun once, with the first connection.
    time: Option<LeaseTime>,
    wal: WalSize,
}

impl WriterThread {
    fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        let max_batch = self.options.max_batch.max(1);
        let mut requests = Vec::with_capacity(max_batch);
        while inbox.blocking_recv_many(&mut requests, max_batch) > 0 {
            let mut writes = Vec::with_capacity(requests.len());
            for request in requests.drain(..) {
                match request {
                    Request::Write(write) => writes.push(write),
                    Request::Close => inbox.close(),
                }
            }
            self.write(writes);
            self.carry_over();
        }
        self.disconnect();
    }

    /// Writes all in one transaction; if one of them spoils it, each in one of its own.
    fn write(&mut self, mut writes: Vec<Box<dyn Queued>>) {
        if writes.is_empty() {
            return;
        }
        match self.commit(&mut writes) {
            Ok(()) => answer(writes, &Ok(())),
            Err(fault) if writes.len() > 1 && may_be_one(&fault) => {
                for write in writes {
                    let mut alone = vec![write];
                    let committed = self.commit(&mut alone).map_err(told);
                    answer(alone, &committed);
                }
            }
            Err(fault) => answer(writes, &Err(told(fault))),
        }
    }

    fn commit(&mut self, writes: &mut [Box<dyn Queued>]) -> Result<(), Fault> {
        let attempt = catch_unwind(AssertUnwindSafe(|| self.transact(writes)));
        let result = attempt.unwrap_or(Err(Fault::Panic));
        if result.is_err() {
            self.recover();
        }
        result
    }

    fn transact(&mut self, writes: &mut [Box<dyn Queued>]) -> Result<(), Fault> {
        self.connect().map_err(Fault::Store)?;
        let (Some(connection), Some(time)) = (&self.connection, self.time) else {
            return Err(Fault::Panic);
        };
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut batch = Batch::new(connection, &mut self.scopes, time);
        for write in writes {
            write.apply(&mut batch)?;
        }
        batch.settle()?;
        connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Rolls back; without success the connection is given up, and opened anew by the next write.
    fn recover(&mut self) {
        self.scopes.clear();
        let clean = self.connection.as_ref().is_some_and(|connection| {
            connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok()
        });
        if !clean {
            self.connection = None;
        }
    }

    fn connect(&mut self) -> Result<(), StoreError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let mut connection = open_writer(&self.path, &self.options)?;
        let pages = Arc::clone(&self.wal.pages);
        let count = move |_: &mut rusqlite::hooks::Wal, now: std::ffi::c_int| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        };
        let hooked = connection.wal_hook(Some(count));
        hooked.map_err(|error| translate(&error))?;
        if self.time.is_none() {
            let time = LeaseTime::begin(&connection);
            self.time = Some(time.map_err(|error| translate(&error))?);
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Carries the write-ahead log over into the database once it is long enough.
    ///
    /// Between two batches, so that nobody who has been answered waits for it. A reader in the
    /// way leaves the log as long as it is; the next attempt then comes when it has grown by a
    /// quarter, and waits a little for the readers once it is four times as long as it should be.
    fn carry_over(&mut self) {
        let limit = i32::try_from(self.options.checkpoint_pages).unwrap_or(i32::MAX);
        let pages = self.wal.pages.load(Ordering::Relaxed);
        if pages < limit {
            self.wal.again_at = limit;
        }
        if pages < self.wal.again_at {
            return;
        }
        self.wal.again_at = pages.saturating_add(pages / 4);
        let Some(connection) = &self.connection else {
            return;
        };
        let carried = if pages / 4 < limit {
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        } else {
            truncate(connection)
        };
        if let Err(error) = carried {
            tracing::warn!(error = %error, "the write-ahead log could not be carried over");
        }
    }

    fn disconnect(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let closed =
            truncate(&connection).and_then(|()| connection.close().map_err(|(_, error)| error));
        if let Err(error) = closed {
            tracing::warn!(error = %error, "the store did not close cleanly; nothing is lost");
        }
    }
}

/// Carries all of the log over and empties it, unless readers are in the way for long.
fn truncate(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE_WITH_READERS)?;
    let carried = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    carried
}

fn may_be_one(fault: &Fault) -> bool {
    match fault {
        Fault::Sql(error) => is_of_one_write(error),
        Fault::Store(_) => false,
        Fault::Panic => true,
    }
}

/// Logs the fault, once, and says it in the words of the store.
fn told(fault: Fault) -> StoreError {
    match fault {
        Fault::Sql(error) => {
            tracing::warn!(error = %error, "a commit failed and was rolled back");
            translate(&error)
        }
        Fault::Store(error) => {
            tracing::warn!(error = %error, "the store could not be opened again");
            error
        }
        Fault::Panic => {
            tracing::error!("a write to the store panicked and was rolled back");
            StoreError::Unavailable("an internal fault".to_owned())
        }
    }
}

/// Gives the callers their replies, in one go for each of their threads.
///
/// Waking a runtime costs a system call: one for all callers of a thread is enough.
fn answer(writes: Vec<Box<dyn Queued>>, committed: &Result<(), StoreError>) {
    let mut groups: Vec<(Origin, Vec<Box<dyn Queued>>)> = Vec::new();
    for write in writes {
        let thread = write.origin().thread;
        match groups
            .iter_mut()
            .find(|(origin, _)| origin.thread == thread)
        {
            Some((_, group)) => group.push(write),
            None => groups.push((write.origin().clone(), vec![write])),
        }
    }
    for (origin, group) in groups {
        let committed = committed.clone();
        let give = move || {
            for write in group {
                write.answer(committed.clone());
            }
        };
        match origin.runtime {
            Some(runtime) => drop(runtime.spawn(async { give() })),
            None => give(),
        }
    }
}
