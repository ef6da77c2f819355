//! A remote agent that calls are passed on to: its own tasks, each its caller's alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_engine::{Agent, AgentInfo, CALL_CHAIN, Input, Outcome, Pause, RERUN, RunCx, agent_fn};
use nuncio_protocol::{
    A2aError, AgentService, Artifact, Binding, Call, CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest, ErrorKind, Event, EventStream,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Metadata, Part,
    StreamResponse, SubscribeToTaskRequest, Task, TaskId, TaskPushNotificationConfig, TaskState,
    Version,
};
use nuncio_runtime::{EchoAgent, PassThrough, RemoteAgent};
use nuncio_store::MemoryStore;
use nuncio_testkit::{
    Bed, FaultyStore, artifact_text, call, collect, send, sent_task, text_message,
};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::network::{Site, client, until};

fn info(id: &str) -> AgentInfo {
    AgentInfo::new(id, id, "An agent of the tests.")
}

/// Asks, and ends with what it was told; keeps what it has been sent.
fn asker(seen: &Arc<Mutex<Vec<Message>>>) -> impl Agent + 'static {
    let seen = Arc::clone(seen);
    agent_fn(info("asker"), move |cx: RunCx, input: Input| {
        seen.lock().push(input.message.clone());
        async move {
            if input.turn() == 1 {
                let question = cx.message(vec![Part::text("which?")]);
                return Ok(Outcome::Paused(Pause::input(question)));
            }
            let data = Part::data(json!({"told": input.message.text(), "rev": 1}));
            cx.artifact(Artifact::new("answer", vec![data])).await?;
            Ok(Outcome::Done)
        }
    })
}

/// A bed whose agent says nothing of interest, and an agent passed through its engine.
async fn passing(site: &Site) -> (Bed, PassThrough) {
    let (bed, _) = Bed::of(EchoAgent::new("here"));
    let passed = site.remote("far").await;
    let passed = passed.passed_through(bed.engine.passing("far"));
    (bed, passed)
}

async fn ask(agent: &dyn AgentService, caller: &str, message: Message) -> Task {
    let sent = agent.send_message(call(caller), send(message)).await;
    sent_task(sent.unwrap())
}

fn answer_to(id: &str, task: &TaskId) -> Message {
    let mut message = text_message(id, "the red one");
    message.task_id = Some(task.clone());
    message
}

/// What a caller is told of a task, however it is asked for, each by the name of the operation.
async fn refusals(agent: &dyn AgentService, who: Call, task: &TaskId) -> Vec<(String, A2aError)> {
    let mut config = TaskPushNotificationConfig::default();
    config.task_id = Some(task.clone());
    config.url = "https://receiver.example/".to_owned();
    let mut get = GetTaskPushNotificationConfigRequest::default();
    (get.task_id, get.id) = (task.clone(), "w".into());
    let mut list = ListTaskPushNotificationConfigsRequest::default();
    list.task_id = task.clone();
    let mut delete = DeleteTaskPushNotificationConfigRequest::default();
    (delete.task_id, delete.id) = (task.clone(), "w".into());
    let answer = || send(answer_to("spy", task));
    let mut rerun = send(text_message("again", "x"));
    let wish = json!({"task": task, "node": "n", "output": 1});
    rerun.metadata = Some(Metadata::from_iter([(RERUN.to_owned(), wish)]));
    let who = || who.clone();
    let refused = [
        (
            "get",
            agent
                .get_task(who(), GetTaskRequest::new(task.clone()))
                .await
                .err(),
        ),
        (
            "cancel",
            agent
                .cancel_task(who(), CancelTaskRequest::new(task.clone()))
                .await
                .err(),
        ),
        (
            "subscribe",
            agent
                .subscribe_to_task(who(), SubscribeToTaskRequest::new(task.clone()))
                .await
                .err(),
        ),
        ("send", agent.send_message(who(), answer()).await.err()),
        (
            "stream",
            agent.send_streaming_message(who(), answer()).await.err(),
        ),
        ("rerun", agent.send_message(who(), rerun).await.err()),
        (
            "create",
            agent.create_push_config(who(), config).await.err(),
        ),
        ("read", agent.get_push_config(who(), get).await.err()),
        ("list", agent.list_push_configs(who(), list).await.err()),
        (
            "delete",
            agent.delete_push_config(who(), delete).await.err(),
        ),
    ];
    let told = |(name, error): (&str, Option<A2aError>)| {
        let error = error.unwrap_or_else(|| panic!("{name} is not refused"));
        (name.to_owned(), error)
    };
    refused.into_iter().map(told).collect()
}

