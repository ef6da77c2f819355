//! Streams that survive (BR-028, BR-039, BR-043, BR-054, BR-058, OP-STRM-09, TRAP-05).

use nuncio_client::{Cause, TextChange, TextView, cause, task_id, task_text};
use nuncio_protocol::{
    AgentService as _, Binding, ErrorKind, Event, StreamResponse, SubscribeToTaskRequest, Task,
    TaskState,
};
use serde_json::json;

use crate::support::{
    Answer, BINDINGS, Fake, Request, call, collect, hello, piece, shapes, status, task, task_item,
};

/// Folds the items as a caller would.
fn fold(events: &[Event]) -> Task {
    let mut task = Task::default();
    for event in events {
        match event.response() {
            StreamResponse::Task(whole) => task = whole.clone(),
            other => task.apply_leniently(other),
        }
    }
    task
}

#[tokio::test]
async fn br_028_everything_is_read_and_the_result_is_the_artifact() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            request.stream(&[
                (0, task_item("SUBMITTED")),
                (0, piece("Hello, ", false)),
                (0, piece("world!", true)),
                (0, status("COMPLETED")),
            ])
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "artifact", "artifact", "status"]);
        let task = fold(&events);
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(task_text(&task), "Hello, world!");
        assert_eq!(fake.operations(), ["SendStreamingMessage"]);
    }
}

/// BR-058: three pieces, a resent task, and a replacement.
#[test]
fn br_058_no_text_is_doubled_or_missing() {
    let item =
        |value: serde_json::Value| -> StreamResponse { serde_json::from_value(value).unwrap() };
    let mut view = TextView::new();
    let mut printed = String::new();
    let whole = json!({"task": task("WORKING", &json!([
        {"artifactId": "a1", "parts": [{"text": "Hello, "}, {"text": "wor"}, {"text": "ld!"}]}]))});
    for step in [
        task_item("SUBMITTED"),
        piece("Hello, ", false),
        piece("wor", true),
        piece("ld!", true),
        whole.clone(),
        status("COMPLETED"),
        whole,
    ] {
        match view.apply(&item(step)) {
            TextChange::Append(more) => printed.push_str(&more),
            TextChange::None => {}
            TextChange::Replace(text) => panic!("nothing is replaced here: {text}"),
        }
    }
    assert_eq!(printed, "Hello, world!");
    assert_eq!(view.text(), printed);
    assert_eq!(
        view.apply(&item(json!({"task": task("WORKING", &json!([
            {"artifactId": "a1", "parts": [{"text": "Bye"}]}]))}))),
        TextChange::Replace("Bye".to_owned())
    );
}

#[tokio::test]
async fn br_039_a_cut_stream_is_taken_up_at_its_position() {
    for binding in BINDINGS {
        let mut subscriptions = 0;
        let fake = Fake::start(move |request: &Request| {
            if request.operation() == "SendStreamingMessage" {
                return request.stream(&[(1, task_item("WORKING")), (2, piece("one ", false))]);
            }
            subscriptions += 1;
            let known = json!({"task": task("WORKING", &json!([
                {"artifactId": "a1", "parts": [{"text": "one "}]}]))});
            match subscriptions {
                1 => Answer::raw("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"),
                2 => Answer::with_type(503, "text/plain", ""),
                // As it stood, something old once more, and what is new.
                _ => request.stream(&[
                    (2, known),
                    (2, piece("one ", false)),
                    (3, piece("two", true)),
                    (4, status("COMPLETED")),
                ]),
            }
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "artifact", "artifact", "status"]);
        assert_eq!(task_text(&fold(&events)), "one two");
        let positions: Vec<_> = events.iter().map(|event| event.position).collect();
        assert_eq!(positions, [Some(1), Some(2), Some(3), Some(4)]);
        let last = fake.requests().pop().unwrap();
        assert_eq!(last.header("last-event-id"), Some("2"));
        assert_eq!(last.operation(), "SubscribeToTask");
    }
}

