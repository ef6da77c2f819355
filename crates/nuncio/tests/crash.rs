//! `kill -9` in the middle of the work: what was acknowledged is there afterwards, once.
//!
//! R01 in its short form: 20 kills over 2,000 tasks that clients send with keys and send again
//! until they are answered, over both bindings.
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nuncio_client::{Client, ClientBuilder};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{
    AgentService as _, Binding, Call, GetTaskRequest, ListTasksRequest, Message, Part,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, Task, TaskState,
};

const TASKS: usize = 2_000;
const KILLS: usize = 20;
const SENDERS: usize = 16;

struct Server(Child);

impl Server {
    fn start(data: &Path, port: u16) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let ready = out
            .lines()
            .map_while(Result::ok)
            .any(|line| line.starts_with("ready "));
        assert!(ready, "the server ended before it was ready");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

async fn client(port: u16, binding: Binding) -> Client {
    let egress = Egress::new(EgressPolicy::open()).unwrap();
    let builder = ClientBuilder::new(egress).binding(binding);
    builder
        .connect(&format!("http://127.0.0.1:{port}"))
        .await
        .unwrap()
}

/// Sends task `n` until it is acknowledged, as a client would that gets no answer.
async fn send_until_acknowledged(client: &Client, n: usize) -> Task {
    let mut message = Message::user(
        format!("message-{n}"),
        vec![Part::text(format!("text {n}"))],
    );
    message.context_id = Some(format!("context-{}", n % 50).into());
    let mut request = SendMessageRequest::new(message);
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = n.is_multiple_of(3);
    request.configuration = Some(configuration);
    let mut call = Call::client();
    call.idempotency_key = Some(format!("key-{n}"));
    loop {
        match client.send_message(call.clone(), request.clone()).await {
            Ok(SendMessageResponse::Task(task)) => return task,
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert!(
                    error.violations().is_empty(),
                    "task {n} is refused: {error:?}"
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn all_tasks(client: &Client) -> Vec<Task> {
    let mut request = ListTasksRequest::default();
    (request.page_size, request.include_artifacts) = (Some(100), Some(true));
    let mut tasks = Vec::new();
    loop {
        let page = client
            .list_tasks(Call::client(), request.clone())
            .await
            .unwrap();
        tasks.extend(page.tasks);
        if page.next_page_token.is_empty() {
            assert_eq!(tasks.len(), page.total_size as usize);
            return tasks;
        }
        request.page_token = Some(page.next_page_token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r01_nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    let data = tempfile::tempdir().unwrap();
    let port = free_port();
    let server = Server::start(data.path(), port);
    let clients = Arc::new([
        client(port, Binding::JsonRpc).await,
        client(port, Binding::HttpJson).await,
    ]);
    let acknowledged = Arc::new(Mutex::new(HashMap::new()));
    let next = Arc::new(AtomicUsize::new(0));
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (clients, next) = (Arc::clone(&clients), Arc::clone(&next));
            let acknowledged = Arc::clone(&acknowledged);
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= TASKS {
                        return;
                    }
                    let task = send_until_acknowledged(&clients[n % 2], n).await;
                    acknowledged.lock().unwrap().insert(n, task.id);
                    // Spread over the kills, so that each of them hits work under way.
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
            })
        })
        .collect();

    let deadline = Instant::now() + Duration::from_secs(300);
    let server = tokio::task::spawn_blocking({
        let (data, acknowledged) = (data.path().to_owned(), Arc::clone(&acknowledged));
        move || {
            let mut server = server;
            for kill in 1..=KILLS {
                let until = TASKS * kill / (KILLS + 2);
                while acknowledged.lock().unwrap().len() < until && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis((kill as u64 * 7) % 23 + 1));
                }
                server.kill();
                server = Server::start(&data, port);
            }
            server
        }
    })
    .await
    .unwrap();
    for sender in senders {
        tokio::time::timeout_at(deadline.into(), sender)
            .await
            .expect("in time")
            .unwrap();
    }

    let acknowledged = acknowledged.lock().unwrap().clone();
    assert_eq!(acknowledged.len(), TASKS);
    let ids: HashSet<_> = acknowledged.values().collect();
    assert_eq!(ids.len(), TASKS, "no two keys share a task");
    let tasks = settled(&clients[0], deadline).await;
    assert_eq!(tasks.len(), TASKS, "no key made a second task");
    for (n, id) in &acknowledged {
        let task = tasks
            .iter()
            .find(|task| task.id == *id)
            .unwrap_or_else(|| panic!("{n} is lost"));
        assert_eq!(task.status.state, TaskState::Completed, "{:?}", task.status);
        assert_eq!(task.artifacts.len(), 1, "task {n} has one result");
        assert_eq!(task.artifacts[0].text(), format!("text {n}"));
    }
    for n in [0, 1, TASKS / 2, TASKS - 1] {
        let again = send_until_acknowledged(&clients[(n + 1) % 2], n).await;
        assert_eq!(
            again.id, acknowledged[&n],
            "the other binding knows the key too"
        );
    }
    let last = clients[1]
        .get_task(
            Call::client(),
            GetTaskRequest::new(acknowledged[&7].clone()),
        )
        .await;
    assert_eq!(last.unwrap().status.state, TaskState::Completed);
    server.kill();
    let check = Command::new(env!("CARGO_BIN_EXE_nuncio"))
        .args(["db", "check"])
        .arg(data.path())
        .output();
    let check = check.unwrap();
    assert!(
        check.status.success(),
        "{}",
        String::from_utf8_lossy(&check.stderr)
    );
}

/// All tasks, once none of them is under way any more.
async fn settled(client: &Client, deadline: Instant) -> Vec<Task> {
    loop {
        let tasks = all_tasks(client).await;
        if tasks.iter().all(|task| task.status.state.is_terminal()) || Instant::now() > deadline {
            return tasks;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