/// ERR-08: what is another caller's is not there, in each operation, and the agent hears nothing of it;
/// its owner goes on with it, in every version and binding.
#[tokio::test]
async fn nothing_of_another_caller_is_there() {
    for version in [Version::V1_0, Version::V0_3] {
        for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
            let way = format!("{version} {binding:?}");
            let seen = Arc::default();
            let site = Site::of(asker(&seen)).await;
            let (bed, _) = Bed::of(EchoAgent::new("here"));
            let remote = site.remote_by(version, binding).await;
            let passed = remote.passed_through(bed.engine.passing("far"));
            let asking = ask(&passed, "alice", text_message("m1", "go")).await;
            assert_eq!(asking.status.state, TaskState::InputRequired, "{way}");
            for (name, error) in refusals(&passed, call("bob"), &asking.id).await {
                let expected = A2aError::task_not_found(&asking.id);
                assert_eq!(error.kind, expected.kind, "{way} {name}");
                assert_eq!(error.message, expected.message, "{way} {name}");
                assert_eq!(error.metadata, expected.metadata, "{way} {name}");
            }
            assert_eq!(seen.lock().len(), 1, "{way}: nothing else was sent");
            let got = passed.get_task(call("alice"), GetTaskRequest::new(asking.id.clone()));
            let got = got.await.unwrap();
            assert_eq!(
                (&got.id, got.context_id),
                (&asking.id, asking.context_id),
                "{way}"
            );
            let done = ask(&passed, "alice", answer_to("m2", &asking.id)).await;
            assert_eq!(done.status.state, TaskState::Completed, "{way}");
            let told = Part::data(json!({"told": "the red one", "rev": 1}));
            assert_eq!(done.artifacts[0].parts, [told], "{way} BR-141");
            let there = site.tasks().await;
            assert_eq!(there.len(), 1, "{way}");
            assert_eq!(there[0].id, done.id, "{way}: the agent's own id");
            let here = bed
                .agent
                .list_tasks(call("alice"), ListTasksRequest::default());
            assert!(
                here.await.unwrap().tasks.is_empty(),
                "{way}: nothing is kept here"
            );
        }
    }
}

/// A conversation is whoever's spoke in it first; an own one goes on there.
#[tokio::test]
async fn a_conversation_is_its_first_speakers() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (_bed, passed) = passing(&site).await;
    let first = ask(&passed, "alice", text_message("m1", "go")).await;
    let given = first.context_id.unwrap();
    let said = |id: &str, context: &str| {
        let mut message = text_message(id, "go");
        message.context_id = Some(context.into());
        message
    };
    let own = ask(&passed, "alice", said("m2", "own")).await;
    assert_eq!(own.context_id, Some("own".into()));
    for context in [given.as_str(), "own"] {
        for streaming in [false, true] {
            let request = send(said("spy", context));
            let refused = match streaming {
                false => passed.send_message(call("bob"), request).await.err(),
                true => passed
                    .send_streaming_message(call("bob"), request)
                    .await
                    .err(),
            };
            let refused = refused.unwrap();
            assert_eq!(refused.kind, ErrorKind::InvalidParams);
            assert_eq!(refused.message, "message.contextId: is not known here");
        }
        let mut listing = ListTasksRequest::default();
        listing.context_id = Some(context.into());
        let list = async |who: &str| {
            let listed = passed.list_tasks(call(who), listing.clone()).await.unwrap();
            (listed.tasks.len(), listed.total_size)
        };
        assert_eq!(list("bob").await, (0, 0));
        assert_eq!(list("alice").await, (1, 1));
    }
    assert_eq!(seen.lock().len(), 2, "the agent hears nothing of it");
    let again = ask(&passed, "alice", said("m3", given.as_str())).await;
    assert_eq!(again.context_id, Some(given));
}

/// OP-SEND-24: the agent is told of earlier tasks only if they are the caller's.
#[tokio::test]
async fn references_to_tasks_of_others_are_left_out() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (_bed, passed) = passing(&site).await;
    let mine = ask(&passed, "alice", text_message("m1", "go")).await;
    let theirs = ask(&passed, "bob", text_message("m1", "go")).await;
    assert_ne!(mine.id, theirs.id, "BR-014: two callers, one message id");
    let mut message = text_message("m2", "compare");
    message.reference_task_ids = vec![theirs.id, mine.id.clone(), "none".into()];
    ask(&passed, "alice", message).await;
    assert_eq!(seen.lock()[2].reference_task_ids, [mine.id]);
}

