//! Protocol 0.3 as its SDKs write it, byte by byte (BR-116, BR-118, TRAP-20, TRAP-32, V03-*).

use nuncio_client::{ConnectError, card};
use nuncio_protocol::{
    AgentCard, AgentService as _, Binding, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetExtendedAgentCardRequest, GetTaskRequest, SendMessageResponse, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskState, Version,
};
use serde_json::{Value, json};

use crate::support::{Answer, Fake, Request, builder, call, collect, hello, shapes};

fn older(fake: &Fake, binding: Binding) -> AgentCard {
    let mut card = fake.card(binding, true);
    "0.3".clone_into(&mut card.supported_interfaces[0].protocol_version);
    card
}

fn bare_task(state: &str) -> Value {
    json!({"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": state}})
}

fn proto_task(state: &str) -> Value {
    json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}")}})
}

/// BR-118: bare objects with a `kind`, and what is sent.
#[tokio::test]
async fn br_118_json_rpc_has_bare_results_with_a_kind() {
    let fake = Fake::start(|request: &Request| match request.json()["method"].as_str() {
        Some("message/send") => request.ok(&bare_task("completed")),
        Some("tasks/get") => request.ok(&bare_task("input-required")),
        Some("message/stream" | "tasks/resubscribe") => request.stream(&[
            (0, bare_task("submitted")),
            (0, json!({"kind": "artifact-update", "taskId": "t1", "contextId": "c1",
                "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]}})),
            (0, json!({"kind": "from-the-future"})),
            (0, json!({"kind": "status-update", "taskId": "t1", "contextId": "c1",
                "status": {"state": "completed"}, "final": true})),
        ]),
        Some("agent/getAuthenticatedExtendedCard") => request.ok(
            &json!({"name": "n", "protocolVersion": "0.3.0", "url": "https://h/", "capabilities": {},
                "skills": [{"id": 7}]}),
        ),
        other => panic!("{other:?}"),
    })
    .await;
    let client = builder().build(older(&fake, Binding::JsonRpc)).unwrap();
    let sent = client.send_message(call(), hello()).await.unwrap();
    assert!(
        matches!(sent, SendMessageResponse::Task(task) if task.status.state == TaskState::Completed)
    );
    let message = fake.requests()[0].params()["message"].clone();
    assert_eq!(
        message,
        json!({"kind": "message", "messageId": "m1", "role": "user",
            "parts": [{"kind": "text", "text": "hello"}]})
    );
    let got = client
        .get_task(call(), GetTaskRequest::new("t1"))
        .await
        .unwrap();
    assert_eq!(got.status.state, TaskState::InputRequired);
    let (events, error) = collect(client.stream(call(), hello()).await.unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(shapes(&events), ["task", "artifact", "status"]);
    // Read as leniently as a card that was found (CARD-09).
    let asked = GetExtendedAgentCardRequest::default();
    let card = client.get_extended_agent_card(call(), asked).await.unwrap();
    assert_eq!(card.supported_interfaces[0].protocol_version, "0.3");
    assert!(card.skills.is_empty());
}

/// BR-116: the proto's JSON under `/v1`, with two L, and `/v1` in the address is not doubled.
#[tokio::test]
async fn br_116_rest_has_its_own_paths_and_forms() {
    for base in ["", "/v1", "/v1/"] {
        let fake = Fake::start(|request: &Request| match (request.method.as_str(), request.target.as_str()) {
            ("POST", "/a2a/v1/message:send") => Answer::json(201, &json!({"task": proto_task("SUBMITTED")})),
            ("GET", "/a2a/v1/tasks/t1") => Answer::json(200, &proto_task("CANCELLED")),
            ("POST", "/a2a/v1/message:stream") => request.stream(&[
                (0, json!({"task": proto_task("WORKING")})),
                (0, json!({"status_update": {"task_id": "t1", "context_id": "c1", "final": true,
                    "status": {"state": "TASK_STATE_COMPLETED", "update": {"message_id": "m", "role": "ROLE_AGENT",
                        "content": [{"text": "done"}]}}}})),
            ]),
            other => panic!("{other:?}"),
        })
        .await;
        let mut card = older(&fake, Binding::HttpJson);
        card.supported_interfaces[0].url += base;
        let client = builder().build(card).unwrap();
        let sent = client.send_message(call(), hello()).await.unwrap();
        assert!(matches!(sent, SendMessageResponse::Task(_)));
        let sent = fake.requests()[0].json();
        assert_eq!(sent["message"]["content"], json!([{"text": "hello"}]));
        assert_eq!(sent["message"]["role"], "ROLE_USER");
        let accepted = fake.requests()[0].header("accept").unwrap().to_owned();
        assert!(!accepted.contains("a2a+json"), "{accepted}");
        let got = client
            .get_task(call(), GetTaskRequest::new("t1"))
            .await
            .unwrap();
        assert_eq!(got.status.state, TaskState::Canceled);
        let (events, error) = collect(client.stream(call(), hello()).await.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(shapes(&events), ["task", "status"]);
    }
}

/// ERR-05, V03-REST-07: errors of every SDK.
#[tokio::test]
async fn errors_of_every_form_are_understood() {
    for (status, body, kind) in [
        (
            404,
            json!({"code": -32001, "message": "m"}),
            ErrorKind::TaskNotFound,
        ),
        (
            404,
            json!({"message": "m", "type": "TaskNotFoundError"}),
            ErrorKind::TaskNotFound,
        ),
        (
            404,
            json!({"detail": "m", "type": "https://a2a.example/errors/task-not-found"}),
            ErrorKind::TaskNotFound,
        ),
        (404, json!({"detail": "m"}), ErrorKind::MethodNotFound),
        (
            400,
            json!({"error": {"code": -32004, "message": "m"}}),
            ErrorKind::UnsupportedOperation,
        ),
        (
            200,
            json!({"code": -32001, "message": "m"}),
            ErrorKind::TaskNotFound,
        ),
    ] {
        let fake = Fake::start(move |_: &Request| Answer::json(status, &body)).await;
        let client = builder().build(older(&fake, Binding::HttpJson)).unwrap();
        let error = client
            .get_task(call(), GetTaskRequest::new("t1"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, "m"),
            "{status}"
        );
    }
    let fake = Fake::start(|_: &Request| {
        Answer::sse("event: error\ndata: {\"code\":-32001,\"message\":\"m\",\"type\":\"TaskNotFoundError\"}\n\n")
    })
    .await;
    let client = builder().build(older(&fake, Binding::HttpJson)).unwrap();
    let error = client.stream(call(), hello()).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
}

/// ERR-04: one SDK says no more than this.
#[tokio::test]
async fn err_04_a_status_and_words_are_enough_where_they_say_so() {
    for (status, message, kind) in [
        (404, "Task not found", ErrorKind::TaskNotFound),
        (
            404,
            "Task t1 was specified but does not exist",
            ErrorKind::TaskNotFound,
        ),
        (404, "Not Found", ErrorKind::MethodNotFound),
        (409, "Task cannot be canceled", ErrorKind::TaskNotCancelable),
    ] {
        let body = json!({"message": message});
        let fake = Fake::start(move |_: &Request| Answer::json(status, &body)).await;
        let client = builder().build(older(&fake, Binding::HttpJson)).unwrap();
        let got = client.get_task(call(), GetTaskRequest::new("t1")).await;
        assert_eq!(got.unwrap_err().kind, kind, "{status} {message}");
    }
}

/// TRAP-06: some take POST for a subscription, some GET.
#[tokio::test]
async fn trap_06_a_subscription_is_asked_for_in_both_ways() {
    for allowed in ["POST", "GET"] {
        let fake = Fake::start(move |request: &Request| {
            if request.method != allowed {
                return Answer::with_type(405, "text/plain", "");
            }
            request.stream(&[(0, json!({"task": proto_task("COMPLETED")}))])
        })
        .await;
        let client = builder().build(older(&fake, Binding::HttpJson)).unwrap();
        let asked = SubscribeToTaskRequest::new("t1");
        let stream = client.subscribe_to_task(call(), asked).await.unwrap();
        assert_eq!(collect(stream).await.0.len(), 1, "{allowed}");
        let last = fake.requests().pop().unwrap();
        assert_eq!(last.target, "/a2a/v1/tasks/t1:subscribe");
    }
}

/// TRAP-19, TRAP-20, V03-REST-05: webhooks, and deletions that answer nothing.
#[tokio::test]
async fn webhook_answers_of_every_shape_are_read() {
    let empty = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    for (binding, answer) in [
        (Binding::HttpJson, Answer::raw(empty)),
        (
            Binding::HttpJson,
            Answer::with_type(200, "application/json", "null"),
        ),
        (Binding::JsonRpc, Answer::raw(empty)),
        (
            Binding::JsonRpc,
            Answer::json(200, &json!({"jsonrpc": "2.0", "id": "1", "result": null})),
        ),
    ] {
        let fake = Fake::start(move |_: &Request| answer.clone()).await;
        let mut request = DeleteTaskPushNotificationConfigRequest::default();
        (request.task_id, request.id) = ("t1".into(), "p1".into());
        let client = builder().build(older(&fake, binding)).unwrap();
        client.delete_push_config(call(), request).await.unwrap();
    }
    let nested =
        json!({"taskId": "t1", "pushNotificationConfig": {"id": "p1", "url": "https://h/"}});
    let named = json!({"name": "tasks/t1/pushNotificationConfigs/p1",
        "pushNotificationConfig": {"id": "p1", "url": "https://h/"}});
    for (binding, answer) in [(Binding::JsonRpc, nested), (Binding::HttpJson, named)] {
        let fake = Fake::start(move |request: &Request| request.ok(&answer)).await;
        let mut config = TaskPushNotificationConfig::default();
        (config.task_id, config.id) = (Some("t1".into()), Some("p1".into()));
        "https://h/".clone_into(&mut config.url);
        let client = builder().build(older(&fake, binding)).unwrap();
        let made = client.create_push_config(call(), config).await.unwrap();
        assert_eq!(made.id, Some("p1".into()));
        assert_eq!(made.task_id, Some("t1".into()));
    }
}

/// CARD-03, MAP-02, V03-CARD-02, BR-186: cards of 0.2, 0.3, 1.0 and of both versions are all usable.
#[test]
fn older_cards_lead_to_older_interfaces() {
    let interfaces = |text: &str| -> Vec<String> {
        let (card, _) = card::read(text).unwrap();
        let shown = card.supported_interfaces.iter();
        shown
            .map(|i| format!("{} {} {}", i.protocol_binding, i.protocol_version, i.url))
            .collect()
    };
    let old = r#"{"name":"n","url":"https://h/a","protocolVersion":"0.2.5","capabilities":{},"skills":[]}"#;
    assert_eq!(interfaces(old), ["JSONRPC 0.3 https://h/a"]);
    let union = r#"{"name":"n","url":"https://h/a","preferredTransport":"JSONRPC","protocolVersion":"0.3.0",
        "supportedInterfaces":[{"url":"https://h/a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],
        "additionalInterfaces":[{"url":"https://h/a","transport":"JSONRPC"},{"url":"h:443","transport":"GRPC"}],
        "supportsAuthenticatedExtendedCard":true,"capabilities":{},"skills":[]}"#;
    assert_eq!(
        interfaces(union),
        [
            "JSONRPC 1.0 https://h/a",
            "JSONRPC 0.3 https://h/a",
            "GRPC 0.3 h:443"
        ]
    );
    let (card, _) = card::read(union).unwrap();
    assert_eq!(card.capabilities.extended_agent_card, Some(true));
    let client = builder().build(card.clone()).unwrap();
    assert_eq!(client.version(), Version::V1_0);
    let client = builder()
        .versions([Version::V0_3])
        .binding(Binding::Grpc)
        .build(card);
    let client = client.unwrap();
    assert_eq!(
        (client.version(), client.binding()),
        (Version::V0_3, Binding::Grpc)
    );
    // VER-09: what is pinned is not given up.
    let (card, _) = card::read(old).unwrap();
    let refused = builder().versions([Version::V1_0]).build(card).unwrap_err();
    assert!(matches!(refused, ConnectError::NoInterface { .. }));
    assert!(refused.to_string().contains("JSONRPC 0.3 at https://h/a"));
}
