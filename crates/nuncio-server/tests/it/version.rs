//! Versions and extensions.

use nuncio_protocol::{AgentExtension, OperationKind};
use serde_json::{Value, json};

use crate::harness::{Setup, rpc, say, serve};

/// Every operation in HTTP+JSON.
pub(crate) const PATHS: &[(&str, &str)] = &[
    ("POST", "/message:send"),
    ("POST", "/message:stream"),
    ("GET", "/tasks/t1"),
    ("GET", "/tasks"),
    ("POST", "/tasks/t1:cancel"),
    ("POST", "/tasks/t1:subscribe"),
    ("GET", "/tasks/t1:subscribe"),
    ("POST", "/tasks/t1/pushNotificationConfigs"),
    ("GET", "/tasks/t1/pushNotificationConfigs/p1"),
    ("GET", "/tasks/t1/pushNotificationConfigs"),
    ("DELETE", "/tasks/t1/pushNotificationConfigs/p1"),
    ("GET", "/extendedAgentCard"),
];

/// BR-111, VER-01, VER-04, VER-05: every operation judges the version, before its params.
#[tokio::test]
async fn other_versions_are_refused_everywhere() {
    let served = serve().await;
    for version in ["99.0", "abc", "1", "1.1", "0.2", "1.0.0.0"] {
        let headers = [("A2A-Version", version)];
        for kind in OperationKind::ALL {
            let body = rpc(kind.as_str(), &json!({"id": 5})).to_string();
            let answer = served.ask("POST", "/", &headers, body).await;
            assert_eq!(answer.code(), -32009, "{version} {kind:?}");
            assert_eq!(answer.json()["id"], "r1");
            let info = &answer.json()["error"]["data"][0];
            assert_eq!(info["metadata"]["supportedVersions"], "0.3,1.0");
        }
        for (method, path) in PATHS {
            let answer = served.ask(method, path, &headers, "").await;
            assert_eq!(answer.status, 400, "{version} {method} {path}");
            assert_eq!(answer.reason(), "VERSION_NOT_SUPPORTED");
        }
    }
    assert_eq!(served.fake.calls(), 0);
}

/// BR-111, VER-02, VER-05: patch numbers and blanks do not count; the query will do as well.
#[tokio::test]
async fn this_version_is_understood_in_every_spelling() {
    let served = serve().await;
    for version in ["1.0", "1.0.0", "1.0.3", " 1.0 ", ""] {
        let answer = served
            .ask("GET", "/tasks/t1", &[("A2A-Version", version)], "")
            .await;
        assert_eq!(answer.status, 200, "{version:?}");
    }
    for (query, header, status) in [
        ("A2A-Version=1.0", None, 200),
        ("a2a-version=1.0", None, 200),
        ("A2A-Version=99.0", None, 400),
        ("A2A-Version=99.0", Some("1.0"), 400),
        ("A2A-Version=1.0", Some("1.0"), 200),
        ("A2A-Version=", Some("1.0"), 200),
        ("A2A-Version=1.0", Some(""), 200),
    ] {
        let headers: Vec<_> = header.iter().map(|value| ("A2A-Version", *value)).collect();
        let answer = served
            .ask("GET", &format!("/tasks/t1?{query}"), &headers, "")
            .await;
        assert_eq!(answer.status, status, "{query} {header:?}");
        let body = rpc("GetTask", &json!({"id": "t1"})).to_string();
        let answer = served
            .ask("POST", &format!("/?{query}"), &headers, body)
            .await;
        assert_eq!(answer.code() == 0, status == 200, "{query} {header:?}");
    }
    let twice = served
        .ask(
            "GET",
            "/tasks/t1?A2A-Version=1.0",
            &[("A2A-Version", "1.1")],
            "",
        )
        .await;
    assert_eq!(
        twice.reason(),
        "",
        "VER-02: two values are an invalid request"
    );
}

