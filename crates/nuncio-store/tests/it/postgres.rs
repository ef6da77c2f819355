//! What only PostgreSQL promises: several processes, and a database that comes and goes.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_protocol::TaskState;
use nuncio_store::{
    Appended, Change, Created, DeliveryState, Disabled, LetterChange, OpenOptions, PostgresOptions,
    PostgresStore, Settlement, Store, StoreError, WebhookId,
};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::contract::{Shared, contract, contract_of_replicas};
use crate::database::{Database, variable};
use crate::draft::{Draft, key, scope, webhook};

async fn open_url(url: &str) -> Result<Shared, StoreError> {
    nuncio_store::open(url, OpenOptions::default()).await
}

async fn store_on(database: &Database) -> Shared {
    let store = PostgresStore::open(&database.url(), PostgresOptions::default()).await;
    Arc::new(store.unwrap())
}

async fn open() -> Option<(Shared, Database)> {
    let database = Database::new().await?;
    Some((store_on(&database).await, database))
}

async fn open_two() -> Option<([Shared; 2], Database)> {
    let database = Database::new().await?;
    let stores = [store_on(&database).await, store_on(&database).await];
    Some((stores, database))
}

/// Takes the schema back to the version before sessions.
pub(crate) const WITHOUT_SESSIONS: &str = "DROP TRIGGER nodes_gone ON nuncio.tasks;
        DROP TABLE nuncio.sessions, nuncio.session_entries, nuncio.session_states,
            nuncio.caller_states, nuncio.agent_states, nuncio.nodes, nuncio.owned;
        DO $$ DECLARE f text; BEGIN
            FOR f IN SELECT p.oid::regprocedure FROM pg_proc p
                WHERE p.pronamespace = 'nuncio'::regnamespace
                  AND (p.proname LIKE 'session%' OR p.proname LIKE 'nodes%' OR p.proname LIKE 'owned%')
            LOOP EXECUTE 'DROP FUNCTION ' || f; END LOOP; END $$;
        DELETE FROM nuncio.schema_version WHERE version >= 5";

/// Takes the schema back to the version before deliveries.
pub(crate) const WITHOUT_DELIVERIES: &str =
    "DROP TABLE nuncio.push_states, nuncio.push_letters, nuncio.push_calls,
            nuncio.push_claims;
        ALTER TABLE nuncio.push_configs DROP COLUMN done;
        DROP TRIGGER replaced ON nuncio.push_configs;
        DROP TRIGGER deleted ON nuncio.push_configs;
        DO $$ DECLARE f text; BEGIN
            FOR f IN SELECT p.oid::regprocedure FROM pg_proc p
                WHERE p.pronamespace = 'nuncio'::regnamespace AND p.proname LIKE 'push%'
            LOOP EXECUTE 'DROP FUNCTION ' || f; END LOOP; END $$;
        DELETE FROM nuncio.schema_version WHERE version = 4";

contract!(open);
contract_of_replicas!(open_two);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_share_one_secret() {
    let Some((stores, _database)) = open_two().await else {
        return;
    };
    let asking = [0, 1, 2, 3, 4, 5].map(|n: u8| {
        let store = Arc::clone(&stores[usize::from(n) % 2]);
        tokio::spawn(async move { store.shared_secret([n; 32]).await.unwrap() })
    });
    let mut secrets = Vec::new();
    for asking in asking {
        secrets.extend(asking.await.unwrap());
    }
    assert_eq!(secrets.len(), 6);
    assert!(
        secrets.iter().all(|secret| *secret == secrets[0]),
        "{secrets:?}"
    );
    for store in stores {
        store.close().await.unwrap();
    }
}

async fn refusal(url: &str) -> String {
    let refused = open_url(url).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_is_there_after_closing() {
    let Some((store, database)) = open().await else {
        return;
    };
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.idempotency = Some(key("k", 1));
    store.create(new).await.unwrap();
    store.append(draft.complete(1)).await.unwrap();
    store.close().await.unwrap();
    let store = store_on(&database).await;
    let stored = store.load(&draft.scope, &draft.id()).await.unwrap();
    assert_eq!(*stored.unwrap().task, draft.task);
    let found = store.find_key(&draft.scope, "k").await.unwrap();
    assert_eq!(found, Some((draft.id(), [1; 32])));
    store.close().await.unwrap();
}

/// Replicas that start at the same moment on an empty database make one schema.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_may_start_together() {
    let Some(database) = Database::new().await else {
        return;
    };
    let opening = [(); 6].map(|()| {
        let url = database.url();
        tokio::spawn(async move { open_url(&url).await })
    });
    for (n, opening) in opening.into_iter().enumerate() {
        let store = opening.await.unwrap().unwrap();
        let new = Draft::new("ada", &format!("t{n}"), 0).create();
        assert_eq!(store.create(new).await.unwrap(), Created::New);
        store.close().await.unwrap();
    }
}