#[tokio::test]
async fn a_stream_without_positions_takes_the_snapshot_as_a_replacement() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| match request.operation().as_str() {
            "SendStreamingMessage" => {
                request.stream(&[(0, task_item("WORKING")), (0, piece("one ", false))])
            }
            _ => request.stream(&[
                (
                    0,
                    json!({"task": task("WORKING", &json!([
                    {"artifactId": "a1", "parts": [{"text": "one "}, {"text": "two "}]}]))}),
                ),
                (0, piece("three", true)),
                (0, status("COMPLETED")),
            ]),
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(task_text(&fold(&events)), "one two three");
        let mut view = TextView::new();
        let printed: String = events
            .iter()
            .filter_map(|event| match view.apply(event.response()) {
                TextChange::Append(more) => Some(more),
                _ => None,
            })
            .collect();
        assert_eq!(printed, "one two three");
    }
}

/// Ids that count per connection say nothing about what was seen before.
#[tokio::test]
async fn ids_that_start_anew_lose_nothing() {
    let fake = Fake::start(|request: &Request| match request.operation().as_str() {
        "SendStreamingMessage" => request.stream(&[
            (1, task_item("WORKING")),
            (2, piece("one ", false)),
            (3, status("WORKING")),
        ]),
        _ => request.stream(&[
            (
                1,
                json!({"task": task("WORKING", &json!([
                {"artifactId": "a1", "parts": [{"text": "one "}]}]))}),
            ),
            (2, piece("two", true)),
            (3, status("COMPLETED")),
        ]),
    })
    .await;
    let stream = fake
        .client(Binding::JsonRpc, true)
        .stream(call(), hello())
        .await;
    let (events, error) = collect(stream.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(task_text(&fold(&events)), "one two");
}

#[tokio::test]
async fn br_039_a_stream_that_cannot_be_had_back_is_an_error() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| match request.operation().as_str() {
            "SendStreamingMessage" => request.stream(&[(1, task_item("WORKING"))]),
            _ => Answer::with_type(503, "text/plain", ""),
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert_eq!(shapes(&events), ["task"]);
        let error = error.unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(task_id(&error), Some("t1".into()));
        // One send, then as many attempts as the policy has.
        assert_eq!(fake.requests().len(), 9);
    }
}

