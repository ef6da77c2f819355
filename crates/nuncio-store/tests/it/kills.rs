//! A process that writes is killed: what it was answered is there (P1, R01).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use nuncio_protocol::TaskState;
use nuncio_store::{SqliteOptions, SqliteStore, Store, StoreError, check};
use tempfile::TempDir;

use crate::draft::{Draft, key, scope};

const KILLS: usize = 10;
const TASKS_BEFORE_KILL: usize = 60;

/// Runs in the process that is to be killed: writes until then, telling of each task it has
/// been answered. The folder comes on standard input.
#[test]
#[ignore = "runs as the child of the test below"]
fn writes_until_killed() {
    let mut folder = String::new();
    std::io::stdin().read_line(&mut folder).unwrap();
    let path = std::path::Path::new(folder.trim()).join("nuncio.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = SqliteOptions {
            checkpoint_pages: 50,
            ..SqliteOptions::default()
        };
        let store = std::sync::Arc::new(SqliteStore::open(path, options).unwrap());
        let round = std::process::id();
        let writers: Vec<_> = (0..16)
            .map(|writer| {
                let store = std::sync::Arc::clone(&store);
                tokio::spawn(async move {
                    for n in 0.. {
                        let id = format!("{round}-{writer}-{n}");
                        let mut draft = Draft::new("ada", &id, n);
                        let mut new = draft.create();
                        new.idempotency = Some(key(&id, 1));
                        store.create(new).await.unwrap();
                        println!("created {id}");
                        store.append(draft.complete(n + 1)).await.unwrap();
                        println!("completed {id}");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[tokio::test]
async fn a_kill_loses_nothing_that_was_answered() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    for kill in 0..KILLS {
        let told = tell_until_killed(&folder, TASKS_BEFORE_KILL + kill * 7);
        let report = check(&path).unwrap();
        assert_eq!(report.problems, [""; 0], "after kill {kill}");
        let store = reopen(&path).await;
        for line in told {
            let Some((what, id)) = line.split_once(' ') else {
                continue;
            };
            let stored = store.load(&scope("ada"), &id.into()).await.unwrap();
            let state = stored.unwrap().task.status.state;
            assert!(what != "completed" || state == TaskState::Completed, "{id}");
            let used = store.find_key(&scope("ada"), id).await.unwrap();
            assert_eq!(used.unwrap().0.as_str(), id);
        }
        store.close().await.unwrap();
    }
}

/// Starts the child, kills it after so many tasks, and gives the whole lines it has told.
fn tell_until_killed(folder: &TempDir, tasks: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["kills::writes_until_killed", "--exact", "--ignored"])
        .args(["--nocapture", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", folder.path().display()).unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut told = Vec::new();
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
        if line.starts_with("created ") || line.starts_with("completed ") {
            told.push(line.trim_end().to_owned());
        }
        if told.len() == tasks {
            child.kill().unwrap();
        }
        line.clear();
    }
    child.wait().unwrap();
    assert!(told.len() >= tasks, "the child has ended by itself");
    told
}

/// The lock of the killed process is gone as soon as the process is.
async fn reopen(path: &std::path::Path) -> SqliteStore {
    loop {
        match SqliteStore::open(path, SqliteOptions::default()) {
            Ok(store) => return store,
            Err(StoreError::Refused(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}
