//! LISTEN and NOTIFY, on a connection of their own.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client};

use super::{CAPACITY, Ends, INTERVAL};
use crate::StoreError;
use crate::postgres::connection::{Connector, Driver, Parameter};
use crate::postgres::failure::Failure;

const CHANNEL: &str = "nuncio_tasks";

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The connection to the others, again and again.
pub(super) struct Line {
    connector: Arc<Connector>,
    told: mpsc::Receiver<String>,
    ends: Ends,
}

/// One connection, and what listens on it.
pub(super) struct Call {
    client: Client,
    listening: JoinHandle<()>,
}

impl Line {
    pub(super) fn new(
        connector: &Arc<Connector>,
        told: mpsc::Receiver<String>,
        ends: Ends,
    ) -> Self {
        Self {
            connector: Arc::clone(connector),
            told,
            ends,
        }
    }

    /// Tells and hears until the store is closed.
    pub(super) async fn run(mut self, first: Call) {
        let mut call = first;
        loop {
            if self.converse(call).await {
                return;
            }
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
            // What was told in between has not arrived, and what others told was not heard.
            self.ends.was_broken();
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
    pub(super) async fn listen(&self) -> Result<Call, StoreError> {
        let (client, driver) = self.connector.connect().await?;
        let (own, number) = tokio::sync::watch::channel(None);
        let hearer = hear(driver, number, self.ends.clone());
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
        for payload in self.ends.payloads(ids) {
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
async fn hear(mut driver: Driver, own: tokio::sync::watch::Receiver<Option<i32>>, ends: Ends) {
    while let Some(Ok(message)) = poll_fn(|cx| driver.poll_message(cx)).await {
        if let AsyncMessage::Notification(told) = message
            && Some(told.process_id()) != *own.borrow()
        {
            ends.hear(told.payload());
        }
    }
}
