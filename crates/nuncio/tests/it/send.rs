//! `nuncio send`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake::{Fake, events};
use crate::support::{self, Server, line_from, rest, signal};

#[test]
fn text_has_the_identifiers_the_state_and_the_artifact() {
    let server = Server::echo();
    let said = server.send(&["hello world"]).exits(0);
    assert_eq!(said.field("State"), "COMPLETED");
    assert!(!said.field("Task ID").is_empty() && !said.field("Context ID").is_empty());
    assert!(said.out.contains("Text:\n  hello world\n\n"), "{said:?}");
}

#[test]
fn json_is_one_protocol_document_over_each_binding() {
    let server = Server::echo();
    for binding in ["JSONRPC", "http+json"] {
        let said = server
            .send(&["hi", "-o", "json", "--transport", binding])
            .exits(0);
        let task = &said.json()["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hi");
    }
}

#[test]
fn a_stream_is_json_lines_that_end_with_the_end() {
    let server = Server::echo();
    let said = server.send(&["hi", "-o", "json", "--stream"]).exits(0);
    let lines = said.json_lines();
    assert!(lines.len() >= 3 && lines[0]["task"].is_object(), "{said:?}");
    let last = &lines[lines.len() - 1]["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(last["taskId"], lines[0]["task"]["id"]);
    assert_eq!(said.err, "", "nothing else is said");
}

#[test]
fn a_text_stream_ends_with_the_identifiers() {
    let server = Server::example("interop");
    let said = server.send(&["chunk", "--stream"]).exits(0);
    let tail: Vec<&str> = said.out.lines().rev().take(3).collect();
    assert!(tail[0].starts_with("State: COMPLETED"), "{said:?}");
    assert!(
        tail[1].starts_with("Context ID: ") && tail[2].starts_with("Task ID: "),
        "{said:?}"
    );
}

#[test]
fn async_returns_at_once_with_what_is_needed_later() {
    let server = Server::echo();
    let began = Instant::now();
    let said = server
        .send(&["hold this", "--async", "-o", "json"])
        .exits(0);
    assert!(began.elapsed() < Duration::from_secs(5));
    let task = &said.json()["task"];
    assert!(task["id"].is_string() && task["contextId"].is_string());
    for alias in ["--return-immediately", "--no-wait"] {
        assert_eq!(
            server.send(&["hold", alias]).exits(0).field("State").len(),
            9
        );
    }
}

/// A task's outcome is told on stderr and in the state, never by the exit code.
#[test]
fn a_bad_end_is_still_a_good_conversation() {
    let server = Server::example("interop");
    for (text, state, reason) in [
        ("fail", "FAILED", "it broke"),
        ("reject", "REJECTED", "not my job"),
    ] {
        let said = server.send(&[text]).exits(0);
        assert_eq!(said.field("State"), state);
        assert!(
            said.err.contains("warning: ") && said.err.contains(reason),
            "{said:?}"
        );
    }
}

/// BR-155.
#[test]
fn a_pause_ends_the_wait_and_says_how_to_go_on() {
    let server = Server::example("interop");
    for (text, state, question) in [
        ("ask", "INPUT_REQUIRED", "Which color?"),
        ("auth", "AUTH_REQUIRED", "Sign in please"),
    ] {
        let began = Instant::now();
        let said = server.send(&[text]).exits(0);
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(said.field("State"), state);
        assert!(
            said.out.contains(question) && said.err.contains(question),
            "{said:?}"
        );
        let resume = said.field("Resume");
        let id = said.field("Task ID");
        assert_eq!(
            resume,
            format!(
                "nuncio send --agent-card {} --task-id {id} \"<reply>\"",
                server.url
            )
        );
        let answered = server.send(&["--task-id", &id, "blue"]).exits(0);
        assert_eq!(answered.field("Task ID"), id);
        let expected = if text == "ask" {
            "color: blue"
        } else {
            "signed in"
        };
        assert!(answered.out.contains(expected), "{answered:?}");
    }
}

#[test]
fn a_direct_message_is_a_clean_end() {
    let server = Server::example("interop");
    let text = server.send(&["message"]).exits(0);
    assert!(
        text.out.contains("Message:\n  just a message\n"),
        "{text:?}"
    );
    for more in [
        &["message", "-o", "json"][..],
        &["message", "-o", "json", "--stream"],
    ] {
        let said = server.send(more).exits(0);
        assert_eq!(said.json()["message"]["parts"][0]["text"], "just a message");
    }
}

#[test]
fn every_kind_of_part_is_shown() {
    let server = Server::example("interop");
    let said = server.send(&["file"]).exits(0);
    for piece in [
        "File: x.bin\nMedia Type: application/octet-stream\nSize: 4 bytes\n",
        "URL: https://example.com/x.bin\n",
        "Data:\n  {\n    \"n\": 1,\n    \"f\": 1.5,\n",
    ] {
        assert!(said.out.contains(piece), "{piece}: {said:?}");
    }
}

#[test]
fn parts_arrive_in_order_with_their_types() {
    let server = Server::example("tck");
    let folder = server.folder.path();
    std::fs::write(folder.join("a.json"), "{\"n\": 1}").unwrap();
    std::fs::write(folder.join("report"), "%PDF").unwrap();
    let more = [
        "--text",
        "first",
        "--file",
        "report",
        "--media-type",
        "application/pdf",
        "--data",
        "a.json",
        "--data",
        "-",
        "--file",
        "https://h.example/p.png",
        "last",
        "-o",
        "json",
    ];
    let said = server.run_with(&["send"], &more, &[], "[true]").exits(0);
    let parts = said.json()["task"]["history"][0]["parts"].clone();
    assert_eq!(
        parts,
        json!([
            {"text": "first"},
            {"raw": "JVBERg==", "filename": "report", "mediaType": "application/pdf"},
            {"data": {"n": 1}},
            {"data": [true]},
            {"url": "https://h.example/p.png", "filename": "p.png", "mediaType": "image/png"},
            {"text": "last"},
        ])
    );
}

#[test]
fn a_message_can_come_from_stdin() {
    let server = Server::echo();
    let said = server
        .run_with(&["send"], &["-"], &[], "two\nlines\n")
        .exits(0);
    assert!(said.out.contains("Text:\n  two\n  lines\n\n"), "{said:?}");
}

/// The story of the issue: the evidence names the conversation only.
#[test]
fn a_damaged_order_is_one_task_throughout() {
    let server = Server::example("damaged-order");
    std::fs::write(server.folder.path().join("photo.jpg"), "JPEG").unwrap();
    let first = server.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    assert_eq!(first.field("State"), "INPUT_REQUIRED");
    let context = first.field("Context ID");
    let more = [
        "--context-id",
        &context,
        "--text",
        "Here it is",
        "--file",
        "photo.jpg",
        "-o",
        "json",
    ];
    let task = server.send(&more).exits(0).json()["task"].clone();
    assert_eq!(task["id"], first.field("Task ID").as_str());
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        task["artifacts"][0]["parts"][1]["data"]["decision"],
        "replace"
    );
    let list = server
        .run(&["task", "list"], &["--context-id", &context, "-o", "json"])
        .exits(0);
    assert_eq!(list.json()["totalSize"], 1);
}

