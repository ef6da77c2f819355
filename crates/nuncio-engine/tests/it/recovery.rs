//! After the end of a process: what a new one makes of its tasks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_engine::{AgentInfo, Outcome, RERUN, RunCx, Settings, SpanKind, agent_fn};
use nuncio_protocol::AgentService as _;
use nuncio_protocol::{Role, SendMessageConfiguration, StreamResponse, TaskState};
use nuncio_store::{MemoryOptions, MemoryStore, NewTask, Store};
use nuncio_testkit::{
    Bed, Behaviour, FaultyStore, TestAgent, artifact_text, call, collect, send, sent_task,
    text_message, texts,
};
use serde_json::json;

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

fn bed(store: &Arc<dyn Store>, agent: TestAgent) -> Bed {
    Bed::on(Arc::clone(store), agent, Settings::default())
}

/// BR-078, ST-09: what cannot be resumed fails with the reason; what is parked stays parked.
#[tokio::test(start_paused = true)]
async fn br_078_interrupted_tasks_fail_and_parked_ones_stay() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Hold));
    let running = before.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let asking = bed(&store, TestAgent::named("agent", Behaviour::Ask(1)));
    let mut message = text_message("m2", "go");
    message.context_id = Some("parked".into());
    let parked = sent_task(
        asking
            .agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );

    let after = bed(&store, TestAgent::new(Behaviour::Ask(1)));
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let failed = after.task(&running.id).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let reason = failed.status.message.unwrap().text();
    assert!(reason.contains("interrupted by a restart"), "{reason}");
    assert_eq!(after.task(&parked.id).await, parked);
    let done = after.answer("m3", &parked, "blue").await;
    assert_eq!(
        (done.status.state, artifact_text(&done).as_str()),
        (TaskState::Completed, "blue")
    );
    assert_eq!(
        after.engine.recover().await.unwrap(),
        0,
        "nothing is left over"
    );
}

/// A resumable agent runs again, as a further attempt, with its checkpoint.
#[tokio::test(start_paused = true)]
async fn a_resumable_agent_goes_on_from_its_checkpoint() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Checkpoint).resumable());
    let task = before.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let after = bed(&store, TestAgent::new(Behaviour::Checkpoint).resumable());
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let done = after.task(&task.id).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&done), r#"found {"step":1}"#);
    assert_eq!(*after.trace.attempts.lock(), [2]);
}

/// A run that repeats another one does not begin anew without what it was given.
#[tokio::test]
async fn a_run_that_repeats_another_is_not_taken_up_again() {
    let store = store();
    let agent = || {
        let mut info = AgentInfo::new("agent", "Agent", "a");
        (info.resumable, info.reruns) = (true, true);
        agent_fn(info, async |cx: RunCx, _| {
            let tool = cx.span(SpanKind::Tool, "execute_tool x");
            tool.input(&json!(1));
            tool.output(&json!(2));
            match tool.replay()? {
                None => Ok(Outcome::Done),
                Some(_) => std::future::pending().await,
            }
        })
    };
    let (before, spans) = Bed::of_on(Arc::clone(&store), agent());
    let first = before.ask("m1", "go").await;
    while spans.all().len() < 2 {
        tokio::task::yield_now().await;
    }
    let mut tree = Vec::new();
    while tree.len() < 2 {
        let read = before.agent.call_tree(&call("alice"), &first.id).await;
        tree = read.unwrap();
    }
    let mut request = send(text_message("m2", "again"));
    let wish = json!({"task": first.id, "node": tree[1].id, "output": 3});
    let metadata = request.metadata.get_or_insert_default();
    metadata.insert(RERUN.to_owned(), wish);
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    request.configuration = Some(configuration);
    let sent = before.agent.send_message(call("alice"), request).await;
    let second = sent_task(sent.unwrap());
    assert_ne!(second.id, first.id);

    let (after, _) = Bed::of_on(store, agent());
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    let mut task = after.task(&second.id).await;
    while !task.status.state.is_terminal() {
        tokio::task::yield_now().await;
        task = after.task(&second.id).await;
    }
    assert_eq!(task.status.state, TaskState::Failed);
    let reason = task.status.message.unwrap().text();
    assert!(reason.contains("interrupted by a restart"), "{reason}");
}

