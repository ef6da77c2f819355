//! A process that writes is killed, or loses its power: what it was answered is there (P1, R01, R04).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nuncio_protocol::TaskState;
use nuncio_store::{SqliteOptions, SqliteStore, Store, StoreError, Synchronous, check};
use tempfile::TempDir;

use crate::draft::{Draft, key, scope};
use crate::report::Report;

const KILLS: usize = 10;
const TASKS_BEFORE_KILL: usize = 60;

/// Power losses in a run of the tests; `NUNCIO_POWER_LOSSES` asks for more.
const POWER_LOSSES: usize = 50;

/// Runs in the process that is to be killed: writes until then, telling of each task it has been
/// answered. The folder comes on standard input, and how carefully to sync.
#[test]
#[ignore = "runs as the child of the tests below"]
fn writes_until_killed() {
    let mut told = String::new();
    std::io::stdin().read_line(&mut told).unwrap();
    let (synchronous, folder) = told.trim().split_once(' ').unwrap();
    let synchronous = match synchronous {
        "normal" => Synchronous::Normal,
        _ => Synchronous::Full,
    };
    let path = Path::new(folder).join("nuncio.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = SqliteOptions {
            checkpoint_pages: 50,
            synchronous,
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
    for kill in 0..KILLS {
        let told = Writer::plain(&folder).tell_until_killed(TASKS_BEFORE_KILL + kill * 7);
        let lost = lost(&folder.path().join("nuncio.db"), &told).await;
        assert_eq!(lost, [""; 0], "after kill {kill}");
    }
}

/// R04: unsynced writes are gone, but for some pages that came early.
#[tokio::test]
async fn r04_a_power_loss_loses_nothing_that_was_answered() {
    let mut report = Report::new("power-losses", "R04");
    let disk = disk_that_forgets();
    let folder = TempDir::new().unwrap();
    let mut answered = 0;
    for round in 0..power_losses() {
        let writer = Writer::plain(&folder).on(&disk, round);
        let told = writer.tell_until_killed(20 + round % 40);
        let lost = lost(&folder.path().join("nuncio.db"), &told).await;
        assert_eq!(lost, [""; 0], "after power loss {round}");
        answered += told.len();
    }
    report.set("power_losses", power_losses());
    report.set("writes_answered", answered);
    report.passed();
}

/// R04, the guard: with commits that are not synced the same test would fail.
#[tokio::test]
async fn without_syncs_a_power_loss_loses_something() {
    let mut report = Report::new("power-losses-without-sync", "R04");
    let disk = disk_that_forgets();
    let folder = TempDir::new().unwrap();
    for round in 0..POWER_LOSSES {
        let mut writer = Writer::plain(&folder).on(&disk, round);
        writer.synchronous = "normal";
        let told = writer.tell_until_killed(40);
        if !lost(&folder.path().join("nuncio.db"), &told)
            .await
            .is_empty()
        {
            report.set("lost_something_after", round + 1);
            report.passed();
            return;
        }
    }
    panic!("nothing was lost: the disk does not forget");
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs it chooses the number"
)]
fn power_losses() -> usize {
    let said = std::env::var("NUNCIO_POWER_LOSSES").ok();
    said.and_then(|said| said.parse().ok())
        .unwrap_or(POWER_LOSSES)
}

/// A library that makes the disk of a process forget what is not synced, freshly compiled.
struct Disk {
    library: PathBuf,
    _folder: TempDir,
}

fn disk_that_forgets() -> Disk {
    let folder = TempDir::new().unwrap();
    let library = folder.path().join("power_loss.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/power_loss.c");
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .status();
    assert!(compiled.unwrap().success());
    Disk {
        library,
        _folder: folder,
    }
}

/// What was told and is not there, or not as it should be.
async fn lost(path: &Path, told: &[String]) -> Vec<String> {
    let mut lost = check(path).unwrap().problems;
    let store = reopen(path).await;
    for line in told {
        let Some((what, id)) = line.split_once(' ') else {
            continue;
        };
        let stored = store.load(&scope("ada"), &id.into()).await.unwrap();
        let state = stored.map(|stored| stored.task.status.state);
        let used = store.find_key(&scope("ada"), id).await.unwrap();
        let is_there = match what {
            "completed" => state == Some(TaskState::Completed),
            _ => state.is_some(),
        };
        if !is_there || used.is_none_or(|(task, _)| task.as_str() != id) {
            lost.push(line.clone());
        }
    }
    store.close().await.unwrap();
    lost
}

/// The process that is to be killed.
struct Writer {
    folder: PathBuf,
    synchronous: &'static str,
    command: Command,
}

impl Writer {
    fn plain(folder: &TempDir) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["kills::writes_until_killed", "--exact", "--ignored"])
            .args(["--nocapture", "--quiet"]);
        Self {
            folder: folder.path().to_owned(),
            synchronous: "full",
            command,
        }
    }

    fn on(mut self, disk: &Disk, seed: usize) -> Self {
        self.command
            .env("LD_PRELOAD", &disk.library)
            .env("POWER_LOSS_SEED", seed.to_string());
        self
    }

    /// Starts it, kills it after so many tasks, and gives the whole lines it has told.
    fn tell_until_killed(mut self, tasks: usize) -> Vec<String> {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{} {}", self.synchronous, self.folder.display()).unwrap();
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
}

/// The lock of the killed process is gone as soon as the process is.
async fn reopen(path: &Path) -> SqliteStore {
    loop {
        match SqliteStore::open(path, SqliteOptions::default()) {
            Ok(store) => return store,
            Err(StoreError::Refused(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
}
