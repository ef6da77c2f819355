//! Clients that send tasks with keys, and send again until they are answered.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nuncio_client::{Client, ClientBuilder};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{
    AgentService as _, Binding, Call, GetTaskRequest, ListTasksRequest, Message, Part,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, Task, TaskId, TaskState,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub(crate) const BINDINGS: [Binding; 3] = [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc];

const SENDERS: usize = 16;

/// A client of one binding.
pub(crate) async fn client(url: &str, binding: Binding) -> Client {
    let egress = Egress::new(EgressPolicy::open()).unwrap();
    let builder = ClientBuilder::new(egress).binding(binding);
    builder.connect(url).await.unwrap()
}

/// Tasks being sent over all bindings.
pub(crate) struct Load {
    clients: Arc<[Client; 3]>,
    acknowledged: Arc<Mutex<HashMap<usize, TaskId>>>,
    refusals: Arc<AtomicUsize>,
    ended: Option<mpsc::UnboundedReceiver<TaskId>>,
    senders: Vec<JoinHandle<()>>,
    tasks: usize,
    deadline: Instant,
}

impl Load {
    /// Begins to send `tasks` tasks to the agent at `url`; each of the senders pauses after each.
    ///
    /// It has to be done by `limit`.
    pub(crate) async fn start(url: &str, tasks: usize, pause: Duration, limit: Duration) -> Self {
        let clients = Arc::new([
            client(url, BINDINGS[0]).await,
            client(url, BINDINGS[1]).await,
            client(url, BINDINGS[2]).await,
        ]);
        let acknowledged = Arc::new(Mutex::new(HashMap::new()));
        let next = Arc::new(AtomicUsize::new(0));
        let refusals = Arc::new(AtomicUsize::new(0));
        let (tell, ended) = mpsc::unbounded_channel();
        let senders = (0..SENDERS)
            .map(|_| {
                let (clients, next) = (Arc::clone(&clients), Arc::clone(&next));
                let (acknowledged, refusals) = (Arc::clone(&acknowledged), Arc::clone(&refusals));
                let tell = tell.clone();
                tokio::spawn(async move {
                    loop {
                        let n = next.fetch_add(1, Ordering::SeqCst);
                        if n >= tasks {
                            return;
                        }
                        let task = send(&clients[n % 3], n, &refusals).await;
                        if task.status.state.is_terminal() {
                            // Nobody may be interested.
                            let _ = tell.send(task.id.clone());
                        }
                        acknowledged.lock().unwrap().insert(n, task.id);
                        tokio::time::sleep(pause).await;
                    }
                })
            })
            .collect();
        Self {
            clients,
            acknowledged,
            refusals,
            ended: Some(ended),
            senders,
            tasks,
            deadline: Instant::now() + limit,
        }
    }

    /// How many have been acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }

    /// The tasks whose end has been acknowledged, as it comes.
    pub(crate) fn ended(&mut self) -> mpsc::UnboundedReceiver<TaskId> {
        self.ended.take().unwrap()
    }

    /// How many sends were not answered with a task.
    pub(crate) fn refusals(&self) -> usize {
        self.refusals.load(Ordering::SeqCst)
    }

    /// Waits until a share of the tasks is acknowledged: `part` of `parts`.
    pub(crate) async fn reaches(&self, part: usize, parts: usize) {
        while self.acknowledged() < self.tasks * part / parts {
            assert!(Instant::now() < self.deadline, "the senders hang");
            tokio::time::sleep(Duration::from_millis(part as u64 * 7 % 23 + 1)).await;
        }
    }

    /// Waits until all is acknowledged and ended, and checks: nothing is lost, nothing is there
    /// twice, each task has one result, and another binding knows its key.
    pub(crate) async fn is_whole(&mut self) {
        for sender in self.senders.drain(..) {
            let sent = tokio::time::timeout_at(self.deadline.into(), sender).await;
            sent.expect("all is sent in time").unwrap();
        }
        let acknowledged = self.acknowledged.lock().unwrap().clone();
        assert_eq!(acknowledged.len(), self.tasks);
        let ids: HashSet<_> = acknowledged.values().collect();
        assert_eq!(ids.len(), self.tasks, "no two keys share a task");
        let tasks = self.settled().await;
        assert_eq!(tasks.len(), self.tasks, "no key made a second task");
        for (n, id) in &acknowledged {
            let task = tasks.get(id).unwrap_or_else(|| panic!("{n} is lost"));
            assert_eq!(task.status.state, TaskState::Completed, "{:?}", task.status);
            assert_eq!(task.artifacts.len(), 1, "task {n} has one result");
            assert_eq!(task.artifacts[0].text(), format!("text {n}"));
        }
        for n in [0, 1, 2, self.tasks / 2, self.tasks - 1] {
            let again = send(&self.clients[(n + 1) % 3], n, &self.refusals).await;
            assert_eq!(again.id, acknowledged[&n], "another binding knows the key");
        }
        for (client, n) in self.clients.iter().zip([7, 8, 9]) {
            let request = GetTaskRequest::new(acknowledged[&n].clone());
            let task = client.get_task(Call::client(), request).await.unwrap();
            assert_eq!(task.status.state, TaskState::Completed);
        }
    }

    /// All tasks, once none of them is under way any more.
    async fn settled(&self) -> HashMap<TaskId, Task> {
        loop {
            if let Ok(tasks) = all_tasks(&self.clients[0]).await {
                let over = tasks.values().all(|task| task.status.state.is_terminal());
                if over || Instant::now() > self.deadline {
                    return tasks;
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Sends task `n` until it is acknowledged, as a client would that gets no answer.
async fn send(client: &Client, n: usize, refusals: &AtomicUsize) -> Task {
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
                refusals.fetch_add(1, Ordering::SeqCst);
                assert!(
                    error.violations().is_empty(),
                    "task {n} is refused: {error:?}"
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn all_tasks(client: &Client) -> nuncio_protocol::Result<HashMap<TaskId, Task>> {
    let mut request = ListTasksRequest::default();
    (request.page_size, request.include_artifacts) = (Some(100), Some(true));
    let mut tasks = HashMap::new();
    loop {
        let page = client.list_tasks(Call::client(), request.clone()).await?;
        tasks.extend(page.tasks.into_iter().map(|task| (task.id.clone(), task)));
        if page.next_page_token.is_empty() {
            return Ok(tasks);
        }
        request.page_token = Some(page.next_page_token);
    }
}
