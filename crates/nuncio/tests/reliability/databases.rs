//! The database goes away, again and again: no reply without a commit, and no help to come back.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::database::{Database, variable};
use crate::load::Load;
use crate::replicas::Fleet;
use crate::report::{Report, count};
use crate::sound::is_sound;

/// R03, with a database server of its own, which it stops and starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs as the child of the test below"]
async fn sends_while_the_database_restarts() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut report = Report::new("database-restarts", "R03");
    let (tasks, restarts) = (count(600, 4_000), count(3, 10));
    let folder = tempfile::tempdir().unwrap();
    let configs = [String::new(), String::new()];
    let fleet = Fleet::start(folder.path(), &database.url(), &configs, None).await;
    let pause = Duration::from_millis(40);
    let limit = Duration::from_secs(count(240, 1_200) as u64);
    let mut load = Load::start(&fleet.proxy.url(), tasks, pause, limit).await;
    let mut slowest = Duration::ZERO;
    for restart in 1..=restarts {
        load.reaches(restart, restarts + 2).await;
        pg_ctl("-m immediate stop").await;
        for server in &fleet.servers {
            server.comes_to_be_ready(false).await;
            assert_eq!(server.get("/livez").map(|(status, _)| status), Some(200));
        }
        let acknowledged = load.acknowledged();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(load.acknowledged(), acknowledged, "no commit, no reply");
        pg_ctl("start").await;
        let back = Instant::now();
        for server in &fleet.servers {
            server.comes_to_be_ready(true).await;
        }
        slowest = slowest.max(back.elapsed());
    }
    load.is_whole().await;
    report.set("tasks", tasks);
    report.set("restarts", restarts);
    report.set("sends_repeated", load.refusals());
    report.set("slowest_recovery_ms", slowest.as_millis() as u64);
    is_sound(&database).await;
    report.passed();
    println!("through {restarts} restarts");
}

async fn pg_ctl(what: &str) {
    let control = variable("NUNCIO_TEST_POSTGRES_CTL").unwrap();
    let words = format!("{control} {what}");
    let run = tokio::task::spawn_blocking(move || {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).status().unwrap().success()
    });
    assert!(run.await.unwrap(), "{what}");
}

/// R03: an immediate stop is a crash of the database.
#[test]
fn r03_restarts_of_the_database_lose_nothing_that_was_acknowledged() {
    if variable("NUNCIO_TEST_POSTGRES").is_none() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/postgres");
    let child = Command::new(script)
        .arg(std::env::current_exe().unwrap())
        .args(["databases::sends_while_the_database_restarts", "--exact"])
        .args(["--ignored", "--nocapture", "--quiet"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}{errors}");
    assert!(said.contains(" restarts"), "{said}{errors}");
}