/// BR-112, VER-03, VER-06, VER-07: no header; what the request proves counts, unless strict.
#[tokio::test]
async fn without_a_version_the_request_proves_its_own() {
    let served = serve().await;
    assert_eq!(served.rpc("SendMessage", say("hi")).await.code(), 0);
    assert_eq!(served.post("/message:send", &say("hi")).await.status, 200);
    let older = json!({"message": {
        "kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]
    }});
    assert_eq!(served.rpc("message/send", older).await.code(), 0);
    for method in ["tasks/send", "tasks/sendSubscribe"] {
        let answer = served.rpc(method, json!({})).await;
        assert_eq!(answer.code(), -32601, "OLD-02: {method}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains("protocol 0.1"), "{message}");
    }
    let headers = [("A2A-Version", "1.0")];
    for (version, method) in [("1.0", "message/send"), ("0.3", "SendMessage")] {
        let body = rpc(method, &Value::Null).to_string();
        let answer = served
            .ask("POST", "/", &[("A2A-Version", version)], body)
            .await;
        assert_eq!(answer.code(), -32601, "VER-07: {method} in {version}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(
            message.contains("protocol 0.3") || message.contains("protocol 1.0"),
            "{message}"
        );
    }

    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_strict_version(true);
    let served = setup.start().await;
    let answer = served.rpc("SendMessage", say("hi")).await;
    assert_eq!(answer.code(), -32009);
    assert!(answer.text().contains("1.0"), "{}", answer.text());
    assert_eq!(served.get("/tasks").await.reason(), "VERSION_NOT_SUPPORTED");
    let answer = served.ask("GET", "/tasks", &headers, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(served.get("/.well-known/agent-card.json").await.status, 200);
}

fn extension(uri: &str, required: bool) -> AgentExtension {
    let mut extension = AgentExtension::default();
    extension.uri = uri.to_owned();
    extension.required = required;
    extension
}

/// BR-122, EXT-02, OP: required extensions for what steers work, not for what only reads.
#[tokio::test]
async fn required_extensions_are_required() {
    let mut setup = Setup::default();
    setup.card.capabilities.extensions = vec![extension("urn:must", true)];
    let served = setup.start().await;
    for (method, params) in [
        ("SendMessage", say("hi")),
        ("SendStreamingMessage", say("hi")),
        ("CancelTask", json!({"id": "t1"})),
    ] {
        assert_eq!(served.rpc(method, params).await.code(), -32008, "{method}");
    }
    assert_eq!(served.fake.calls(), 0, "before any task exists");
    assert_eq!(served.rpc("GetTask", json!({"id": "t1"})).await.code(), 0);
    assert_eq!(served.rpc("ListTasks", json!({})).await.code(), 0);
    assert_eq!(served.get("/tasks/t1:subscribe").await.status, 200);
    let answer = served
        .ask(
            "POST",
            "/message:send",
            &[("A2A-Extensions", "urn:MUST")],
            say("hi").to_string(),
        )
        .await;
    assert_eq!(
        answer.reason(),
        "EXTENSION_SUPPORT_REQUIRED",
        "EXT-01: case counts"
    );
    let named = [("A2A-Extensions", "urn:must")];
    let answer = served
        .ask("POST", "/message:send", &named, say("hi").to_string())
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("a2a-extensions")),
        (200, "urn:must")
    );
}

/// EXT-01, EXT-03, EXT-04, BR-122: lines are joined; the reply names what is in force, if any.
#[tokio::test]
async fn the_reply_names_the_extensions_in_force() {
    let mut setup = Setup::default();
    setup.card.capabilities.extensions = vec![extension("urn:a", false), extension("urn:b", false)];
    let served = setup.start().await;
    let lines = [
        ("A2A-Extensions", "urn:b, ,urn:x ,urn:b"),
        ("A2A-Extensions", "urn:a"),
    ];
    let body = say("hi").to_string();
    for path in ["/message:send", "/message:stream"] {
        let answer = served.ask("POST", path, &lines, body.clone()).await;
        assert_eq!(answer.header("a2a-extensions"), "urn:b, urn:a", "{path}");
        assert_eq!(served.fake.last().extensions, ["urn:b", "urn:x", "urn:a"]);
    }
    let answer = served
        .ask(
            "POST",
            "/message:send",
            &[("A2A-Extensions", "urn:x")],
            body,
        )
        .await;
    assert!(!answer.headers.contains_key("a2a-extensions"));
}
