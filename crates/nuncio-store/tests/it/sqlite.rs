//! What only a file promises: it outlives the process, and says what is wrong with it.

use std::path::Path;
use std::sync::Arc;

use nuncio_protocol::TaskState;
use nuncio_store::{
    Created, NodeRow, Nodes as _, OpenOptions, Sessions as _, SqliteOptions, SqliteStore,
    StateChange, StateScope, Store, StoreError, Sweep, SweepKind, Synchronous, check,
    open as open_url,
};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::contract::sessions::{forget_two, said, session_of};
use crate::contract::{Shared, contract, nodes};
use crate::draft::{Draft, at, key, lease, scope, webhook};

async fn open() -> Option<(Shared, TempDir)> {
    let folder = TempDir::new().unwrap();
    let store = open_at(&folder.path().join("nuncio.db"));
    Some((Arc::new(store), folder))
}

fn open_at(path: &Path) -> SqliteStore {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    SqliteStore::open(path, options).unwrap()
}

fn refusal(path: &Path) -> String {
    match SqliteStore::open(path, SqliteOptions::default()) {
        Err(StoreError::Refused(why)) => {
            let folder = path.parent().unwrap().to_string_lossy().into_owned();
            assert!(!why.contains(&folder), "names the file only: {why}");
            why
        }
        other => panic!("{other:?}"),
    }
}

contract!(open);

/// A store with tasks in several states, closed.
async fn filled(path: &Path) -> Vec<Draft> {
    let store = open_at(path);
    let mut drafts: Vec<_> = (0..5)
        .map(|n| Draft::new("ada", &format!("t{n}"), n))
        .collect();
    for (n, draft) in drafts.iter_mut().enumerate() {
        let mut new = draft.create();
        new.idempotency = Some(key(&format!("k{n}"), 1));
        store.create(new).await.unwrap();
    }
    store.append(drafts[0].complete(10)).await.unwrap();
    let asked = drafts[1].status(TaskState::InputRequired, 11).append();
    store.append(asked).await.unwrap();
    for n in 0..20 {
        let chunk = drafts[2].artifact("a", &n.to_string()).append();
        store.append(chunk).await.unwrap();
    }
    let hook = webhook(drafts[2].id(), "hook", "https://one.example/");
    store.put_push_config(&scope("ada"), &hook).await.unwrap();
    let session = session_of("ada", "c");
    let mut first = said(&session, 0, &["a", "b", "c"]);
    first.state = [StateScope::Context, StateScope::Caller]
        .map(|scope| StateChange {
            scope,
            name: "x".into(),
            value: Some("1".into()),
        })
        .into();
    store.append_session(first).await.unwrap();
    let summary = store.compact_session(&session, 2, "3".into()).await;
    assert!(summary.unwrap());
    let node = NodeRow {
        id: "n".into(),
        json: "{}".into(),
    };
    let (ada, task) = (scope("ada"), drafts[2].id());
    assert!(store.record_nodes(&ada, &task, vec![node]).await.unwrap());
    store.renew(lease("process")).await.unwrap();
    store.close().await.unwrap();
    drafts
}

async fn assert_holds(store: &dyn Store, drafts: &[Draft]) {
    for draft in drafts {
        let stored = store.load(&draft.scope, &draft.id()).await;
        let stored = stored.unwrap().unwrap();
        assert_eq!(*stored.task, draft.task);
        assert_eq!(stored.head.last, draft.log.len() as u64);
    }
    let page = store
        .list(&scope("ada"), &Default::default(), None, 9)
        .await;
    assert_eq!(page.unwrap().total, drafts.len() as u64);
}

