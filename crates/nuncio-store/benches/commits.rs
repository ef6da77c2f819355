//! How many tasks a second does a store take, and does a list get slower with what is stored?
//!
//! A task is one `create` (with key and lease) and one `append` of three events that ends it
//! (with snapshot), as the engine writes them. Run with `cargo bench -p nuncio-store`, or, for
//! PostgreSQL beside SQLite, with `scripts/postgres cargo bench -p nuncio-store`.

#![expect(clippy::unwrap_used, reason = "a bench that fails may panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nuncio_protocol::TaskState;
use nuncio_store::{
    Append, Created, ListFilter, MemoryStore, NewTask, PageKey, PostgresOptions, PostgresStore,
    SqliteOptions, SqliteStore, Store, Synchronous,
};
use tokio::runtime::Runtime;

#[allow(
    clippy::allow_attributes,
    dead_code,
    reason = "shared with the tests, which use all of it"
)]
#[path = "../tests/it/database.rs"]
mod database;

#[allow(
    clippy::allow_attributes,
    dead_code,
    reason = "shared with the tests, which use all of it"
)]
#[path = "../tests/it/draft.rs"]
mod draft;

use database::Database;
use draft::{Draft, key, scope};

/// Tasks made before the watch starts.
const CHUNK: usize = 2_048;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn sqlite(path: &Path, synchronous: Synchronous) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(path, options).unwrap())
}

/// A database, if `scripts/postgres` has made a server.
fn postgres(runtime: &Runtime) -> Option<Database> {
    std::env::var_os("NUNCIO_TEST_POSTGRES")?;
    runtime.block_on(Database::new())
}

fn postgres_store(runtime: &Runtime, database: &Database) -> Arc<dyn Store> {
    let url = database.url();
    let store = runtime.block_on(PostgresStore::open(&url, PostgresOptions::default()));
    Arc::new(store.unwrap())
}

/// What is done with each task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Create,
    CreateAndEnd,
}

/// A task of a few hundred bytes, with an id that sorts like a UUIDv7.
fn task(number: usize) -> (NewTask, Append) {
    let id = format!("0193e2f4-{:04x}-7000-8000-{number:012x}", number >> 16);
    let mut draft = Draft::new("ada", &id, number as i64 / 4);
    let mut new = draft.create();
    new.idempotency = Some(key(&id, 1));
    draft.status(TaskState::Working, number as i64 / 4);
    draft.artifact("answer", &"all work and no play ".repeat(20));
    draft.status(TaskState::Completed, number as i64 / 4 + 1);
    let mut append = draft.append();
    append.epoch = Some(1);
    (new, append)
}

async fn call(store: &dyn Store, tasks: Vec<(NewTask, Append)>, what: What) {
    for (new, append) in tasks {
        assert_eq!(store.create(new).await.unwrap(), Created::New);
        if what == What::CreateAndEnd {
            store.append(append).await.unwrap();
        }
    }
}

/// Has `count` tasks made by `callers` and gives the time without the making of the input.
async fn run(
    store: &Arc<dyn Store>,
    what: What,
    callers: usize,
    from: usize,
    count: usize,
) -> Duration {
    let mut taken = Duration::ZERO;
    for start in (from..from + count).step_by(CHUNK) {
        let end = (start + CHUNK).min(from + count);
        let mut tasks: Vec<Vec<_>> = (0..callers).map(|_| Vec::new()).collect();
        for number in start..end {
            tasks[number % callers].push(task(number));
        }
        let begun = Instant::now();
        let calls: Vec<_> = tasks
            .into_iter()
            .map(|tasks| {
                let store = Arc::clone(store);
                tokio::spawn(async move { call(&*store, tasks, what).await })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        taken += begun.elapsed();
    }
    taken
}

fn commits(criterion: &mut Criterion) {
    measure(criterion, "task", What::CreateAndEnd, &[1, 16, 64, 256]);
}

fn creates(criterion: &mut Criterion) {
    measure(criterion, "create", What::Create, &[1, 16, 256]);
}

fn measure(criterion: &mut Criterion, name: &str, what: What, callers: &[usize]) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(1));
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(4));
    for &callers in callers {
        let folder = tempfile::TempDir::new().unwrap();
        let database = postgres(&runtime);
        let mut backends = vec![
            (
                "sqlite",
                sqlite(&folder.path().join("nuncio.db"), Synchronous::Full),
            ),
            ("memory", Arc::new(MemoryStore::default()) as Arc<dyn Store>),
        ];
        if let Some(database) = &database {
            backends.push(("postgres", postgres_store(&runtime, database)));
        }
        for (name, store) in backends {
            let mut from = 0;
            group.bench_function(BenchmarkId::new(name, callers), |bencher| {
                bencher.iter_custom(|count| {
                    // A few for each caller at least, or the callers do not meet.
                    let rounds = (count as usize).max(callers * 4);
                    let taken = runtime.block_on(run(&store, what, callers, from, rounds));
                    from += rounds;
                    taken.mul_f64(count as f64 / rounds as f64)
                });
            });
            runtime.block_on(store.close()).unwrap();
        }
    }
    group.finish();
}

