//! Wake-ups over NATS: all that NOTIFY gives, and nothing is lost when it is away.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::TaskState;
use nuncio_store::{Change, PostgresOptions, PostgresStore, StoreError};

use crate::contract::{Shared, contract_of_replicas};
use crate::database::Database;
use crate::draft::Draft;
use crate::postgres::Patience;

/// A NATS server of Debian's package; ended when dropped.
struct Nats {
    port: u16,
    running: Option<Child>,
}

impl Nats {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut nats = Self {
            port: listener.local_addr().unwrap().port(),
            running: None,
        };
        drop(listener);
        nats.start();
        nats
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn start(&mut self) {
        let packaged = "/usr/sbin/nats-server";
        let program = match Path::new(packaged).exists() {
            true => packaged,
            false => "nats-server",
        };
        let started = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string()])
            .stderr(Stdio::null())
            .spawn();
        self.running = Some(started.expect("nats-server, of Debian's package of that name"));
    }

    fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill().unwrap();
            running.wait().unwrap();
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn store_on(database: &Database, nats: &str) -> Result<Shared, StoreError> {
    let options = PostgresOptions {
        wake_ups: Some(nats.to_owned()),
        ..PostgresOptions::default()
    };
    Ok(Arc::new(
        PostgresStore::open(&database.url(), options).await?,
    ))
}

async fn two_on(database: &Database, nats: &Nats) -> [Shared; 2] {
    let url = nats.url();
    let stores = [
        store_on(database, &url).await.unwrap(),
        store_on(database, &url).await.unwrap(),
    ];
    // The connections come by themselves; only then is there anything to hear.
    hears(&stores[0], &stores[1]).await;
    hears(&stores[1], &stores[0]).await;
    stores
}

async fn open_two() -> Option<([Shared; 2], (Database, Nats))> {
    let (database, nats) = (Database::new().await?, Nats::new());
    let stores = two_on(&database, &nats).await;
    Some((stores, (database, nats)))
}

contract_of_replicas!(open_two);

/// Waits until `there` hears of what `here` writes.
async fn hears(there: &Shared, here: &Shared) {
    let mut changes = there.changes().unwrap();
    let mut patience = Patience::default();
    for n in 0.. {
        let mut draft = Draft::new("nobody", &format!("{here:p} {n}"), 0);
        here.create(draft.create()).await.unwrap();
        here.append(draft.complete(1)).await.unwrap();
        patience.wait().await;
        while let Ok(change) = changes.try_recv() {
            if change == Change::Task(draft.id()) {
                return;
            }
        }
    }
}

/// R12: without NATS everything is written and read as with it; once it is back, all hear that they
/// may have missed something, and then of each change again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r12_nats_may_go_and_come() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut nats = Nats::new();
    let [store, other] = two_on(&database, &nats).await;
    nats.kill();
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    // More than any queue on the way takes.
    for n in 0..200 {
        let chunk = draft.artifact("a", &n.to_string()).append();
        store.append(chunk).await.unwrap();
    }
    let stored = other.load(&draft.scope, &draft.id()).await.unwrap();
    assert_eq!(stored.unwrap().head.last, 201);
    let mut changes = other.changes().unwrap();
    nats.start();
    let missed = async { while let Ok(Change::Task(_)) = changes.recv().await {} };
    let missed = tokio::time::timeout(Duration::from_secs(60), missed);
    missed.await.expect("whoever was cut off looks for itself");
    hears(&other, &store).await;
    store.append(draft.complete(9)).await.unwrap();
    let stored = other.load(&draft.scope, &draft.id()).await.unwrap();
    assert_eq!(stored.unwrap().head.state, TaskState::Completed);
    for store in [store, other] {
        store.close().await.unwrap();
    }
}

/// R12: a server starts without NATS, and closes without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_need_not_be_there() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = store_on(&database, "nats://127.0.0.1:1").await.unwrap();
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    store.append(draft.complete(1)).await.unwrap();
    store.ping().await.unwrap();
    store.close().await.unwrap();
}

/// Databases that share a NATS do not hear of each other; what is no URL is refused unseen.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_database_hears_its_own() {
    let (Some(one), Some(two)) = (Database::new().await, Database::new().await) else {
        return;
    };
    let nats = Nats::new();
    let ours = two_on(&one, &nats).await;
    let [stranger, _] = two_on(&two, &nats).await;
    let (mut heard, mut overheard) = (ours[1].changes().unwrap(), stranger.changes().unwrap());
    let mut draft = Draft::new("ada", "t", 0);
    ours[0].create(draft.create()).await.unwrap();
    ours[0].append(draft.complete(1)).await.unwrap();
    loop {
        if heard.recv().await.unwrap() == Change::Task(draft.id()) {
            break;
        }
    }
    while let Ok(change) = overheard.try_recv() {
        assert_ne!(change, Change::Task(draft.id()));
    }
    let refused = store_on(&one, "nats://s3cret@[").await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    assert!(!refused.to_string().contains("s3cret"), "{refused}");
}
