//! What needs a look inside: faults of the disk, of a neighbour in the batch, of our own code.

use nuncio_protocol::{Event, StreamResponse, Task, TaskState, TaskStatus, Timestamp};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::batch::{Batch, Write};
use super::connection::open_writer;
use super::failure::Failure;
use super::{SqliteOptions, SqliteStore, check};
use crate::{Created, NewTask, Scope, Store, StoreError};

fn open(folder: &TempDir) -> SqliteStore {
    let path = folder.path().join("nuncio.db");
    SqliteStore::open(path, SqliteOptions::default()).unwrap()
}

/// P1: "answered" means "on disk". Killing a process does not show it; the setting does.
#[test]
fn commits_are_synced_unless_told_otherwise() {
    let folder = TempDir::new().unwrap();
    drop(open(&folder));
    let path = folder.path().join("nuncio.db");
    let writer = open_writer(&path, &SqliteOptions::default()).unwrap();
    let setting = |name| writer.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    assert_eq!(setting("synchronous").unwrap(), 2, "FULL");
    let journal: String = writer
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(journal, "wal");
}

fn scope() -> Scope {
    Scope {
        workspace: "default".into(),
        agent: "echo".into(),
        caller: "ada".into(),
    }
}

fn new_task(id: &str) -> NewTask {
    let status = TaskStatus::new(TaskState::Submitted, Timestamp::from_unix_ms(1));
    let task = Task::new(id.into(), "context".into(), status);
    NewTask {
        scope: scope(),
        context: "context".into(),
        events: vec![Event::new(Some(1), StreamResponse::Task(task.clone()))],
        task: task.into(),
        snapshot: false,
        idempotency: None,
        lease: None,
        checkpoint: None,
        request: None,
        push_config: None,
    }
}

/// A write of SQL text.
struct Sql(&'static str);

impl Write for Sql {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        Ok(batch.connection.execute_batch(self.0)?)
    }
}

/// A write that is wrong.
struct Panics;

impl Write for Panics {
    type Reply = ();

    fn apply(&self, _: &mut Batch<'_>) -> Result<(), Failure> {
        panic!("a fault of our own, on purpose")
    }
}

/// Holds the writer inside a transaction, so that what follows comes in one batch.
struct Hold(parking_lot::Mutex<Option<oneshot::Receiver<()>>>);

impl Write for Hold {
    type Reply = ();

    fn apply(&self, _: &mut Batch<'_>) -> Result<(), Failure> {
        if let Some(held) = self.0.lock().take() {
            let _ = held.blocking_recv();
        }
        Ok(())
    }
}

/// Runs two creates with `bad` between them, all in one batch.
async fn with_neighbours<W: Write>(store: &SqliteStore, bad: W) -> Result<W::Reply, StoreError> {
    let (release, held) = oneshot::channel();
    let hold = store.writer.run(Hold(parking_lot::Mutex::new(Some(held))));
    let released = async {
        tokio::task::yield_now().await;
        release.send(()).unwrap();
    };
    let (_, first, bad, second, ()) = tokio::join!(
        biased;
        hold,
        store.create(new_task("first")),
        store.writer.run(bad),
        store.create(new_task("second")),
        released,
    );
    assert_eq!(first.unwrap(), Created::New);
    assert_eq!(second.unwrap(), Created::New);
    bad
}

async fn assert_sound(store: SqliteStore, folder: &TempDir, tasks: u64) {
    store.close().await.unwrap();
    let report = check(folder.path().join("nuncio.db")).unwrap();
    assert_eq!((report.problems, report.tasks), (Vec::new(), tasks));
}

#[tokio::test]
async fn a_write_that_fails_does_not_spoil_its_neighbours() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let bad = Sql("INSERT INTO scopes VALUES (1, 'again', '', '')");
    store.create(new_task("zero")).await.unwrap();
    let failed = with_neighbours(&store, bad).await;
    assert!(matches!(failed, Err(StoreError::Unavailable(_))));
    assert_sound(store, &folder, 3).await;
}

#[tokio::test]
async fn a_panic_hangs_nobody_and_the_writer_goes_on() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let failed = with_neighbours(&store, Panics).await;
    assert!(matches!(failed, Err(StoreError::Unavailable(_))));
    let alone = store.writer.run(Panics).await;
    assert!(matches!(alone, Err(StoreError::Unavailable(_))));
    store.ping().await.unwrap();
    assert_sound(store, &folder, 2).await;
}

#[tokio::test]
async fn a_full_disk_refuses_and_heals() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    store.create(new_task("before")).await.unwrap();
    let full = store.writer.run(Sql("PRAGMA max_page_count = 1"));
    full.await.unwrap();
    let mut stored = 1;
    let refused = loop {
        match store.create(new_task(&format!("task {stored}"))).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("space")));
    let waiting = (0..50).map(|n| store.create(new_task(&format!("waiting {n}"))));
    for reply in futures_join(waiting.collect()).await {
        assert!(matches!(reply, Err(StoreError::Unavailable(_))));
    }
    let page = store.list(&scope(), &Default::default(), None, 9).await;
    assert_eq!(page.unwrap().total, stored, "reading goes on");
    let mended = store.writer.run(Sql("PRAGMA max_page_count = 1000000"));
    mended.await.unwrap();
    store.create(new_task("after")).await.unwrap();
    assert_sound(store, &folder, stored + 1).await;
}

/// Waits for all of them at once, so that they may share a batch.
async fn futures_join<T: Send>(
    futures: Vec<crate::StoreFuture<'_, T>>,
) -> Vec<Result<T, StoreError>> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(|cx| {
        for (future, result) in &mut futures {
            if result.is_none()
                && let std::task::Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *result = Some(ready);
            }
        }
        if futures.iter().all(|(_, result)| result.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    futures
        .into_iter()
        .filter_map(|(_, result)| result)
        .collect()
}
