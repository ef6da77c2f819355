//! Several processes on one store: any of them answers any call.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_engine::Settings;
use nuncio_protocol::{
    AgentService as _, CancelTaskRequest, ErrorKind, Event, StreamResponse, SubscribeToTaskRequest,
    Task, TaskState,
};
use nuncio_store::{MemoryStore, Store as _};
use nuncio_testkit::{
    Bed, Behaviour, FaultyStore, TestAgent, artifact_text, call, send, sent_task, text_message,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// One of several processes, which maintains its leases until it is dropped.
struct Replica {
    bed: Bed,
    store: Arc<FaultyStore>,
    _alive: DropGuard,
}

fn replica(database: &MemoryStore, agent: TestAgent) -> Replica {
    let store = Arc::new(FaultyStore::new(Arc::new(database.replica())));
    let bed = Bed::on(Arc::clone(&store) as _, agent, Settings::default());
    let ended = CancellationToken::new();
    let (engine, stop) = (bed.engine.clone(), ended.clone());
    tokio::spawn(async move { engine.maintain(stop).await });
    Replica {
        bed,
        store,
        _alive: ended.drop_guard(),
    }
}

fn two(behaviour: Behaviour) -> (Replica, Replica) {
    let database = MemoryStore::default();
    let one = replica(&database, TestAgent::new(behaviour.clone()).resumable());
    let two = replica(&database, TestAgent::new(behaviour).resumable());
    (one, two)
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// Follows a task to its end; the positions and the events.
async fn follow(bed: &Bed, task: &Task) -> Vec<Event> {
    let request = SubscribeToTaskRequest::new(task.id.clone());
    let stream = bed.agent.subscribe_to_task(call("alice"), request).await;
    stream.unwrap().map(|event| event.unwrap()).collect().await
}

/// BR-077: a live stream through one process of a task that another one runs.
#[tokio::test(start_paused = true)]
async fn br_077_a_stream_crosses_processes() {
    let (runs, serves) = two(Behaviour::Slow(3));
    let task = runs.bed.start("m1", "go").await;
    let there = follow(&serves.bed, &task).await;
    let stored = runs.bed.store_position(&task.id).await;
    let positions: Vec<_> = there.iter().filter_map(|event| event.position).collect();
    let first = positions[0];
    assert_eq!(positions, (first..=stored).collect::<Vec<_>>());
    let end = there.last().and_then(Event::state);
    assert_eq!(end, Some(TaskState::Completed));
    let page = serves.bed.task(&task.id).await;
    assert_eq!(artifact_text(&page), "1 2 3 ");
}

/// P5: a wake-up that is lost costs a second and no event.
#[tokio::test(start_paused = true)]
async fn a_deaf_process_looks_once_a_second() {
    let (runs, serves) = two(Behaviour::Slow(3));
    serves.store.be_deaf(true);
    let task = runs.bed.start("m1", "go").await;
    let begun = tokio::time::Instant::now();
    let there = follow(&serves.bed, &task).await;
    assert!(matches!(there[0].response(), StreamResponse::Task(_)));
    assert_eq!(there.last().unwrap().position, Some(8));
    assert!(
        begun.elapsed() <= Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

/// A follow-up reaches the run wherever it is, and its sender waits for the answer.
#[tokio::test(start_paused = true)]
async fn a_message_reaches_the_run_of_another_process() {
    let (runs, serves) = two(Behaviour::Slow(2));
    let task = runs.bed.start("m1", "first").await;
    a_moment().await;
    let done = serves.bed.answer("m2", &task, "second").await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(*runs.bed.trace.texts.lock(), ["first", "second"]);
    assert_eq!(serves.bed.trace.runs.load(Ordering::SeqCst), 0);
    let users = done
        .history
        .iter()
        .map(|message| message.message_id.as_str());
    assert_eq!(users.filter(|id| id.starts_with('m')).count(), 2);
}

/// OP-SEND-25: what came with a follow-up reaches the run in another process with it.
#[tokio::test(start_paused = true)]
async fn metadata_reaches_the_run_of_another_process() {
    let (runs, serves) = two(Behaviour::Slow(2));
    let task = runs.bed.start("m1", "first").await;
    a_moment().await;
    let mut message = text_message("m2", "second");
    message.task_id = Some(task.id.clone());
    let mut request = send(message);
    let metadata = serde_json::json!({"memorylake": {"skipMemory": true}});
    request.metadata = metadata.as_object().cloned();
    let answered = serves.bed.agent.send_message(call("alice"), request).await;
    answered.unwrap();
    assert_eq!(*runs.bed.trace.texts.lock(), ["first", "second"]);
    let input = runs.bed.trace.input.lock().clone().unwrap();
    assert_eq!(serde_json::Value::from(input.metadata.unwrap()), metadata);
}

/// A process that takes no messages while it works says so for a run of another one.
#[tokio::test(start_paused = true)]
async fn a_busy_agent_is_busy_everywhere() {
    let database = MemoryStore::default();
    let agent = || TestAgent::new(Behaviour::Slow(2)).one_at_a_time();
    let (runs, serves) = (replica(&database, agent()), replica(&database, agent()));
    let task = runs.bed.start("m1", "first").await;
    a_moment().await;
    let mut message = text_message("m2", "second");
    message.task_id = Some(task.id.clone());
    let refused = serves
        .bed
        .agent
        .send_message(call("alice"), send(message))
        .await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::UnsupportedOperation);
}

/// A cancel reaches the owner, and whoever asks next sees it, wherever.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_run_of_another_process() {
    let (runs, serves) = two(Behaviour::Slow(100));
    let task = runs.bed.start("m1", "go").await;
    a_moment().await;
    let request = CancelTaskRequest::new(task.id.clone());
    let canceled = serves.bed.agent.cancel_task(call("alice"), request).await;
    assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
    assert_eq!(
        runs.bed.task(&task.id).await.status.state,
        TaskState::Canceled
    );
    a_moment().await;
    assert_eq!(runs.bed.trace.cancels.load(Ordering::SeqCst), 1);
    assert_eq!(runs.bed.trace.active.load(Ordering::SeqCst), 0);
}

/// A question that is answered through two processes at once has one answer, and one run.
#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once() {
    for turn in 0..50 {
        let (one, two) = two(Behaviour::Ask(1));
        let asked = one.bed.ask("m1", "go").await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let answer = |bed: &Bed, id: String| {
            let mut message = text_message(&id, &id);
            message.task_id = Some(asked.id.clone());
            let agent = Arc::clone(&bed.agent);
            async move { agent.send_message(call("alice"), send(message)).await }
        };
        // The same message, or two different ones of which the second waits for its turn or comes late.
        let (first, second) = match turn % 2 {
            0 => ("same".to_owned(), "same".to_owned()),
            _ => ("one".to_owned(), "two".to_owned()),
        };
        let (here, there) = tokio::join!(answer(&one.bed, first), answer(&two.bed, second));
        let done = sent_task(here.or(there).unwrap());
        assert_eq!(done.status.state, TaskState::Completed);
        let stored = one.bed.task(&done.id).await;
        let runs = [&one, &two].map(|at| at.bed.trace.most_active.load(Ordering::SeqCst));
        assert!(runs.iter().all(|most| *most <= 1), "{runs:?}");
        let artifacts = stored.artifacts.len();
        assert!(
            artifacts == 1 || turn % 2 == 1 && artifacts == 2,
            "{stored:?}"
        );
    }
}

/// A process claims no runs of agents that it does not host: whoever does takes them over at once,
/// as the second attempt.
#[tokio::test(start_paused = true)]
async fn a_process_leaves_the_agents_of_others_alone() {
    let database = MemoryStore::default();
    let gone = replica(
        &database,
        TestAgent::new(Behaviour::Slow(1_000)).resumable(),
    );
    let task = gone.bed.start("m1", "go").await;
    a_moment().await;
    gone.store.refuse_writes(true);
    let stranger = replica(&database, TestAgent::named("another", Behaviour::Echo));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let scope = gone.bed.scope("alice");
    let stored = stranger.store.load(&scope, &task.id).await.unwrap();
    let head = stored.unwrap().head;
    assert_eq!((head.attempt, head.epoch), (1, 1), "nobody has claimed it");
    let heir = replica(&database, TestAgent::new(Behaviour::Echo).resumable());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(
        heir.bed.task(&task.id).await.status.state,
        TaskState::Completed
    );
    assert_eq!(*heir.bed.trace.attempts.lock(), [2]);
}

/// P7, R10: a frozen process loses its task to another one, where it goes on for all who follow it;
/// when it comes back, nothing of it is written, and that is counted.
#[tokio::test(start_paused = true)]
async fn a_frozen_process_is_fenced() {
    let database = MemoryStore::default();
    let frozen = replica(&database, TestAgent::new(Behaviour::Slow(60)).resumable());
    let heir = replica(&database, TestAgent::new(Behaviour::Echo).resumable());
    let task = frozen.bed.start("m1", "go").await;
    a_moment().await;
    let (here, there) = (Arc::clone(&frozen.bed.agent), Arc::clone(&heir.bed.agent));
    let followed = [here, there].map(|agent| {
        let request = SubscribeToTaskRequest::new(task.id.clone());
        tokio::spawn(async move {
            let stream = agent
                .subscribe_to_task(call("alice"), request)
                .await
                .unwrap();
            let events = stream.filter_map(|event| async { event.ok() });
            events.collect::<Vec<Event>>().await
        })
    });
    frozen.store.refuse_writes(true);
    tokio::time::sleep(Duration::from_secs(25)).await;
    let done = heir.bed.task(&task.id).await;
    assert_eq!(
        (done.status.state, artifact_text(&done).contains("go")),
        (TaskState::Completed, true)
    );
    assert_eq!(*heir.bed.trace.attempts.lock(), [2]);
    frozen.store.refuse_writes(false);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(heir.bed.task(&task.id).await, done);
    assert_eq!(frozen.bed.engine.fenced_runs(), 1);
    assert_eq!(frozen.bed.trace.active.load(Ordering::SeqCst), 0);
    let [_, there] = followed;
    let there = there.await.unwrap();
    assert_eq!(
        there.last().and_then(Event::state),
        Some(TaskState::Completed)
    );
}

/// Idle subscriptions to tasks of another process cost one question a second in all.
#[tokio::test(start_paused = true)]
async fn idle_subscriptions_cost_no_questions_each() {
    let (runs, serves) = two(Behaviour::Hold);
    let mut streams = Vec::new();
    for number in 0..1_000 {
        let task = runs.bed.start(&format!("m{number}"), "go").await;
        let request = SubscribeToTaskRequest::new(task.id);
        let stream = serves
            .bed
            .agent
            .subscribe_to_task(call("alice"), request)
            .await;
        streams.push(stream.unwrap());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = serves.store.reads.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(30)).await;
    // 30 looks at all of them, and 6 rounds of maintenance: of expired and of unknown runs.
    let reads = serves.store.reads.load(Ordering::SeqCst) - before;
    assert!(reads <= 30 + 6, "{reads}");
}
