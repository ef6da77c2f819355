//! What processes tell each other of their commits: ids of tasks, on a connection of its own.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_protocol::TaskId;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Notification};

use super::connection::{Connector, Driver, Parameter};
use super::failure::Failure;
use crate::{Change, StoreError};

const CHANNEL: &str = "nuncio_tasks";

/// PostgreSQL takes less than 8,000 bytes.
const MAX_PAYLOAD_BYTES: usize = 7_900;

/// The shortest time between two messages; what changes meanwhile goes into the next.
const INTERVAL: Duration = Duration::from_millis(3);

/// Ids that may wait to be told, and to be read.
const CAPACITY: usize = 8_192;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The way to the others.
#[derive(Debug)]
pub(super) struct Feed {
    outbox: Mutex<Option<mpsc::Sender<String>>>,
    /// Whether something could not be told.
    missed: Arc<AtomicBool>,
    heard: broadcast::Sender<Change>,
    running: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Feed {
    /// Listens from now on.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn start(connector: &Arc<Connector>) -> Result<Self, StoreError> {
        let (outbox, told) = mpsc::channel(CAPACITY);
        let (heard, _) = broadcast::channel(CAPACITY);
        let missed = Arc::new(AtomicBool::new(false));
        let line = Line {
            connector: Arc::clone(connector),
            told,
            missed: Arc::clone(&missed),
            heard: heard.clone(),
        };
        let call = line.listen().await?;
        let running = connector.runtime().spawn(line.run(call));
        Ok(Self {
            outbox: Mutex::new(Some(outbox)),
            missed,
            heard,
            running: tokio::sync::Mutex::new(Some(running)),
        })
    }

    /// Tells the others that a task has changed, soon.
    pub(super) fn tell(&self, task: &str) {
        if let Some(outbox) = &*self.outbox.lock()
            && outbox.try_send(task.to_owned()).is_err()
        {
            self.missed.store(true, Ordering::Release);
        }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.heard.subscribe()
    }

    /// Tells what is still to be told, and ends.
    pub(super) async fn close(&self) {
        drop(self.outbox.lock().take());
        if let Some(running) = self.running.lock().await.take() {
            let _ = running.await;
        }
    }
}

/// The connection to the others, again and again.
struct Line {
    connector: Arc<Connector>,
    told: mpsc::Receiver<String>,
    missed: Arc<AtomicBool>,
    heard: broadcast::Sender<Change>,
}

/// One connection, and what listens on it.
struct Call {
    client: Client,
    listening: JoinHandle<()>,
}

impl Line {
    async fn run(mut self, first: Call) {
        let mut call = first;
        loop {
            if self.converse(call).await {
                return;
            }
            // What is told in between does not arrive, and what others tell is not heard.
            self.missed.store(true, Ordering::Release);
            let mut pause = FIRST_PAUSE;
            call = loop {
                if let Ok(call) = self.listen().await {
                    break call;
                }
                if self.is_over_after(pause).await {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            };
            let _ = self.heard.send(Change::Unknown);
        }
    }

    /// Drops what would be told until the pause is over; whether the store has been closed.
    async fn is_over_after(&mut self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(end) => return false,
                told = self.told.recv() => {
                    if told.is_none() {
                        return true;
                    }
                }
            }
        }
    }

    /// Connects and listens.
    async fn listen(&self) -> Result<Call, StoreError> {
        let (client, driver) = self.connector.connect().await?;
        let (own, number) = tokio::sync::watch::channel(None);
        let hearer = hear(driver, number, self.heard.clone());
        let listening = self.connector.runtime().spawn(hearer);
        self.connector.set_up(&client).await?;
        // What is told is on disk already; telling is not worth a sync.
        let begin = format!("SET synchronous_commit = off; LISTEN {CHANNEL};");
        let failed = |error| Failure::Sql(error).told("listening to other processes");
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await;
        let _ = own.send(Some(row.and_then(|row| row.try_get(0)).map_err(failed)?));
        client.batch_execute(&begin).await.map_err(failed)?;
        Ok(Call { client, listening })
    }

    /// Tells and listens until the connection breaks; whether the store has been closed.
    async fn converse(&mut self, mut call: Call) -> bool {
        let mut ids = Vec::new();
        loop {
            tokio::select! {
                _ = &mut call.listening => return false,
                count = self.told.recv_many(&mut ids, CAPACITY) => {
                    if self.tell(&call.client, &mut ids).await.is_err() {
                        call.listening.abort();
                        return false;
                    }
                    if count == 0 {
                        call.listening.abort();
                        return true;
                    }
                }
            }
            sleep(INTERVAL).await;
        }
    }

    async fn tell(&self, client: &Client, ids: &mut Vec<String>) -> Result<(), ()> {
        let mut payloads = payloads(ids);
        ids.clear();
        if self.missed.swap(false, Ordering::AcqRel) {
            payloads = vec!["[]".to_owned()];
        }
        for payload in payloads {
            let parameters: [(Parameter<'_>, Type); 2] =
                [(&CHANNEL, Type::TEXT), (&payload, Type::TEXT)];
            let telling = client.execute_typed("SELECT pg_notify($1, $2)", &parameters);
            match timeout(self.connector.patience(), telling).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    Failure::Sql(error).told("telling other processes");
                    return Err(());
                }
                Err(_) => return Err(()),
            }
        }
        Ok(())
    }
}

/// Reads what others tell until the connection ends.
async fn hear(
    mut driver: Driver,
    own: tokio::sync::watch::Receiver<Option<i32>>,
    heard: broadcast::Sender<Change>,
) {
    while let Some(Ok(message)) = poll_fn(|cx| driver.poll_message(cx)).await {
        if let AsyncMessage::Notification(told) = message
            && Some(told.process_id()) != *own.borrow()
        {
            for change in changes(&told) {
                // Nobody may be listening.
                let _ = heard.send(change);
            }
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
fn changes(told: &Notification) -> Vec<Change> {
    read_changes(told.payload())
}

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
