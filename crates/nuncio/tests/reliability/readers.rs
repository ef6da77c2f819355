//! Many readers of one task: cut off at random, led to another replica, and none misses anything.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::database::Database;
use crate::replicas::Fleet;
use crate::report::{Report, count};
use crate::servers::send;
use crate::sound::is_sound;

/// R08: each reader sees every position once, in order, whatever happens to its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r08_every_reader_sees_every_event_once_and_in_order() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut report = Report::new("readers", "R08");
    let (readers, events, kills) = (count(30, 1_000), count(400, 10_000), count(3, 12));
    let pace = count(10, 4);
    let config = format!(
        r#"
[server]
max_streams_per_caller = 5000

[engine]
lease_seconds = 2

[[agents]]
id = "flood"
kind = "script"
resumable = true
rules = [{{ otherwise = true, steps = [{{ repeat = {{ times = {events}, steps = [
    {{ text = "x" }}, {{ wait_ms = {pace} }},
] }} }}] }}]
"#
    );
    let folder = tempfile::tempdir().unwrap();
    let configs = [config.clone(), config.clone(), config];
    // Whoever comes back is sent the task as of its position first.
    let lives = count(300, 3_000) as u64..count(2_000, 60_000) as u64;
    let url = database.url();
    let mut fleet = Fleet::start(folder.path(), &url, &configs, Some(lives)).await;
    let (status, reply) = send(fleet.addresses()[0], "flood", "go").unwrap();
    assert_eq!(status, 200, "{reply}");
    let task = reply["task"]["id"].as_str().unwrap().to_owned();
    let furthest = Arc::new(AtomicU64::new(0));
    let deadline = Instant::now() + Duration::from_secs(count(240, 900) as u64);
    let reading: Vec<_> = (0..readers)
        .map(|_| {
            let reader = Reader {
                server: fleet.proxy.address(),
                task: task.clone(),
                // The task as it was made; all that comes after it is to be seen.
                at: 1,
                furthest: Arc::clone(&furthest),
                first_events: Vec::new(),
            };
            tokio::spawn(tokio::time::timeout_at(deadline, reader.read()))
        })
        .collect();
    for kill in 0..kills {
        let until = (events * (kill + 1) / (kills + 2)) as u64;
        while furthest.load(Ordering::Relaxed) < until {
            assert!(Instant::now() < deadline, "nobody gets any further");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The last of them is whoever runs the task: then another has to take it over.
        let last = kill + 1 == kills;
        fleet.restart(if last { 0 } else { 1 + kill % 2 }).await;
    }
    let mut ends = Vec::new();
    let mut waits = Vec::new();
    for reading in reading {
        let reader = reading.await.unwrap().expect("every reader sees the end");
        ends.push(reader.at);
        waits.extend(reader.first_events);
    }
    ends.dedup();
    assert_eq!(ends.len(), 1, "all have seen the same log: {ends:?}");
    assert!(ends[0] > events as u64, "{ends:?}");
    is_sound(&database).await;
    waits.sort();
    let share = |percent: usize| waits[(waits.len() - 1) * percent / 100].as_millis() as u64;
    report.set("readers", readers);
    report.set("events", ends[0]);
    report.set("kills", kills);
    report.set("connections", fleet.proxy.connections());
    report.set("first_event_ms_p50", share(50));
    report.set("first_event_ms_p99", share(99));
    report.passed();
}

/// One reader: plain SSE with `Last-Event-ID`.
struct Reader {
    server: SocketAddr,
    task: String,
    /// The newest position seen.
    at: u64,
    furthest: Arc<AtomicU64>,
    /// How long the first event after a cut took, from the request on.
    first_events: Vec<Duration>,
}

impl Reader {
    /// Reads to the end of the task, over as many connections as it takes.
    async fn read(mut self) -> Self {
        loop {
            // A cut may come anywhere.
            if let Ok(true) = self.follow().await {
                return self;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads until the connection ends; whether the task has ended.
    async fn follow(&mut self) -> std::io::Result<bool> {
        let stream = TcpStream::connect(self.server).await?;
        let mut stream = BufReader::new(stream);
        let asked = Instant::now();
        let request = format!(
            "GET /tasks/{}:subscribe HTTP/1.0\r\nhost: nuncio\r\na2a-version: 1.0\r\n\
             accept: text/event-stream\r\nlast-event-id: {}\r\n\r\n",
            self.task, self.at
        );
        stream.write_all(request.as_bytes()).await?;
        let (mut id, mut is_first) = (None, true);
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 && line.ends_with('\n') {
            if let Some(said) = line.strip_prefix("id: ") {
                id = Some(said.trim_end().parse().unwrap());
            } else if let Some(data) = line.strip_prefix("data: ") {
                if let Some(id) = id.take() {
                    self.take(id, data.starts_with(r#"{"task":"#), is_first);
                }
                if is_first {
                    self.first_events.push(asked.elapsed());
                    is_first = false;
                }
                if data.contains("TASK_STATE_COMPLETED") {
                    return Ok(true);
                }
            }
            line.clear();
        }
        Ok(false)
    }

    /// A stream may begin with the task as of the position that was asked for; nothing else is
    /// ever repeated, and nothing is left out.
    fn take(&mut self, id: u64, is_task: bool, is_first: bool) {
        if is_first && is_task && id == self.at {
            return;
        }
        assert_eq!(id, self.at + 1, "the next position");
        self.at = id;
        self.furthest.fetch_max(id, Ordering::Relaxed);
    }
}
