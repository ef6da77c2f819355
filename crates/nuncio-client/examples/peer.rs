//! Our client against somebody else's server: the scenario list of `tests/interop`.
//!
//! `peer --card-url URL --binding JSONRPC|HTTP+JSON|GRPC [--version 0.3|1.0] [--peer python|js|none]`
//! prints one JSON line per scenario and ends with 1 if one failed. With `--version` nothing else is
//! spoken. With `--peer` the known faults of that server are accepted where the scenario says so.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use nuncio_client::{Client, ClientBuilder, Conversation, Reply};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{
    AgentService as _, Binding, Call, CancelTaskRequest, ErrorKind, EventStream, GetTaskRequest,
    Ids, ListTasksRequest, Message, Part, PartContent, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task,
    TaskState, Version, json,
};

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

#[derive(Debug)]
struct CountedIds(u64, AtomicU64);

impl Ids for CountedIds {
    fn next(&self) -> String {
        format!("peer-{}-{}", self.0, self.1.fetch_add(1, Ordering::Relaxed))
    }
}

struct Peer {
    client: Client,
    ids: Arc<CountedIds>,
    name: String,
}

macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}

impl Peer {
    fn message(&self, text: &str) -> Message {
        Message::user(self.ids.next(), vec![Part::text(text)])
    }

    fn is_older(&self) -> bool {
        self.client.version() == Version::V0_3
    }

    fn conversation(&self) -> Conversation {
        Conversation::new(self.client.clone(), Arc::clone(&self.ids) as _)
    }

    async fn send(&self, message: Message) -> nuncio_protocol::Result<Task> {
        match self
            .client
            .send_message(Call::client(), SendMessageRequest::new(message))
            .await?
        {
            SendMessageResponse::Task(task) => Ok(task),
            other => panic!("expected a task: {other:?}"),
        }
    }

    async fn start(&self, text: &str) -> nuncio_protocol::Result<Task> {
        let mut request = SendMessageRequest::new(self.message(text));
        let mut configuration = SendMessageConfiguration::default();
        configuration.return_immediately = true;
        request.configuration = Some(configuration);
        match self.client.send_message(Call::client(), request).await? {
            SendMessageResponse::Task(task) => Ok(task),
            other => panic!("expected a task: {other:?}"),
        }
    }

    async fn stream(&self, text: &str) -> nuncio_protocol::Result<EventStream> {
        let request = SendMessageRequest::new(self.message(text));
        self.client.stream(Call::client(), request).await
    }

    async fn get(&self, task: &Task) -> nuncio_protocol::Result<Task> {
        self.client
            .get_task(Call::client(), GetTaskRequest::new(task.id.clone()))
            .await
    }

    async fn cancel(&self, task: &Task) -> nuncio_protocol::Result<Task> {
        self.client
            .cancel_task(Call::client(), CancelTaskRequest::new(task.id.clone()))
            .await
    }

    async fn card(&self) -> Outcome {
        let card = self.client.card();
        ensure!(
            !card.name.is_empty() && !card.skills.is_empty(),
            "thin card: {card:?}"
        );
        ensure!(self.client.can_stream(), "the card says no streaming");
        Ok(())
    }

    async fn blocking_send(&self) -> Outcome {
        let task = self.send(self.message("hello peer")).await?;
        ensure!(
            task.status.state == TaskState::Completed,
            "{:?}",
            task.status
        );
        ensure!(result(&task) == "hello peer", "{:?}", task.artifacts);
        Ok(())
    }

    async fn streaming_send(&self) -> Outcome {
        let (task, kinds) = fold(self.stream("hello stream").await?).await?;
        ensure!(kinds.first() == Some(&"task"), "{kinds:?}");
        ensure!(task.status.state == TaskState::Completed, "{kinds:?}");
        ensure!(result(&task) == "hello stream", "{:?}", task.artifacts);
        Ok(())
    }

    async fn chunks(&self) -> Outcome {
        let (task, _) = fold(self.stream("chunk").await?).await?;
        ensure!(result(&task) == "Hello, world!", "{:?}", task.artifacts);
        let stored = self.get(&task).await?;
        ensure!(
            stored.artifacts == task.artifacts,
            "{:?} is stored",
            stored.artifacts
        );
        Ok(())
    }

