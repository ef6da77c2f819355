//! How long after a crash until requests are answered, and until nothing of before is left over?
//!
//! Fills a SQLite file with a million tasks, of which ten thousand were cut off, and starts the real
//! server on it. `cargo bench -p nuncio --bench cold_start -- 20000 2000` takes other numbers.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_protocol::{Event, StreamResponse, TaskState, TaskStatus, Timestamp};
use nuncio_store::{
    Lease, NewTask, SqliteOptions, SqliteStore, Store as _, Synchronous, WholeTask,
};

#[path = "../tests/it/support.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "shared with the tests")]
mod support;

use support::{Server, exchange};

const FILLERS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let tasks: usize = numbers.next().unwrap_or(1_000_000);
    let orphans: usize = numbers.next().unwrap_or(tasks / 100);
    let server = Server::echo();
    server.send(&["hello"]).exits(0);
    let folder = server.crash();
    let path = folder.path().join("nuncio-data/nuncio.db");
    let runtime = tokio::runtime::Runtime::new()?;
    let began = Instant::now();
    runtime.block_on(fill(&path, tasks, orphans))?;
    let megabytes = path.metadata()?.len() >> 20;
    println!(
        "filled with {tasks} tasks, {orphans} cut off, {megabytes} MiB, in {:.1?}",
        began.elapsed()
    );

    let began = Instant::now();
    let server = Server::start_in(folder, &[] as &[&str]);
    println!("ready after {:.3?}", began.elapsed());
    let mut slowest = Duration::ZERO;
    let left = loop {
        let asked = Instant::now();
        let left = working(&server);
        slowest = slowest.max(asked.elapsed());
        if left == 0 || began.elapsed() > Duration::from_secs(600) {
            break left;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    println!(
        "{left} left over after {:.1?}; the slowest answer meanwhile took {slowest:.3?}",
        began.elapsed()
    );
    Ok(())
}

/// How many tasks are working, as the server says.
fn working(server: &Server) -> u64 {
    let path = "/tasks?status=TASK_STATE_WORKING&pageSize=1";
    let listed = exchange(&server.url, "GET", path, &[], "").json();
    listed["totalSize"].as_u64().unwrap_or(u64::MAX)
}

/// Tasks like the one that is there, of the same caller.
async fn fill(path: &Path, tasks: usize, orphans: usize) -> Result<(), Box<dyn Error>> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    let store = Arc::new(SqliteStore::open(path, options)?);
    let like = store.export(None, 1).await?.pop().ok_or("a first task")?;
    let like = Arc::new(like);
    let every = tasks / orphans.max(1);
    let fillers: Vec<_> = (0..FILLERS)
        .map(|filler| {
            let (store, like) = (Arc::clone(&store), Arc::clone(&like));
            tokio::spawn(async move {
                for n in (filler..tasks).step_by(FILLERS) {
                    let cut_off = n % every == 0 && n / every < orphans;
                    store.create(left_behind(&like, n, cut_off)).await?;
                }
                Ok::<_, nuncio_store::StoreError>(())
            })
        })
        .collect();
    for filler in fillers {
        filler.await??;
    }
    store.close().await?;
    Ok(())
}

fn left_behind(like: &WholeTask, n: usize, cut_off: bool) -> NewTask {
    let at = Timestamp::from_unix_ms(like.status_time.unix_ms() + n as i64 / 100);
    let mut task = (*like.task).clone();
    task.id = format!("left-{n}").as_str().into();
    if cut_off {
        task.status = TaskStatus::new(TaskState::Working, at);
        task.artifacts.clear();
    } else {
        task.status.timestamp = Some(at);
    }
    NewTask {
        scope: like.scope.clone(),
        context: like.context.clone(),
        events: vec![Event::new(Some(1), StreamResponse::Task(task.clone()))],
        task: Arc::new(task),
        snapshot: !cut_off,
        idempotency: None,
        lease: cut_off.then(|| Lease {
            owner: "an earlier process".into(),
            term: Duration::from_secs(30),
        }),
        checkpoint: None,
        request: None,
        push_config: None,
    }
}