#[test]
fn a_refused_task_id_starts_nothing() {
    let server = Server::echo();
    let ended = server.send(&["x"]).exits(0).field("Task ID");
    for (id, code) in [
        ("no-such-task", "TaskNotFoundError"),
        (&*ended, "UnsupportedOperationError"),
    ] {
        let said = server
            .send(&["--task-id", id, "more", "-o", "json"])
            .exits(1);
        let error = said.json()["error"].clone();
        assert_eq!(error["code"], code);
        assert!(
            error["hint"].as_str().unwrap().contains("--debug"),
            "{error}"
        );
    }
    let list = server.run(&["task", "list"], &["-o", "json"]).exits(0);
    assert_eq!(list.json()["totalSize"], 1);
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let server = Server::echo();
    let said = server.send(&["\u{1b}[31mred\u{9b}2J\u{7f}"]).exits(0);
    assert!(
        said.out.contains("\\u{1b}[31mred\\u{9b}2J\\u{7f}"),
        "{said:?}"
    );
    let json = server.send(&["\u{1b}[31m\u{9b}", "-o", "json"]).exits(0);
    assert!(
        json.out.chars().all(|c| c == '\n' || !c.is_control()),
        "{json:?}"
    );
    assert_eq!(
        json.json()["task"]["artifacts"][0]["parts"][0]["text"],
        "\u{1b}[31m\u{9b}"
    );
}

