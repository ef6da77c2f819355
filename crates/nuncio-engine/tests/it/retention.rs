//! How long what has ended is kept (SEC-07).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_engine::{Retention, Settings};
use nuncio_protocol::{
    A2aError, AgentService as _, Clock as _, ErrorKind, Event, GetTaskRequest, ListTasksRequest,
    SubscribeToTaskRequest, Task, TaskState,
};
use nuncio_store::{MemoryOptions, MemoryStore, SessionAppend, SessionKey};
use nuncio_testkit::{Bed, Behaviour, FaultyStore, TestAgent, call, send, text_message};
use tokio_util::sync::CancellationToken;

const DAY_MS: i64 = 24 * 3_600_000;

async fn subscribe(bed: &Bed, task: &Task, position: u64) -> Result<Event, A2aError> {
    use futures_util::StreamExt as _;
    let mut call = call("alice");
    call.last_event_id = Some(position);
    let request = SubscribeToTaskRequest::new(task.id.clone());
    let mut stream = bed.agent.subscribe_to_task(call, request).await?;
    stream.next().await.unwrap()
}

/// BR-045, P5: a position that is older than what is kept is told as a gap, with what to do.
#[tokio::test(start_paused = true)]
async fn br_045_an_expired_position_is_a_gap_that_says_what_to_do() {
    let bed = Bed::new(Behaviour::Echo);
    let task = bed.ask("m1", "hello").await;
    let first = subscribe(&bed, &task, 1).await.unwrap();
    assert_eq!(first.position, Some(1));
    bed.clock.advance(7 * DAY_MS);
    let retention = Retention::default();
    assert_eq!(
        bed.engine.sweep(&retention).await.unwrap(),
        (0, 0),
        "on the day"
    );
    bed.clock.advance(1);
    assert_eq!(bed.engine.sweep(&retention).await.unwrap(), (0, 1));
    let gap = subscribe(&bed, &task, 1).await.unwrap_err();
    assert_eq!(gap.kind, ErrorKind::InvalidParams);
    assert_eq!(gap.violations()[0].field, "Last-Event-ID");
    assert!(gap.message.contains("no longer kept"), "{gap}");
    assert!(gap.message.contains("GetTask"), "{gap}");
    assert_eq!(bed.task(&task.id).await, task, "the task is as it was");
    let again = bed.ask("m1", "hello").await;
    assert_eq!(again.id, task.id, "and so is its key");
}

#[tokio::test(start_paused = true)]
async fn ended_tasks_expire_and_others_stay() {
    let bed = Bed::new(Behaviour::Echo);
    let gone = bed.ask("m1", "hello").await;
    let asking = bed
        .engine
        .host(Arc::new(TestAgent::named("asking", Behaviour::Ask(1))));
    let request = send(text_message("m2", "go"));
    let paused = asking.send_message(call("alice"), request).await.unwrap();
    let paused = nuncio_testkit::sent_task(paused);
    bed.clock.advance(30 * DAY_MS + 1);
    let young = bed.ask("m3", "hello").await;
    let retention = Retention::default();
    assert_eq!(bed.engine.sweep(&retention).await.unwrap(), (1, 0));

    let get = GetTaskRequest::new(gone.id.clone());
    let error = bed.agent.get_task(call("alice"), get).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
    let listed = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default());
    let listed = listed.await.unwrap();
    assert_eq!((listed.total_size, &listed.tasks[0].id), (1, &young.id));
    let get = GetTaskRequest::new(paused.id.clone());
    let kept = asking.get_task(call("alice"), get).await.unwrap();
    assert_eq!(
        kept.status.state,
        TaskState::InputRequired,
        "it has not ended"
    );
    let again = bed.ask("m1", "hello").await;
    assert_ne!(again.id, gone.id, "the key has gone with its task");
}

/// Sessions grow old by themselves, whatever becomes of the tasks that wrote to them.
#[tokio::test(start_paused = true)]
async fn sessions_expire_when_nobody_goes_on_with_them() {
    let bed = Bed::new(Behaviour::Echo);
    let key = |context: &str| SessionKey {
        scope: bed.scope("alice"),
        context: context.into(),
    };
    let say = async |context: &str, after| {
        let append = SessionAppend {
            key: key(context),
            after,
            task: "t".into(),
            at: bed.clock.now(),
            entries: vec!["1".into()],
            state: Vec::new(),
        };
        bed.store.append_session(append).await.unwrap()
    };
    for n in 0..7 {
        say(&format!("c{n}"), 0).await;
    }
    bed.clock.advance(80 * DAY_MS);
    say("c3", 1).await;
    bed.clock.advance(10 * DAY_MS);
    let mut retention = Retention::default();
    retention.batch = 2;
    let sweep = async |retention: &Retention| bed.engine.sweep_sessions(retention).await.unwrap();
    assert_eq!(sweep(&retention).await, 0, "on the day");
    bed.clock.advance(1);
    let mut for_ever = retention.clone();
    for_ever.sessions = None;
    assert_eq!(sweep(&for_ever).await, 0);
    assert_eq!(sweep(&retention).await, 6);
    let kept = bed.store.session(&key("c3"), 0, 9).await.unwrap();
    assert_eq!(kept.len(), 2);
    let gone = bed.store.session(&key("c0"), 0, 9).await.unwrap();
    assert_eq!(gone, []);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_for_ever_is_kept() {
    let bed = Bed::new(Behaviour::Echo);
    let task = bed.ask("m1", "hello").await;
    bed.clock.advance(10_000 * DAY_MS);
    let mut retention = Retention::default();
    (retention.tasks, retention.events) = (None, None);
    assert_eq!(bed.engine.sweep(&retention).await.unwrap(), (0, 0));
    retention.tasks = Some(Duration::MAX);
    assert_eq!(bed.engine.sweep(&retention).await.unwrap(), (0, 0));
    assert_eq!(bed.task(&task.id).await, task);
    subscribe(&bed, &task, 1).await.unwrap();
}

/// The sweeper works in parts, from time to time, and goes on after a fault of the store.
#[tokio::test(start_paused = true)]
async fn sweeps_come_again_in_small_parts() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(
        MemoryOptions::default(),
    ))));
    let agent = TestAgent::new(Behaviour::Echo);
    let bed = Bed::on(Arc::clone(&store) as _, agent, Settings::default());
    for n in 0..20 {
        bed.ask(&format!("m{n}"), "hello").await;
    }
    bed.clock.advance(31 * DAY_MS);
    let mut retention = Retention::default();
    (retention.every, retention.batch) = (Duration::from_secs(60), 5);
    let shutdown = CancellationToken::new();
    let keeping = tokio::spawn({
        let (engine, shutdown) = (bed.engine.clone(), shutdown.clone());
        async move { engine.keep(retention, shutdown).await }
    });
    store.refuse_writes(true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = store.writes.load(Ordering::SeqCst);
    store.refuse_writes(false);
    let count = async || {
        let listed = bed
            .agent
            .list_tasks(call("alice"), ListTasksRequest::default());
        listed.await.unwrap().total_size
    };
    assert_eq!(count().await, 20, "the first sweep was refused");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count().await, 0);
    let parts = store.writes.load(Ordering::SeqCst) - before;
    assert!(
        (6..=8).contains(&parts),
        "four parts, their ends, one reclaim: {parts}"
    );
    shutdown.cancel();
    keeping.await.unwrap();
}