/// BR-014: the same message again is the same task there.
#[tokio::test]
async fn br_014_a_repeated_message_is_the_same_task() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (_bed, passed) = passing(&site).await;
    let first = ask(&passed, "alice", text_message("m1", "go")).await;
    let again = ask(&passed, "alice", text_message("m1", "go")).await;
    assert_eq!((&first.id, seen.lock().len()), (&again.id, 1));
    let other = passed.send_message(call("alice"), send(text_message("m1", "stop")));
    let refused = other.await.unwrap_err();
    assert_eq!(
        refused.kind,
        ErrorKind::InvalidParams,
        "the agent's own error"
    );
    assert!(refused.message.contains("another content"), "{refused}");
}

/// OP-LIST: pages are as large as asked for, and nobody's tasks but the caller's are in them.
#[tokio::test]
async fn pages_are_of_the_callers_own_tasks() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (_bed, passed) = passing(&site).await;
    let mut mine = Vec::new();
    for n in 0..14 {
        let id = format!("m{n}");
        let caller = if n % 3 == 0 { "alice" } else { "bob" };
        let task = ask(&passed, caller, text_message(&id, "go")).await;
        if caller == "alice" {
            mine.push(task.id);
        }
    }
    mine.reverse();
    let mut request = ListTasksRequest::default();
    let all = passed
        .list_tasks(call("alice"), request.clone())
        .await
        .unwrap();
    let ids = |tasks: &[Task]| tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&all.tasks), mine);
    assert_eq!((all.total_size, all.page_size), (5, 50));
    assert_eq!(all.next_page_token, "");
    request.page_size = Some(2);
    let (mut pages, mut found) = (Vec::new(), Vec::new());
    loop {
        let page = passed
            .list_tasks(call("alice"), request.clone())
            .await
            .unwrap();
        pages.push(page.tasks.len());
        assert_eq!((page.total_size, page.page_size), (5, 2));
        found.extend(ids(&page.tasks));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = Some(page.next_page_token);
    }
    assert_eq!((pages, found), (vec![2, 2, 1], mine));
    request.page_token = Some("x".repeat(4_097));
    let refused = passed.list_tasks(call("alice"), request).await.unwrap_err();
    assert_eq!(refused.message, "pageToken: is longer than 4096 bytes");
}

/// Works in pieces until it is let go.
fn worker(go: &CancellationToken, canceled: &Arc<AtomicUsize>) -> impl Agent + 'static {
    let (go, canceled) = (go.clone(), Arc::clone(canceled));
    agent_fn(info("worker"), move |cx: RunCx, _| {
        let (go, canceled) = (go.clone(), Arc::clone(&canceled));
        async move {
            let piece = |text: &str| Artifact::new("report", vec![Part::text(text)]);
            cx.chunk(piece("one, "), false, false).await?;
            tokio::select! {
                () = go.cancelled() => {}
                () = cx.cancellation().cancelled() => {
                    canceled.fetch_add(1, Ordering::SeqCst);
                    return Ok(Outcome::Done);
                }
            }
            cx.chunk(piece("two"), true, true).await?;
            Ok(Outcome::Done)
        }
    })
}

fn positions(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| event.position).collect()
}

/// Events come one by one with the agent's positions, as far as the binding tells them; whoever comes
/// back names the last one; a caller who leaves leaves the task at work.
#[tokio::test]
async fn streams_go_on_where_they_were_left() {
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let (go, canceled) = (CancellationToken::new(), Arc::default());
        let site = Site::of(worker(&go, &canceled)).await;
        let (bed, _) = Bed::of(EchoAgent::new("here"));
        let remote = site.remote_by(Version::V1_0, binding).await;
        let passed = remote.passed_through(bed.engine.passing("far"));
        let request = send(text_message("m1", "go"));
        let stream = passed.send_streaming_message(call("alice"), request).await;
        let begun = up_to_a_piece(stream.unwrap()).await;
        let StreamResponse::Task(task) = begun[0].response() else {
            panic!("the first event is the task: {begun:?}");
        };
        let last = positions(&begun).last().copied();
        let follow = async |who: &str| {
            let mut call = call(who);
            call.last_event_id = last;
            let request = SubscribeToTaskRequest::new(task.id.clone());
            passed.subscribe_to_task(call, request).await
        };
        assert!(follow("bob").await.is_err());
        let rest = follow("alice").await.unwrap();
        go.cancel();
        let rest = positions(&collect(rest).await);
        if binding != Binding::Grpc {
            let last = last.unwrap();
            let order: Vec<u64> = (last..last + rest.len() as u64).collect();
            assert_eq!(rest, order, "{binding:?}: from what was seen last");
            assert!(rest.len() > 1, "{binding:?}: {rest:?}");
        }
        let got = passed.get_task(call("alice"), GetTaskRequest::new(task.id.clone()));
        let got = got.await.unwrap();
        assert_eq!(got.status.state, TaskState::Completed, "{binding:?}");
        assert_eq!(artifact_text(&got), "one, two", "{binding:?}");
        assert_eq!(canceled.load(Ordering::SeqCst), 0, "{binding:?}");
    }
}