/// What knows nothing of deliveries keeps its webhooks, and finds them as it knows them: a database
/// of the version before is carried over while a process of that version is still at work.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_of_an_earlier_version_is_carried_over() {
    let Some((older, database)) = open().await else {
        return;
    };
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.push_config = Some(webhook(draft.id(), "a", "https://one.example/"));
    older.create(new).await.unwrap();
    let client = database.client().await;
    client.batch_execute(WITHOUT_SESSIONS).await.unwrap();
    client.batch_execute(WITHOUT_DELIVERIES).await.unwrap();
    let newer = store_on(&database).await;
    let id = WebhookId {
        task: draft.id(),
        config: "a".into(),
    };
    let row = newer.delivery(&id).await.unwrap().unwrap();
    assert_eq!((row.cursor, row.last), (0, 1));
    let mut disabled = Settlement {
        webhook: id.clone(),
        owner: None,
        cursor: 0,
        state: DeliveryState::default(),
        letter: LetterChange::Keep,
    };
    disabled.state.disabled = Some(Disabled::Gone);
    assert!(newer.settle_delivery(disabled).await.unwrap());
    // The older process replaces it with what it has: a statement on the webhooks' table.
    let replace = "UPDATE nuncio.push_configs SET body = body, version = version";
    client.batch_execute(replace).await.unwrap();
    let row = newer.delivery(&id).await.unwrap().unwrap();
    assert_eq!(row.state, DeliveryState::default());
    for store in [older, newer] {
        store.close().await.unwrap();
    }
}

/// A webhook that has had all that will ever be is known as such; one of a task that goes on is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn webhooks_that_have_had_all_are_marked() {
    let Some((store, database)) = open().await else {
        return;
    };
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.push_config = Some(webhook(draft.id(), "a", "https://one.example/"));
    store.create(new).await.unwrap();
    let client = database.client().await;
    let delivered = async |cursor| {
        let settlement = Settlement {
            webhook: WebhookId {
                task: "t".into(),
                config: "a".into(),
            },
            owner: None,
            cursor,
            state: DeliveryState::default(),
            letter: LetterChange::Keep,
        };
        assert!(store.settle_delivery(settlement).await.unwrap());
        let query = "SELECT done FROM nuncio.push_configs";
        let row = client.query_one(query, &[]).await.unwrap();
        let behind = store.push_backlog(None, 9).await.unwrap().len();
        (row.get::<_, bool>(0), behind)
    };
    assert_eq!(delivered(1).await, (false, 0));
    store.append(draft.complete(1)).await.unwrap();
    assert_eq!(delivered(2).await, (false, 1));
    assert_eq!(delivered(3).await, (true, 0));
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_newer_version_is_refused() {
    let Some((store, database)) = open().await else {
        return;
    };
    store.close().await.unwrap();
    let client = database.client().await;
    let newer = "INSERT INTO nuncio.schema_version (version) VALUES (999)";
    client.batch_execute(newer).await.unwrap();
    let why = refusal(&database.url()).await;
    assert!(why.contains("version 999"), "{why}");
    assert!(why.contains("use a newer nuncio"), "{why}");
}

