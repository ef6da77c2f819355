//! The JSON-RPC binding: methods, results, ids, statuses.

use serde_json::{Value, json};

use crate::harness::{JSON, rpc, say, serve};

/// RPC-01, RPC-02, RPC-04, GEN-02: the eleven methods and the shapes of their results.
#[tokio::test]
async fn every_method_has_its_result() {
    let served = serve().await;
    let hook = json!({"taskId": "t1", "url": "https://example.com/hook"});
    let one = json!({"taskId": "t1", "id": "p1"});
    let cases: &[(&str, Value, &str)] = &[
        ("SendMessage", say("hi"), "/task/id"),
        ("SendMessage", say("message"), "/message/messageId"),
        ("GetTask", json!({"id": "t1"}), "/id"),
        ("ListTasks", json!({}), "/tasks"),
        ("CancelTask", json!({"id": "t1"}), "/status/state"),
        ("CreateTaskPushNotificationConfig", hook, "/id"),
        ("GetTaskPushNotificationConfig", one.clone(), "/url"),
        (
            "ListTaskPushNotificationConfigs",
            json!({"taskId": "t1"}),
            "/configs",
        ),
        ("DeleteTaskPushNotificationConfig", one, ""),
    ];
    for (method, params, place) in cases {
        let answer = served.rpc(method, params.clone()).await;
        assert_eq!(answer.status, 200, "{method}");
        assert_eq!(answer.header("content-type"), "application/json");
        let body = answer.json();
        assert_eq!(body["jsonrpc"], "2.0");
        assert_eq!(body["id"], "r1");
        assert!(body["error"].is_null(), "{body}");
        if place.is_empty() {
            assert_eq!(body.get("result"), Some(&Value::Null), "OP-PDEL-03");
        } else {
            let found = body["result"].pointer(place);
            assert!(found.is_some(), "{method} {place}: {body}");
        }
    }
    for method in ["SendStreamingMessage", "SubscribeToTask"] {
        let mut params = say("hi");
        params["id"] = json!("t1");
        let answer = served.rpc(method, params).await;
        assert_eq!(answer.header("content-type"), "text/event-stream");
    }
}

/// RPC-05, RPC-07, RPC-03: ids keep their type, absent params are `{}`.
#[tokio::test]
async fn ids_are_echoed_with_their_type() {
    let served = serve().await;
    for id in [
        "\"a\"",
        "7",
        "-1",
        "1.5",
        "null",
        "\"\\u00e9\"",
        "12345678901234567890",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks"}}"#);
        let answer = served.ask("POST", "/", JSON, body).await;
        assert!(
            answer.text().contains(&format!("\"id\":{id},")),
            "{id}: {}",
            answer.text()
        );
        assert_eq!(answer.code(), 0);
    }
    let body = r#"{"jsonrpc":"2.0","method":"ListTasks","params":null}"#;
    let answer = served.ask("POST", "/", JSON, body).await;
    assert_eq!(answer.json()["id"], Value::Null);
}

/// RPC-12, TRAP-11: both spellings of the address; other HTTP methods are told which one it is.
#[tokio::test]
async fn the_address_is_tolerant_and_takes_post_only() {
    let served = serve().await;
    let body = rpc("GetTask", &json!({"id": "t1"}));
    for path in ["/", "/agents/echo", "/agents/echo/"] {
        assert_eq!(served.post(path, &body).await.code(), 0, "{path}");
        for method in ["GET", "PUT", "DELETE", "HEAD"] {
            let answer = served.ask(method, path, &[], "").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.header("allow"), "POST");
            if method != "HEAD" {
                assert_eq!(answer.code(), -32601, "RPC-08");
            }
        }
    }
    let answer = served.post("/agents/nobody", &body).await;
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (404, -32601),
        "BR-105"
    );
}

/// The same with an unknown member in each of its objects.
fn sprinkled(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, v)| (name.clone(), sprinkled(v)));
            let unknown = ("fromTheFuture".to_owned(), json!({"x": [null, 1]}));
            Value::Object(members.chain([unknown]).collect())
        }
        Value::Array(items) => items.iter().map(sprinkled).collect(),
        other => other.clone(),
    }
}

