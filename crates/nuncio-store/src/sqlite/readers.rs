//! A few threads that read, each with a connection of its own, and a few connections for look-ups
//! so short that waking a thread would take longer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::connection::open_reader;
use super::failure::Failure;
use crate::StoreError;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The readers; bounded in number and in what may wait for them.
#[derive(Debug)]
pub(super) struct Readers {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    /// For look-ups on the caller's own thread.
    at_hand: Vec<Mutex<Option<Connection>>>,
    /// Ends when the last thread has.
    running: tokio::sync::Mutex<mpsc::Receiver<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(super) fn start(path: &Path, count: usize, max_waiting: usize) -> Result<Self, StoreError> {
        let (jobs, waiting) = mpsc::channel::<Job>(max_waiting.max(1));
        let (alive, running) = mpsc::channel(1);
        let waiting = Arc::new(Mutex::new(waiting));
        for n in 0..count.max(1) {
            let connection = open_reader(path)?;
            let (waiting, alive) = (Arc::clone(&waiting), alive.clone());
            thread::Builder::new()
                .name(format!("nuncio-read-{n}"))
                .spawn(move || {
                    read_until_closed(&connection, &waiting);
                    drop((connection, alive));
                })
                .map_err(|error| StoreError::Unavailable(error.kind().to_string()))?;
        }
        let at_hand = (0..count.max(1))
            .map(|_| Ok(Mutex::new(Some(open_reader(path)?))))
            .collect::<Result<_, StoreError>>()?;
        Ok(Self {
            jobs: Mutex::new(Some(jobs)),
            at_hand,
            running: tokio::sync::Mutex::new(running),
        })
    }

    /// Runs `read` on one of the threads.
    pub(super) async fn run<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        let jobs = self.jobs.lock().clone().ok_or(StoreError::Closed)?;
        let (reply, result) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let _ = reply.send(read(connection));
        });
        jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        drop(jobs);
        let lost = |_| StoreError::Unavailable("the read was lost".to_owned());
        result.await.map_err(lost)?.map_err(told)
    }

    /// Looks up a row or two, here and now if a connection is at hand, else on one of the threads.
    ///
    /// Readers of a write-ahead log wait for nobody, so this takes microseconds.
    pub(super) async fn look_up<T, R>(&self, read: R) -> Result<T, StoreError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        for slot in &self.at_hand {
            let Some(connection) = slot.try_lock() else {
                continue;
            };
            let connection = connection.as_ref().ok_or(StoreError::Closed)?;
            let result = catch_unwind(AssertUnwindSafe(|| read(connection)));
            let lost = |_| StoreError::Unavailable("the read was lost".to_owned());
            return result.map_err(lost)?.map_err(told);
        }
        self.run(read).await
    }

    /// Lets the threads finish and waits for them.
    pub(super) async fn close(&self) {
        drop(self.jobs.lock().take());
        for slot in &self.at_hand {
            drop(slot.lock().take());
        }
        while self.running.lock().await.recv().await.is_some() {}
    }
}

fn told(failure: Failure) -> StoreError {
    if let Failure::Sql(error) = &failure {
        tracing::warn!(error = %error, "reading from the store failed");
    }
    failure.into()
}

fn read_until_closed(connection: &Connection, waiting: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let job = waiting.lock().blocking_recv();
        let Some(job) = job else { return };
        if catch_unwind(AssertUnwindSafe(|| job(connection))).is_err() {
            tracing::error!("a read of the store panicked");
        }
    }
}