/// Tables of others in the same database are no matter; in our schema they are.
#[tokio::test]
async fn a_foreign_schema_is_refused_and_left_alone() {
    let Some(database) = Database::new().await else {
        return;
    };
    let client = database.client().await;
    let foreign = "CREATE SCHEMA nuncio; CREATE TABLE nuncio.tasks (x int); CREATE TABLE t (x int)";
    client.batch_execute(foreign).await.unwrap();
    let why = refusal(&database.url()).await;
    assert!(why.contains("not one of nuncio"), "{why}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'nuncio'";
    let tables: i64 = client.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(tables, 1);
    client
        .batch_execute("DROP TABLE nuncio.tasks")
        .await
        .unwrap();
    let store = store_on(&database).await;
    store.ping().await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let Some((store, database)) = open().await else {
        return;
    };
    let url = database.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    let debugged = format!("{store:?}");
    assert!(!debugged.contains(&database.password()), "{debugged}");
    store.close().await.unwrap();
    for wrong in [
        format!("{scheme}://postgres:s3cret@{place}"),
        format!("{scheme}://postgres:s3cret@127.0.0.1:1/nowhere"),
        format!("{scheme}://postgres:s3cret@{place}x"),
        format!("{scheme}://postgres:s3cret@{place}?sslmode=s3cret"),
        format!("{scheme}://postgres:s3/cr@et:s3cret@{place}"),
        format!("{scheme}://postgres@{place}?password=s3cret&nothing=s3cret"),
    ] {
        let error = open_url(&wrong).await.unwrap_err();
        let told = format!("{error} {error:?} {}", nuncio_store::shown_url(&wrong));
        assert!(
            !told.contains("s3cret") && !told.contains("cr@et"),
            "{told}"
        );
    }
}

/// sslmode of the URL is honoured, and a certificate is looked at when that is asked for.
#[tokio::test]
async fn tls_is_as_the_url_says() {
    let Some(database) = Database::new().await else {
        return;
    };
    let authority = variable("NUNCIO_TEST_POSTGRES_CA").unwrap();
    let url = database.url();
    for (mode, secret) in [
        ("disable".to_owned(), false),
        ("prefer".to_owned(), true),
        ("require".to_owned(), true),
        (format!("verify-full&sslrootcert={authority}"), true),
    ] {
        let store = open_url(&format!("{url}?sslmode={mode}")).await.unwrap();
        store.ping().await.unwrap();
        let query = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE application_name = 'nuncio'";
        let row = database.client().await.query_one(query, &[]).await;
        assert_eq!(
            row.unwrap().get::<_, Option<bool>>(0),
            Some(secret),
            "{mode}"
        );
        store.close().await.unwrap();
        // The next round counts its own connections only.
        database.cut().await;
    }
    let stranger = open_url(&format!("{url}?sslmode=verify-full")).await;
    let stranger = stranger.unwrap_err();
    assert!(
        matches!(stranger, StoreError::Unavailable(_)),
        "{stranger:?}"
    );
}

/// What cannot be stored is refused, and what shared its commit is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_spoiled_write_spoils_no_other() {
    let Some(database) = Database::new().await else {
        return;
    };
    let options = PostgresOptions {
        writers: 1,
        ..PostgresOptions::default()
    };
    let store = PostgresStore::open(&database.url(), options).await.unwrap();
    let store = Arc::new(store);
    // No index takes an entry of this size, however it is packed.
    let noise: String = (0..20_000_u32)
        .filter_map(|n| char::from_u32(0x4e00 + n.wrapping_mul(2_654_435_761) % 20_000))
        .collect();
    let writes: Vec<_> = (0..50)
        .map(|n| {
            let spoiled = n % 10 == 3;
            let id = if spoiled {
                format!("{n}{noise}")
            } else {
                format!("t{n}")
            };
            let new = Draft::of_context("ada", &id, "c", 0).create();
            let store = Arc::clone(&store);
            tokio::spawn(async move { (spoiled, store.create(new).await) })
        })
        .collect();
    for write in writes {
        match write.await.unwrap() {
            (true, result) => assert!(matches!(result, Err(StoreError::Corrupt(_)))),
            (false, result) => assert_eq!(result.unwrap(), Created::New),
        }
    }
    let (ada, all) = (scope("ada"), Default::default());
    assert_eq!(store.list(&ada, &all, None, 1).await.unwrap().total, 45);
    store.close().await.unwrap();
}

/// For something that comes by itself, however slow the machine.
#[derive(Default)]
pub(crate) struct Patience(u32);

