//! What is sent: headers, tenants, credentials, paths (VER-01, EXT-01, TEN-01, TEN-02, AUTH-09).

use nuncio_client::{ApiKeyPlace, ConnectError, Credentials};
use nuncio_protocol::{
    AgentExtension, AgentService as _, Binding, CancelTaskRequest, ErrorKind, GetTaskRequest,
    ListTasksRequest, Message, Part, SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use serde_json::json;

use crate::support::{BINDINGS, Fake, Request, builder, call, hello, status, task, task_item};

async fn echo() -> Fake {
    Fake::start(|request: &Request| match request.operation().as_str() {
        "SendMessage" => request.ok(&task_item("COMPLETED")),
        "SendStreamingMessage" | "SubscribeToTask" => {
            request.stream(&[(1, task_item("WORKING")), (2, status("COMPLETED"))])
        }
        "ListTasks" => request.ok(&json!({"tasks": []})),
        _ => request.ok(&task("COMPLETED", &json!([]))),
    })
    .await
}

fn key(place: ApiKeyPlace, name: &str) -> Credentials {
    Credentials::ApiKey {
        place,
        name: name.to_owned(),
        key: "s3cret".to_owned(),
    }
}

#[tokio::test]
async fn every_request_carries_version_and_context_of_the_call() {
    for binding in BINDINGS {
        let fake = echo().await;
        let client = builder()
            .extensions(["https://x.example/a"])
            .build(fake.card(binding, true))
            .unwrap();
        let mut call = call();
        call.extensions = vec!["https://x.example/b".into(), "https://x.example/a".into()];
        call.idempotency_key = Some("key-1".into());
        call.trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            .parse()
            .ok();
        call.last_event_id = Some(41);
        client.send_message(call.clone(), hello()).await.unwrap();
        let asked = GetTaskRequest::new("t1");
        client.get_task(call.clone(), asked).await.unwrap();
        let asked = SubscribeToTaskRequest::new("t1");
        drop(client.subscribe_to_task(call, asked).await.unwrap());
        let requests = fake.requests();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert_eq!(request.header("a2a-version"), Some("1.0"));
            assert_eq!(
                request.header("a2a-extensions"),
                Some("https://x.example/a, https://x.example/b")
            );
            assert_eq!(request.header("idempotency-key"), Some("key-1"));
            assert!(
                request
                    .header("traceparent")
                    .unwrap()
                    .starts_with("00-4bf9")
            );
            assert_eq!(request.header("authorization"), None);
        }
        assert_eq!(requests[0].header("last-event-id"), None);
        assert_eq!(requests[2].header("last-event-id"), Some("41"));
    }
}

#[tokio::test]
async fn the_interfaces_tenant_goes_where_the_binding_wants_it() {
    for binding in BINDINGS {
        let fake = echo().await;
        let mut card = fake.card(binding, true);
        card.supported_interfaces[0].tenant = Some("ac me".to_owned());
        let client = builder().build(card).unwrap();
        client.send_message(call(), hello()).await.unwrap();
        let asked = CancelTaskRequest::new("t/1");
        client.cancel_task(call(), asked).await.unwrap();
        let requests = fake.requests();
        match binding {
            Binding::JsonRpc => {
                assert_eq!(requests[0].target, "/a2a");
                assert_eq!(requests[1].json()["params"]["tenant"], "ac me");
                assert_eq!(requests[1].json()["params"]["id"], "t/1");
                assert!(requests[0].json()["id"].is_string());
            }
            _ => {
                assert_eq!(requests[0].target, "/a2a/ac%20me/message:send");
                assert_eq!(requests[1].target, "/a2a/ac%20me/tasks/t%2F1:cancel");
            }
        }
    }
}

#[tokio::test]
async fn rest_queries_and_bases_are_joined_with_care() {
    let fake = echo().await;
    let mut card = fake.card(Binding::HttpJson, true);
    card.supported_interfaces[0].url = format!("{}/base/?key=k", fake.base);
    let client = builder().build(card).unwrap();
    let mut asked = GetTaskRequest::new("t1");
    asked.history_length = Some(0);
    client.get_task(call(), asked).await.unwrap();
    let target = &fake.requests()[0].target;
    assert_eq!(target, "/base/tasks/t1?key=k&historyLength=0");
    // A step in the path is no id.
    let error = client.get_task(call(), GetTaskRequest::new("..")).await;
    assert_eq!(error.unwrap_err().kind, ErrorKind::InvalidParams);
}