#[tokio::test]
async fn everything_is_there_after_closing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new folder").join("nuncio.db");
    let drafts = filled(&path).await;
    assert!(!path.with_extension("db-wal").exists(), "closed cleanly");
    let store = open_at(&path);
    assert_holds(&store, &drafts).await;
    let ada = scope("ada");
    let found = store.find_key(&ada, "k3").await.unwrap();
    assert_eq!(found, Some((drafts[3].id(), [1; 32])));
    let hooks = store.push_configs(&ada, &drafts[2].id()).await.unwrap();
    assert_eq!(hooks.unwrap()[0].cursor, 21);
    let stored = store.load(&ada, &drafts[3].id()).await.unwrap().unwrap();
    assert_eq!(stored.head.owner.as_deref(), Some("process"));
    let session = session_of("ada", "c");
    let entries = store.session(&session, 0, 9).await.unwrap();
    let positions: Vec<_> = entries.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, [2, 3]);
    assert_eq!(store.state(&session).await.unwrap().len(), 2);
    assert_eq!(store.nodes(&ada, &drafts[2].id()).await.unwrap().len(), 1);
    store.close().await.unwrap();
    let report = check(&path).unwrap();
    assert_eq!(report.problems, [""; 0]);
    assert_eq!((report.tasks, report.events), (5, 5 + 2 + 1 + 20));
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("data").join("nuncio.db");
    let store = open_at(&path);
    store.ping().await.unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in path.parent().unwrap().read_dir().unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    store.close().await.unwrap();
}

/// What is on disk at any moment is a sound database: as after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_copy_under_load_is_sound_and_holds_what_was_answered() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store: Shared = Arc::new(open_at(&path));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in 0..60 {
                    let mut draft = Draft::new("ada", &format!("{writer} {n}"), n);
                    store.create(draft.create()).await.unwrap();
                    store.append(draft.complete(n + 1)).await.unwrap();
                }
            })
        })
        .collect();
    for round in 0..8 {
        tokio::task::yield_now().await;
        let page = store
            .list(&scope("ada"), &Default::default(), None, 100)
            .await;
        let answered = page.unwrap();
        // The load is too small for the log to be carried over: the log has it all.
        let copy = folder.path().join(format!("copy {round}.db"));
        std::fs::copy(&path, &copy).unwrap();
        let log = format!("copy {round}.db-wal");
        std::fs::copy(path.with_extension("db-wal"), folder.path().join(log)).unwrap();
        let report = check(&copy).unwrap();
        assert_eq!(report.problems, [""; 0]);
        let copied = open_at(&copy);
        for task in answered.tasks {
            let found = copied.load(&scope("ada"), &task.id).await.unwrap();
            assert!(found.is_some(), "{} was answered", task.id);
        }
        copied.close().await.unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    store.close().await.unwrap();
    assert_eq!(check(&path).unwrap().problems, [""; 0]);
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    filled(&path).await;
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    drop(newer);
    assert!(refusal(&path).contains("version 999"));
    assert!(matches!(check(&path), Err(StoreError::Refused(_))));
}

/// Takes away what the version of sessions has brought, and what came after it.
pub(crate) const WITHOUT_SESSIONS: &str = "
    DROP TABLE sessions; DROP TABLE session_entries; DROP TABLE session_states;
    DROP TABLE caller_states; DROP TABLE agent_states; DROP TABLE nodes; DROP TABLE owned;";

/// PUSH-15: webhooks of a database that knew one version only are of that version.
#[tokio::test]
async fn a_database_of_the_first_version_is_carried_over() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let drafts = filled(&path).await;
    let older = Connection::open(&path).unwrap();
    older
        .execute_batch(
            "ALTER TABLE push_configs DROP COLUMN version; DROP TABLE requests;
             DROP INDEX keys_by_task; ALTER TABLE tasks DROP COLUMN forgotten;
             DROP TABLE push_states; DROP TABLE push_letters; DROP TABLE push_calls;
             PRAGMA user_version = 1",
        )
        .unwrap();
    older.execute_batch(WITHOUT_SESSIONS).unwrap();
    drop(older);
    let store = open_at(&path);
    assert_holds(&store, &drafts).await;
    let hooks = store.push_configs(&scope("ada"), &drafts[2].id()).await;
    let hook = hooks.unwrap().unwrap().remove(0);
    assert_eq!(
        (hook.webhook.version, hook.cursor),
        (nuncio_protocol::Version::V1_0, 21)
    );
    let mut replaced = hook.webhook;
    replaced.version = nuncio_protocol::Version::V0_3;
    store
        .put_push_config(&scope("ada"), &replaced)
        .await
        .unwrap();
    store.close().await.unwrap();
    let store = open_at(&path);
    let hooks = store.push_configs(&scope("ada"), &drafts[2].id()).await;
    assert_eq!(hooks.unwrap().unwrap()[0].webhook, replaced);
    store.close().await.unwrap();
    assert_eq!(check(&path).unwrap().problems, [""; 0]);
}

