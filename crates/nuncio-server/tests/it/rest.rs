//! The HTTP+JSON binding: paths, queries, bodies, content types.

use nuncio_protocol::Version;
use serde_json::json;

use crate::harness::{JSON, Setup, say, serve};

const A2A_JSON: (&str, &str) = ("Content-Type", "application/a2a+json");

/// REST-01, REST-04, GEN-02: the whole table answers 200, at the root and below the agent.
#[tokio::test]
async fn every_path_of_the_table_is_served() {
    let served = serve().await;
    let hook = json!({"url": "https://example.com/hook"}).to_string();
    let send = say("hi").to_string();
    for base in ["", "/agents/echo", "/echo", "/agents/echo/echo"] {
        for (method, path, body, place) in [
            ("POST", "/message:send", send.as_str(), "/task/id"),
            ("GET", "/tasks/t1", "", "/id"),
            ("HEAD", "/tasks/t1", "", ""),
            ("GET", "/tasks", "", "/nextPageToken"),
            ("POST", "/tasks/t1:cancel", "", "/status/state"),
            ("POST", "/tasks/t1:cancel", "null", "/status/state"),
            (
                "POST",
                "/tasks/t1:cancel",
                r#"{"metadata":{"a":1}}"#,
                "/status",
            ),
            (
                "POST",
                "/tasks/t1/pushNotificationConfigs",
                &hook,
                "/taskId",
            ),
            ("GET", "/tasks/t1/pushNotificationConfigs", "", "/configs"),
            ("GET", "/tasks/t1/pushNotificationConfigs/p1", "", "/url"),
            ("DELETE", "/tasks/t1/pushNotificationConfigs/p1", "", ""),
        ] {
            let path = format!("{base}{path}");
            let answer = served.ask(method, &path, JSON, body.to_owned()).await;
            assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
            match (method, place) {
                ("HEAD", _) => assert_eq!(answer.text(), ""),
                ("DELETE", _) => assert_eq!(answer.text(), "{}", "OP-PDEL-03"),
                _ => assert!(answer.json().pointer(place).is_some(), "{path}"),
            }
        }
        let path = format!("{base}/message:stream");
        let stream = served.ask("POST", &path, JSON, send.clone());
        assert_eq!(stream.await.header("content-type"), "text/event-stream");
    }
}

/// REST-05: ids are decoded once; colons and encoded slashes are part of them.
#[tokio::test]
async fn ids_in_paths_are_decoded_once() {
    let served = serve().await;
    for (path, id) in [
        ("/tasks/a:b", "a:b"),
        ("/tasks/a%3Ab", "a:b"),
        ("/tasks/a%2Fb", "a/b"),
    ] {
        let answer = served.get(path).await;
        assert_eq!(answer.json()["id"], id, "{path}");
    }
    let canceled = served.ask("POST", "/tasks/a:b:cancel", &[], "").await;
    assert_eq!(canceled.json()["id"], "a:b");
    assert_eq!(served.get("/tasks/a%252Fb").await.status, 404);
}