    async fn get_with_history(&self) -> Outcome {
        let task = self.send(self.message("hello history")).await?;
        for (length, most) in [(None, usize::MAX), (Some(0), 0), (Some(1), 1)] {
            let mut request = GetTaskRequest::new(task.id.clone());
            request.history_length = length;
            let got = self.client.get_task(Call::client(), request).await?;
            ensure!(
                got.history.len() <= most,
                "{length:?} gives {}",
                got.history.len()
            );
            ensure!(got.id == task.id, "another task");
        }
        Ok(())
    }

    async fn list(&self) -> Outcome {
        let context = self.ids.next();
        for n in 0..3 {
            let mut message = self.message(&format!("hello list {n}"));
            message.context_id = Some(context.as_str().into());
            self.send(message).await?;
        }
        let mut request = ListTasksRequest::default();
        request.context_id = Some(context.as_str().into());
        request.page_size = Some(2);
        if self.is_older() {
            // It has no such operation: nobody is asked (V03-11).
            let refused = self.client.list_tasks(Call::client(), request).await;
            let refused = refused.err().ok_or("0.3 lists tasks")?;
            ensure!(
                refused.kind == ErrorKind::UnsupportedOperation,
                "{refused:?}"
            );
            return Ok(());
        }
        let mut seen = Vec::new();
        loop {
            let page = self
                .client
                .list_tasks(Call::client(), request.clone())
                .await?;
            seen.extend(page.tasks);
            if page.next_page_token.is_empty() {
                break;
            }
            request.page_token = Some(page.next_page_token);
        }
        ensure!(seen.len() == 3, "{} tasks listed", seen.len());
        ensure!(
            seen.iter().all(|task| task.artifacts.is_empty()),
            "artifacts come unasked"
        );
        Ok(())
    }

    async fn cancel_running(&self) -> Outcome {
        let task = self.start("hold").await?;
        let canceled = self.cancel(&task).await?;
        ensure!(
            canceled.status.state == TaskState::Canceled,
            "{:?}",
            canceled.status
        );
        let done = self.send(self.message("hello")).await?;
        let refused = self
            .cancel(&done)
            .await
            .err()
            .ok_or("canceled a finished task")?;
        ensure!(refused.kind == ErrorKind::TaskNotCancelable, "{refused:?}");
        Ok(())
    }

    async fn subscribe(&self) -> Outcome {
        let task = self.start("hold").await?;
        let request = SubscribeToTaskRequest::new(task.id.clone());
        let mut events = self
            .client
            .subscribe_to_task(Call::client(), request)
            .await?;
        let first = events.next().await.ok_or("the stream is empty")??;
        // 0.3 need not begin with the task (V03-06).
        ensure!(
            self.is_older() || matches!(first.response(), StreamResponse::Task(_)),
            "{first:?}"
        );
        self.cancel(&task).await?;
        let mut last = first.state();
        while let Some(event) = events.next().await {
            last = event?.state().or(last);
        }
        ensure!(last == Some(TaskState::Canceled), "ends with {last:?}");
        Ok(())
    }

    async fn drop_and_follow(&self) -> Outcome {
        let mut events = self.stream("slow").await?;
        let mut id = None;
        while let Some(event) = events.next().await {
            match event?.response() {
                StreamResponse::Task(task) => id = Some(task.id.clone()),
                StreamResponse::ArtifactUpdate(_) => break,
                _ => {}
            }
        }
        drop(events);
        let id = id.ok_or("no task came")?;
        let (task, _) = fold(self.client.follow(Call::client(), id).await?).await?;
        ensure!(
            task.status.state == TaskState::Completed,
            "{:?}",
            task.status
        );
        let stored = self.get(&task).await?;
        ensure!(result(&stored) == "123", "{:?}", stored.artifacts);
        Ok(())
    }