#[test]
fn a_time_limit_ends_the_wait_but_not_the_task() {
    let server = Server::echo();
    let said = server
        .send(&["hold", "--timeout", "400ms", "-o", "json"])
        .exits(5);
    let error = said.json()["error"].clone();
    assert_eq!(error["code"], "A2ACLI_ERR_TIMEOUT");
    let hint = error["hint"].as_str().unwrap();
    let id = hint.rsplit(' ').next().unwrap();
    let state = server.run(&["task", "get"], &[id]).exits(0).field("State");
    assert_eq!(state, "WORKING");
    assert!(
        said.err.contains(id),
        "the id has been said early: {said:?}"
    );
}

/// U05.
#[test]
fn control_c_says_how_to_go_on() {
    let server = Server::echo();
    let mut command = server.command(&["send"], &["hold"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = child.stderr.take().unwrap();
    let id = line_from(&mut err, "task: ")
        .trim_start_matches("task: ")
        .to_owned();
    let began = Instant::now();
    signal(child.id(), "INT");
    assert_eq!(support::wait(&mut child, Duration::from_secs(5)), 130);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    let said = rest(err);
    assert!(
        said.contains(&format!("task get --agent-card {} --wait {id}", server.url)),
        "{said}"
    );
}

#[test]
fn a_closed_pipe_is_no_reason_to_complain() {
    let server = Server::example("interop");
    let mut command = server.command(&["send"], &["slow", "--stream", "-o", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = child.stdout.take().unwrap();
    drop(out);
    let err = rest(child.stderr.take().unwrap());
    assert_eq!(support::wait(&mut child, Duration::from_secs(10)), 0);
    assert_eq!(err, "");
}

#[test]
fn an_agent_that_does_not_stream_is_polled() {
    let rules = "[[agents]]\nid = \"slow\"\nkind = \"script\"\nstreaming = false\n\
                 [[agents.rules]]\notherwise = true\n\
                 steps = [{ status = \"soon\" }, { wait_ms = 600 }, { artifact = { text = \"done\" } }]\n";
    let server = Server::configured(rules);
    let said = server.send(&["x", "--poll-interval", "100ms"]).exits(0);
    assert!(
        said.out.contains("State: COMPLETED") && said.out.contains("  done\n"),
        "{said:?}"
    );
    let lines = server
        .send(&["x", "--stream", "-o", "json"])
        .exits(0)
        .json_lines();
    let last = &lines[lines.len() - 1];
    assert!(last.to_string().contains("TASK_STATE_COMPLETED"), "{last}");
}

/// Two sends of the same message are one task.
#[test]
fn a_repeated_message_id_is_one_task() {
    let server = Server::echo();
    let ids: Vec<String> = (0..2)
        .map(|_| {
            server
                .send(&["again", "--message-id", "m-1"])
                .exits(0)
                .field("Task ID")
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn metadata_goes_into_the_request_and_must_be_an_object() {
    let task =
        json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    let fake = Fake::answering(move |_| {
        (
            "200 OK",
            "text/event-stream",
            events(std::slice::from_ref(&task)),
        )
    });
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::nuncio(folder.path());
    command.args([
        "send",
        "-a",
        &fake.url,
        "--metadata",
        "{\"tier\":1}",
        "x",
        "--stream",
    ]);
    support::run(command, "").exits(0);
    let sent = fake
        .requests()
        .into_iter()
        .find(|request| request.line.starts_with("POST"))
        .unwrap();
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(body["params"]["metadata"], json!({"tier": 1}));
    assert_eq!(sent.header("a2a-version"), Some("1.0"));
    let mut command = support::nuncio(folder.path());
    command.args(["send", "-a", &fake.url, "--metadata", "[1]", "x"]);
    assert!(
        support::run(command, "")
            .exits(2)
            .err
            .contains("--metadata")
    );
}
