//! PostgreSQL: sweeping by several processes, looking whether a database is sound, older shapes.

use std::sync::Arc;

use nuncio_protocol::TaskState;
use nuncio_store::{
    Imported, PostgresOptions, PostgresStore, SchemaReport, StateChange, StateScope, StoreError,
    Sweep, SweepKind,
};

use crate::contract::sessions::{forget_two, said, session_of};
use crate::contract::{Shared, nodes};
use crate::database::Database;
use crate::draft::{Draft, at, key, scope, webhook};
use crate::postgres::{WITHOUT_DELIVERIES, WITHOUT_SESSIONS};

async fn store_on(database: &Database) -> Shared {
    let store = PostgresStore::open(&database.url(), PostgresOptions::default()).await;
    Arc::new(store.unwrap())
}

async fn ended(store: &Shared, id: &str, ms: i64) -> Draft {
    let mut draft = Draft::new("ada", id, ms - 1);
    let mut new = draft.create();
    new.idempotency = Some(key(id, 1));
    store.create(new).await.unwrap();
    store.append(draft.complete(ms)).await.unwrap();
    draft
}

/// Sweeps to the end; gives the ids.
async fn sweep(store: &Shared, kind: SweepKind) -> Vec<String> {
    let (mut ids, mut from) = (Vec::new(), None);
    loop {
        let part = Sweep {
            kind,
            before: at(1_000_000),
            from,
            limit: 7,
        };
        let swept = store.sweep(part).await.unwrap();
        ids.extend(swept.tasks.into_iter().map(|(_, id)| id.to_string()));
        from = swept.next;
        if from.is_none() {
            return ids;
        }
    }
}

async fn problems(database: &Database) -> Vec<String> {
    let report = PostgresStore::check(&database.url()).await.unwrap();
    report.problems
}

/// Each task is swept by one of them, and none is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_sweep_beside_each_other_and_writers() {
    let Some(database) = Database::new().await else {
        return;
    };
    let stores = [store_on(&database).await, store_on(&database).await];
    for kind in [SweepKind::Compact, SweepKind::Expire] {
        for n in 0..60 {
            ended(&stores[n % 2], &format!("{kind:?}{n}"), 100).await;
        }
        let writing = tokio::spawn({
            let store = Arc::clone(&stores[0]);
            async move {
                for n in 0..60 {
                    let mut draft = Draft::new("ada", &format!("young {kind:?}{n}"), 2_000_000);
                    store.create(draft.create()).await.unwrap();
                    store.append(draft.complete(2_000_001)).await.unwrap();
                }
            }
        });
        let sweeping = stores
            .clone()
            .map(|store| tokio::spawn(async move { sweep(&store, kind).await }));
        let mut swept = Vec::new();
        for sweeping in sweeping {
            swept.extend(sweeping.await.unwrap());
        }
        writing.await.unwrap();
        // What one had locked, the other has left to it.
        swept.extend(sweep(&stores[0], kind).await);
        let count = swept.len();
        swept.sort();
        swept.dedup();
        let expected = if kind == SweepKind::Compact { 60 } else { 120 };
        assert_eq!((count, swept.len()), (expected, expected));
    }
    let (ada, all) = (scope("ada"), Default::default());
    let page = stores[1].list(&ada, &all, None, 1).await.unwrap();
    assert_eq!(page.total, 120);
    assert_eq!(problems(&database).await, [""; 0]);
    for store in stores {
        store.close().await.unwrap();
    }
}