/// The events of a stream that is dropped after its first piece of an artifact.
async fn up_to_a_piece(mut stream: EventStream) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap());
        let last = events.last().map(Event::response);
        if matches!(last, Some(StreamResponse::ArtifactUpdate(_))) {
            break;
        }
    }
    events
}

#[tokio::test]
async fn a_cancel_reaches_the_agent() {
    let (go, canceled) = (CancellationToken::new(), Arc::default());
    let site = Site::of(worker(&go, &canceled)).await;
    let (_bed, passed) = passing(&site).await;
    let mut request = send(text_message("m1", "go"));
    request
        .configuration
        .get_or_insert_default()
        .return_immediately = true;
    let sent = passed.send_message(call("alice"), request).await;
    let task = sent_task(sent.unwrap());
    let cancel = || passed.cancel_task(call("alice"), CancelTaskRequest::new(task.id.clone()));
    let done = cancel().await.unwrap();
    assert_eq!(
        (&done.id, done.status.state),
        (&task.id, TaskState::Canceled)
    );
    until(async || canceled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(cancel().await.unwrap().status.state, TaskState::Canceled);
}

/// Nobody learns of a task before it is on disk whose it is.
#[tokio::test]
async fn a_task_is_told_once_its_owner_is_kept() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    let (bed, _) = Bed::of_on(Arc::clone(&store) as _, EchoAgent::new("here"));
    let remote = site.remote("far").await;
    let passed = remote.passed_through(bed.engine.passing("far"));
    store.refuse_writes(true);
    for streaming in [false, true] {
        let request = send(text_message("m1", "go"));
        let refused = match streaming {
            false => passed.send_message(call("alice"), request).await.err(),
            true => passed
                .send_streaming_message(call("alice"), request)
                .await
                .err(),
        };
        assert_eq!(refused.unwrap().kind, ErrorKind::Unavailable, "{streaming}");
    }
    store.refuse_writes(false);
    let found = ask(&passed, "alice", text_message("m1", "go")).await;
    assert_eq!(found.id, site.tasks().await[0].id, "repeated, it is found");
    assert_eq!(seen.lock().len(), 1);
}

/// BR-172: agents that calls are passed on to, in a circle, are refused before anything runs; so is a
/// chain that is too long, and a server that is shutting down takes nothing.
#[tokio::test]
async fn br_172_a_circle_of_passing_servers_is_refused() {
    let one = Site::of(EchoAgent::new("echo")).await;
    let two = Site::of(EchoAgent::new("echo")).await;
    let to = |site: &Site, id: &str| {
        let url = format!("{}/agents/{id}", site.url);
        RemoteAgent::new(info(id), client(), url)
    };
    let a = one.pass("a", &to(&two, "b"));
    two.pass("b", &to(&one, "a"));
    for streaming in [false, true] {
        let request = send(text_message("m1", "go"));
        let refused = match streaming {
            false => a.send_message(call("alice"), request).await.err(),
            true => a.send_streaming_message(call("alice"), request).await.err(),
        };
        let refused = refused.unwrap();
        assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
        let why = "agent a is at work already in this chain of calls";
        assert_eq!(refused.message, why);
    }
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (bed, passed) = passing(&site).await;
    let mut request = send(text_message("m2", "go"));
    let agents = vec![json!({"id": "other", "seal": ""}); 6];
    let deep = json!({"id": "x", "agents": agents});
    request.metadata = Some(Metadata::from_iter([(CALL_CHAIN.to_owned(), deep)]));
    let refused = passed
        .send_message(call("alice"), request)
        .await
        .unwrap_err();
    assert!(refused.message.contains("more than 5 deep"), "{refused}");
    bed.engine.start_draining();
    let request = send(text_message("m3", "go"));
    let refused = passed
        .send_message(call("alice"), request)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(seen.lock().is_empty());
}