/// The raw stream of one exchange says that it was cut.
#[tokio::test]
async fn op_strm_09_an_end_before_the_tasks_end_is_an_error() {
    for (state, ends_well) in [
        ("SUBMITTED", false),
        ("WORKING", false),
        ("INPUT_REQUIRED", true),
        ("AUTH_REQUIRED", true),
        ("COMPLETED", true),
        ("REJECTED", true),
    ] {
        let fake = Fake::start(move |request: &Request| {
            request.stream(&[(0, task_item("WORKING")), (0, status(state))])
        })
        .await;
        let client = fake.client(Binding::JsonRpc, true);
        let stream = client.send_streaming_message(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert_eq!(events.len(), 2);
        assert_eq!(error.is_none(), ends_well, "{state}");
        if let Some(error) = error {
            assert_eq!(cause(&error), Some(Cause::Cut));
        }
    }
}

#[tokio::test]
async fn br_043_an_agent_that_cannot_stream_gives_the_same_shapes() {
    for binding in BINDINGS {
        let mut polls = 0;
        let fake = Fake::start(move |request: &Request| {
            if request.operation() == "SendMessage" {
                return request.ok(&task_item("SUBMITTED"));
            }
            polls += 1;
            let words = [json!({"text": "Hello, "}), json!({"text": "world!"})];
            let parts = |n: usize| json!([{"artifactId": "a1", "parts": words[..n]}]);
            request.ok(&match polls {
                1 | 2 => task("WORKING", &json!([])),
                3 => task("WORKING", &parts(1)),
                _ => task("COMPLETED", &parts(2)),
            })
        })
        .await;
        let stream = fake.client(binding, false).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(
            shapes(&events),
            ["task", "status", "artifact", "artifact", "status"]
        );
        assert_eq!(task_text(&fold(&events)), "Hello, world!");
        let sent = fake.requests()[0].params();
        assert_eq!(sent["configuration"]["returnImmediately"], true);
    }
}

/// The card promises streams, the agent refuses them, or answers JSON.
#[tokio::test]
async fn br_043_an_agent_that_answers_json_to_a_stream_call_is_handled() {
    for binding in BINDINGS {
        for bare in [true, false] {
            let fake = Fake::start(
                move |request: &Request| match request.operation().as_str() {
                    "SendStreamingMessage" if bare => request.ok(&task("WORKING", &json!([]))),
                    "SendStreamingMessage" => request.ok(&task_item("WORKING")),
                    "SubscribeToTask" => request.refused(-32004, 400, "UNSUPPORTED_OPERATION"),
                    _ => request.ok(&task("COMPLETED", &json!([]))),
                },
            )
            .await;
            let stream = fake.client(binding, true).stream(call(), hello()).await;
            let (events, error) = collect(stream.unwrap()).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(shapes(&events), ["task", "status"]);
        }
        let fake = Fake::start(|request: &Request| match request.operation().as_str() {
            "SendStreamingMessage" => request.refused(-32004, 400, "UNSUPPORTED_OPERATION"),
            _ => request.ok(&json!({"message": {"messageId": "x", "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}})),
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["message"]);
        assert_eq!(fake.operations(), ["SendStreamingMessage", "SendMessage"]);
    }
}

#[tokio::test]
async fn br_054_a_task_that_has_ended_meanwhile_gives_its_result() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| match request.operation().as_str() {
            "SendStreamingMessage" => request.stream(&[(1, task_item("WORKING"))]),
            "SubscribeToTask" => request.refused(-32004, 400, "UNSUPPORTED_OPERATION"),
            _ => request.ok(&task(
                "COMPLETED",
                &json!([
                {"artifactId": "a1", "parts": [{"text": "done"}]}]),
            )),
        })
        .await;
        let client = fake.client(binding, true);
        let (events, error) = collect(client.stream(call(), hello()).await.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "artifact", "status"]);
        assert_eq!(task_text(&fold(&events)), "done");
        let (events, error) = collect(client.follow(call(), "t1").await.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task"]);
        assert_eq!(task_text(&fold(&events)), "done");
    }
}

/// TRAP-05: TaskNotFound on a subscription, or a snapshot and nothing more, is not the last word.
#[tokio::test]
async fn trap_05_the_task_itself_is_asked_before_a_refusal_is_believed() {
    for binding in BINDINGS {
        for snapshot_only in [true, false] {
            let mut polls = 0;
            let fake = Fake::start(
                move |request: &Request| match request.operation().as_str() {
                    "SendStreamingMessage" => request.stream(&[(0, task_item("WORKING"))]),
                    "SubscribeToTask" if snapshot_only => {
                        request.stream(&[(0, task_item("WORKING"))])
                    }
                    "SubscribeToTask" => request.refused(-32001, 404, "TASK_NOT_FOUND"),
                    _ => {
                        polls += 1;
                        let state = if polls < 3 { "WORKING" } else { "COMPLETED" };
                        request.ok(&task(state, &json!([])))
                    }
                },
            )
            .await;
            let stream = fake.client(binding, true).stream(call(), hello()).await;
            let (events, error) = collect(stream.unwrap()).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(shapes(&events), ["task", "status"]);
            let subscribed = fake.operations();
            let subscribed = subscribed.iter().filter(|o| *o == "SubscribeToTask");
            assert_eq!(subscribed.count(), 1);
        }
    }
}

#[tokio::test]
async fn a_task_that_is_gone_is_an_error() {
    for binding in BINDINGS {
        let fake =
            Fake::start(|request: &Request| request.refused(-32001, 404, "TASK_NOT_FOUND")).await;
        for streaming in [true, false] {
            let error = fake.client(binding, streaming).follow(call(), "t1").await;
            assert_eq!(error.err().unwrap().kind, ErrorKind::TaskNotFound);
        }
    }
}

/// REST-01: POST first, GET where POST is not known.
#[tokio::test]
async fn rest_01_subscribing_falls_back_to_get() {
    for status_code in [404, 405] {
        let fake = Fake::start(move |request: &Request| {
            if request.method == "POST" {
                return Answer::json(
                    status_code,
                    &json!({"error": {"code": status_code, "message": "no"}}),
                );
            }
            request.stream(&[(1, task_item("WORKING")), (2, status("COMPLETED"))])
        })
        .await;
        let client = fake.client(Binding::HttpJson, true);
        let asked = SubscribeToTaskRequest::new("t1");
        let stream = client.subscribe_to_task(call(), asked).await.unwrap();
        assert_eq!(collect(stream).await.0.len(), 2);
        let methods: Vec<_> = fake.requests().into_iter().map(|r| r.method).collect();
        assert_eq!(methods, ["POST", "GET"]);
    }
    let fake =
        Fake::start(|request: &Request| request.refused(-32001, 404, "TASK_NOT_FOUND")).await;
    let client = fake.client(Binding::HttpJson, true);
    let asked = SubscribeToTaskRequest::new("t1");
    let error = client.subscribe_to_task(call(), asked).await;
    assert_eq!(error.err().unwrap().kind, ErrorKind::TaskNotFound);
    assert_eq!(fake.requests().len(), 1);
}

/// JSON-07, EV-07, BR-022: kinds of items and names of events from the future are passed over.
#[tokio::test]
async fn unknown_items_and_events_are_passed_over() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            let item = |value: &serde_json::Value| request.enveloped(value).to_string();
            Answer::sse(&format!(
                ": hi\n\ndata: {}\n\nevent: ping\ndata: now\n\ndata: {}\n\nevent: heartbeat\ndata: {{}}\n\ndata: {}\n\n",
                item(&task_item("WORKING")),
                item(&json!({"somethingNew": {"x": 1}})),
                item(&status("COMPLETED")),
            ))
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "status"]);
    }
}