#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let other = folder.path().join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(connection);
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to look at").unwrap();
    for path in [other, text] {
        let before = std::fs::read(&path).unwrap();
        assert!(refusal(&path).contains("not a database of nuncio"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    let nowhere = folder.path().join("nowhere.db");
    assert!(matches!(check(&nowhere), Err(StoreError::Refused(_))));
    assert!(!nowhere.exists(), "a check makes nothing");
}

#[tokio::test]
async fn a_second_opener_is_refused_until_the_first_has_closed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let first = open_at(&path);
    assert!(refusal(&path).contains("in use"));
    check(&path).unwrap();
    first.close().await.unwrap();
    open_at(&path).close().await.unwrap();
}

#[tokio::test]
async fn a_check_finds_what_is_wrong() {
    let wrongs = [
        (
            "DELETE FROM log WHERE (slot & 4294967295) = 7",
            "its log goes from 6 to 8",
        ),
        (
            "DELETE FROM log WHERE slot = (SELECT max(slot) FROM log)",
            "the log ends at 0",
        ),
        (
            "UPDATE log SET count = 2 WHERE (slot & 4294967295) = 7",
            "are not 2",
        ),
        (
            "UPDATE snapshots SET body = replace(body, 'done', 'undone')",
            "not the fold",
        ),
        (
            "UPDATE tasks SET state = 2 WHERE state = 3",
            "another state",
        ),
        ("UPDATE totals SET count = count + 1", "do not add up"),
        (
            "INSERT INTO keys VALUES (1, 'stray', 99, x'00')",
            "1 rows of keys",
        ),
        (
            "INSERT INTO nodes VALUES (9, 99, 'stray', '')",
            "1 rows of nodes",
        ),
        ("DELETE FROM sessions", "2 rows of session_entries"),
        ("DELETE FROM sessions", "1 rows of session_states"),
        ("UPDATE sessions SET scope = 99", "1 rows of sessions"),
        (
            "UPDATE caller_states SET scope = 99",
            "1 rows of caller_states",
        ),
        (
            "DELETE FROM session_entries WHERE (slot & 4294967295) = 3",
            "1 sessions have gaps",
        ),
        (
            "UPDATE session_entries SET slot = slot - 1 WHERE (slot & 4294967295) = 2",
            "1 sessions have gaps",
        ),
        (
            "UPDATE tasks SET scope = 9 WHERE id = 't4'",
            "1 rows of tasks",
        ),
        (
            "UPDATE log SET payload = '[{\"message\":3}]' WHERE (slot & 4294967295) = 7",
            "does not read",
        ),
    ];
    for (wrong, found) in wrongs {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("nuncio.db");
        filled(&path).await;
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(wrong).unwrap();
        drop(connection);
        let report = check(&path).unwrap();
        assert!(!report.is_sound());
        let problems = report.problems.join("\n");
        assert!(problems.contains(found), "{wrong}: {problems}");
    }
}

#[tokio::test]
async fn damaged_pages_are_named_and_not_served() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let drafts = filled(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    let damaged = bytes.len() - 4096 * 2;
    for byte in &mut bytes[4096..damaged] {
        *byte ^= 0x5a;
    }
    std::fs::write(&path, bytes).unwrap();
    match check(&path) {
        Ok(report) => assert!(!report.is_sound()),
        Err(error) => assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}"),
    }
    if let Ok(store) = SqliteStore::open(&path, SqliteOptions::default()) {
        for draft in &drafts {
            let loaded = store.load(&draft.scope, &draft.id()).await;
            assert!(matches!(loaded, Err(StoreError::Corrupt(_))), "{loaded:?}");
        }
        store.close().await.unwrap();
    }
}

/// The log beside the database begins anew again and again, also while somebody reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_write_ahead_log_stays_short() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        checkpoint_pages: 50,
        ..SqliteOptions::default()
    };
    let store: Shared = Arc::new(SqliteStore::open(&path, options).unwrap());
    let reader = {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            loop {
                let page = store
                    .list(&scope("ada"), &Default::default(), None, 50)
                    .await;
                if page.unwrap().total == 1_000 {
                    return;
                }
            }
        })
    };
    for n in 0..1_000 {
        let mut draft = Draft::new("ada", &format!("t{n:04}"), n);
        store.create(draft.create()).await.unwrap();
        store.append(draft.complete(n + 1)).await.unwrap();
    }
    reader.await.unwrap();
    let pages = path.with_extension("db-wal").metadata().unwrap().len() / 4096;
    assert!(pages < 1_000, "{pages} pages");
    store.close().await.unwrap();
}

