//! Version 0.3 beside 1.0: shapes, streams, errors and cards of the older version.

use nuncio_protocol::{TaskState, Version};
use serde_json::{Value, json};

use crate::fake::{status_event, task_event};
use crate::harness::{Answer, Served, Setup, rpc, serve};

fn older_message(text: &str) -> Value {
    json!({"message": {
        "kind": "message", "messageId": "m1", "role": "user",
        "parts": [{"kind": "text", "text": text}]
    }})
}

fn older_rest_message(text: &str) -> Value {
    json!({"message": {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": text}]}})
}

fn data(answer: &Answer) -> Vec<Value> {
    let lines = answer
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    lines
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

/// V03-01, BR-118: bare results with `kind`, never a wrapper.
#[tokio::test]
async fn json_rpc_results_are_bare() {
    let served = serve().await;
    let answer = served.rpc("message/send", older_message("hi")).await;
    let task = &answer.json()["result"];
    assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &json!("t1")));
    assert_eq!(task["status"]["state"], "completed");
    assert_eq!(
        task["artifacts"][0]["parts"][0],
        json!({"kind": "text", "text": "done"})
    );
    let answer = served.rpc("message/send", older_message("message")).await;
    assert_eq!(answer.json()["result"]["kind"], "message");
    for (method, params) in [
        ("tasks/get", json!({"id": "t1"})),
        ("tasks/cancel", json!({"id": "t1"})),
    ] {
        let answer = served.rpc(method, params).await;
        assert_eq!(answer.json()["result"]["kind"], "task", "{method}");
    }
    let config = json!({"taskId": "t1", "pushNotificationConfig": {"url": "https://h/x"}});
    let set = served.rpc("tasks/pushNotificationConfig/set", config).await;
    assert_eq!(
        set.json()["result"]["pushNotificationConfig"]["url"],
        "https://h/x"
    );
    let list = served
        .rpc("tasks/pushNotificationConfig/list", json!({"id": "t1"}))
        .await;
    assert_eq!(list.json()["result"], json!([]));
    let delete = json!({"id": "t1", "pushNotificationConfigId": "p1"});
    let delete = served
        .rpc("tasks/pushNotificationConfig/delete", delete)
        .await;
    assert_eq!(delete.json()["result"], Value::Null);
    assert_eq!(served.fake.last().version, Version::V0_3);
}

/// V03-04, V03-06, TRAP-33: streams end with `final`, in both bindings.
#[tokio::test]
async fn streams_end_with_final() {
    let served = serve().await;
    let body = rpc("message/stream", &older_message("hi"));
    let over_rpc = data(&served.post("/", &body).await);
    assert_eq!(over_rpc[0]["result"]["kind"], "task");
    assert_eq!(over_rpc[1]["result"]["final"], true);
    let over_rest = data(
        &served
            .post("/v1/message:stream", &older_rest_message("hi"))
            .await,
    );
    assert!(over_rest[0]["task"].is_object());
    assert_eq!(over_rest[1]["statusUpdate"]["final"], true);

    for (method, ends) in [("message/stream", true), ("tasks/resubscribe", false)] {
        let feed = served.fake.feed();
        feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
        feed.send(Ok(status_event(2, TaskState::InputRequired)))
            .unwrap();
        drop(feed);
        let mut params = older_message("hi");
        params["id"] = json!("t1");
        let events = data(&served.post("/", &rpc(method, &params)).await);
        let update = &events[1]["result"];
        assert_eq!(update["status"]["state"], "input-required", "BR-187");
        assert_eq!(update["final"], ends, "{method}");
    }
}

/// BR-187: every state in the spelling of the 0.3 schema.
#[tokio::test]
async fn states_are_spelt_with_hyphens() {
    let served = serve().await;
    for (state, name) in [
        (TaskState::Submitted, "submitted"),
        (TaskState::Working, "working"),
        (TaskState::InputRequired, "input-required"),
        (TaskState::AuthRequired, "auth-required"),
        (TaskState::Canceled, "canceled"),
        (TaskState::Failed, "failed"),
        (TaskState::Rejected, "rejected"),
        (TaskState::Completed, "completed"),
    ] {
        let feed = served.fake.feed();
        feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
        feed.send(Ok(status_event(2, state))).unwrap();
        drop(feed);
        let events = data(
            &served
                .post("/", &rpc("message/stream", &older_message("x")))
                .await,
        );
        assert_eq!(events[1]["result"]["status"]["state"], name);
    }
}

/// V03-05: who follows a task that has ended gets it, and the stream closes.
#[tokio::test]
async fn resubscribing_to_the_past_gives_the_task() {
    let served = serve().await;
    let answer = served
        .rpc("tasks/resubscribe", json!({"id": "ended"}))
        .await;
    let events = data(&answer);
    assert_eq!(events.len(), 1, "{}", answer.text());
    assert_eq!(events[0]["result"]["id"], "ended");
    assert_eq!(events[0]["result"]["status"]["state"], "completed");
    let events = data(&served.get("/v1/tasks/ended:subscribe").await);
    assert_eq!(events[0]["task"]["id"], "ended");
    let newer = served.rpc("SubscribeToTask", json!({"id": "ended"})).await;
    assert_eq!(newer.code(), -32004, "1.0 has it otherwise");
}

/// An error of a streaming method is an event of 0.3: its clients look for it nowhere else.
#[tokio::test]
async fn errors_of_streaming_methods_are_events() {
    let served = serve().await;
    for (method, params, code) in [
        ("tasks/resubscribe", json!({"id": "nobody"}), -32001),
        ("message/stream", older_message("missing"), -32001),
        ("message/stream", json!({"message": {}}), -32602),
    ] {
        let answer = served.rpc(method, params).await;
        assert_eq!(
            answer.header("content-type"),
            "text/event-stream",
            "{method}"
        );
        let events = data(&answer);
        assert_eq!(events.len(), 1, "{method}");
        assert_eq!(
            (&events[0]["id"], &events[0]["error"]["code"]),
            (&json!("r1"), &json!(code))
        );
    }
    let newer = served.rpc("SubscribeToTask", json!({"id": "nobody"})).await;
    assert_eq!(newer.header("content-type"), "application/json", "RPC-10");
    let rest = served.get("/v1/tasks/nobody:subscribe").await;
    assert_eq!(rest.status, 404);
}

/// V03-02, V03-REST-07: codes and bodies that 0.3 clients know.
#[tokio::test]
async fn errors_have_the_older_form() {
    let served = serve().await;
    let answer = served.rpc("tasks/get", json!({"id": "nobody"})).await;
    assert_eq!(answer.code(), -32001);
    let answer = served.get("/v1/tasks/nobody").await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert_eq!(
        (&body["code"], &body["type"]),
        (&json!(-32001), &json!("TaskNotFoundError"))
    );
    assert!(body["message"].is_string());
    let refused = served
        .post("/v1/message:send", &json!({"message": {}}))
        .await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["code"]),
        (400, &json!(-32602))
    );
}

