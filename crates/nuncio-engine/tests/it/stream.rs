//! Streams: order, replay, many readers, resumption.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_engine::Settings;
use nuncio_protocol::{
    AgentService as _, Call, CancelTaskRequest, ErrorKind, Event, EventStream, StreamResponse,
    SubscribeToTaskRequest, Task, TaskId, TaskState,
};
use nuncio_testkit::{
    Bed, Behaviour, TestAgent, artifact_text, call, collect, send, text_message, texts,
};

async fn stream(bed: &Bed, id: &str, text: &str) -> EventStream {
    let request = send(text_message(id, text));
    bed.agent
        .send_streaming_message(call("alice"), request)
        .await
        .unwrap()
}

async fn subscribe(bed: &Bed, call: Call, id: &TaskId) -> nuncio_protocol::Result<EventStream> {
    bed.agent
        .subscribe_to_task(call, SubscribeToTaskRequest::new(id.clone()))
        .await
}

fn after(position: u64) -> Call {
    let mut call = call("alice");
    call.last_event_id = Some(position);
    call
}

fn positions(events: &[Event]) -> Vec<u64> {
    events.iter().filter_map(|event| event.position).collect()
}

/// A client's view: what folding a stream gives.
fn folded(events: &[Event]) -> Task {
    let mut task = Task::default();
    for event in events {
        match event.response() {
            StreamResponse::Task(whole) => task = whole.clone(),
            other => task.apply_leniently(other),
        }
    }
    task
}

/// BR-026, OP-STRM-02, OP-STRM-03: the task first, the terminal state last.
#[tokio::test]
async fn br_026_a_stream_is_task_working_artifact_completed() {
    let bed = Bed::new(Behaviour::Echo);
    let events = collect(stream(&bed, "m1", "hello").await).await;
    assert_eq!(
        texts(&events),
        ["task submitted", "working", "artifact hello", "completed"]
    );
    assert_eq!(positions(&events), [1, 2, 3, 4]);
}

/// OP-STRM-02: a direct answer is the only item.
#[tokio::test]
async fn a_direct_answer_is_the_only_item_of_its_stream() {
    let bed = Bed::new(Behaviour::Message);
    let events = collect(stream(&bed, "m1", "hello").await).await;
    assert_eq!(texts(&events), ["message hello"]);
}

/// BR-055, ART-01: appended pieces are one artifact; a replacement keeps its place.
#[tokio::test]
async fn br_055_pieces_of_an_artifact_are_one_artifact() {
    let bed = Bed::new(Behaviour::Chunk);
    let task = bed.ask("m1", "go").await;
    assert_eq!(
        (task.artifacts.len(), task.artifacts[0].parts.len()),
        (1, 3)
    );
    assert_eq!(artifact_text(&task), "Hello, world!");
    let replaced = Bed::new(Behaviour::Replace).ask("m1", "go").await;
    let ids: Vec<_> = replaced
        .artifacts
        .iter()
        .map(|a| a.artifact_id.as_str())
        .collect();
    assert_eq!(ids, ["first", "second"], "ART-06");
    assert_eq!(replaced.artifacts[0].text(), "new");
}

/// BR-041: streamed text is one artifact.
#[tokio::test]
async fn br_041_text_deltas_are_one_artifact() {
    let bed = Bed::new(Behaviour::Flood(100));
    let task = bed.ask("m1", "go").await;
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(artifact_text(&task), "x".repeat(100));
}

/// BR-031, P1: the sender's stream ends at a question, and stays open at an authorisation.
#[tokio::test(start_paused = true)]
async fn br_031_the_senders_stream_ends_at_a_question() {
    let bed = Bed::new(Behaviour::Ask(1));
    let events = collect(stream(&bed, "m1", "go").await).await;
    assert_eq!(texts(&events).last().unwrap(), "input_required");

    let auth = Bed::new(Behaviour::Auth);
    let mut events = stream(&auth, "m1", "go").await;
    let first = events.next().await.unwrap().unwrap();
    let id = folded(std::slice::from_ref(&first)).id;
    assert_eq!(
        events.next().await.unwrap().unwrap().state(),
        Some(TaskState::AuthRequired)
    );
    assert!(
        tokio::time::timeout(Duration::from_secs(60), events.next())
            .await
            .is_err(),
        "INTASK-03"
    );
    let mut message = text_message("m2", "done");
    message.task_id = Some(id);
    auth.agent
        .send_message(call("alice"), send(message))
        .await
        .unwrap();
    let rest = collect(events).await;
    assert_eq!(texts(&rest), ["working", "artifact done", "completed"]);
}

/// OP-STRM-07: a follow-up's stream begins with the task as it is with the message.
#[tokio::test]
async fn a_follow_ups_stream_begins_with_its_message_recorded() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let mut message = text_message("m2", "blue");
    message.task_id = Some(task.id.clone());
    let events = bed
        .agent
        .send_streaming_message(call("alice"), send(message))
        .await
        .unwrap();
    let events = collect(events).await;
    let StreamResponse::Task(first) = events[0].response() else {
        panic!("a task comes first")
    };
    assert_eq!(first.history.last().unwrap().text(), "blue");
    assert_eq!(first.status.state, TaskState::Working, "ST-04");
    assert_eq!(texts(&events[1..]), ["artifact blue", "completed"]);
}

