//! `nuncio task`.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Server, line_from, rest, wait};

fn held(server: &Server) -> String {
    server.send(&["hold", "--async"]).exits(0).field("Task ID")
}

#[test]
fn get_shows_a_task_and_its_history() {
    let server = Server::echo();
    let id = server.send(&["hello"]).exits(0).field("Task ID");
    let text = server.run(&["task", "get"], &[&id]).exits(0);
    assert_eq!(
        (text.field("Task ID"), text.field("State")),
        (id.clone(), "COMPLETED".to_owned())
    );
    assert!(text.out.contains("  hello\n"), "{text:?}");
    let verbose = server.run(&["task", "get"], &[&id, "--verbose"]).exits(0);
    assert!(
        verbose.out.contains("User Message:\n  hello\n"),
        "{verbose:?}"
    );
    let json = server
        .run(&["task", "get"], &[&id, "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(
        (&json["id"], &json["history"][0]["parts"][0]["text"]),
        (&id.into(), &"hello".into())
    );
    let id = json["id"].as_str().unwrap();
    let bare = server
        .run(&["task", "get"], &[id, "-o", "json", "--history", "0"])
        .exits(0)
        .json();
    assert!(bare["history"].is_null(), "{bare}");
}

#[test]
fn get_waits_when_asked() {
    let server = Server::example("interop");
    let id = server.send(&["slow", "--async"]).exits(0).field("Task ID");
    let said = server.run(&["task", "get"], &["--wait", &id]).exits(0);
    assert_eq!(said.field("State"), "COMPLETED");
    let id = server.send(&["auth", "--async"]).exits(0).field("Task ID");
    let said = server
        .run(&["task", "get"], &["--watch", "--timeout", "10s", &id])
        .exits(0);
    assert_eq!(said.field("State"), "AUTH_REQUIRED");
    let id = server.send(&["hold", "--async"]).exits(0).field("Task ID");
    let said = server
        .run(&["task", "get"], &["--wait", "--timeout", "300ms", &id])
        .exits(5);
    assert!(said.err.contains("A2ACLI_ERR_TIMEOUT"), "{said:?}");
}

#[test]
fn cancel_says_the_state_and_can_be_repeated() {
    let server = Server::echo();
    let id = held(&server);
    for _ in 0..2 {
        let said = server.run(&["task", "cancel"], &[&id]).exits(0);
        assert_eq!(said.field("State"), "CANCELED");
    }
    let done = server.send(&["x"]).exits(0).field("Task ID");
    let said = server
        .run(&["task", "cancel"], &[&done, "-o", "json"])
        .exits(1);
    assert_eq!(said.json()["error"]["code"], "TaskNotCancelableError");
    assert_eq!(said.json()["error"]["a2aCode"], -32002);
}

#[test]
fn list_filters_and_pages() {
    let server = Server::echo();
    let held = held(&server);
    let others: Vec<String> = (0..3)
        .map(|_| server.send(&["x"]).exits(0).field("Task ID"))
        .collect();
    let list = |more: &[&str]| server.run(&["task", "list"], more).exits(0);
    let working = list(&["--status", "working", "-o", "json"]).json();
    assert_eq!(
        (&working["totalSize"], &working["tasks"][0]["id"]),
        (&1.into(), &held.into())
    );
    assert_eq!(
        list(&["--status", "TASK_STATE_COMPLETED", "-o", "json"]).json()["totalSize"],
        3
    );
    let first = list(&["--page-size", "2", "-o", "json"]).json();
    assert_eq!(first["tasks"].as_array().unwrap().len(), 2);
    let token = first["nextPageToken"].as_str().unwrap();
    let second = list(&[
        "--page-size",
        "2",
        "--page-token",
        token,
        "-o",
        "json",
        "--stream",
    ]);
    assert_eq!(second.json_lines().len(), 2, "a task per line: {second:?}");
    let text = list(&["--page-size", "2"]);
    assert_eq!(text.field("Total"), "4");
    assert_eq!(text.field("Next Page Token"), token);
    assert!(text.out.contains(&others[2]), "{text:?}");
    // A token may begin as a flag does.
    for token in ["nonsense", "-5"] {
        let more = ["--page-token", token, "-o", "json"];
        let said = server.run(&["task", "list"], &more).exits(1);
        assert_eq!(said.json()["error"]["code"], "InvalidParamsError");
    }
    server
        .run(&["task", "list"], &["--status", "nonsense"])
        .exits(2);
    server
        .run(&["task", "list"], &["--since", "yesterday"])
        .exits(2);
}

#[test]
fn subscribe_follows_to_the_end() {
    let server = Server::echo();
    let id = held(&server);
    let mut command = server.command(&["task", "subscribe"], &[&id, "--stream", "-o", "json"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let first = line_from(&mut out, "{\"task\"");
    assert!(first.contains(&id));
    server.run(&["task", "cancel"], &[&id]).exits(0);
    assert_eq!(wait(&mut child, Duration::from_secs(10)), 0);
    let all = rest(out);
    let last = all.lines().last().unwrap_or(&first);
    assert!(last.contains("TASK_STATE_CANCELED"), "{last}");
    // What has ended is shown as it is, as a task or as its one event.
    let said = server
        .run(&["task", "subscribe"], &[&id, "-o", "json"])
        .exits(0);
    assert_eq!(said.json()["status"]["state"], "TASK_STATE_CANCELED");
}

#[test]
fn an_unknown_task_is_the_protocols_error_over_each_binding() {
    let server = Server::echo();
    for binding in ["JSONRPC", "HTTP+JSON"] {
        for words in [
            &["task", "get"][..],
            &["task", "cancel"],
            &["task", "subscribe"],
        ] {
            let said = server
                .run(words, &["nope", "-o", "json", "--transport", binding])
                .exits(1);
            let error = said.json()["error"].clone();
            assert_eq!(
                (&error["code"], &error["a2aCode"]),
                (&"TaskNotFoundError".into(), &(-32001).into())
            );
            assert!(
                error["hint"].as_str().unwrap().contains("nuncio task list"),
                "{error}"
            );
        }
    }
}
