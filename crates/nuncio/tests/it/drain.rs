//! R14: SIGTERM amid requests and streams. Nobody sees anything but answers, clean refusals and
//! streams that end so that they can be resumed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::report::Report;
use crate::support::{Server, exchange};

const CONNECTIONS: usize = 50;
const STREAMS: usize = 200;
/// Each connection sends ten times a second: 500 requests per second in all.
const PAUSE: Duration = Duration::from_millis(100);
/// Acknowledged sends before the signal: about a second and a half of them.
const BEFORE: usize = 750;
const LIMIT: Duration = Duration::from_secs(60);

const CONFIG: &str = "
[server]
drain_delay_seconds = 2
drain_seconds = 1
max_streams_per_caller = 1000
heartbeat_seconds = 60

[[agents]]
id = \"echo\"
kind = \"echo\"

[[agents]]
id = \"held\"
kind = \"script\"
resumable = true
[[agents.rules]]
otherwise = true
steps = [{ status = \"held\" }, { wait_ms = 3600000 }]
";

/// A connection that is used again, read and written as bytes.
struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

/// How an exchange went.
enum Went {
    Answered {
        status: u16,
        head: String,
        body: Value,
    },
    /// The listener has closed.
    NobodyThere,
}

impl Connection {
    async fn open(address: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        let read = Vec::new();
        Some(Self { stream, read })
    }

    /// Whether the server has let go of it.
    fn is_closed(&self) -> bool {
        let mut byte = [0];
        self.stream.try_read(&mut byte).is_ok()
    }

    async fn write(&mut self, head: &str, body: &str) {
        let length = body.len();
        let request = format!("{head}\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads more; `false` at the end.
    async fn more(&mut self) -> bool {
        self.stream.read_buf(&mut self.read).await.unwrap() > 0
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    async fn answer(&mut self) -> (u16, String, Value) {
        loop {
            let text = self.text();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap();
                let length: usize = length.lines().next().unwrap().parse().unwrap();
                if body.len() >= length {
                    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                    let body = serde_json::from_str(body).unwrap();
                    self.read.clear();
                    return (status, head, body);
                }
            }
            assert!(self.more().await, "cut off amid an answer: {text:?}");
        }
    }
}

fn send_body(id: &str) -> String {
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": id}]});
    json!({ "message": message }).to_string()
}

/// Sends on a connection that is there, or on a new one.
async fn exchanged(connection: &mut Option<Connection>, address: &str, id: &str) -> Went {
    connection.take_if(|connection| connection.is_closed());
    if connection.is_none() {
        *connection = Connection::open(address).await;
    }
    let Some(open) = connection else {
        return Went::NobodyThere;
    };
    open.write(
        "POST /message:send HTTP/1.1\r\nContent-Type: application/json",
        &send_body(id),
    )
    .await;
    let (status, head, body) = open.answer().await;
    if head.contains("connection: close") {
        *connection = None;
    }
    Went::Answered { status, head, body }
}

/// What a client has sent: message ids, with the task of those that were acknowledged.
type Sent = BTreeMap<String, Option<String>>;

/// Sends until it is refused; whatever else happens is a failure.
async fn load(number: usize, address: String, acknowledged: Arc<AtomicUsize>) -> Sent {
    let mut sent = Sent::new();
    let mut connection = None;
    for turn in 0.. {
        let id = format!("m-{number}-{turn}");
        match exchanged(&mut connection, &address, &id).await {
            Went::Answered {
                status: 200, body, ..
            } => {
                let task = body["task"]["id"].as_str().unwrap().to_owned();
                sent.insert(id, Some(task));
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
            Went::Answered { status, head, body } => {
                assert_eq!(status, 503, "{head} {body}");
                assert!(head.contains("\r\nretry-after: 1"), "{head}");
                assert!(head.contains("\r\nconnection: close"), "{head}");
                sent.insert(id, None);
                break;
            }
            Went::NobodyThere => {
                sent.insert(id, None);
                break;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    sent
}

/// Follows a task from its first event to the end of the stream; gives its id and newest position.
async fn follow(number: usize, address: String, open: watch::Sender<usize>) -> (String, u64) {
    let mut stream = Connection::open(&address).await.unwrap();
    let head = "POST /agents/held/message:stream HTTP/1.1\r\nContent-Type: application/json";
    stream.write(head, &send_body(&format!("s-{number}"))).await;
    let mut told = false;
    loop {
        let going = stream.more().await;
        let text = stream.text();
        if !told && text.contains("\"held\"") {
            told = true;
            open.send_modify(|open| *open += 1);
        }
        if text.ends_with("\r\n0\r\n\r\n") {
            assert!(
                text.contains(": server stopping, resume with Last-Event-ID"),
                "{text}"
            );
            let position = text.rsplit("\nid: ").next().unwrap();
            let position = position.split('\n').next().unwrap().parse().unwrap();
            let task = text.split("\"task\":{\"id\":\"").nth(1).unwrap();
            return (task.split('"').next().unwrap().to_owned(), position);
        }
        assert!(going, "cut off: {text}");
    }
}

/// Waits until `/readyz` says no, and shows that work is still taken then.
async fn notice(address: &str) {
    while exchange(&format!("http://{address}"), "GET", "/readyz", &[], "").status == 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    match exchanged(&mut None, address, "while draining").await {
        Went::Answered { status, body, .. } => assert_eq!(status, 200, "{body}"),
        Went::NobodyThere => panic!("the listener closed before anybody could notice"),
    }
}

#[test]
fn r14_a_planned_restart_refuses_cleanly_and_loses_nothing() {
    let mut report = Report::new("drain", "R14");
    let mut server = Server::configured(CONFIG);
    let address = server.url.trim_start_matches("http://").to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (sent, followed) = runtime.block_on(async {
        let (open, mut opened) = watch::channel(0);
        let streams: Vec<_> = (0..STREAMS)
            .map(|number| tokio::spawn(follow(number, address.clone(), open.clone())))
            .collect();
        let waited = opened.wait_for(|open| *open == STREAMS);
        tokio::time::timeout(LIMIT, waited)
            .await
            .expect("in time")
            .unwrap();
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|n| tokio::spawn(load(n, address.clone(), Arc::clone(&acknowledged))))
            .collect();
        while acknowledged.load(Ordering::SeqCst) < BEFORE {
            assert!(senders.iter().all(|sender| !sender.is_finished()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.signal("TERM");
        notice(&address).await;
        let (mut sent, mut followed) = (Sent::new(), Vec::new());
        for sender in senders {
            sent.extend(
                tokio::time::timeout(LIMIT, sender)
                    .await
                    .expect("in time")
                    .unwrap(),
            );
        }
        for stream in streams {
            followed.push(
                tokio::time::timeout(LIMIT, stream)
                    .await
                    .expect("in time")
                    .unwrap(),
            );
        }
        (sent, followed)
    });
    assert_eq!(
        server.ends_within(Duration::from_secs(30)),
        0,
        "{}",
        server.log()
    );
    let refused = sent.values().filter(|task| task.is_none()).count();
    assert!((1..=CONNECTIONS).contains(&refused), "{refused}");

    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    runtime.block_on(everything_is_there(&server, &sent, &followed));
    report.set("streams", followed.len());
    report.set("sends", sent.len());
    report.set("clean_refusals", refused);
    report.passed();
}

/// After the restart: each acknowledged send has its task, each refused one may be sent again, and
/// each stream goes on from its position.
async fn everything_is_there(server: &Server, sent: &Sent, followed: &[(String, u64)]) {
    let address = server.url.trim_start_matches("http://");
    let mut connection = None;
    for (id, task) in sent {
        let Went::Answered { status, body, .. } = exchanged(&mut connection, address, id).await
        else {
            panic!("{id}: nobody there");
        };
        assert_eq!(status, 200, "{id}: {body}");
        assert_eq!(
            body["task"]["status"]["state"], "TASK_STATE_COMPLETED",
            "{body}"
        );
        if let Some(task) = task {
            assert_eq!(body["task"]["id"], task.as_str(), "{id} made a second task");
        }
    }
    for (task, position) in followed {
        let mut stream = Connection::open(address).await.unwrap();
        let head = format!(
            "POST /agents/held/tasks/{task}:subscribe HTTP/1.1\r\nLast-Event-ID: {position}"
        );
        stream.write(&head, "").await;
        let first = format!("id: {position}\ndata: {{\"task\":{{\"id\":\"{task}\"");
        while !stream.text().contains(&first) {
            assert!(stream.more().await, "{}", stream.text());
        }
    }
}

/// R14: the second signal does not wait for streams either.
#[test]
fn a_second_signal_leaves_streams_and_runs_behind() {
    let config = CONFIG.replace("drain_seconds = 1", "drain_seconds = 600");
    let mut server = Server::configured(&config);
    let address = server.url.trim_start_matches("http://").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (open, mut opened) = watch::channel(0);
        for number in 0..5 {
            drop(tokio::spawn(follow(number, address.clone(), open.clone())));
        }
        let waited = opened.wait_for(|open| *open == 5);
        tokio::time::timeout(LIMIT, waited)
            .await
            .expect("in time")
            .unwrap();
        server.signal("TERM");
        notice(&address).await;
        server.signal("TERM");
        assert_eq!(server.ends_within(Duration::from_secs(20)), 130);
    });
}