/// REST-02, REST-06, JSON-05: queries in both spellings; a blank `+` spoils a time.
#[tokio::test]
async fn queries_are_read() {
    let served = serve().await;
    for (query, status) in [
        ("pageSize=7&includeArtifacts=true", 200),
        ("page_size=7&include_artifacts=false", 200),
        ("status=TASK_STATE_WORKING", 200),
        ("status=2&statusTimestampAfter=2025-01-01T00:00:00Z", 200),
        ("statusTimestampAfter=2025-01-01T05:30:00%2B05:30", 200),
        ("statusTimestampAfter=2025-01-01T05:30:00+05:30", 400),
        ("unknown=1", 200),
    ] {
        let answer = served.get(&format!("/tasks?{query}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
    }
    let page = served.get("/tasks?pageSize=7").await.json();
    let expected = json!({"tasks": [], "nextPageToken": "", "pageSize": 7, "totalSize": 0});
    assert_eq!(page, expected, "OP-LIST-05");
    let not_allowed = served
        .ask("PUT", "/tasks/t1/pushNotificationConfigs", &[], "")
        .await;
    assert_eq!(not_allowed.header("allow"), "GET, POST");
    let not_allowed = served.ask("POST", "/tasks/t1", &[], "").await;
    assert_eq!(not_allowed.header("allow"), "GET");
}

/// BR-128, CT-01, CT-02, CT-03, REST-07, RPC-13: both JSON types with parameters, either way.
#[tokio::test]
async fn both_json_types_are_taken_and_given() {
    let served = serve().await;
    let body = say("hi").to_string();
    let json = "application/json";
    let a2a = "application/a2a+json";
    for (sent, accept, given) in [
        (Some("application/json; charset=utf-8"), None, json),
        (Some("Application/JSON"), Some("*/*"), json),
        (Some("application/a2a+json"), None, a2a),
        (
            Some("application/a2a+json; charset=utf-8"),
            Some("*/*"),
            a2a,
        ),
        (Some("application/a2a+json"), Some("application/json"), json),
        (Some("application/json"), Some("application/a2a+json"), a2a),
        (
            Some("application/json"),
            Some("text/html, application/a2a+json;q=0.9"),
            a2a,
        ),
        (None, None, json),
        (None, Some("text/event-stream"), json),
    ] {
        let sent = sent.map(|kind| ("Content-Type", kind));
        let accept = accept.map(|kind| ("Accept", kind));
        let headers: Vec<_> = sent.into_iter().chain(accept).collect();
        let answer = served
            .ask("POST", "/message:send", &headers, body.clone())
            .await;
        assert_eq!(answer.status, 200, "{headers:?}");
        assert_eq!(answer.header("content-type"), given, "{headers:?}");
        assert_eq!(answer.header("vary"), "Accept", "{headers:?}");
        let failed = served.ask("POST", "/message:send", &headers, "{}").await;
        assert_eq!(failed.header("content-type"), given, "errors too");
    }
    let body = crate::harness::rpc("SendMessage", &say("hi")).to_string();
    let answer = served.ask("POST", "/", &[A2A_JSON], body).await;
    assert_eq!(answer.header("content-type"), json, "RPC-01");
    assert_eq!(answer.code(), 0);
}

/// CT-04, BR-128: what is no JSON is said to be so, with the A2A reason.
#[tokio::test]
async fn other_types_are_refused_with_the_reason() {
    let served = serve().await;
    let text = [("Content-Type", "text/plain")];
    for path in ["/", "/message:send", "/tasks/t1/pushNotificationConfigs"] {
        let answer = served.ask("POST", path, &text, "{}").await;
        assert_eq!(answer.status, 415, "{path}");
        assert_eq!(answer.reason(), "CONTENT_TYPE_NOT_SUPPORTED", "{path}");
    }
    let nothing_sent = served.ask("POST", "/tasks/t1:subscribe", &text, "").await;
    assert_eq!(nothing_sent.status, 200);
}

/// CT-05: 406 for a success that could not be read, never for an error.
#[tokio::test]
async fn unacceptable_is_said_of_successes_only() {
    let served = serve().await;
    let png = [("Accept", "image/png")];
    let answer = served.ask("GET", "/tasks/t1", &png, "").await;
    assert_eq!((answer.status.as_u16(), served.fake.calls()), (406, 0));
    assert_eq!(answer.json()["error"]["code"], 406);
    assert_eq!(
        served
            .ask("GET", "/tasks?pageSize=0", &png, "")
            .await
            .status,
        400
    );
    assert_eq!(served.ask("GET", "/nothing", &png, "").await.status, 404);
    for accept in [
        "*/*",
        "application/*",
        "text/event-stream",
        "image/png, application/json",
    ] {
        let answer = served
            .ask("GET", "/tasks/t1", &[("Accept", accept)], "")
            .await;
        assert_eq!(answer.status, 200, "{accept}");
    }
}

/// REST-12: nothing of 1.0 is under `/v1`; who goes there with 1.0, or where 0.3 is not spoken, is told.
#[tokio::test]
async fn v1_is_of_the_older_version() {
    let served = serve().await;
    assert_eq!(served.get("/v1/tasks").await.status, 200);
    let headers = [("A2A-Version", "1.0")];
    let named = served.ask("GET", "/v1/tasks", &headers, "").await;
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_dialects([Version::V1_0]);
    let newer_only = setup.start().await.get("/v1/tasks").await;
    for answer in [named, newer_only] {
        assert_eq!(answer.status, 404);
        assert!(answer.text().contains("0.3"), "{}", answer.text());
    }
}
