//! Threads with a runtime each, so that a request stays where its socket is.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// A few single-threaded runtimes, usually one for each core.
///
/// They outlive the server that runs on them, so that what requests have spawned can still end;
/// call [`Workers::stop`] last.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Worker {
    handle: Handle,
    /// One clone for each of its connections.
    connections: Arc<()>,
    thread: JoinHandle<()>,
}

impl Workers {
    /// Starts that many, at least one.
    ///
    /// # Errors
    /// If a runtime or a thread cannot be made.
    pub fn start(count: usize) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let workers = (0..count.max(1)).map(|index| Worker::start(index, stop.clone()));
        Ok(Self {
            workers: workers.collect::<io::Result<_>>()?,
            stop,
        })
    }

    /// The runtimes, for other work to be spread over them.
    pub fn handles(&self) -> impl Iterator<Item = &Handle> {
        self.workers.iter().map(|worker| &worker.handle)
    }

    /// Ends the runtimes with all that is still on them, and waits for their threads.
    ///
    /// Blocks; not to be called from one of them.
    pub fn stop(self) {
        self.stop.cancel();
        for worker in self.workers {
            if worker.thread.join().is_err() {
                tracing::error!("a worker thread has panicked");
            }
        }
    }

    /// The worker with the fewest connections, with a token that counts as one more.
    pub(crate) fn least_busy(&self) -> (&Handle, Arc<()>) {
        let worker = self
            .workers
            .iter()
            .min_by_key(|worker| Arc::strong_count(&worker.connections))
            .expect("there is at least one worker");
        (&worker.handle, Arc::clone(&worker.connections))
    }
}

impl Worker {
    fn start(index: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(move || runtime.block_on(stop.cancelled()))?;
        Ok(Self {
            handle,
            connections: Arc::new(()),
            thread,
        })
    }
}