/// P3: attempts are numbered, whichever process makes them.
#[tokio::test(start_paused = true)]
async fn every_crash_is_a_further_attempt() {
    let store = store();
    let first = bed(&store, TestAgent::new(Behaviour::Hold).resumable());
    first.start("m1", "go").await;
    for attempt in 2..=4 {
        let next = bed(&store, TestAgent::new(Behaviour::Hold).resumable());
        assert_eq!(next.engine.recover().await.unwrap(), 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(*next.trace.attempts.lock(), [attempt]);
    }
}

/// The old process may still be alive: what it writes after the take-over changes nothing.
#[tokio::test(start_paused = true)]
async fn the_old_owner_writes_nothing_after_a_take_over() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Slow(5)));
    let task = before.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = bed(&store, TestAgent::new(Behaviour::Slow(5)));
    after.engine.recover().await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let end = after.task(&task.id).await;
    assert_eq!(end.status.state, TaskState::Failed);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let stored = store
        .load(&after.scope("alice"), &task.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, end);
    assert_eq!(
        before.trace.active.load(Ordering::SeqCst),
        0,
        "the old run has given up"
    );
}

/// R11: steps of wall clocks end no lease and prolong none; time that has passed does.
#[tokio::test(start_paused = true)]
async fn a_step_of_the_clock_moves_no_lease() {
    let store = MemoryStore::default();
    let (one, two) = (store.replica(), store.replica());
    let replica = |store, agent| Bed::on(Arc::new(store), agent, Settings::default());
    let before = replica(one, TestAgent::new(Behaviour::Hold).resumable());
    before.start("m1", "go").await;
    let after = replica(two, TestAgent::new(Behaviour::Echo).resumable());
    for step_ms in [3_600_000, -7_200_000] {
        for bed in [&before, &after] {
            bed.clock.advance(step_ms);
            assert_eq!(bed.engine.recover().await.unwrap(), 0);
        }
    }
    tokio::time::advance(Duration::from_secs(16)).await;
    assert_eq!(before.engine.recover().await.unwrap(), 0, "it is its own");
    assert_eq!(after.engine.recover().await.unwrap(), 1);
}

/// Messages that waited for their turn are answered by the new process.
#[tokio::test(start_paused = true)]
async fn queued_messages_survive_a_restart() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Slow(1_000)).resumable());
    let task = before.start("m1", "first").await;
    let mut message = text_message("m2", "second");
    message.task_id = Some(task.id.clone());
    let mut request = send(message);
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    request.configuration = Some(configuration);
    before
        .agent
        .send_message(call("alice"), request)
        .await
        .unwrap();

    let after = bed(&store, TestAgent::new(Behaviour::Echo).resumable());
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let done = after.task(&task.id).await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert!(
        artifact_text(&done).ends_with("firstsecond"),
        "{}",
        artifact_text(&done)
    );
    assert_eq!(
        done.history.iter().filter(|m| m.role == Role::User).count(),
        2
    );
    let attempts = after.trace.attempts.lock().clone();
    assert_eq!(attempts, [2, 1], "nobody had tried the second message");
}

/// OP-SEND-25: what came with a message reaches the run that answers it after a crash.
#[tokio::test(start_paused = true)]
async fn metadata_survives_a_restart() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Slow(1_000)).resumable());
    let mut request = send(text_message("m1", "hello"));
    let metadata = serde_json::json!({"memorylake": {"actorId": "a"}});
    request.metadata = metadata.as_object().cloned();
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    configuration.accepted_output_modes = vec!["text/markdown".to_owned()];
    request.configuration = Some(configuration);
    let mut call = call("alice");
    call.extensions = vec!["urn:x".to_owned()];
    before.agent.send_message(call, request).await.unwrap();

    let after = bed(&store, TestAgent::new(Behaviour::Echo).resumable());
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let input = after.trace.input.lock().clone().unwrap();
    assert_eq!(serde_json::Value::from(input.metadata.unwrap()), metadata);
    assert_eq!(input.accepted_output_modes, ["text/markdown"]);
    assert_eq!(input.extensions, ["urn:x"]);
}