/// Dropping the future of a write does not undo it, and dropping the store loses nothing.
#[tokio::test]
async fn a_dropped_store_has_written_what_was_begun() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = open_at(&path);
    let mut draft = Draft::new("ada", "t", 0);
    assert_eq!(store.create(draft.create()).await.unwrap(), Created::New);
    drop(store);
    let store = loop {
        match SqliteStore::open(&path, SqliteOptions::default()) {
            Ok(store) => break store,
            Err(StoreError::Refused(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    };
    assert_holds(&store, &[draft]).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_url_names_a_store() {
    let folder = TempDir::new().unwrap();
    let plain = folder.path().join("plain.db").display().to_string();
    for url in [
        "memory:".to_owned(),
        plain.clone(),
        format!("sqlite:{plain}"),
        format!("sqlite://{plain}"),
    ] {
        let store = open_url(&url, OpenOptions::default()).await.unwrap();
        store.ping().await.unwrap();
        store.close().await.unwrap();
    }
    for url in ["mysql://localhost/nuncio", "sqlite:", "memory:x"] {
        let refused = open_url(url, OpenOptions::default()).await.unwrap_err();
        assert!(matches!(refused, StoreError::Refused(_)), "{url}");
    }
}

async fn sweep_all(store: &dyn Store, kind: SweepKind) -> usize {
    let (mut count, mut from) = (0, None);
    loop {
        let before = at(1_000_000);
        let part = Sweep {
            kind,
            before,
            from,
            limit: 50,
        };
        let swept = store.sweep(part).await.unwrap();
        count += swept.tasks.len();
        from = swept.next;
        if from.is_none() {
            return count;
        }
    }
}

/// What expired tasks took is given back, and the database is sound before and after.
#[tokio::test]
async fn the_file_shrinks_when_tasks_expire() {
    const TASKS: usize = 2_500;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let store = open_at(&path);
    for n in 0..TASKS {
        let mut draft = Draft::new("ada", &format!("t{n}"), n as i64);
        draft.artifact("a", &"x".repeat(2_000));
        let mut new = draft.create();
        new.idempotency = Some(key(&format!("k{n}"), 1));
        store.create(new).await.unwrap();
        if n % 10 > 0 {
            store.append(draft.complete(n as i64)).await.unwrap();
        }
    }
    let ended = TASKS - TASKS / 10;
    assert_eq!(sweep_all(&store, SweepKind::Compact).await, ended);
    assert_eq!(check(&path).unwrap().problems, [""; 0]);
    let compacted = check(&path).unwrap();
    let events = (TASKS / 10 * 2) as u64;
    assert_eq!((compacted.tasks, compacted.events), (TASKS as u64, events));
    store.close().await.unwrap();
    let full = path.metadata().unwrap().len();

    let store = open_at(&path);
    assert_eq!(sweep_all(&store, SweepKind::Expire).await, ended);
    while store.reclaim().await.unwrap() {}
    store.close().await.unwrap();
    let shrunk = path.metadata().unwrap().len();
    assert!(shrunk * 3 < full, "{shrunk} of {full}");
    let report = check(&path).unwrap();
    assert_eq!(report.problems, [""; 0]);
    assert_eq!(report.tasks, (TASKS / 10) as u64);
}

#[tokio::test]
async fn what_is_gone_leaves_nothing() {
    let (store, folder) = open().await.unwrap();
    forget_two(&store).await;
    nodes::nodes_go_with_their_task(&store).await;
    store.close().await.unwrap();
    let report = check(folder.path().join("nuncio.db")).unwrap();
    assert_eq!(report.problems, [""; 0]);
}

/// A log that is lost is not taken for one that has been compacted.
#[tokio::test]
async fn a_lost_log_is_no_compacted_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    filled(&path).await;
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("DELETE FROM log WHERE slot >> 32 = 1")
        .unwrap();
    let problems = check(&path).unwrap().problems;
    assert_eq!(problems, ["task t0: the log ends at 0, the row says 3"]);
    connection
        .execute_batch("UPDATE tasks SET forgotten = 1 WHERE number = 1")
        .unwrap();
    assert_eq!(check(&path).unwrap().problems.len(), 1);
}