/// What is called from a passed call knows who is above it.
#[tokio::test]
async fn a_passing_agent_is_in_the_chain_of_what_it_passes_on() {
    let chains = Arc::new(Mutex::new(Vec::new()));
    let site = {
        let chains = Arc::clone(&chains);
        Site::of(agent_fn(info("end"), move |_: RunCx, input: Input| {
            let metadata = input.metadata.unwrap_or_default();
            chains.lock().push(metadata);
            async { Ok(Outcome::Done) }
        }))
        .await
    };
    let middle = Site::of(EchoAgent::new("echo")).await;
    middle.pass("middle", &site.remote("end").await);
    let (bed, _) = Bed::of(EchoAgent::new("here"));
    let url = format!("{}/agents/middle", middle.url);
    let remote = RemoteAgent::new(info("first"), client(), url);
    let passed = remote.passed_through(bed.engine.passing("first"));
    let mut request = send(text_message("m1", "go"));
    request.metadata = Some(Metadata::from_iter([("own".to_owned(), json!({"rev": 1}))]));
    passed.send_message(call("alice"), request).await.unwrap();
    let chains = chains.lock().clone();
    let agents = chains[0][CALL_CHAIN]["agents"].as_array().unwrap();
    let ids: Vec<_> = agents
        .iter()
        .map(|link| link["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["first", "middle"]);
    assert_eq!(chains[0]["own"], json!({"rev": 1}), "the rest is as it was");
}

/// The way to an agent is nobody's business but ours.
#[tokio::test]
async fn an_agent_that_is_not_there_is_unavailable() {
    let place = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", place.local_addr().unwrap());
    drop(place);
    let (bed, _) = Bed::of(EchoAgent::new("here"));
    let remote = RemoteAgent::new(info("far"), client(), url);
    let passed = remote.passed_through(bed.engine.passing("far"));
    let sent = passed.send_message(call("alice"), send(text_message("m1", "go")));
    let refused = sent.await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert_eq!(
        refused.message,
        "the agent cannot be reached, try again later"
    );
    assert!(refused.metadata.is_empty() && refused.details.is_empty());
}

/// An agent that was there is asked in vain; one that is too slow has its limit.
#[tokio::test]
async fn what_goes_wrong_on_the_way_is_told_without_the_way() {
    let (go, canceled) = (CancellationToken::new(), Arc::default());
    let site = Site::of(worker(&go, &canceled)).await;
    let (bed, _) = Bed::of(EchoAgent::new("here"));
    let remote = site.remote("far").await;
    let passed = remote.passed_through(bed.engine.passing("far"));
    let limit = Duration::from_millis(50);
    let slow = passed.clone().with_answer_limit(Some(limit));
    let sent = slow.send_message(call("alice"), send(text_message("m1", "go")));
    let refused = sent.await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::DeadlineExceeded);
    assert_eq!(refused.message, "the agent did not answer in time");
    go.cancel();
    let task = ask(&passed, "alice", text_message("m1", "go")).await;
    drop(site);
    let closed = async || {
        let get = GetTaskRequest::new(task.id.clone());
        passed.get_task(call("alice"), get).await.err()
    };
    until(async || closed().await.is_some()).await;
    let refused = closed().await.unwrap();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(!refused.message.contains("127.0.0.1"), "{refused}");
    assert!(refused.metadata.is_empty(), "{refused:?}");
}

/// An agent's errors are its own; its extended card is for us.
#[tokio::test]
async fn errors_of_the_agent_reach_the_caller() {
    let seen = Arc::default();
    let site = Site::of(asker(&seen)).await;
    let (_bed, passed) = passing(&site).await;
    let asking = ask(&passed, "alice", text_message("m1", "go")).await;
    ask(&passed, "alice", answer_to("m2", &asking.id)).await;
    let late = passed.send_message(call("alice"), send(answer_to("m3", &asking.id)));
    let late = late.await.unwrap_err();
    assert_eq!(late.kind, ErrorKind::UnsupportedOperation);
    assert!(late.message.contains("has ended"), "{late}");
    assert_eq!(late.metadata["state"], "TASK_STATE_COMPLETED");
    let cancel = passed.cancel_task(call("alice"), CancelTaskRequest::new(asking.id.clone()));
    assert_eq!(cancel.await.unwrap_err().kind, ErrorKind::TaskNotCancelable);
    let card = GetExtendedAgentCardRequest::default();
    let refused = passed.get_extended_agent_card(call("alice"), card).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::UnsupportedOperation);
}