/// V03-12: the older name of the header, both ways.
#[tokio::test]
async fn extensions_go_by_their_older_name() {
    let mut setup = Setup::default();
    let mut extension = nuncio_protocol::AgentExtension::default();
    extension.uri = "urn:a".to_owned();
    setup.card.capabilities.extensions = vec![extension];
    let served = setup.start().await;
    let body = rpc("message/send", &older_message("hi")).to_string();
    let answer = served
        .ask("POST", "/", &[("X-A2A-Extensions", "urn:a")], body)
        .await;
    assert_eq!(answer.header("x-a2a-extensions"), "urn:a");
    assert_eq!(answer.header("a2a-extensions"), "");
}

const CARD: &str = "/.well-known/agent-card.json";

async fn card(served: &Served, version: &str) -> Value {
    served
        .ask("GET", CARD, &[("A2A-Version", version)], "")
        .await
        .json()
}

/// CARD-14, MAP-02, TRAP-13: the card is purely of the version asked for, else of both.
#[tokio::test]
async fn cards_come_in_the_version_asked_for() {
    let served = serve().await;
    let newer = card(&served, "1.0").await;
    assert!(newer["url"].is_null() && newer["supportedInterfaces"].is_array());
    let older = card(&served, "0.3").await;
    assert!(older["supportedInterfaces"].is_null());
    let url = format!("http://{}/agents/echo", served.address);
    assert_eq!(older["url"], url);
    assert_eq!(older["protocolVersion"], "0.3.0");
    assert_eq!(older["preferredTransport"], "JSONRPC");
    let transports = older["additionalInterfaces"].as_array().unwrap().iter();
    let transports: Vec<_> = transports
        .map(|i| i["transport"].as_str().unwrap())
        .collect();
    assert_eq!(transports, ["JSONRPC", "HTTP+JSON", "GRPC"]);
    let both = served.get(CARD).await.json();
    assert!(both["url"].is_string() && both["supportedInterfaces"].is_array());
    let extended = served.get("/v1/card").await;
    assert_eq!(extended.json()["code"], -32007, "V03-10");
}

/// BR-112, VER-06: agents that speak one version only answer for that alone.
#[tokio::test]
async fn an_agent_of_one_version_refuses_the_other() {
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_dialects([Version::V0_3]);
    let served = setup.start().await;
    assert_eq!(
        served.rpc("message/send", older_message("hi")).await.code(),
        0
    );
    assert_eq!(served.rpc("SendMessage", json!({})).await.code(), -32601);
    assert_eq!(served.get("/tasks/t1").await.status, 404);
    let named = served
        .ask("GET", "/v1/tasks/t1", &[("A2A-Version", "1.0")], "")
        .await;
    assert_eq!(named.status, 400, "VER-04: {}", named.text());
    let plain = served.get(CARD).await.json();
    assert!(plain["supportedInterfaces"].is_null() && plain["url"].is_string());
}