    async fn pause_and_answer(&self) -> Outcome {
        let mut conversation = self.conversation();
        let asked = conversation.ask("ask").await?;
        ensure!(asked.state() == Some(TaskState::InputRequired), "{asked:?}");
        let question = conversation.pending_question().map(Message::text);
        ensure!(question.as_deref() == Some("Which color?"), "{question:?}");
        let answered = conversation.ask("blue").await?;
        ensure!(answered.text() == "color: blue", "{answered:?}");
        ensure!(answered.task_id() == asked.task_id(), "another task");
        let again = conversation.ask("hello again").await?;
        ensure!(
            again.task_id() != asked.task_id(),
            "the finished task is used again"
        );
        ensure!(
            again.context_id() == asked.context_id(),
            "another conversation"
        );
        Ok(())
    }

    async fn authorise(&self) -> Outcome {
        let mut conversation = self.conversation();
        let asked = conversation.ask("auth").await?;
        ensure!(asked.state() == Some(TaskState::AuthRequired), "{asked:?}");
        let done = conversation.ask("done").await?;
        ensure!(done.text() == "signed in", "{done:?}");
        Ok(())
    }

    async fn ends_that_are_not_success(&self) -> Outcome {
        for (text, state, words) in [
            ("fail", TaskState::Failed, "it broke"),
            ("reject", TaskState::Rejected, "not my job"),
        ] {
            let reply = self.conversation().ask(text).await?;
            ensure!(reply.state() == Some(state), "{reply:?}");
            let said = reply
                .task()
                .and_then(|task| task.status.message.as_ref())
                .map(Message::text);
            ensure!(said.as_deref() == Some(words), "{said:?}");
        }
        Ok(())
    }

    async fn direct_message(&self) -> Outcome {
        let reply = self.conversation().ask("message").await?;
        ensure!(
            matches!(&reply, Reply::Message(m) if m.text() == "just a message"),
            "{reply:?}"
        );
        let mut events = self.stream("message").await?;
        let only = events.next().await.ok_or("the stream is empty")??;
        ensure!(
            matches!(only.response(), StreamResponse::Message(_)),
            "{only:?}"
        );
        ensure!(events.next().await.is_none(), "more than one event");
        Ok(())
    }

    async fn files(&self) -> Outcome {
        let task = self.send(self.message("file")).await?;
        let parts: Vec<&Part> = task
            .artifacts
            .iter()
            .flat_map(|artifact| &artifact.parts)
            .collect();
        let raw = parts
            .iter()
            .find(|part| matches!(part.content, PartContent::Raw(_)));
        let raw = raw.ok_or("no raw part")?;
        ensure!(
            matches!(&raw.content, PartContent::Raw(b) if **b == [0, 1, 2, 0xff]),
            "{raw:?}"
        );
        ensure!(raw.filename.as_deref() == Some("x.bin"), "{raw:?}");
        ensure!(
            raw.media_type.as_deref() == Some("application/octet-stream"),
            "{raw:?}"
        );
        ensure!(
            parts
                .iter()
                .any(|part| matches!(part.content, PartContent::Url(_))),
            "no url part"
        );
        let data = parts.iter().find_map(|part| match &part.content {
            PartContent::Data(value) => Some(value),
            _ => None,
        });
        let data = data.ok_or("no data part")?;
        // One SDK keeps numbers as doubles and writes 1 as 1.0.
        let whole = if self.name == "python" {
            data["n"] == 1.0
        } else {
            data["n"] == 1
        };
        ensure!(whole && data["f"] == 1.5, "{data}");
        ensure!(
            data["list"][0].is_null() && data["list"][1] == true,
            "{data}"
        );
        Ok(())
    }

