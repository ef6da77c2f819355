//! What it costs a database that many wait at a replica for something to happen.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::database::Database;
use crate::replicas::Fleet;
use crate::report::{Report, count};
use crate::servers::send;

const CONFIG: &str = r#"
[server]
max_streams_per_caller = 5000

[[agents]]
id = "asks"
kind = "script"
rules = [{ otherwise = true, steps = [{ pause = { prompt = "Go on?" } }] }]
"#;

/// How long transactions are counted.
const WINDOW: Duration = Duration::from_secs(10);

/// Subscriptions at a replica, each of another task that rests on another one, cost no queries each:
/// what others have written is told, and looked for in one question a second for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_subscriptions_cost_no_queries_each() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut report = Report::new("idle-subscriptions", "issue 4");
    let subscriptions = count(200, 1_000);
    let folder = tempfile::tempdir().unwrap();
    let configs = [CONFIG.to_owned(), CONFIG.to_owned()];
    let fleet = Fleet::start(folder.path(), &database.url(), &configs, None).await;
    let [first, second] = fleet.addresses()[..] else {
        panic!("two servers");
    };
    let mut tasks = Vec::new();
    for n in 0..subscriptions {
        let id = format!("m{n}");
        let sent = tokio::task::spawn_blocking(move || send(first, &id, "hello"));
        let (status, reply) = sent.await.unwrap().unwrap();
        assert_eq!(status, 200, "{reply}");
        tasks.push(reply["task"]["id"].as_str().unwrap().to_owned());
    }
    let mut streams = Vec::new();
    for task in &tasks {
        streams.push(subscribe(second, task).await);
    }
    // Backends tell the statistics late what they have done.
    tokio::time::sleep(WINDOW).await;
    let seen = transactions(&database).await;
    report.set("subscriptions", subscriptions);
    report.set("transactions", seen);
    report.set("window_seconds", WINDOW.as_secs());
    // For each server: one question a second, its leases, its webhooks, and room for what is late.
    assert!(seen <= 6 * WINDOW.as_secs() as i64, "{seen} transactions");
    drop(streams);
    report.passed();
}

/// Transactions that the database has seen in the window, this one left out.
async fn transactions(database: &Database) -> i64 {
    let client = database.client().await;
    let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    let before: i64 = client.query_one(query, &[]).await.unwrap().get(0);
    tokio::time::sleep(WINDOW).await;
    let after: i64 = client.query_one(query, &[]).await.unwrap().get(0);
    after - before
}

/// Follows a task; gives the open stream, of which the first event has come.
async fn subscribe(server: SocketAddr, task: &str) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(TcpStream::connect(server).await.unwrap());
    let request = format!(
        "GET /tasks/{task}:subscribe HTTP/1.1\r\nhost: nuncio\r\na2a-version: 1.0\r\n\
         accept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        let read = stream.read_line(&mut line).await.unwrap();
        assert_ne!(read, 0, "the stream has ended");
    }
    stream
}