/// P7, R14: draining refuses new work and gives runs time to finish.
#[tokio::test(start_paused = true)]
async fn draining_finishes_what_it_can() {
    let bed = Arc::new(bed(&store(), TestAgent::new(Behaviour::Slow(3))));
    bed.start("m1", "go").await;
    let waiting = {
        let bed = Arc::clone(&bed);
        tokio::spawn(async move { bed.ask("m1", "go").await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    bed.engine.start_draining();
    let refused = bed
        .agent
        .send_message(call("alice"), send(text_message("m2", "go")))
        .await;
    assert!(refused.unwrap_err().kind.is_retryable());
    assert!(bed.engine.ready().await.is_err());
    bed.engine.drain(Duration::from_secs(10)).await.unwrap();
    assert_eq!(waiting.await.unwrap().status.state, TaskState::Completed);
    assert_eq!(bed.engine.running(), 0);
}

/// What does not finish in time is given up, for the next process to take up at once.
#[tokio::test(start_paused = true)]
async fn draining_gives_up_what_takes_too_long() {
    let store = MemoryStore::default();
    let shared: Arc<dyn Store> = Arc::new(store.replica());
    let before = Arc::new(bed(&shared, TestAgent::new(Behaviour::Hold)));
    let task = before.start("m1", "go").await;
    let waiting = {
        let before = Arc::clone(&before);
        let request = send(text_message("m1", "go"));
        tokio::spawn(async move { before.agent.send_message(call("alice"), request).await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    before
        .engine
        .stop_runs(Duration::from_secs(2))
        .await
        .unwrap();
    assert!(waiting.await.unwrap().unwrap_err().kind.is_retryable());
    let shared: Arc<dyn Store> = Arc::new(store);
    let after = bed(&shared, TestAgent::new(Behaviour::Echo).resumable());
    assert_eq!(
        after.engine.recover().await.unwrap(),
        1,
        "the lease has been given up"
    );
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(
        after.task(&task.id).await.status.state,
        TaskState::Completed
    );
}

/// R16: orphans are taken up beside requests, and whoever looked at one before hears of its end.
#[tokio::test(start_paused = true)]
async fn whoever_follows_an_orphan_hears_what_becomes_of_it() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Hold));
    let task = before.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let after = bed(&store, TestAgent::new(Behaviour::Hold));
    let request = nuncio_protocol::SubscribeToTaskRequest::new(task.id.clone());
    let followed = after.agent.subscribe_to_task(call("alice"), request).await;
    let followed = tokio::spawn(collect(followed.unwrap()));
    let waiting = tokio::spawn({
        let agent = Arc::clone(&after.agent);
        async move {
            agent
                .send_message(call("alice"), send(text_message("m1", "go")))
                .await
        }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(!followed.is_finished() && !waiting.is_finished());
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    let events = texts(&followed.await.unwrap());
    assert_eq!(events, ["task working", "failed"]);
    let waited = sent_task(waiting.await.unwrap().unwrap());
    assert_eq!(waited.status.state, TaskState::Failed);
}

/// A message that reaches an orphan before it is taken up is answered by the run that takes it up.
#[tokio::test(start_paused = true)]
async fn a_message_to_an_orphan_is_answered() {
    let store = store();
    let before = bed(&store, TestAgent::new(Behaviour::Hold).resumable());
    let task = before.start("m1", "one").await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let after = Arc::new(bed(&store, TestAgent::new(Behaviour::Echo).resumable()));
    let second = tokio::spawn({
        let (after, task) = (Arc::clone(&after), task.clone());
        async move { after.answer("m2", &task, "two").await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    let done = second.await.unwrap();
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&done), "onetwo");
}

/// R16: more than one page of orphans, and none is taken up a second time while it runs.
#[tokio::test(start_paused = true)]
async fn what_has_been_taken_up_is_not_taken_up_again() {
    const CUT_OFF: usize = 250;
    let store = Arc::new(FaultyStore::new(store()));
    for n in 0..CUT_OFF {
        let cut_off = left_behind(n, TaskState::Working);
        store.create(cut_off).await.unwrap();
    }
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let after = bed(&shared, TestAgent::new(Behaviour::Hold).resumable());
    assert_eq!(after.engine.recover().await.unwrap(), CUT_OFF);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(after.engine.running(), CUT_OFF);
    let before = store.writes.load(Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(after.engine.recover().await.unwrap(), 0);
    }
    let writes = store.writes.load(Ordering::SeqCst) - before;
    assert_eq!(writes, 3, "one claim each, which finds none");
    assert_eq!(after.engine.running(), CUT_OFF);
}

const TASKS: usize = 20_000;
const ORPHANS: usize = 2_000;

/// R16 in its short form: taking up costs as much as there are orphans, not as there are tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r16_taking_up_looks_at_orphans_only() {
    let folder = tempfile::tempdir().unwrap();
    let options = nuncio_store::SqliteOptions {
        synchronous: nuncio_store::Synchronous::Normal,
        ..Default::default()
    };
    let sqlite = nuncio_store::SqliteStore::open(folder.path().join("nuncio.db"), options);
    let store = Arc::new(FaultyStore::new(Arc::new(sqlite.unwrap())));
    fill(&store).await;
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let after = bed(&shared, TestAgent::new(Behaviour::Hold));
    let filled = store.writes.load(Ordering::SeqCst);
    assert_eq!(after.engine.recover().await.unwrap(), ORPHANS);
    let count = async |state| {
        let mut request = nuncio_protocol::ListTasksRequest::default();
        (request.status, request.page_size) = (Some(state), Some(1));
        let listed = after.agent.list_tasks(call("alice"), request).await;
        listed.unwrap().total_size as usize
    };
    while after.engine.running() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(count(TaskState::Working).await, 0);
    assert_eq!(count(TaskState::Failed).await, ORPHANS);
    assert_eq!(count(TaskState::Completed).await, TASKS - ORPHANS);
    let writes = store.writes.load(Ordering::SeqCst) - filled;
    // A claim for each hundred and one that finds none; an end for each.
    assert_eq!(writes, ORPHANS / 100 + 1 + ORPHANS);
    shared.close().await.unwrap();
}

/// Tasks of an earlier process: most have ended, some were cut off.
async fn fill(store: &Arc<FaultyStore>) {
    let fillers: Vec<_> = (0..64)
        .map(|filler| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for n in (filler..TASKS).step_by(64) {
                    let state = match n % (TASKS / ORPHANS) {
                        0 => TaskState::Working,
                        _ => TaskState::Completed,
                    };
                    store.create(left_behind(n, state)).await.unwrap();
                }
            })
        })
        .collect();
    for filler in fillers {
        filler.await.unwrap();
    }
}

fn left_behind(n: usize, state: TaskState) -> NewTask {
    let at = nuncio_protocol::Timestamp::from_unix_ms(1_700_000_000_000 + n as i64);
    let status = nuncio_protocol::TaskStatus::new(state, at);
    let id = format!("t{n:06}");
    let mut task = nuncio_protocol::Task::new(id.as_str().into(), "context".into(), status);
    task.history = vec![text_message(&format!("m{n}"), "go")];
    let first = StreamResponse::Task(task.clone());
    NewTask {
        scope: nuncio_store::Scope {
            workspace: "default".into(),
            agent: "agent".into(),
            caller: "alice".into(),
        },
        context: "context".into(),
        events: vec![nuncio_protocol::Event::new(Some(1), first)],
        task: Arc::new(task),
        snapshot: state.is_terminal(),
        idempotency: None,
        lease: (!state.is_terminal()).then(|| nuncio_store::Lease {
            owner: "an earlier process".into(),
            term: Duration::from_secs(3_600),
        }),
        checkpoint: None,
        request: None,
        push_config: None,
    }
}
