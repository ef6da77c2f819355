//! Replicas on one PostgreSQL behind a plain round-robin, and one of them killed at random.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use nuncio_protocol::TaskId;
use tokio::sync::mpsc;

use crate::database::Database;
use crate::kills::restarted;
use crate::load::Load;
use crate::proxy::Proxy;
use crate::report::{Report, count};
use crate::servers::{Recipe, Server, get};
use crate::sound::is_sound;

/// Servers on one database, and the proxy in front of them.
pub(crate) struct Fleet {
    pub(crate) servers: Vec<Server>,
    pub(crate) proxy: Proxy,
}

impl Fleet {
    /// Starts one server for each configuration; `lives` as in [`Proxy::start`].
    pub(crate) async fn start(
        folder: &Path,
        url: &str,
        configs: &[String],
        lives: Option<Range<u64>>,
    ) -> Self {
        let recipes: Vec<_> = configs
            .iter()
            .enumerate()
            .map(|(n, config)| Recipe::new(&folder.join(n.to_string()), config))
            .collect();
        let proxy = Proxy::start(recipes.iter().map(Recipe::address).collect(), lives).await;
        let start = |recipe: Recipe| {
            let recipe = recipe
                .with("NUNCIO__STORE__URL", url)
                .with("NUNCIO__SERVER__PUBLIC_URL", proxy.url());
            recipe.start()
        };
        Self {
            servers: recipes.into_iter().map(start).collect(),
            proxy,
        }
    }

    /// `kill -9` and a new process.
    pub(crate) async fn restart(&mut self, n: usize) {
        let server = self.servers.remove(n);
        self.servers.insert(n, restarted(server).await);
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Server::address).collect()
    }
}

/// R02: as R01; and what one replica has acknowledged the others show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r02_three_replicas_lose_nothing_and_show_it_everywhere() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut report = Report::new("kills-replicas", "R02");
    let (tasks, kills) = (count(1_000, 10_000), count(8, 100));
    let folder = tempfile::tempdir().unwrap();
    let config = "[engine]\nlease_seconds = 3\n".to_owned();
    let configs = [config.clone(), config.clone(), config];
    let mut fleet = Fleet::start(folder.path(), &database.url(), &configs, None).await;
    let pause = Duration::from_millis(40);
    let limit = Duration::from_secs(count(300, 1_200) as u64);
    let mut load = Load::start(&fleet.proxy.url(), tasks, pause, limit).await;
    let looking = tokio::spawn(look(load.ended(), fleet.addresses()));
    for kill in 1..=kills {
        load.reaches(kill, kills + 2).await;
        fleet.restart(kill * 5 % 3).await;
    }
    load.is_whole().await;
    report.set("tasks", tasks);
    report.set("replicas", 3);
    report.set("kills", kills);
    report.set("sends_repeated", load.refusals());
    drop(load);
    let seen = looking.await.unwrap();
    report.set("reads_of_acknowledged_ends", seen.reads);
    report.set("reads_that_did_not_show_them", seen.stale);
    report.set("slowest_read_ms", seen.slowest.as_millis() as u64);
    assert_ne!(seen.reads, 0);
    assert_eq!(
        seen.stale, 0,
        "what is acknowledged is to be seen everywhere"
    );
    let attempts = is_sound(&database).await;
    report.set("most_attempts", attempts);
    assert!(attempts <= 1 + kills as i64, "{attempts} attempts");
    report.passed();
}

/// Reads of tasks whose end had been acknowledged before.
#[derive(Default)]
struct Seen {
    reads: usize,
    stale: usize,
    slowest: Duration,
}

/// Reads the newest task whose end has been acknowledged from each replica that is there.
async fn look(mut ended: mpsc::UnboundedReceiver<TaskId>, replicas: Vec<SocketAddr>) -> Seen {
    let mut seen = Seen::default();
    while let Some(mut task) = ended.recv().await {
        // Older ones have been there for long.
        while let Ok(newer) = ended.try_recv() {
            task = newer;
        }
        let path = format!("/tasks/{task}");
        for &replica in &replicas {
            let (path, asked) = (path.clone(), Instant::now());
            let read = tokio::task::spawn_blocking(move || get(replica, &path));
            // One that is dead at the moment shows nothing.
            if let Some((status, body)) = read.await.unwrap()
                && status != 503
            {
                seen.reads += 1;
                seen.slowest = seen.slowest.max(asked.elapsed());
                seen.stale += usize::from(!body.contains("TASK_STATE_COMPLETED"));
            }
        }
    }
    seen
}
