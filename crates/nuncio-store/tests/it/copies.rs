//! Copies of a SQLite file: made under load, put in place only when they are sound.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_protocol::TaskState;
use nuncio_store::{
    Sessions as _, SqliteOptions, SqliteStore, Store, StoreError, Synchronous, backup, check,
    examine, migrate, restore,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::contract::sessions::{said, session_of};
use crate::draft::{Draft, key, scope};
use crate::sqlite::WITHOUT_SESSIONS;

fn open(path: &Path) -> SqliteStore {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        checkpoint_pages: 50,
        ..SqliteOptions::default()
    };
    SqliteStore::open(path, options).unwrap()
}

async fn fill(path: &Path, tasks: usize) {
    let store = open(path);
    for n in 0..tasks {
        let mut draft = Draft::new("ada", &format!("t{n}"), n as i64);
        let mut new = draft.create();
        new.idempotency = Some(key(&format!("k{n}"), 1));
        store.create(new).await.unwrap();
        if n % 2 == 0 {
            store.append(draft.complete(n as i64)).await.unwrap();
        }
    }
    store.close().await.unwrap();
}

fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// R26: writers go on while it is made, and what they had been answered before is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r26_a_backup_under_load_holds_what_was_answered() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = Arc::new(open(&path));
    let answered = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, answered) = (Arc::clone(&store), Arc::clone(&answered));
            tokio::spawn(async move {
                for n in 0..200 {
                    let mut draft = Draft::new("ada", &format!("t{writer}-{n}"), n);
                    store.create(draft.create()).await.unwrap();
                    store.append(draft.complete(n + 1)).await.unwrap();
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for round in 0..5 {
        while answered.load(Ordering::SeqCst) < round * 200 + 100 {
            tokio::task::yield_now().await;
        }
        let before = answered.load(Ordering::SeqCst) as u64;
        let copy = folder.path().join(format!("copy{round}.db"));
        let (from, to) = (path.clone(), copy.clone());
        let size = tokio::task::spawn_blocking(move || backup(from, to));
        let size = size.await.unwrap().unwrap();
        assert_eq!(size, copy.metadata().unwrap().len());
        let elsewhere = folder.path().join(format!("elsewhere{round}/nuncio.db"));
        let report = restore(&copy, &elsewhere, false).unwrap();
        assert!(report.tasks >= before, "{} of {before}", report.tasks);
        let restored = open(&elsewhere);
        let page = restored
            .list(&scope("ada"), &Default::default(), None, 1)
            .await;
        assert_eq!(page.unwrap().total, report.tasks);
        restored.close().await.unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(check(&path).unwrap().problems, [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn copies_are_private_and_replace_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let (path, copy) = (
        folder.path().join("nuncio.db"),
        folder.path().join("copy.db"),
    );
    fill(&path, 4).await;
    backup(&path, &copy).unwrap();
    let mode = copy.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let before = std::fs::read(&copy).unwrap();
    assert_eq!(
        refusal(backup(&path, &copy)),
        "copy.db: the file exists already"
    );
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let nowhere = folder.path().join("nowhere.db");
    assert_eq!(
        refusal(backup(&nowhere, folder.path().join("x"))),
        "nowhere.db: there is no such file"
    );
    let names: Vec<_> = folder
        .path()
        .read_dir()
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().ends_with(".new")),
        "{names:?}"
    );
}

#[tokio::test]
async fn a_database_is_replaced_only_when_that_is_meant() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (
        folder.path().join("nuncio.db"),
        folder.path().join("copy.db"),
    );
    fill(&path, 4).await;
    backup(&path, &copy).unwrap();
    fill_more(&path).await;
    assert_eq!(
        refusal(restore(&copy, &path, false)),
        "nuncio.db: there is a database already"
    );
    assert_eq!(check(&path).unwrap().tasks, 5);
    let store = open(&path);
    let used = refusal(restore(&copy, &path, true));
    assert!(used.contains("in use by another process"), "{used}");
    store.close().await.unwrap();
    assert_eq!(restore(&copy, &path, true).unwrap().tasks, 4);
    let store = open(&path);
    let stored = store
        .load(&scope("ada"), &"t2".into())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.task.status.state, TaskState::Completed);
    assert!(
        store
            .load(&scope("ada"), &"more".into())
            .await
            .unwrap()
            .is_none()
    );
    store.close().await.unwrap();
}

/// What agents keep is in a copy.
#[tokio::test]
async fn sessions_are_copied_and_restored() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (
        folder.path().join("nuncio.db"),
        folder.path().join("copy.db"),
    );
    let store = open(&path);
    let key = session_of("ada", "c");
    let first = said(&key, 0, &["a", "b"]);
    store.append_session(first).await.unwrap();
    let before = store.session(&key, 0, 9).await.unwrap();
    backup(&path, &copy).unwrap();
    store
        .append_session(said(&key, 2, &["later"]))
        .await
        .unwrap();
    store.close().await.unwrap();
    restore(&copy, &path, true).unwrap();
    let store = open(&path);
    assert_eq!(store.session(&key, 0, 9).await.unwrap(), before);
    store.close().await.unwrap();
}