/// What the database can do by itself: inserts of one row, each a commit, on several connections.
fn commit_limit(criterion: &mut Criterion) {
    let runtime = runtime();
    let Some(database) = postgres(&runtime) else {
        return;
    };
    let mut group = criterion.benchmark_group("insert of one row");
    group.throughput(Throughput::Elements(1));
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(4));
    let client = runtime.block_on(database.client());
    let table = client.batch_execute("CREATE TABLE t (n bigint PRIMARY KEY, body text)");
    runtime.block_on(table).unwrap();
    let mut from = 0;
    for connections in [1, 4, 16, 64] {
        group.bench_function(BenchmarkId::new("postgres", connections), |bencher| {
            bencher.iter_custom(|count| {
                let each = count.div_ceil(connections as u64).max(4) as i64;
                let taken = runtime.block_on(inserts(&database, connections, from, each));
                from += connections * each;
                taken.mul_f64(count as f64 / (connections * each) as f64)
            });
        });
    }
    group.finish();
}

async fn inserts(database: &Database, connections: i64, from: i64, each: i64) -> Duration {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = database.client().await;
        let insert = client.prepare("INSERT INTO t VALUES ($1, $2)").await;
        clients.push((client, insert.unwrap()));
    }
    let begun = Instant::now();
    let inserting: Vec<_> = (0..)
        .zip(clients)
        .map(|(n, (client, insert))| {
            tokio::spawn(async move {
                let body = "all work and no play ".repeat(20);
                for number in (from + n * each..).take(each as usize) {
                    client.execute(&insert, &[&number, &body]).await.unwrap();
                }
            })
        })
        .collect();
    for inserting in inserting {
        inserting.await.unwrap();
    }
    begun.elapsed()
}

fn lists(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("list of 50");
    for stored in [500, 50_000] {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("nuncio.db");
        let database = postgres(&runtime);
        let mut backends = vec![
            ("sqlite", sqlite(&path, Synchronous::Normal)),
            ("memory", Arc::new(MemoryStore::default()) as Arc<dyn Store>),
        ];
        if let Some(database) = &database {
            backends.push(("postgres", postgres_store(&runtime, database)));
        }
        let completed = ListFilter {
            state: Some(TaskState::Completed),
            ..ListFilter::default()
        };
        for (name, store) in backends {
            runtime.block_on(run(&store, What::CreateAndEnd, 64, 0, stored));
            let middle = runtime.block_on(middle(&*store, stored));
            for (what, filter, from) in [
                ("first", ListFilter::default(), None),
                ("middle", ListFilter::default(), Some(&middle)),
                ("completed", completed.clone(), None),
            ] {
                let id = BenchmarkId::new(format!("{name} {what}"), stored);
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        let page = runtime.block_on(store.list(&scope("ada"), &filter, from, 50));
                        assert_eq!(page.unwrap().total, stored as u64);
                    });
                });
            }
            runtime.block_on(store.close()).unwrap();
        }
    }
    group.finish();
}

async fn middle(store: &dyn Store, stored: usize) -> PageKey {
    let half = store
        .list(&scope("ada"), &ListFilter::default(), None, stored / 2)
        .await;
    half.unwrap().next.unwrap()
}

criterion_group!(benches, commits, creates, commit_limit, lists);
criterion_main!(benches);