/// BR-032, BR-033, OP-STRM-06: who leaves, leaves the task running.
#[tokio::test(start_paused = true)]
async fn br_032_dropping_a_stream_does_not_stop_the_task() {
    let bed = Bed::new(Behaviour::Slow(10));
    let mut events = stream(&bed, "m1", "go").await;
    let id = folded(&[events.next().await.unwrap().unwrap()]).id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(events);
    let mut seen = 0;
    for _ in 0..11 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let length = artifact_text(&bed.task(&id).await).len();
        assert!(length >= seen, "BR-033");
        seen = length;
    }
    let task = bed.task(&id).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&task), "1 2 3 4 5 6 7 8 9 10 ");
    assert_eq!(
        bed.trace.cancels.load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

/// BR-045, P5: from any position, replayed and live meet without gap or double.
#[tokio::test(start_paused = true)]
async fn br_045_a_stream_resumes_from_any_position() {
    let bed = Bed::new(Behaviour::Slow(6));
    let task = bed.start("m1", "go").await;
    let whole = tokio::spawn(collect(
        subscribe(&bed, call("alice"), &task.id).await.unwrap(),
    ));
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    let last = bed.store_position(&task.id).await;
    let mut resumed = Vec::new();
    for position in 1..=last {
        let events = subscribe(&bed, after(position), &task.id).await.unwrap();
        resumed.push((position, tokio::spawn(collect(events))));
    }
    let whole = whole.await.unwrap();
    let end = bed.task(&task.id).await;
    assert_eq!(folded(&whole), end);
    for (position, events) in resumed {
        let events = events.await.unwrap();
        let expected: Vec<u64> = (position..=*positions(&whole).last().unwrap()).collect();
        assert_eq!(positions(&events), expected, "after {position}");
        assert!(matches!(events[0].response(), StreamResponse::Task(_)));
        assert_eq!(folded(&events), end, "after {position}");
    }
    // What was cut off just before the end is replayed even after it.
    let late = collect(subscribe(&bed, after(last), &task.id).await.unwrap()).await;
    assert_eq!(folded(&late), end);
    let error = subscribe(&bed, after(10_000), &task.id)
        .await
        .err()
        .unwrap();
    assert_eq!(error.violations()[0].field, "Last-Event-ID");
}

/// OP-SUB-03, OP-SUB-04.
#[tokio::test]
async fn an_ended_task_cannot_be_subscribed_to() {
    let bed = Bed::new(Behaviour::Echo);
    let task = bed.ask("m1", "hello").await;
    let error = subscribe(&bed, call("alice"), &task.id)
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
    let error = subscribe(&bed, call("alice"), &"nope".into())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
}

/// OP-SUB-05, BR-046: a subscription passes through a pause and ends with the task.
#[tokio::test(start_paused = true)]
async fn br_046_a_subscription_lasts_to_the_end() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let events = tokio::spawn(collect(
        subscribe(&bed, call("alice"), &task.id).await.unwrap(),
    ));
    tokio::time::sleep(Duration::from_secs(5)).await;
    bed.answer("m2", &task, "blue").await;
    let events = events.await.unwrap();
    assert_eq!(
        texts(&events),
        [
            "task input_required",
            "working",
            "artifact blue",
            "completed"
        ]
    );
}

/// BR-047: a task that ends while somebody subscribes is never missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_047_no_end_is_missed_by_a_subscriber() {
    let mut refused = 0;
    for round in 0..10_000_u64 {
        let bed = Bed::new(Behaviour::Hold);
        let task = bed.start("m1", "go").await;
        let (agent, id) = (Arc::clone(&bed.agent), task.id.clone());
        let cancel = tokio::spawn(async move {
            for _ in 0..round % 7 {
                std::hint::spin_loop();
            }
            agent
                .cancel_task(call("alice"), CancelTaskRequest::new(id))
                .await
        });
        match subscribe(&bed, call("alice"), &task.id).await {
            Ok(events) => {
                let events = tokio::time::timeout(Duration::from_secs(30), collect(events)).await;
                assert_eq!(folded(&events.unwrap()).status.state, TaskState::Canceled);
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
                refused += 1;
            }
        }
        cancel.await.unwrap().unwrap();
    }
    assert!(refused < 10_000, "some subscription must have been in time");
}

