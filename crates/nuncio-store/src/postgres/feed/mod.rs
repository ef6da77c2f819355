//! What processes tell each other of their commits: ids of tasks, by NOTIFY or over NATS.

mod nats;
mod notify;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_protocol::TaskId;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;

use super::connection::Connector;
use crate::{Change, StoreError};

/// PostgreSQL takes less than 8,000 bytes, and NATS more.
const MAX_PAYLOAD_BYTES: usize = 7_900;

/// The shortest time between two messages; what changes meanwhile goes into the next.
const INTERVAL: Duration = Duration::from_millis(3);

/// Ids that may wait to be told, and to be read.
const CAPACITY: usize = 8_192;

/// The way to the others.
#[derive(Debug)]
pub(super) struct Feed {
    outbox: Mutex<Option<mpsc::Sender<String>>>,
    ends: Ends,
    running: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// What a line between processes works with, beside what it has to tell.
#[derive(Clone, Debug)]
struct Ends {
    /// Whether something could not be told.
    missed: Arc<AtomicBool>,
    heard: broadcast::Sender<Change>,
}

impl Ends {
    /// Passes on what a message says.
    fn hear(&self, payload: &str) {
        for change in read_changes(payload) {
            // Nobody may be listening.
            let _ = self.heard.send(change);
        }
    }

    /// The line has been broken: others may have been told nothing, and have told in vain.
    fn was_broken(&self) {
        self.missed.store(true, Ordering::Release);
        let _ = self.heard.send(Change::Unknown);
    }

    /// The messages about these tasks, and about what could not be told before.
    fn payloads(&self, ids: &mut Vec<String>) -> Vec<String> {
        let payloads = payloads(ids);
        ids.clear();
        match self.missed.swap(false, Ordering::AcqRel) {
            true => vec!["[]".to_owned()],
            false => payloads,
        }
    }
}

impl Feed {
    /// Listens from now on by LISTEN and NOTIFY.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn by_notify(connector: &Arc<Connector>) -> Result<Self, StoreError> {
        let (outbox, told) = mpsc::channel(CAPACITY);
        let ends = Ends::new();
        let line = notify::Line::new(connector, told, ends.clone());
        let call = line.listen().await?;
        let running = connector.runtime().spawn(line.run(call));
        Ok(Self::of(outbox, ends, running))
    }

    /// Listens from now on over NATS, once it is there: at `url`, apart from other databases by the
    /// secret of this one.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL that does not do.
    pub(super) async fn over_nats(
        connector: &Arc<Connector>,
        url: &str,
        secret: &[u8; 32],
    ) -> Result<Self, StoreError> {
        let (outbox, told) = mpsc::channel(CAPACITY);
        let ends = Ends::new();
        let line = nats::Line::connect(url, secret, told, ends.clone()).await?;
        let running = connector.runtime().spawn(line.run());
        Ok(Self::of(outbox, ends, running))
    }

    fn of(outbox: mpsc::Sender<String>, ends: Ends, running: JoinHandle<()>) -> Self {
        Self {
            outbox: Mutex::new(Some(outbox)),
            ends,
            running: tokio::sync::Mutex::new(Some(running)),
        }
    }

    /// Tells the others that a task has changed, soon.
    pub(super) fn tell(&self, task: &str) {
        if let Some(outbox) = &*self.outbox.lock()
            && outbox.try_send(task.to_owned()).is_err()
        {
            self.ends.missed.store(true, Ordering::Release);
        }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.ends.heard.subscribe()
    }

    /// Tells what is still to be told, and ends.
    pub(super) async fn close(&self) {
        drop(self.outbox.lock().take());
        if let Some(running) = self.running.lock().await.take() {
            let _ = running.await;
        }
    }
}

impl Ends {
    fn new() -> Self {
        Self {
            missed: Arc::default(),
            heard: broadcast::channel(CAPACITY).0,
        }
    }
}

/// Messages with all ids, each once; one that does not fit makes the others look at everything.
fn payloads(ids: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut payloads: Vec<String> = Vec::new();
    for id in ids.iter().filter(|id| seen.insert(id.as_str())) {
        let text = serde_json::Value::from(id.as_str()).to_string();
        if text.len() + 2 > MAX_PAYLOAD_BYTES {
            return vec!["[]".to_owned()];
        }
        match payloads.last_mut() {
            Some(last) if last.len() + 2 + text.len() <= MAX_PAYLOAD_BYTES => {
                last.push(',');
                last.push_str(&text);
            }
            _ => payloads.push(format!("[{text}")),
        }
    }
    for payload in &mut payloads {
        payload.push(']');
    }
    payloads
}

/// What a message says; one that says nothing, or cannot be read, may be about anything.
fn read_changes(payload: &str) -> Vec<Change> {
    match serde_json::from_str::<Vec<String>>(payload) {
        Ok(ids) if !ids.is_empty() => ids
            .into_iter()
            .map(|id| Change::Task(TaskId::from(id)))
            .collect(),
        _ => vec![Change::Unknown],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_name_each_task_once() {
        let mut ids: Vec<String> = (0..1_000).map(|n| format!("\"task\" {n:020}")).collect();
        ids.extend(ids.clone());
        let payloads = payloads(&ids);
        assert!(payloads.len() > 1);
        assert!(payloads.iter().all(|payload| payload.len() < 8_000));
        let read: Vec<_> = payloads.iter().flat_map(|p| read_changes(p)).collect();
        let expected = ids[..1_000]
            .iter()
            .map(|id| Change::Task(id.as_str().into()));
        assert_eq!(read, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_told_may_be_anything() {
        let told = payloads(&["short".to_owned(), "x".repeat(8_000)]);
        assert_eq!(told, ["[]"]);
        for payload in ["[]", "", "{}", "[1]"] {
            assert_eq!(read_changes(payload), [Change::Unknown]);
        }
    }
}