/// A sweep waits for nobody, and leaves no webhook behind without its task.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_somebody_is_at_work_with_is_left_for_another_time() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = store_on(&database).await;
    for id in ["busy", "free", "hooked"] {
        ended(&store, id, 100).await;
    }
    let other = database.client().await;
    let lock = "BEGIN; SELECT FROM nuncio.tasks WHERE id = 'busy' FOR UPDATE";
    other.batch_execute(lock).await.unwrap();
    // Somebody else is about to store the same webhook, so ours is half stored until they are done.
    let rival = database.client().await;
    let insert = "BEGIN; INSERT INTO nuncio.push_configs (task, id, cursor, format, body, version)
        SELECT number, 'hook', 3, 1, '{}', '1.0' FROM nuncio.tasks WHERE id = 'hooked'";
    rival.batch_execute(insert).await.unwrap();
    let putting = tokio::spawn({
        let store = Arc::clone(&store);
        let hook = webhook("hooked".into(), "hook", "https://one.example/");
        async move { store.put_push_config(&scope("ada"), &hook).await }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let watch = database.client().await;
    while watch.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(sweep(&store, SweepKind::Compact).await, ["free"]);
    assert_eq!(sweep(&store, SweepKind::Expire).await, ["free"]);
    rival.batch_execute("ROLLBACK").await.unwrap();
    assert!(putting.await.unwrap().unwrap());
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(problems(&database).await, [""; 0]);
    let mut rest = sweep(&store, SweepKind::Expire).await;
    rest.sort();
    assert_eq!(rest, ["busy", "hooked"]);
    assert_eq!(problems(&database).await, [""; 0]);
    store.close().await.unwrap();
}

/// A snapshot that is older than the end is made anew before its log goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_log_goes_only_when_the_task_is_kept() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = store_on(&database).await;
    let draft = ended(&store, "t", 100).await;
    let older = "DELETE FROM nuncio.snapshots";
    let client = database.client().await;
    client.batch_execute(older).await.unwrap();
    assert_eq!(sweep(&store, SweepKind::Compact).await, ["t"]);
    let stored = store.load(&scope("ada"), &draft.id()).await.unwrap();
    assert_eq!(*stored.unwrap().task, draft.task);
    assert_eq!(problems(&database).await, [""; 0]);
    store.close().await.unwrap();
}