/// A server that forgets to close after the end does not hold anybody up.
#[tokio::test]
async fn a_stream_left_open_after_the_end_is_left() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            request
                .stream(&[(0, task_item("WORKING")), (0, status("COMPLETED"))])
                .then_hang()
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(events.len(), 2);
    }
}

/// What comes after the end of the task takes nothing away from it; a last snapshot is taken.
#[tokio::test]
async fn after_the_end_only_a_snapshot_counts() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            let item = |value: serde_json::Value| request.enveloped(&value).to_string();
            Answer::sse(&format!(
                "data: {}\n\ndata: {}\n\ndata: {}\n\ndata: rubbish\n\n",
                item(task_item("WORKING")),
                item(status("COMPLETED")),
                item(json!({"task": task("COMPLETED", &json!([
                    {"artifactId": "a1", "parts": [{"text": "all of it"}]}]))})),
            ))
        })
        .await;
        let stream = fake.client(binding, true).stream(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "status", "task"]);
        assert_eq!(task_text(&fold(&events)), "all of it");
    }
}

/// One SDK numbers its events by the clock: two of the same millisecond are still two.
#[tokio::test]
async fn equal_ids_within_a_connection_are_different_events() {
    let fake = Fake::start(|request: &Request| match request.operation().as_str() {
        "SendStreamingMessage" => request.stream(&[
            (1_700_000_000_000, task_item("WORKING")),
            (1_700_000_000_000, piece("a", false)),
            (1_700_000_000_000, piece("b", true)),
        ]),
        _ => request.stream(&[
            (
                1_700_000_000_009,
                json!({"task": task("WORKING", &json!([
                {"artifactId": "a1", "parts": [{"text": "a"}, {"text": "b"}]}]))}),
            ),
            (1_700_000_000_009, piece("c", true)),
            (1_700_000_000_009, piece("d", true)),
            (1_700_000_000_009, status("COMPLETED")),
        ]),
    })
    .await;
    let stream = fake
        .client(Binding::HttpJson, true)
        .stream(call(), hello())
        .await;
    let (events, error) = collect(stream.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(task_text(&fold(&events)), "abcd");
}

/// The first item may tell no task: then what was lost cannot be asked for again.
#[tokio::test]
async fn a_stream_cut_before_its_first_event_is_an_error_and_nothing_is_sent_twice() {
    let fake = Fake::start(|_: &Request| {
        Answer::raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n: hi\n\n")
    })
    .await;
    let error = fake
        .client(Binding::JsonRpc, true)
        .stream(call(), hello())
        .await;
    assert_eq!(cause(&error.err().unwrap()), Some(Cause::Cut));
    assert_eq!(fake.requests().len(), 1);
}
