//! `kill -9` in the middle of the work: what was acknowledged is there afterwards, once.

use std::time::Duration;

use crate::load::Load;
use crate::report::{Report, count};
use crate::servers::Recipe;

/// R01: one server on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r01_nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    let mut report = Report::new("kills-sqlite", "R01");
    let (tasks, kills) = (count(2_000, 10_000), count(20, 100));
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe::new(folder.path(), "");
    let mut server = recipe.start();
    let url = format!("http://{}", recipe.address());
    // Spread over the kills, so that each of them hits work under way.
    let pause = Duration::from_millis(40);
    let mut load = Load::start(&url, tasks, pause, Duration::from_secs(300)).await;
    for kill in 1..=kills {
        load.reaches(kill, kills + 2).await;
        server = restarted(server).await;
    }
    load.is_whole().await;
    report.set("tasks", tasks);
    report.set("kills", kills);
    report.set("sends_repeated", load.refusals());
    server.kill();
    recipe.check_database();
    report.passed();
}

/// Off the threads that send.
pub(crate) async fn restarted(mut server: crate::servers::Server) -> crate::servers::Server {
    let restarting = tokio::task::spawn_blocking(move || {
        server.restart();
        server
    });
    restarting.await.unwrap()
}