    async fn errors(&self) -> Outcome {
        let unknown = || Task::new("no-such-task".into(), "c".into(), Default::default());
        let kind = |error: nuncio_protocol::A2aError| error.kind;
        ensure!(
            self.get(&unknown()).await.err().map(kind) == Some(ErrorKind::TaskNotFound),
            "get"
        );
        ensure!(
            self.cancel(&unknown()).await.err().map(kind) == Some(ErrorKind::TaskNotFound),
            "cancel"
        );
        let request = SubscribeToTaskRequest::new("no-such-task");
        let subscribed = self.client.subscribe_to_task(Call::client(), request).await;
        let refused = subscribed.err().map(kind);
        // One SDK opens an empty stream instead, in 0.3 over HTTP+JSON, or breaks it off.
        let empty = self.is_older() && self.name == "python" && refused.is_some();
        ensure!(
            empty || refused == Some(ErrorKind::TaskNotFound),
            "subscribe: {refused:?}"
        );
        let mut message = self.message("hello");
        message.task_id = Some("no-such-task".into());
        ensure!(
            self.send(message).await.err().map(kind) == Some(ErrorKind::TaskNotFound),
            "send"
        );
        let done = self.send(self.message("hello")).await?;
        let mut message = self.message("more");
        message.task_id = Some(done.id.clone());
        let refused = self
            .send(message)
            .await
            .err()
            .ok_or("a finished task took a message")?;
        // Some call it a wrong parameter (TRAP-03).
        let as_some_do = self.is_older() && refused.kind == ErrorKind::InvalidParams;
        ensure!(
            as_some_do || refused.kind == ErrorKind::UnsupportedOperation,
            "{refused:?}"
        );
        let mut message = self.message("hello");
        message.message_id = "".into();
        let refused = self
            .send(message)
            .await
            .err()
            .ok_or("an empty message id was taken")?;
        ensure!(refused.kind == ErrorKind::InvalidParams, "{refused:?}");
        Ok(())
    }
}

fn result(task: &Task) -> String {
    task.artifacts
        .iter()
        .map(nuncio_protocol::Artifact::text)
        .collect()
}

/// Folds a stream into the task and the kinds of its events.
async fn fold(mut events: EventStream) -> nuncio_protocol::Result<(Task, Vec<&'static str>)> {
    let (mut task, mut kinds) = (Task::default(), Vec::new());
    while let Some(event) = events.next().await {
        let event = event?;
        kinds.push(match event.response() {
            StreamResponse::Task(whole) => {
                task = whole.clone();
                "task"
            }
            StreamResponse::StatusUpdate(_) => "status",
            StreamResponse::ArtifactUpdate(_) => "artifact",
            _ => "other",
        });
        if !matches!(event.response(), StreamResponse::Task(_)) {
            task.apply_leniently(event.response());
        }
    }
    Ok((task, kinds))
}

async fn report(name: &str, outcome: impl Future<Output = Outcome>) -> bool {
    let error = outcome.await.err().map(|error| error.to_string());
    let detail = error.clone().unwrap_or_default();
    let line = serde_json::json!({"scenario": name, "ok": error.is_none(), "detail": detail});
    println!("{}", json::encode(&line));
    error.is_none()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let (Some(url), Some(binding)) = (option("--card-url"), option("--binding")) else {
        eprintln!(
            "usage: peer --card-url URL --binding JSONRPC|HTTP+JSON|GRPC [--version 0.3|1.0] \
             [--peer python|js|none]"
        );
        return ExitCode::from(2);
    };
    let binding = Binding::from_name(&binding).unwrap_or(Binding::JsonRpc);
    let egress = Egress::new(EgressPolicy::open()).expect("the open policy is a valid one");
    let mut builder = ClientBuilder::new(egress).binding(binding);
    if let Some(version) = option("--version") {
        match Version::parse(&version) {
            Ok(version) => builder = builder.versions([version]),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    let client = match builder.connect(&url).await {
        Ok(client) => client,
        Err(error) => {
            eprintln!("failed to connect: {error}");
            return ExitCode::FAILURE;
        }
    };
    let start = u64::from(std::process::id());
    let ids = Arc::new(CountedIds(start, AtomicU64::new(0)));
    let peer = Peer {
        client,
        ids,
        name: option("--peer").unwrap_or_default(),
    };
    let mut good = report("card", peer.card()).await;
    good &= report("send", peer.blocking_send()).await;
    good &= report("stream", peer.streaming_send()).await;
    good &= report("chunk", peer.chunks()).await;
    good &= report("get", peer.get_with_history()).await;
    good &= report("list", peer.list()).await;
    good &= report("cancel", peer.cancel_running()).await;
    good &= report("subscribe", peer.subscribe()).await;
    good &= report("drop-and-follow", peer.drop_and_follow()).await;
    good &= report("pause-resume", peer.pause_and_answer()).await;
    good &= report("auth", peer.authorise()).await;
    good &= report("fail-reject", peer.ends_that_are_not_success()).await;
    good &= report("message", peer.direct_message()).await;
    good &= report("file", peer.files()).await;
    good &= report("errors", peer.errors()).await;
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