async fn fill_more(path: &Path) {
    let store = open(path);
    store
        .create(Draft::new("ada", "more", 0).create())
        .await
        .unwrap();
    store.close().await.unwrap();
}

/// R06: what is damaged does not take the place of anything.
#[tokio::test]
async fn a_damaged_copy_is_not_put_in_place() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (
        folder.path().join("nuncio.db"),
        folder.path().join("copy.db"),
    );
    fill(&path, 4).await;
    backup(&path, &copy).unwrap();
    Connection::open(&copy)
        .unwrap()
        .execute_batch("DELETE FROM log WHERE slot >> 32 = 2")
        .unwrap();
    let why = refusal(restore(&copy, &path, true));
    assert!(
        why.starts_with("copy.db: the copy is damaged: task t1"),
        "{why}"
    );
    assert_eq!(check(&path).unwrap().tasks, 4, "what was there is there");
    std::fs::write(&copy, "this is no database, however long it may be").unwrap();
    assert!(refusal(restore(&copy, &path, true)).contains("not a database of nuncio"));
}

#[tokio::test]
async fn shapes_are_examined_and_carried_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    fill(&path, 4).await;
    let report = examine(&path).unwrap();
    assert_eq!((report.found, report.unfinished), (report.known, 2));
    let set = |version: usize, more: &str| {
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!("{more} PRAGMA user_version = {version}"))
            .unwrap();
    };
    set(report.known + 1, "");
    assert_eq!(examine(&path).unwrap().found, report.known + 1);
    assert!(refusal(migrate(&path)).contains("use a newer nuncio"));
    let copy = folder.path().join("copy.db");
    assert!(refusal(backup(&path, &copy)).contains("use a newer nuncio"));
    set(
        report.known - 4,
        &format!(
            "{WITHOUT_SESSIONS}
             DROP INDEX keys_by_task; ALTER TABLE tasks DROP COLUMN forgotten;
             DROP TABLE push_states; DROP TABLE push_letters; DROP TABLE push_calls;"
        ),
    );
    let older = check(&path).unwrap();
    assert_eq!((older.tasks, older.problems), (4, Vec::new()));
    backup(&path, &copy).unwrap();
    let restored = folder.path().join("restored.db");
    assert_eq!(restore(&copy, &restored, false).unwrap().tasks, 4);
    assert_eq!(examine(&restored).unwrap().found, report.known - 4);
    let store = open(&restored);
    let page = store
        .list(&scope("ada"), &Default::default(), None, 9)
        .await;
    assert_eq!(page.unwrap().total, 4);
    store.close().await.unwrap();
    assert_eq!(migrate(&path).unwrap(), report.known - 4);
    assert_eq!(examine(&path).unwrap(), report);
    assert_eq!(check(&path).unwrap().problems, [""; 0]);
    assert_eq!(migrate(&path).unwrap(), report.known, "nothing left to do");
    assert_eq!(
        refusal(examine(folder.path())).split(": ").nth(1),
        Some("there is no such file")
    );
}
