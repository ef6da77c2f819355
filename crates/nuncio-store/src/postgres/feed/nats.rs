//! Core NATS: a hint that is lost is looked for within a second, so nothing is kept there.

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr, Subscriber};
use futures_util::StreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::{CAPACITY, Ends, INTERVAL};
use crate::StoreError;

/// A server that gives no sign for two of these is given up, and connected to again.
const PING: Duration = Duration::from_secs(5);

/// How long telling may take while the server is away; then it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The connection to the others.
pub(super) struct Line {
    client: Client,
    subject: String,
    hearing: Subscriber,
    told: mpsc::Receiver<String>,
    ends: Ends,
}

impl Line {
    /// Connects in the background, now and whenever the connection breaks.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL that does not do; it is not shown.
    pub(super) async fn connect(
        url: &str,
        secret: &[u8; 32],
        told: mpsc::Receiver<String>,
        ends: Ends,
    ) -> Result<Self, StoreError> {
        let connected = ends.clone();
        let options = ConnectOptions::new()
            .name("nuncio")
            .no_echo()
            .retry_on_initial_connect()
            .ping_interval(PING)
            .event_callback(move |event| {
                noted(&event, &connected);
                std::future::ready(())
            });
        let refused = || {
            StoreError::Refused(
                "store.wake_ups is no URL of NATS, such as nats://USER:PASSWORD@HOST:4222"
                    .to_owned(),
            )
        };
        let servers = url
            .split(',')
            .map(str::parse)
            .collect::<Result<Vec<ServerAddr>, _>>();
        let servers = servers.map_err(|_| refused())?;
        let client = options.connect(servers).await.map_err(|_| refused())?;
        let subject = subject(secret);
        let hearing = client.subscribe(subject.clone()).await;
        Ok(Self {
            hearing: hearing.map_err(|_| refused())?,
            client,
            subject,
            told,
            ends,
        })
    }

    /// Tells and hears until the store is closed.
    pub(super) async fn run(mut self) {
        let ends = self.ends.clone();
        let mut hearing = self.hearing;
        let heard = tokio::spawn(async move {
            while let Some(message) = hearing.next().await {
                ends.hear(&String::from_utf8_lossy(&message.payload));
            }
        });
        let mut ids = Vec::new();
        while self.told.recv_many(&mut ids, CAPACITY).await > 0 {
            for payload in self.ends.payloads(&mut ids) {
                let told = self.client.publish(self.subject.clone(), payload.into());
                if !matches!(timeout(PATIENCE, told).await, Ok(Ok(()))) {
                    self.ends.was_broken();
                }
            }
            sleep(INTERVAL).await;
        }
        // Whoever does not hear of the last changes finds them within a second.
        let _ = timeout(PATIENCE, self.client.drain()).await;
        heard.abort();
    }
}

/// A subject of this database's processes, of which its secret cannot be told.
fn subject(secret: &[u8; 32]) -> String {
    let digest = Sha256::new()
        .chain_update(b"nuncio wake-ups")
        .chain_update(secret)
        .finalize();
    let name: String = digest[..12]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("nuncio.{name}.tasks")
}

fn noted(event: &Event, ends: &Ends) {
    match event {
        Event::Connected => {
            tracing::info!("NATS is connected");
            ends.was_broken();
        }
        Event::Disconnected | Event::Closed => {
            tracing::warn!("NATS is away; changes of other processes are looked for every second");
        }
        Event::SlowConsumer(_) => ends.was_broken(),
        _ => tracing::debug!(%event, "NATS"),
    }
}