#[tokio::test]
async fn credentials_go_to_their_origin_and_nowhere_else() {
    let (fake, other) = (echo().await, echo().await);
    for (credentials, header, expected) in [
        (
            Credentials::Bearer("s3cret".into()),
            "authorization",
            "Bearer s3cret",
        ),
        (
            Credentials::Basic {
                user: "u".into(),
                password: "p".into(),
            },
            "authorization",
            "Basic dTpw",
        ),
        (key(ApiKeyPlace::Header, "X-Api-Key"), "x-api-key", "s3cret"),
        (key(ApiKeyPlace::Cookie, "k"), "cookie", "k=s3cret"),
    ] {
        assert!(!format!("{credentials:?}").contains("s3cret"));
        for (agent, expected) in [(&fake, Some(expected)), (&other, None)] {
            let client = builder()
                .credentials_for(fake.base.clone(), credentials.clone())
                .build(agent.card(Binding::JsonRpc, false))
                .unwrap();
            client.send_message(call(), hello()).await.unwrap();
            let requests = agent.requests();
            assert_eq!(requests.last().unwrap().header(header), expected);
        }
    }
}

#[tokio::test]
async fn several_credentials_and_headers_go_together() {
    for binding in BINDINGS {
        let (fake, other) = (echo().await, echo().await);
        for (agent, ours) in [(&fake, true), (&other, false)] {
            let url = fake.base.as_str();
            let client = builder()
                .credentials_for(url, Credentials::Bearer("earlier".into()))
                .credentials_for(url, Credentials::Bearer("t".into()))
                .credentials_for(url, key(ApiKeyPlace::Header, "x-key"))
                .credentials_for(url, key(ApiKeyPlace::Query, "the key"))
                .credentials_for(url, key(ApiKeyPlace::Cookie, "a"))
                .credentials_for(url, key(ApiKeyPlace::Cookie, "b"))
                .header_for(url, "x-trace", "1")
                .header_for(url, "X-Trace", "2")
                .build(agent.card(binding, false))
                .unwrap();
            assert!(!format!("{client:?}").contains("s3cret"));
            let mut request = GetTaskRequest::new("t1");
            request.history_length = Some(2);
            client.get_task(call(), request).await.unwrap();
            let request = agent.requests().pop().unwrap();
            for (header, value) in [
                ("authorization", "Bearer t"),
                ("x-key", "s3cret"),
                ("cookie", "a=s3cret; b=s3cret"),
                ("x-trace", "2"),
            ] {
                assert_eq!(request.header(header), ours.then_some(value), "{binding:?}");
            }
            let in_query = request.target.ends_with("the+key=s3cret");
            assert_eq!(in_query, ours, "{}", request.target);
            let own = request.target.contains("historyLength=2");
            assert_eq!(own, binding == Binding::HttpJson, "{}", request.target);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_sent_makes_no_client() {
    let fake = echo().await;
    for (name, value) in [
        ("A2A-Version", "9"),
        ("host", "x"),
        ("x y", "x"),
        ("x", "\n"),
    ] {
        let made = builder()
            .header_for(fake.base.as_str(), name, value)
            .build(fake.card(Binding::JsonRpc, false));
        assert!(matches!(made, Err(ConnectError::Header(_))), "{name}");
    }
    let unbound = builder()
        .header("x", "x")
        .build(fake.card(Binding::JsonRpc, false));
    assert!(matches!(unbound, Err(ConnectError::UnboundCredentials)));
}

#[tokio::test]
async fn credentials_without_an_address_are_not_sent_where_a_card_says() {
    let fake = echo().await;
    let made = builder()
        .credentials(Credentials::Bearer("s3cret".into()))
        .build(fake.card(Binding::JsonRpc, false));
    assert!(made.is_err());
}

#[tokio::test]
async fn ext_09_a_required_extension_must_be_known_before_work_starts() {
    let fake = echo().await;
    let mut card = fake.card(Binding::JsonRpc, false);
    let mut extension = AgentExtension::default();
    extension.uri = "https://x.example/must".to_owned();
    extension.required = true;
    card.capabilities.extensions.push(extension);
    let client = builder().build(card).unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ExtensionSupportRequired);
    assert!(error.message.contains("https://x.example/must"));
    assert_eq!(fake.requests().len(), 0);
    client
        .get_task(call(), GetTaskRequest::new("t1"))
        .await
        .unwrap();
    let mut call = call();
    call.extensions.push("https://x.example/must".to_owned());
    client.send_message(call, hello()).await.unwrap();
}

/// BR-143: what is attached arrives as it was attached.
#[tokio::test]
async fn br_143_attachments_keep_name_and_media_type() {
    for binding in BINDINGS {
        let fake = echo().await;
        let client = fake.client(binding, false);
        let parts = vec![
            Part::text("look"),
            Part::raw(vec![0x89, b'P'])
                .with_filename("a.png")
                .with_media_type("image/png"),
            Part::url("https://h.example/r.pdf")
                .with_filename("r.pdf")
                .with_media_type("application/pdf"),
        ];
        let request = nuncio_protocol::SendMessageRequest::new(Message::user("m1", parts));
        client.send_message(call(), request).await.unwrap();
        assert_eq!(
            fake.requests()[0].params()["message"]["parts"],
            json!([
                {"text": "look"},
                {"raw": "iVA=", "filename": "a.png", "mediaType": "image/png"},
                {"url": "https://h.example/r.pdf", "filename": "r.pdf", "mediaType": "application/pdf"},
            ])
        );
    }
}

/// TRAP-19, TRAP-20, OP-PDEL-03: the answers of other SDKs to webhook operations.
#[tokio::test]
async fn webhook_answers_of_every_shape_are_read() {
    for answer in ["null", "{}", ""] {
        let fake = Fake::start(
            move |request: &Request| match (request.method.as_str(), answer) {
                (_, "") => crate::support::Answer::raw(
                    "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n",
                ),
                _ => request.ok(&serde_json::from_str(answer).unwrap()),
            },
        )
        .await;
        for binding in BINDINGS {
            let mut request = nuncio_protocol::DeleteTaskPushNotificationConfigRequest::default();
            request.task_id = "t1".into();
            request.id = "p1".into();
            let client = fake.client(binding, false);
            client.delete_push_config(call(), request).await.unwrap();
        }
    }
    let fake = Fake::start(|request: &Request| {
        request.ok(&json!({"taskId": "t1", "config": {"id": "p1", "url": "https://h.example/"}}))
    })
    .await;
    let mut config = TaskPushNotificationConfig::default();
    config.task_id = Some("t1".into());
    config.id = Some("p1".into());
    config.url = "https://h.example/".to_owned();
    for binding in BINDINGS {
        let client = fake.client(binding, false);
        let made = client
            .create_push_config(call(), config.clone())
            .await
            .unwrap();
        assert_eq!(made, config);
        let sent = fake.requests().last().unwrap().params();
        assert_eq!(sent["taskId"], "t1", "TRAP-19: path and body agree");
    }
}

#[tokio::test]
async fn the_public_card_stands_in_for_an_extended_one_that_is_not_offered() {
    let fake = echo().await;
    let client = fake.client(Binding::JsonRpc, false);
    let card = client.extended_card(call()).await.unwrap();
    assert_eq!(&card, client.card());
    assert_eq!(fake.requests().len(), 0);
}

/// OP-CANC-03: canceled twice is canceled.
#[tokio::test]
async fn a_second_cancel_of_a_canceled_task_succeeds() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| match request.operation().as_str() {
            "CancelTask" => request.refused(-32002, 400, "TASK_NOT_CANCELABLE"),
            _ => request.ok(&task("CANCELED", &json!([]))),
        })
        .await;
        let client = fake.client(binding, false);
        client
            .cancel_task(call(), CancelTaskRequest::new("t1"))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn lists_are_read_over_both_bindings() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            request.ok(&json!({"tasks": [task("WORKING", &json!([]))], "nextPageToken": "n"}))
        })
        .await;
        let client = fake.client(binding, false);
        let mut asked = ListTasksRequest::default();
        asked.page_size = Some(5);
        let page = client.list_tasks(call(), asked).await.unwrap();
        assert_eq!((page.tasks.len(), page.next_page_token.as_str()), (1, "n"));
    }
}