/// BR-136, GEN-05, JSON-10, JSON-13: unknown members are passed over at every depth.
#[tokio::test]
async fn unknown_members_are_ignored() {
    let served = serve().await;
    let mut send = say("hi");
    send["message"]["kind"] = json!("message");
    send["message"]["metadata"] = json!({"a": {}});
    let hook = json!({
        "taskId": "t1", "url": "https://x", "authentication": {"scheme": "Bearer"}
    });
    send["configuration"] = json!({"blocking": true, "taskPushNotificationConfig": hook});
    for (method, params) in [
        ("SendMessage", send.clone()),
        ("SendStreamingMessage", send.clone()),
        ("GetTask", json!({"id": "t1"})),
        ("ListTasks", json!({})),
        ("CancelTask", json!({"id": "t1", "metadata": {}})),
        ("SubscribeToTask", json!({"id": "t1"})),
        ("CreateTaskPushNotificationConfig", hook.clone()),
        (
            "GetTaskPushNotificationConfig",
            json!({"taskId": "t1", "id": "p"}),
        ),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "t1"})),
        (
            "DeleteTaskPushNotificationConfig",
            json!({"taskId": "t1", "id": "p"}),
        ),
    ] {
        let answer = served.post("/", &sprinkled(&rpc(method, &params))).await;
        assert!(
            !answer.text().contains("\"error\""),
            "{method}: {}",
            answer.text()
        );
    }
    let hooks = "/tasks/t1/pushNotificationConfigs";
    for (path, body) in [
        ("/message:send", &send),
        ("/message:stream", &send),
        ("/tasks/t1:cancel", &json!({"metadata": {}})),
        (hooks, &hook),
    ] {
        let answer = served.post(path, &sprinkled(body)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(served.get("/tasks?future=1").await.status, 200);
}

/// BR-137, JSON-01, JSON-02, JSON-05: proto spellings are read, camelCase and names are written.
#[tokio::test]
async fn both_spellings_are_read_and_one_is_written() {
    let served = serve().await;
    let params = json!({
        "message": {
            "message_id": "m1", "role": 1, "context_id": "c", "task_id": "t1",
            "parts": [{"text": "hi", "media_type": "text/plain"}],
            "reference_task_ids": ["t0"],
        },
        "configuration": {"history_length": "5", "return_immediately": true},
    });
    let answer = served.rpc("SendMessage", params).await;
    assert_eq!(answer.code(), 0, "{}", answer.text());
    let sent = served.fake.last_send();
    let message = sent.message.clone().unwrap();
    assert_eq!(message.message_id.as_str(), "m1");
    assert_eq!(message.reference_task_ids.len(), 1);
    assert_eq!(sent.history_length(), Some(5));
    assert!(sent.returns_immediately());
    assert!(answer.text().contains("contextId") && answer.text().contains("TASK_STATE_COMPLETED"));
    assert!(!answer.text().contains("context_id"));
    let both = json!({"message": {"messageId": "a", "message_id": "b", "role": 1, "parts": [{"text": ""}]}});
    assert_eq!(served.rpc("SendMessage", both).await.code(), -32602);
}

/// BR-140: two contents in one part are refused, a null beside one is not.
#[tokio::test]
async fn a_part_has_one_content() {
    let served = serve().await;
    let with =
        |part: Value| json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}});
    let two = with(json!({"text": "a", "url": "b"}));
    assert_eq!(served.rpc("SendMessage", two.clone()).await.code(), -32602);
    assert_eq!(served.post("/message:send", &two).await.status, 400);
    assert_eq!(served.fake.calls(), 0);
    let one = with(json!({"text": "a", "url": null}));
    assert_eq!(served.rpc("SendMessage", one).await.code(), 0);
}

/// The key that makes a send happen once goes along.
#[tokio::test]
async fn the_idempotency_key_reaches_the_agent() {
    let served = serve().await;
    let body = rpc("SendMessage", &say("hi")).to_string();
    served
        .ask("POST", "/", &[("Idempotency-Key", "k-1")], body)
        .await;
    assert_eq!(served.fake.last().idempotency_key.as_deref(), Some("k-1"));
    assert_eq!(served.fake.last().caller.id.as_str(), "anonymous");
}

/// TEN-02, TEN-04, TEN-05, TEN-06: a tenant is the agent itself or nobody.
#[tokio::test]
async fn tenants_other_than_the_agent_are_unknown() {
    let served = serve().await;
    for (tenant, code) in [("", 0), ("echo", 0), ("other", -32602)] {
        let params = json!({"id": "t1", "tenant": tenant});
        let answer = served.rpc("GetTask", params).await;
        assert_eq!(answer.code(), code, "{tenant}");
        if code != 0 {
            assert_eq!(answer.fields(), ["tenant"]);
        }
    }
    for (path, status) in [
        ("/echo/tasks/t1", 200),
        ("/agents/echo/echo/tasks/t1", 200),
        ("/other/tasks/t1", 404),
        ("/tasks/t1?tenant=echo", 200),
        ("/tasks/t1?tenant=other", 404),
        ("/echo/tasks/t1?tenant=other", 400),
        ("/echo/extendedAgentCard", 400),
    ] {
        assert_eq!(served.get(path).await.status, status, "{path}");
    }
}
