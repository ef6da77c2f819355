//! Credentials: given, missing, wrong, and never shown.

use serde_json::json;

use crate::fake::{Fake, events};
use crate::support::{self, Server};

/// Two callers with the keys `alpha` and `beta`.
fn server() -> Server {
    Server::configured(
        "[[auth.keys]]\n\
         sha256 = \"8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\"\n\
         caller = \"a\"\n\
         [[auth.keys]]\n\
         sha256 = \"f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753\"\n\
         caller = \"b\"\n",
    )
}

#[test]
fn a_key_opens_the_door_by_flag_variable_or_file() {
    let server = server();
    server.send(&["--api-key", "alpha", "x"]).exits(0);
    server.send(&["--bearer", "beta", "x"]).exits(0);
    server
        .run_with(&["send"], &["x"], &[("A2ACLI_API_KEY", "alpha")], "")
        .exits(0);
    server
        .run_with(&["send"], &["x"], &[("A2ACLI_BEARER", "beta")], "")
        .exits(0);
    let path = server.folder.path().join("secret.env");
    std::fs::write(&path, "A2ACLI_API_KEY=alpha\n").unwrap();
    let said = server.send(&["--config", "secret.env", "x"]).exits(0);
    assert!(
        said.err.contains("chmod 600"),
        "others may read it: {said:?}"
    );
}

#[test]
fn without_a_key_or_with_a_wrong_one_nothing_is_done() {
    let server = server();
    let missing = server.send(&["x", "-o", "json"]).exits(4).json();
    assert_eq!(missing["error"]["code"], "A2ACLI_ERR_CREDENTIALS_MISSING");
    let hint = missing["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("X-API-Key") && hint.contains("A2ACLI_API_KEY"),
        "{hint}"
    );
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let wrong = server.send(&["x", "-o", "json", "--api-key", "no", "--transport", binding]);
        assert_eq!(
            wrong.exits(4).json()["error"]["code"],
            "A2ACLI_ERR_AUTH_FAILED"
        );
    }
    server.run(&["card", "get"], &[]).exits(0);
    assert!(
        server
            .lines
            .iter()
            .any(|line| line.contains("--api-key <key>")),
        "{:?}",
        server.lines
    );
}

#[test]
fn what_another_caller_made_is_not_there() {
    let server = server();
    let id = server
        .send(&["--api-key", "alpha", "x"])
        .exits(0)
        .field("Task ID");
    for words in [&["task", "get"][..], &["task", "cancel"]] {
        let said = server
            .run(words, &["--api-key", "beta", &id, "-o", "json"])
            .exits(1);
        assert_eq!(said.json()["error"]["code"], "TaskNotFoundError");
    }
    let list = server
        .run(&["task", "list"], &["--api-key", "beta", "-o", "json"])
        .exits(0);
    assert_eq!(list.json()["totalSize"], 0);
}

#[test]
fn the_key_goes_where_the_card_says_and_is_never_shown() {
    let card = json!({"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Shop-Key"}}}});
    let task =
        json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
    let fake = Fake::with_card(card, move |_| {
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
        "--api-key",
        "s3cret",
        "--debug",
        "--verbose",
        "echo s3cret",
    ]);
    let said = support::run(command, "").exits(0);
    let requests = fake.requests();
    assert_eq!(requests[1].header("x-shop-key"), Some("s3cret"));
    assert_eq!(
        requests[0].header("x-shop-key"),
        None,
        "the card does not need it"
    );
    assert!(
        said.err.contains("SendStreamingMessage") && said.err.contains("(redacted)"),
        "{said:?}"
    );
    assert!(!said.err.contains("s3cret"), "{said:?}");
}

#[test]
fn a_service_parameter_is_a_header() {
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
        "--svc-param",
        "x-trace-id: abc",
        "x",
    ]);
    support::run(command, "").exits(0);
    let posted = fake
        .requests()
        .into_iter()
        .find(|request| request.line.starts_with("POST"))
        .unwrap();
    assert_eq!(posted.header("x-trace-id"), Some("abc"));
    let mut command = support::nuncio(folder.path());
    command.args(["send", "-a", &fake.url, "--svc-param", "nonsense", "x"]);
    assert!(
        support::run(command, "")
            .exits(2)
            .err
            .contains("--svc-param")
    );
}

#[test]
fn keys_create_makes_a_key_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::nuncio(folder.path());
    command.args(["keys", "create", "--caller", "alice"]);
    let made = support::run(command, "").exits(0);
    let block = made.out.split("Configuration:\n").nth(1).unwrap();
    let server = Server::configured(block);
    server
        .send(&["--api-key", &made.field("Key"), "x"])
        .exits(0);
    server
        .send(&["--api-key", &made.field("SHA-256"), "x"])
        .exits(4);
}