/// BR-051, OP-SUB-06: readers do not steal from each other; one that stops reading harms nobody.
#[tokio::test(start_paused = true)]
async fn br_051_every_reader_sees_everything() {
    let bed = Bed::new(Behaviour::Slow(5));
    let task = bed.start("m1", "go").await;
    let frozen = subscribe(&bed, call("alice"), &task.id).await.unwrap();
    let leaving = subscribe(&bed, call("alice"), &task.id).await.unwrap();
    let a = tokio::spawn(collect(
        subscribe(&bed, call("alice"), &task.id).await.unwrap(),
    ));
    let b = tokio::spawn(collect(
        subscribe(&bed, call("alice"), &task.id).await.unwrap(),
    ));
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(leaving);
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let json = |events: &[Event]| {
        events
            .iter()
            .map(|e| e.json().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(json(&a), json(&b));
    assert_eq!(
        json(&collect(frozen).await),
        json(&a),
        "the frozen one catches up"
    );
}

/// BR-030, S22: a flood stalls nobody and loses nothing, with a fast, a late and no reader.
#[tokio::test]
async fn br_030_a_flood_reaches_fast_and_late_readers_whole() {
    const COUNT: u64 = 50_000;
    let bed = Bed::new(Behaviour::Flood(COUNT));
    let task = bed.start("m1", "go").await;
    let late = subscribe(&bed, call("alice"), &task.id).await.unwrap();
    let fast = collect(subscribe(&bed, call("alice"), &task.id).await.unwrap()).await;
    let late = collect(late).await;
    for events in [&fast, &late] {
        let from = positions(events)[0];
        let expected: Vec<u64> = (from..=COUNT + 3).collect();
        assert_eq!(positions(events), expected);
    }
    assert_eq!(
        artifact_text(&bed.task(&task.id).await).len(),
        COUNT as usize
    );
    let unread = bed.ask("m2", "go").await;
    assert_eq!(unread.status.state, TaskState::Completed);
}

/// OP-SUB-07: readers of a task that nobody runs are woken by what somebody else does to it.
#[tokio::test(start_paused = true)]
async fn streams_end_when_the_engine_drains() {
    let bed = Bed::new(Behaviour::Hold);
    let task = bed.start("m1", "go").await;
    let events = tokio::spawn(collect(
        subscribe(&bed, call("alice"), &task.id).await.unwrap(),
    ));
    tokio::time::sleep(Duration::from_secs(1)).await;
    bed.engine.drain(Duration::from_secs(1)).await.unwrap();
    let events = texts(&events.await.unwrap());
    assert_eq!(
        events,
        ["task submitted", "working"],
        "the stream ends, the task does not"
    );
}

/// Both settings of P1.
#[tokio::test(start_paused = true)]
async fn when_a_senders_stream_ends_can_be_set() {
    let mut settings = Settings::default();
    settings.close_stream_at_input_required = false;
    settings.close_stream_at_auth_required = true;
    let auth = Bed::with(TestAgent::new(Behaviour::Auth), settings.clone());
    let events = collect(stream(&auth, "m1", "go").await).await;
    assert_eq!(texts(&events).last().unwrap(), "auth_required");
    let ask = Bed::with(TestAgent::new(Behaviour::Ask(1)), settings);
    let mut events = stream(&ask, "m1", "go").await;
    events.next().await.unwrap().unwrap();
    events.next().await.unwrap().unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(60), events.next())
            .await
            .is_err()
    );
}

/// P5: a live task is resumed from any position as it stood there, whatever is remembered of earlier
/// resumptions; in any order of positions, and after the task has ended.
#[tokio::test]
async fn p5_a_resumed_stream_begins_with_the_task_as_it_stood() {
    const COUNT: u64 = 3_000;
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let info = nuncio_engine::AgentInfo::new("agent", "Agent", "Floods.");
    let agent = nuncio_engine::agent_fn(info, {
        let gate = Arc::clone(&gate);
        move |cx: nuncio_engine::RunCx, _| {
            let gate = Arc::clone(&gate);
            async move {
                for n in 0..COUNT {
                    cx.text(format!("{n} ")).await?;
                }
                gate.acquire()
                    .await
                    .map_err(nuncio_engine::AgentError::internal)?
                    .forget();
                Ok(())
            }
        }
    });
    let (bed, _) = Bed::of(agent);
    let task = bed.start("m1", "go").await;
    while artifact_text(&bed.task(&task.id).await)
        .split_whitespace()
        .count()
        < COUNT as usize
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let last = bed.store_position(&task.id).await;
    let as_of = async |position: u64| {
        let mut call = call("alice");
        call.last_event_id = Some(position);
        let mut stream = subscribe(&bed, call, &task.id).await.unwrap();
        let first = stream.next().await.unwrap().unwrap();
        assert_eq!(first.position, Some(position));
        let StreamResponse::Task(then) = first.response() else {
            panic!("{first:?}")
        };
        artifact_text(then).split_whitespace().count() as u64
    };
    // SUBMITTED and WORKING come before the first piece.
    for position in [
        2_999,
        1_025,
        3,
        2_048,
        2_049,
        1_023,
        1_024,
        last - 1,
        500,
        2_999,
    ] {
        assert_eq!(as_of(position).await, position - 2, "at {position}");
    }
    gate.add_permits(1);
    while !bed.task(&task.id).await.status.state.is_terminal() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(as_of(2_050).await, 2_048);
}