/// Three ended tasks and one that runs.
async fn fill(database: &Database) {
    let store = store_on(database).await;
    for id in ["a", "b", "c"] {
        ended(&store, id, 100).await;
    }
    let mut running = Draft::new("ada", "running", 1);
    store.create(running.create()).await.unwrap();
    let append = running.status(TaskState::Working, 2).append();
    store.append(append).await.unwrap();
    let mut session = said(&session_of("ada", "c"), 0, &["a", "b", "c"]);
    session.state.push(StateChange {
        scope: StateScope::Context,
        name: "x".into(),
        value: Some("1".into()),
    });
    store.append_session(session).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_gone_leaves_nothing() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = store_on(&database).await;
    forget_two(&store).await;
    nodes::nodes_go_with_their_task(&store).await;
    assert_eq!(problems(&database).await, [""; 0]);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn damage_is_found_and_named() {
    let a = "task = (SELECT number FROM nuncio.tasks WHERE id = 'a')";
    for (damage, problem) in [
        ("SELECT 1", None),
        (
            &*format!("DELETE FROM nuncio.log WHERE {a} AND first > 1"),
            Some("task a: the store holds what it should not: the log ends at 1, the row says 3"),
        ),
        (
            &*format!("DELETE FROM nuncio.log WHERE {a} AND first = 1"),
            Some("task a: the store holds what it should not: its log goes from 0 to 2"),
        ),
        (
            "UPDATE nuncio.tasks SET forgotten = last WHERE id = 'a'",
            Some("task a: its log is compacted, but not as that of an ended task"),
        ),
        (
            "UPDATE nuncio.tasks SET state = 4 WHERE id = 'b'",
            Some("task b: the row has another state than the log"),
        ),
        (
            "DELETE FROM nuncio.tasks WHERE id = 'b'",
            Some("1 rows of keys lead nowhere"),
        ),
        (
            &*format!(
                "UPDATE nuncio.snapshots SET body = replace(body, 'COMPLETED', 'FAILED') WHERE {a}"
            ),
            Some("task a: the row has another state than the log"),
        ),
        (
            "UPDATE nuncio.tasks SET scope = 99 WHERE id = 'c'",
            Some("1 rows of tasks lead nowhere"),
        ),
        (
            "INSERT INTO nuncio.nodes (task, id, body) VALUES (-1, 'stray', '')",
            Some("1 rows of nodes lead nowhere"),
        ),
        (
            "DELETE FROM nuncio.sessions",
            Some("3 rows of session_entries lead nowhere"),
        ),
        (
            "DELETE FROM nuncio.sessions",
            Some("1 rows of session_states lead nowhere"),
        ),
        (
            "DELETE FROM nuncio.session_entries WHERE position = 2",
            Some("1 sessions have gaps"),
        ),
        (
            "DELETE FROM nuncio.session_entries WHERE position = 3",
            Some("1 sessions have gaps"),
        ),
        (
            "UPDATE nuncio.totals SET count = count + 1",
            Some("totals do not add up"),
        ),
    ] {
        let Some(database) = Database::new().await else {
            return;
        };
        fill(&database).await;
        let client = database.client().await;
        client.batch_execute(damage).await.unwrap();
        let report = PostgresStore::check(&database.url()).await.unwrap();
        let Some(problem) = problem else {
            assert_eq!((report.tasks, report.events), (4, 11));
            assert_eq!(report.problems, [""; 0]);
            continue;
        };
        let found = report.problems;
        assert!(
            found.iter().any(|found| found.contains(problem)),
            "{damage}: {found:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shapes_are_examined_and_carried_over() {
    let Some(database) = Database::new().await else {
        return;
    };
    let url = database.url();
    let report = PostgresStore::examine(&url).await.unwrap();
    assert_eq!((report.found, report.unfinished), (0, 0));
    let nothing = PostgresStore::check(&url).await;
    assert!(
        matches!(nothing, Err(StoreError::Refused(_))),
        "{nothing:?}"
    );
    assert_eq!(PostgresStore::migrate(&url).await.unwrap(), 0);
    let known = report.known;
    let SchemaReport { found, .. } = PostgresStore::examine(&url).await.unwrap();
    assert_eq!(found, known);
    let store = store_on(&database).await;
    let draft = ended(&store, "t", 100).await;
    let running = Draft::new("ada", "running", 1).create();
    store.create(running).await.unwrap();
    let whole = store.export(None, 9).await.unwrap().pop().unwrap();
    store.close().await.unwrap();

    // The version before, in which a program before ours may still be at work.
    let client = database.client().await;
    let back = "ALTER TABLE nuncio.tasks DROP COLUMN forgotten; DROP INDEX nuncio.keys_by_task;
        DROP FUNCTION nuncio.expire_1; DROP FUNCTION nuncio.compact_1; DROP FUNCTION nuncio.import_1;
        DELETE FROM nuncio.schema_version WHERE version = 3";
    client.batch_execute(WITHOUT_SESSIONS).await.unwrap();
    client.batch_execute(WITHOUT_DELIVERIES).await.unwrap();
    client.batch_execute(back).await.unwrap();
    let report = PostgresStore::examine(&url).await.unwrap();
    assert_eq!((report.found, report.unfinished), (2, 1));
    assert_eq!(problems(&database).await, [""; 0]);
    assert_eq!(PostgresStore::migrate(&url).await.unwrap(), 2);
    assert_eq!(PostgresStore::migrate(&url).await.unwrap(), known);
    let store = store_on(&database).await;
    assert_eq!(store.import(whole).await.unwrap(), Imported::Same);
    assert_eq!(
        sweep(&store, SweepKind::Expire).await,
        [draft.id().as_str()]
    );
    store.close().await.unwrap();

    let newer = "INSERT INTO nuncio.schema_version (version) VALUES (99)";
    client.batch_execute(newer).await.unwrap();
    assert_eq!(PostgresStore::examine(&url).await.unwrap().found, 99);
    for refused in [
        PostgresStore::check(&url).await.unwrap_err(),
        PostgresStore::migrate(&url).await.unwrap_err(),
    ] {
        assert!(
            refused.to_string().contains("use a newer nuncio"),
            "{refused}"
        );
    }
}
