//! What callers of OxyGent's gateway and of ADK send.

use serde_json::{Value, json};

use crate::harness::{JSON, Served, Setup, rpc};

async fn served() -> Served {
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_legacy_routes(true);
    setup.start().await
}

/// The table of its routes and actions; each answers `{task}` as 0.3 spells it.
#[tokio::test]
async fn plain_calls_are_answered_plainly() {
    let served = served().await;
    for (path, body) in [
        ("/messages/send", json!({"query": "hi"})),
        ("/messages/send/", json!({"message": "hi"})),
        (
            "/a2a/messages/send",
            json!({"message": {"parts": [{"type": "text", "text": "hi"}]}}),
        ),
        (
            "/agents/echo/messages/send",
            json!({"message": {"parts": [{"kind": "text", "text": "hi"}]}}),
        ),
        ("/tasks/get", json!({"taskId": "t1"})),
        ("/tasks/cancel", json!({"id": "t1"})),
        ("/", json!({"action": "send_message", "query": "hi"})),
        ("/a2a", json!({"op": "GetTask", "task_id": "t1"})),
        (
            "/a2a/",
            json!({"operation": "tasks/cancel", "taskId": "t1"}),
        ),
        ("/", json!({"query": "hi"})),
    ] {
        let answer = served.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
        let task = &answer.json()["task"];
        assert_eq!(
            (&task["kind"], &task["id"]),
            (&json!("task"), &json!("t1")),
            "{path} {body}"
        );
    }
    let answer = served
        .post("/", &json!({"action": "resubscribe", "taskId": "t1"}))
        .await;
    assert_eq!(answer.json()["event"]["id"], "t1");
}

/// Group, run and predecessor arrive, however they are spelt and wherever they stand.
#[tokio::test]
async fn ids_reach_the_agent() {
    let served = served().await;
    let body = json!({
        "query": "hi", "context_id": "group", "task_id": "t1",
        "reference_task_ids": ["t7", "t8"], "metadata": {"k": 1}
    });
    served.post("/messages/send", &body).await;
    let sent = served.fake.last_send();
    let message = sent.message.unwrap();
    assert_eq!(message.context_id, Some("group".into()));
    assert_eq!(message.task_id, Some("t1".into()));
    assert_eq!(message.reference_task_ids.last(), Some(&"t8".into()));
    assert_eq!(sent.metadata.unwrap()["k"], 1);
    assert!(!message.message_id.is_empty());
}

/// Errors are a status and a `detail`.
#[tokio::test]
async fn errors_are_plain_too() {
    let served = served().await;
    for (path, body, status) in [
        ("/tasks/get", json!({"taskId": "nobody"}), 404),
        ("/tasks/get", json!({}), 400),
        ("/", json!({"action": "dance"}), 400),
        ("/messages/send", json!({"query": "internal"}), 500),
    ] {
        let answer = served.post(path, &body).await;
        assert_eq!(answer.status, status, "{path} {body}");
        assert!(answer.json()["detail"].is_string(), "{}", answer.text());
    }
    let broken = served.ask("POST", "/messages/send", JSON, "{").await;
    assert_eq!(broken.status, 400);
}

/// JSON-RPC goes on as before, on these paths as well.
#[tokio::test]
async fn json_rpc_is_still_json_rpc() {
    let served = served().await;
    for path in ["/", "/messages/send", "/a2a"] {
        let answer = served
            .post(path, &rpc("tasks/get", &json!({"id": "t1"})))
            .await;
        assert_eq!(answer.json()["result"]["id"], "t1", "{path}");
    }
    let batch = served.ask("POST", "/", JSON, "[]").await;
    assert_eq!(batch.code(), -32600);
    assert_eq!(
        served.get("/tasks/get").await.status,
        404,
        "still the task \"get\" of 1.0"
    );
}

/// Without the setting none of it is there.
#[tokio::test]
async fn plain_calls_are_off_by_default() {
    let served = crate::harness::serve().await;
    let answer = served.post("/messages/send", &json!({"query": "hi"})).await;
    assert_eq!(answer.status, 404);
    let answer = served
        .post("/", &json!({"action": "send_message", "query": "hi"}))
        .await;
    assert_eq!(answer.code(), -32600);
    assert_eq!(served.fake.calls(), 0);
}

/// ADK's two addresses: JSON-RPC, and JSON-RPC that always streams.
#[tokio::test]
async fn adks_addresses_are_json_rpc() {
    let served = crate::harness::serve().await;
    let message: Value = json!({"message": {
        "kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]
    }});
    for base in ["", "/agents/echo"] {
        let plain = served
            .post(&format!("{base}/a2a"), &rpc("message/send", &message))
            .await;
        assert_eq!(plain.json()["result"]["kind"], "task");
        for method in ["message/send", "message/stream"] {
            let stream = served
                .post(&format!("{base}/a2a/stream"), &rpc(method, &message))
                .await;
            assert_eq!(
                stream.header("content-type"),
                "text/event-stream",
                "{method}"
            );
        }
    }
}
