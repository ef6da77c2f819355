//! Going on with an interaction, waiting for it, and what is never made up.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake::{Answer, Fake, Request, events, finished};
use crate::support::{Said, Server, nuncio, run};

fn said(fake: &Fake, words: &[&str], more: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(words).args(["-a", &fake.url]).args(more);
    run(command, "")
}

fn task(state: &str) -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// An agent without streams whose task goes through these states, one per question.
fn polled(states: &'static [&'static str]) -> Fake {
    let left = Mutex::new(states.iter());
    let card = json!({"capabilities": {"streaming": false}});
    Fake::with_card(card, move |request: &Request| -> Answer {
        let result = if request.body.contains("SendMessage") {
            json!({"task": task("SUBMITTED")})
        } else {
            let mut left = left.lock().unwrap();
            let last = states.last().unwrap();
            task(left.next().unwrap_or(last))
        };
        let answer = json!({"jsonrpc": "2.0", "id": "1", "result": result});
        ("200 OK", "application/json", answer.to_string())
    })
}

#[test]
fn a_context_groups_tasks_and_must_fit_its_task() {
    let server = Server::echo();
    let first = server.send(&["x"]).exits(0);
    let context = first.field("Context ID");
    let second = server.send(&["y", "--context-id", &context]).exits(0);
    assert_eq!(second.field("Context ID"), context);
    assert_ne!(second.field("Task ID"), first.field("Task ID"));
    let held = server.send(&["hold", "--async"]).exits(0).field("Task ID");
    let more = [
        "z",
        "--task-id",
        &held,
        "--context-id",
        &context,
        "-o",
        "json",
    ];
    let refused = server.send(&more).exits(1).json();
    assert_eq!(refused["error"]["code"], "InvalidParamsError");
    assert!(
        refused["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("--debug")
    );
    let list = server.run(&["task", "list"], &["-o", "json"]).exits(0);
    assert_eq!(list.json()["totalSize"], 3);
}

#[test]
fn no_identifier_of_the_server_is_made_up() {
    let fake = Fake::answering(finished);
    said(&fake, &["send"], &["one"]).exits(0);
    said(&fake, &["send"], &["two"]).exits(0);
    let requests = fake.requests();
    let sent = requests.iter().filter(|r| r.body.contains("SendStreaming"));
    let messages: Vec<Value> = sent
        .map(|request| serde_json::from_str::<Value>(&request.body).unwrap())
        .map(|body| body["params"]["message"].clone())
        .collect();
    assert_eq!(messages.len(), 2);
    for message in &messages {
        assert!(
            message["taskId"].is_null() && message["contextId"].is_null(),
            "{message}"
        );
    }
    assert_ne!(messages[0]["messageId"], messages[1]["messageId"]);
}

/// `UNSPECIFIED` is neither an end nor a pause.
#[test]
fn an_unspecified_state_is_waited_through_and_told_as_it_is() {
    let fake = polled(&["UNSPECIFIED", "UNSPECIFIED", "COMPLETED"]);
    let more = ["x", "--poll-interval", "50ms"];
    let done = said(&fake, &["send"], &more).exits(0);
    assert_eq!(done.field("State"), "COMPLETED");
    let fake = polled(&["UNSPECIFIED"]);
    let more = [
        "t",
        "--wait",
        "--poll-interval",
        "50ms",
        "--timeout",
        "500ms",
    ];
    let late = said(&fake, &["task", "get"], &more).exits(5);
    assert!(late.err.contains("UNSPECIFIED"), "{late:?}");
    let now = said(&fake, &["task", "get"], &["t"]).exits(0);
    assert_eq!(now.field("State"), "UNSPECIFIED");
}

#[test]
fn polls_keep_their_interval_and_the_time_limit() {
    let fake = polled(&["WORKING"]);
    let began = Instant::now();
    let more = ["t", "--wait", "--poll-interval", "400ms", "--timeout", "2s"];
    said(&fake, &["task", "get"], &more).exits(5);
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(2) && took < Duration::from_secs(4),
        "{took:?}"
    );
    // 200, 300, 400, 400, 400 ms: neither a busy loop nor asleep.
    let polls = fake.requests().len() - 1;
    assert!((4..=7).contains(&polls), "{polls}");
}

#[test]
fn interrupted_states_end_a_polled_wait() {
    for state in ["INPUT_REQUIRED", "AUTH_REQUIRED"] {
        let states: &[&str] = match state {
            "INPUT_REQUIRED" => &["WORKING", "INPUT_REQUIRED"],
            _ => &["WORKING", "AUTH_REQUIRED"],
        };
        let fake = polled(states);
        let more = ["t", "--wait", "--timeout", "10s"];
        let paused = said(&fake, &["task", "get"], &more).exits(0);
        assert_eq!(paused.field("State"), state);
        assert!(paused.err.contains("warning: "), "{paused:?}");
    }
}

#[test]
fn a_lost_stream_is_replaced_by_polls() {
    let fake = Fake::answering(|request: &Request| {
        let json = |result: Value| {
            let answer = json!({"jsonrpc": "2.0", "id": "1", "result": result});
            ("200 OK", "application/json", answer.to_string())
        };
        if request.body.contains("SendStreamingMessage") {
            let event = events(&[json!({"task": task("WORKING")})]);
            ("200 OK", "text/event-stream", event)
        } else if request.body.contains("SubscribeToTask") {
            let error = json!({"code": -32004, "message": "no more streams"});
            let answer = json!({"jsonrpc": "2.0", "id": "1", "error": error});
            ("200 OK", "application/json", answer.to_string())
        } else {
            json(task("COMPLETED"))
        }
    });
    for more in [&["x"][..], &["x", "--stream"]] {
        let done = said(&fake, &["send"], more).exits(0);
        assert!(done.out.contains("State: COMPLETED"), "{done:?}");
    }
}

#[test]
fn an_error_in_mid_stream_is_the_last_line() {
    let fake = Fake::answering(|_| {
        let error = json!({"jsonrpc": "2.0", "id": "1",
            "error": {"code": -32006, "message": "nonsense from below"}});
        let body = events(&[json!({"task": task("WORKING")})]) + &format!("data: {error}\n\n");
        ("200 OK", "text/event-stream", body)
    });
    let broken = said(&fake, &["send"], &["x", "--stream", "-o", "json"]).exits(1);
    let lines = broken.json_lines();
    assert_eq!(lines.len(), 2, "{broken:?}");
    assert_eq!(lines[0]["task"]["id"], "t");
    assert_eq!(lines[1]["error"]["code"], "InvalidAgentResponseError");
    assert_eq!(lines[1]["error"]["a2aCode"], -32006);
}
