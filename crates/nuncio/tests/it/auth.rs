//! Credentials: given, missing, wrong, and never shown.

use serde_json::json;

use crate::fake::{Fake, Request, finished};
use crate::support::{self, Said, Server};

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

fn send(fake: &Fake, more: &[&str], environment: &[(&str, &str)]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::nuncio(folder.path());
    command.args(["send", "-a", &fake.url]).args(more);
    command.envs(environment.iter().copied());
    support::run(command, "")
}

fn posted(fake: &Fake) -> Request {
    let requests = fake.requests();
    let mut posts = requests.into_iter().filter(|r| r.line.starts_with("POST"));
    posts.next().unwrap()
}

#[test]
fn the_key_goes_where_the_card_says_and_is_never_shown() {
    for (place, name) in [("header", "X-Shop-Key"), ("query", "key"), ("cookie", "k")] {
        let scheme = json!({"apiKeySecurityScheme": {"location": place, "name": name}});
        let fake = Fake::with_card(json!({"securitySchemes": {"k": scheme}}), finished);
        let more = ["--api-key", "s3cret", "--debug", "--verbose", "echo s3cret"];
        let said = send(&fake, &more, &[]).exits(0);
        let carries = |request: &Request| match place {
            "header" => request.header(name) == Some("s3cret"),
            "query" => request.line.contains("?key=s3cret "),
            _ => request.header("cookie") == Some("k=s3cret"),
        };
        let requests = fake.requests();
        assert!(!carries(&requests[0]), "the card does not need it");
        assert!(carries(&requests[1]), "{place}: {requests:?}");
        assert!(said.err.contains("SendStreamingMessage"), "{said:?}");
        assert!(said.err.contains("redacted"), "{said:?}");
        assert!(!said.err.contains("s3cret"), "{said:?}");
    }
}

#[test]
fn a_required_scheme_is_better_than_another() {
    let scheme = |name: &str| json!({"apiKeySecurityScheme": {"location": "header", "name": name}});
    let card = json!({
        "securitySchemes": {"a": scheme("X-Old"), "b": scheme("X-New")},
        "securityRequirements": [{"schemes": {"b": {"list": []}}}],
    });
    let fake = Fake::with_card(card, finished);
    send(&fake, &["--api-key", "s3cret", "x"], &[]).exits(0);
    let posted = posted(&fake);
    assert_eq!(posted.header("x-new"), Some("s3cret"));
    assert_eq!(posted.header("x-old"), None);
    let odd = json!({"apiKeySecurityScheme": {"location": "body", "name": "k"}});
    let fake = Fake::with_card(json!({"securitySchemes": {"k": odd}}), finished);
    let said = send(&fake, &["--api-key", "s3cret", "x"], &[]).exits(2);
    assert!(said.err.contains("body"), "{said:?}");
}

#[test]
fn several_credentials_and_parameters_go_together() {
    let fake = Fake::with_card(json!({}), finished);
    let more = [
        "--api-key",
        "k3y",
        "--svc-param",
        "x-trace-id: abc",
        "--svc-param",
        "x-other:d:e",
        "--svc-param",
        "A2A-Extensions: https://x.example/a",
        "x",
    ];
    send(&fake, &more, &[("A2ACLI_BEARER", "t0ken")]).exits(0);
    let posted = posted(&fake);
    for (name, value) in [
        ("authorization", "Bearer t0ken"),
        ("x-api-key", "k3y"),
        ("x-trace-id", "abc"),
        ("x-other", "d:e"),
        ("a2a-extensions", "https://x.example/a"),
    ] {
        assert_eq!(posted.header(name), Some(value), "{name}");
    }
    assert!(posted.line.starts_with("POST / "), "never in the query");
    let said = send(&fake, &["--svc-param", "s3cret", "x"], &[]).exits(2);
    assert!(said.err.contains("--svc-param"), "{said:?}");
    assert!(!said.err.contains("s3cret"), "{said:?}");
}

#[test]
fn credentials_go_to_the_agent_that_was_named_only() {
    let other = Fake::answering(finished);
    let elsewhere =
        json!([{"url": other.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let fake = Fake::with_card(json!({"supportedInterfaces": elsewhere}), finished);
    let more = ["--bearer", "t0ken", "--svc-param", "x-a:b", "x"];
    send(&fake, &more, &[]).exits(0);
    let posted = posted(&other);
    assert_eq!(posted.header("authorization"), None);
    assert_eq!(posted.header("x-a"), None);
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