impl Patience {
    pub(crate) async fn wait(&mut self) {
        self.0 += 1;
        assert!(self.0 < 3_000, "it did not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn back(store: &Shared) {
    let mut patience = Patience::default();
    while store.ping().await.is_err() {
        patience.wait().await;
    }
}

async fn state_of(store: &Shared, id: &str) -> TaskState {
    let mut patience = Patience::default();
    loop {
        match store.load(&scope("ada"), &id.into()).await {
            Ok(stored) => return stored.unwrap().task.status.state,
            Err(StoreError::Unavailable(_)) => patience.wait().await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Connections that are cut in the middle come back, and nothing that was answered is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cut_connections_heal() {
    let Some(([store, other], database)) = open_two().await else {
        return;
    };
    let mut changes = store.changes().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writing = write_until_stopped(&store, &stop);
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        database.cut().await;
        back(&store).await;
    }
    stop.store(true, Ordering::Release);
    let mut ids = Vec::new();
    for writer in writing {
        ids.extend(writer.await.unwrap());
    }
    assert!(!ids.is_empty());
    for id in &ids {
        assert_eq!(state_of(&other, id).await, TaskState::Completed);
    }
    // A listener that was cut off says that it may have missed something.
    loop {
        match changes.recv().await {
            Ok(Change::Unknown) | Err(broadcast::error::RecvError::Lagged(_)) => break,
            Ok(Change::Task(_)) => {}
            Err(closed) => panic!("{closed}"),
        }
    }
    for store in [store, other] {
        store.close().await.unwrap();
    }
}

/// Eight writers that complete tasks until they are stopped, repeating what was not answered, and
/// give the ids of those whose completion was answered.
fn write_until_stopped(store: &Shared, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<Vec<String>>> {
    (0..8)
        .map(|writer| {
            let (store, stop) = (Arc::clone(store), Arc::clone(stop));
            tokio::spawn(async move {
                let mut ids = Vec::new();
                while !stop.load(Ordering::Acquire) || ids.len() < 20 {
                    let id = format!("{writer} {}", ids.len());
                    complete(&store, &id).await;
                    ids.push(id);
                }
                ids
            })
        })
        .collect()
}

/// Creates and completes a task; what is unavailable is asked for again.
async fn complete(store: &Shared, id: &str) {
    let mut draft = Draft::new("ada", id, 0);
    let mut new = draft.create();
    new.idempotency = Some(key(id, 1));
    let mut patience = Patience::default();
    loop {
        match store.create(new.clone()).await {
            Ok(_) => break,
            Err(StoreError::Unavailable(_)) => patience.wait().await,
            Err(other) => panic!("{other:?}"),
        }
    }
    let end = draft.complete(1);
    loop {
        match store.append(end.clone()).await {
            Ok(Appended::Done { .. }) => return,
            // An earlier attempt has been written after all.
            Ok(Appended::Conflict(head)) => {
                assert_eq!((head.state, head.last), (TaskState::Completed, 3));
                return;
            }
            Ok(other) => panic!("{other:?}"),
            Err(StoreError::Unavailable(_)) => patience.wait().await,
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Runs with a server of its own, which it stops and starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "runs as the child of the test below"]
async fn writes_while_the_database_restarts() {
    let Some((store, database)) = open().await else {
        return;
    };
    let control = variable("NUNCIO_TEST_POSTGRES_CTL").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writing = write_until_stopped(&store, &stop);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        pg_ctl(&control, "-m immediate stop");
        assert!(matches!(
            store.ping().await,
            Err(StoreError::Unavailable(_))
        ));
        let down = store.load(&scope("ada"), &"0 0".into()).await;
        assert!(matches!(down, Err(StoreError::Unavailable(_))), "{down:?}");
        pg_ctl(&control, "start");
        back(&store).await;
    }
    stop.store(true, Ordering::Release);
    let mut ids = Vec::new();
    for writer in writing {
        ids.extend(writer.await.unwrap());
    }
    for id in &ids {
        assert_eq!(state_of(&store, id).await, TaskState::Completed, "{id}");
    }
    let (ada, all) = (scope("ada"), Default::default());
    let total = store.list(&ada, &all, None, 1).await.unwrap().total;
    assert_eq!(total, ids.len() as u64, "one task for each key");
    let sound = "SELECT (SELECT count(*) FROM nuncio.tasks t WHERE t.last <> (
            SELECT sum(l.count) FROM nuncio.log l WHERE l.task = t.number))
        + (SELECT count(*) FROM nuncio.log l WHERE l.first <> 1 + (
            SELECT coalesce(sum(f.count), 0) FROM nuncio.log f
            WHERE f.task = l.task AND f.first < l.first))";
    let client = database.client().await;
    let gaps: i64 = client.query_one(sound, &[]).await.unwrap().get(0);
    assert_eq!(gaps, 0);
    store.close().await.unwrap();
    println!("{total} tasks through 3 restarts");
}

fn pg_ctl(control: &str, what: &str) {
    let mut words = control.split(' ').chain(what.split(' '));
    let mut command = Command::new(words.next().unwrap());
    assert!(command.args(words).status().unwrap().success(), "{what}");
}

/// P1, R01: an immediate stop is a crash of the database; what was answered is there afterwards.
#[test]
fn restarts_of_the_database_lose_nothing_that_was_answered() {
    if variable("NUNCIO_TEST_POSTGRES").is_none() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let child = Command::new(script)
        .arg(std::env::current_exe().unwrap())
        .args(["postgres::writes_while_the_database_restarts", "--exact"])
        .args(["--ignored", "--nocapture", "--quiet"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}{errors}");
    assert!(said.contains("through 3 restarts"), "{said}{errors}");
}
