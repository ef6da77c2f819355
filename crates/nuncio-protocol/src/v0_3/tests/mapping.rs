//! CHECKLIST section 17: each row with its loss, field by field.

use serde_json::{Value, json};

use super::super::{V0_3, decode_webhook, encode_webhook};
use super::{body, first_part, http, params, send, with_content, with_part, written};
use crate::dialect::{Dialect as _, JsonRpcDialect, RestDialect, StreamKind};
use crate::{
    A2aError, AuthenticationInfo, CancelTaskRequest, ErrorKind, Event, GetTaskRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, Message, Metadata, Operation,
    OperationKind, Outcome, Part, PartContent, Role, SendMessageConfiguration, SendMessageRequest,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TaskState,
    TaskStatus, TaskStatusUpdateEvent, Timestamp,
};

fn status(state: TaskState) -> TaskStatus {
    TaskStatus::new(state, Timestamp::from_unix_ms(0))
}

fn task(state: TaskState) -> Task {
    Task::new("t".into(), "c".into(), status(state))
}

fn result(outcome: &Outcome) -> [Value; 2] {
    let kind = OperationKind::GetTask;
    let rpc = JsonRpcDialect::encode_result(&V0_3, kind, outcome).unwrap();
    let rest = RestDialect::encode_result(&V0_3, kind, outcome).unwrap();
    [rpc, rest].map(|text| serde_json::from_str(&text).unwrap())
}

fn event(response: StreamResponse, stream: StreamKind) -> [Value; 2] {
    let event = Event::from(response);
    let rpc = JsonRpcDialect::encode_event(&V0_3, &event, stream);
    let rest = RestDialect::encode_event(&V0_3, &event, stream);
    [rpc, rest].map(|text| serde_json::from_str(&text).unwrap())
}

fn request(part: Part) -> Operation {
    Operation::SendMessage(SendMessageRequest::new(Message::user("m", vec![part])))
}

fn both_ways(part: Part) -> [Part; 2] {
    let operation = request(part);
    [
        first_part(params("message/send", written(&operation))),
        first_part(http("POST", "/v1/message:send", body(&operation))),
    ]
}

/// `kind` and the wrapper.
#[test]
fn items_are_bare_with_kind_or_wrapped_without() {
    let [rpc, rest] = event(
        StreamResponse::Task(task(TaskState::Working)),
        StreamKind::Send,
    );
    assert_eq!((&rpc["kind"], &rpc["id"]), (&json!("task"), &json!("t")));
    assert_eq!(rest["task"]["id"], "t");
    assert_eq!(rest["task"]["kind"], Value::Null);
}

/// BR-187, V03-01: every state as each form spells it, in results and in events.
#[test]
fn every_state_has_the_spelling_of_its_form() {
    let table = [
        ("unknown", "TASK_STATE_UNSPECIFIED"),
        ("submitted", "TASK_STATE_SUBMITTED"),
        ("working", "TASK_STATE_WORKING"),
        ("completed", "TASK_STATE_COMPLETED"),
        ("failed", "TASK_STATE_FAILED"),
        ("canceled", "TASK_STATE_CANCELLED"),
        ("input-required", "TASK_STATE_INPUT_REQUIRED"),
        ("rejected", "TASK_STATE_REJECTED"),
        ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
    ];
    for (state, (schema, proto)) in TaskState::ALL.iter().zip(table) {
        let [rpc, rest] = result(&Outcome::Task(task(*state)));
        assert_eq!(rpc["status"]["state"], schema);
        assert_eq!(rest["status"]["state"], proto);
        let update = TaskStatusUpdateEvent::new("t".into(), "c".into(), status(*state));
        let [rpc, rest] = event(StreamResponse::StatusUpdate(update), StreamKind::Send);
        assert_eq!(rpc["status"]["state"], schema);
        assert_eq!(rest["statusUpdate"]["status"]["state"], proto);
        for name in [schema, proto, state.as_str()] {
            let body = json!({"id": "t", "status": {"state": name}}).to_string();
            let read = RestDialect::decode_result(&V0_3, OperationKind::GetTask, body.as_bytes());
            let Ok(Outcome::Task(read)) = read else {
                panic!("{name}")
            };
            assert_eq!(read.status.state, *state, "{name}");
        }
    }
}

#[test]
fn roles_have_the_spelling_of_their_form() {
    let operation = request(Part::text("x"));
    assert_eq!(written(&operation)["message"]["role"], "user");
    assert_eq!(body(&operation)["message"]["role"], "ROLE_USER");
}

/// The schema has no word for it.
#[test]
fn a_message_without_a_role_is_refused_as_a_request_and_the_agents_elsewhere() {
    let message = Message {
        role: Role::Unspecified,
        ..Message::user("m", vec![Part::text("x")])
    };
    let operation = Operation::SendMessage(SendMessageRequest::new(message.clone()));
    let error = V0_3.encode_params(&operation).unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
    let [rpc, rest] = event(StreamResponse::Message(message), StreamKind::Send);
    assert_eq!(rpc["role"], "agent");
    assert_eq!(rest["message"]["role"], "ROLE_UNSPECIFIED");
}

/// `parts` in JSON-RPC, `content` in HTTP+JSON; artifacts have `parts` in both.
#[test]
fn parts_are_called_content_in_the_proto() {
    let operation = request(Part::text("x"));
    assert_eq!(written(&operation)["message"]["parts"][0]["text"], "x");
    assert_eq!(body(&operation)["message"]["content"][0]["text"], "x");
}

#[test]
fn text_and_data_parts_lose_media_type_and_filename() {
    for part in [Part::text("x"), Part::data(json!({"a": 1}))] {
        let typed = part
            .clone()
            .with_media_type("text/markdown")
            .with_filename("f");
        assert_eq!(both_ways(typed), [part.clone(), part]);
    }
}

#[test]
fn files_keep_media_type_and_filename() {
    for part in [Part::raw(vec![0, 255]), Part::url("https://example.com")] {
        let file = part.with_media_type("image/png").with_filename("f.png");
        assert_eq!(both_ways(file.clone()), [file.clone(), file]);
    }
}

/// V03-GRPC-02: once in JSON-RPC, twice in HTTP+JSON.
#[test]
fn bytes_are_encoded_twice_in_the_proto_only() {
    let operation = request(Part::raw("hello"));
    let file = &written(&operation)["message"]["parts"][0]["file"];
    assert_eq!(file["bytes"], "aGVsbG8=");
    let file = &body(&operation)["message"]["content"][0]["file"];
    assert_eq!(file["fileWithBytes"], "YUdWc2JHOD0=");
    for (text, bytes) in [("YUdWc2JHOD0=", "hello"), ("aGVsbG8=", "hello")] {
        let part = with_content(json!({"file": {"fileWithBytes": text}}));
        let read = first_part(http("POST", "/v1/message:send", part));
        assert_eq!(read, Part::raw(bytes), "also once, as the proto says");
    }
    let part = with_part(json!({"kind": "file", "file": {"bytes": "YUdWc2JHOD0="}}));
    assert_eq!(
        first_part(params("message/send", part)),
        Part::raw("aGVsbG8=")
    );
}

#[test]
fn data_that_is_no_object_is_wrapped_and_restored() {
    for value in [json!(null), json!([1]), json!("x"), json!(5), json!(false)] {
        let part = Part::data(value.clone());
        let operation = request(part.clone());
        let schema = &written(&operation)["message"]["parts"][0];
        assert_eq!(schema["data"], json!({ "value": value }));
        assert_eq!(schema["metadata"], json!({"data_part_compat": true}));
        let proto = &body(&operation)["message"]["content"][0];
        assert_eq!(proto["data"]["data"], json!({ "value": value }));
        assert_eq!(both_ways(part.clone()), [part.clone(), part.clone()]);

        let empty = Part {
            metadata: Some(Metadata::new()),
            ..part.clone()
        };
        assert_eq!(both_ways(empty), [part.clone(), part], "the listed loss");
    }
    let marked = json!({"kind": "data", "data": {"value": 1, "b": 2}, "metadata": {"data_part_compat": true}});
    let read = first_part(params("message/send", with_part(marked)));
    assert_eq!(read.content, PartContent::Data(json!({"value": 1, "b": 2})));
}

#[test]
fn reference_task_ids_are_lost_in_the_proto() {
    let mut message = Message::user("m", vec![Part::text("x")]);
    message.reference_task_ids = vec!["t0".into()];
    let operation = Operation::SendMessage(SendMessageRequest::new(message));
    assert_eq!(
        written(&operation)["message"]["referenceTaskIds"],
        json!(["t0"])
    );
    assert_eq!(body(&operation)["message"]["referenceTaskIds"], Value::Null);
}

/// The proto's `update` for `message`, and a time without a zone.
#[test]
fn a_status_is_read_in_every_spelling() {
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "x"}]});
    for name in ["message", "update"] {
        for (time, ms) in [
            ("1970-01-01T00:00:01", 1000),
            ("1970-01-01T00:00:01.5", 1500),
            ("1970-01-01T01:00:01+01:00", 1000),
        ] {
            let body = json!({"id": "t", "status": {"state": 2, name: message, "timestamp": time}});
            let read = RestDialect::decode_result(
                &V0_3,
                OperationKind::GetTask,
                body.to_string().as_bytes(),
            );
            let Ok(Outcome::Task(task)) = read else {
                panic!("{name} {time}")
            };
            assert_eq!(task.status.timestamp.unwrap().unix_ms(), ms);
            assert_eq!(task.status.message.unwrap().text(), "x");
        }
    }
}

/// V03-04, TRAP-33.
#[test]
fn final_is_computed_and_dropped() {
    for state in TaskState::ALL {
        for stream in [StreamKind::Send, StreamKind::Subscription] {
            let update = TaskStatusUpdateEvent::new("t".into(), "c".into(), status(*state));
            let [rpc, rest] = event(StreamResponse::StatusUpdate(update.clone()), stream);
            let waits = *state == TaskState::InputRequired && stream == StreamKind::Send;
            let last = state.is_terminal() || waits;
            assert_eq!(rpc["final"], last, "{state:?} {stream:?}");
            assert_eq!(rest["statusUpdate"]["final"] == true, last);
            let read = JsonRpcDialect::decode_event(&V0_3, &rpc.to_string()).unwrap();
            assert_eq!(read, Some(StreamResponse::StatusUpdate(update)));
        }
    }
}

/// V03-03: written always; unset means waiting in JSON-RPC only.
#[test]
fn blocking_is_the_opposite_of_returning_immediately() {
    for return_immediately in [false, true] {
        let mut sent = SendMessageRequest::new(Message::user("m", vec![Part::text("x")]));
        sent.configuration = Some(SendMessageConfiguration {
            return_immediately,
            ..SendMessageConfiguration::default()
        });
        let operation = Operation::SendMessage(sent.clone());
        assert_eq!(
            written(&operation)["configuration"]["blocking"],
            !return_immediately
        );
        assert_eq!(
            body(&operation)["configuration"]["blocking"],
            !return_immediately
        );
        assert_eq!(send(params("message/send", written(&operation))), sent);
        assert_eq!(
            send(http("POST", "/v1/message:send", body(&operation))),
            sent
        );
    }
    for configuration in [json!(null), json!({}), json!({"historyLength": 1})] {
        let mut rpc = with_part(json!({"kind": "text", "text": "x"}));
        rpc["configuration"] = configuration.clone();
        assert!(!send(params("message/send", rpc)).returns_immediately());
        let mut rest = with_content(json!({"text": "x"}));
        rest["configuration"] = configuration;
        assert!(send(http("POST", "/v1/message:send", rest)).returns_immediately());
    }
}

/// A request of 1.0 without configuration waits, and 0.3 must be told so.
#[test]
fn an_absent_configuration_is_written_out_in_the_proto() {
    let operation = request(Part::text("x"));
    assert_eq!(written(&operation)["configuration"], Value::Null);
    assert_eq!(body(&operation)["configuration"], json!({"blocking": true}));
}

/// V03-07.
#[test]
fn a_history_length_of_zero_is_none_and_an_absent_one_all() {
    for (id, length) in [("t", Some(0)), ("t", None), ("t", Some(7))] {
        let mut get = GetTaskRequest::new(id);
        get.history_length = length;
        let operation = Operation::GetTask(get);
        assert_eq!(params("tasks/get", written(&operation)).unwrap(), operation);
        let target = RestDialect::encode_request(&V0_3, &operation)
            .unwrap()
            .target;
        assert_eq!(http("GET", &target, json!(null)).unwrap(), operation);
    }
}

fn webhook() -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        tenant: Some("acme".to_owned()),
        id: Some("p".into()),
        task_id: Some("t".into()),
        url: "https://example.com/hook".to_owned(),
        token: Some("s".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("x".to_owned()),
        }),
    }
}

#[test]
fn the_webhook_of_a_configuration_loses_task_and_tenant() {
    let mut sent = SendMessageRequest::new(Message::user("m", vec![Part::text("x")]));
    sent.configuration = Some(SendMessageConfiguration {
        task_push_notification_config: Some(webhook()),
        ..SendMessageConfiguration::default()
    });
    let operation = Operation::SendMessage(sent);
    let kept = TaskPushNotificationConfig {
        tenant: None,
        task_id: None,
        ..webhook()
    };
    let names = ["pushNotificationConfig", "pushNotification"];
    for (written, name) in [written(&operation), body(&operation)].iter().zip(names) {
        let config = &written["configuration"][name];
        assert_eq!(config["taskId"], Value::Null);
        assert_eq!(config["authentication"]["schemes"], json!(["Bearer"]));
    }
    for read in [
        params("message/send", written(&operation)),
        http("POST", "/v1/message:send", body(&operation)),
    ] {
        let configuration = send(read).configuration.unwrap();
        let config = configuration.task_push_notification_config.unwrap();
        assert_eq!(config, kept);
    }
}

#[test]
fn a_webhook_is_nested_under_its_task_or_its_name() {
    let operation = Operation::CreateTaskPushNotificationConfig(webhook());
    let rpc = written(&operation);
    assert_eq!(rpc["taskId"], "t");
    assert_eq!(rpc["pushNotificationConfig"]["id"], "p");
    let rest = body(&operation);
    assert_eq!(rest["parent"], "tasks/t");
    assert_eq!(rest["configId"], "p");
    assert_eq!(rest["config"]["name"], "tasks/t/pushNotificationConfigs/p");
    let kept = Operation::CreateTaskPushNotificationConfig(TaskPushNotificationConfig {
        tenant: None,
        ..webhook()
    });
    let set = "tasks/pushNotificationConfig/set";
    assert_eq!(params(set, rpc).unwrap(), kept);
    let path = "/v1/tasks/t/pushNotificationConfigs";
    assert_eq!(http("POST", path, rest).unwrap(), kept);
}

/// Of several schemes one is kept, that which every sender knows.
#[test]
fn the_first_known_scheme_of_a_webhook_is_kept() {
    for (schemes, kept) in [
        (json!(["HOBA", "bearer", "Basic"]), "bearer"),
        (json!(["Basic", "Bearer"]), "Basic"),
        (json!(["HOBA", "Digest"]), "HOBA"),
    ] {
        let config = json!({"taskId": "t", "pushNotificationConfig":
            {"url": "https://x.example", "authentication": {"schemes": schemes}}});
        let read = params("tasks/pushNotificationConfig/set", config).unwrap();
        let Operation::CreateTaskPushNotificationConfig(read) = read else {
            panic!()
        };
        assert_eq!(read.authentication.unwrap().scheme, kept);
    }
}

/// "Beware: `id` means the task in 0.3."
#[test]
fn ids_of_webhook_requests_are_the_tasks() {
    let asked = json!({"id": "t", "pushNotificationConfigId": "p", "metadata": {}});
    let read = params("tasks/pushNotificationConfig/get", asked.clone()).unwrap();
    let Operation::GetTaskPushNotificationConfig(get) = &read else {
        panic!()
    };
    assert_eq!((get.task_id.as_str(), get.id.as_str()), ("t", "p"));
    assert_eq!(
        written(&read),
        json!({"id": "t", "pushNotificationConfigId": "p"})
    );
    let read = params("tasks/pushNotificationConfig/delete", asked).unwrap();
    let Operation::DeleteTaskPushNotificationConfig(delete) = &read else {
        panic!()
    };
    assert_eq!((delete.task_id.as_str(), delete.id.as_str()), ("t", "p"));
}

/// V03-08.
#[test]
fn the_webhook_of_a_task_is_asked_for_without_its_id() {
    for asked in [
        json!({"id": "t"}),
        json!({"id": "t", "pushNotificationConfigId": ""}),
        json!({"id": "t", "pushNotificationConfigId": null}),
    ] {
        let read = params("tasks/pushNotificationConfig/get", asked).unwrap();
        let Operation::ListTaskPushNotificationConfigs(list) = read else {
            panic!()
        };
        assert_eq!(list.task_id.as_str(), "t");
    }
    let asked = OperationKind::GetTaskPushNotificationConfig;
    let mut list = ListTaskPushNotificationConfigsResponse {
        configs: vec![webhook(), TaskPushNotificationConfig::default()],
        next_page_token: None,
    };
    let answer = |list: &ListTaskPushNotificationConfigsResponse| {
        JsonRpcDialect::encode_result(&V0_3, asked, &Outcome::PushConfigs(list.clone()))
    };
    let first: Value = serde_json::from_str(&answer(&list).unwrap()).unwrap();
    assert_eq!(first["pushNotificationConfig"]["id"], "p");
    list.configs.clear();
    assert_eq!(answer(&list).unwrap_err().kind, ErrorKind::TaskNotFound);
}

#[test]
fn a_list_of_webhooks_is_bare_and_loses_its_paging_in_json_rpc() {
    let list = ListTaskPushNotificationConfigsResponse {
        configs: vec![webhook()],
        next_page_token: Some("n".to_owned()),
    };
    let kind = OperationKind::ListTaskPushNotificationConfigs;
    let outcome = Outcome::PushConfigs(list);
    let rpc = JsonRpcDialect::encode_result(&V0_3, kind, &outcome).unwrap();
    let rpc: Value = serde_json::from_str(&rpc).unwrap();
    assert_eq!(rpc[0]["taskId"], "t");
    let rest = RestDialect::encode_result(&V0_3, kind, &outcome).unwrap();
    let rest: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(
        rest["configs"][0]["name"],
        "tasks/t/pushNotificationConfigs/p"
    );
    assert_eq!(rest["nextPageToken"], "n");
}

/// Requests that only 1.0 gives a place to metadata lose it; cancel keeps it.
#[test]
fn metadata_of_reading_requests_is_lost() {
    let asked = json!({"id": "t", "metadata": {"a": 1}});
    let read = |method| params(method, asked.clone()).unwrap();
    assert_eq!(
        read("tasks/get"),
        Operation::GetTask(GetTaskRequest::new("t"))
    );
    let subscribe = SubscribeToTaskRequest::new("t");
    assert_eq!(
        read("tasks/resubscribe"),
        Operation::SubscribeToTask(subscribe)
    );
    let Operation::CancelTask(cancel) = read("tasks/cancel") else {
        panic!()
    };
    assert_eq!(cancel.metadata.unwrap()["a"], 1);
}

/// V03-11: no form in JSON-RPC; clients ask for it nowhere, servers answer GET all the same.
#[test]
fn listing_tasks_is_refused_to_clients_and_served_as_a_bonus() {
    let operation = Operation::ListTasks(ListTasksRequest::default());
    for error in [
        V0_3.encode_params(&operation).unwrap_err(),
        RestDialect::encode_request(&V0_3, &operation).unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
    }
    for status in ["TASK_STATE_CANCELLED", "TASK_STATE_CANCELED", "canceled"] {
        let target = format!("/v1/tasks?status={status}&page_size=5&includeArtifacts=true");
        let Operation::ListTasks(list) = http("GET", &target, json!(null)).unwrap() else {
            panic!()
        };
        assert_eq!(list.status, Some(TaskState::Canceled));
        assert_eq!(
            (list.page_size, list.include_artifacts),
            (Some(5), Some(true))
        );
    }
    let refused = http("GET", "/v1/tasks?status=done", json!(null)).unwrap_err();
    assert_eq!(refused.violations()[0].field, "status");
}

#[test]
fn a_tenant_is_lost_in_every_operation() {
    let mut cancel = CancelTaskRequest::new("t");
    cancel.tenant = Some("acme".to_owned());
    let operation = Operation::CancelTask(cancel);
    assert_eq!(written(&operation), json!({"id": "t"}));
    let request = RestDialect::encode_request(&V0_3, &operation).unwrap();
    assert_eq!(request.target, "/v1/tasks/t:cancel");
    assert_eq!(body(&operation), json!({"name": "tasks/t"}));
}

/// V03-PUSH-01: the whole task, of kind `task`; a wrapper is taken too.
#[test]
fn a_webhook_call_carries_the_task() {
    let task = task(TaskState::Completed);
    let text = encode_webhook(&task);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["kind"], "task");
    assert_eq!(decode_webhook(text.as_bytes()).unwrap(), task);
    let event = Event::from(StreamResponse::Message(Message::user("m", vec![])));
    let notification = V0_3.encode_notification(&event, &task);
    assert_eq!(
        (notification.content_type, notification.body),
        ("application/json", text)
    );
    let wrapped = json!({ "task": shown }).to_string();
    assert_eq!(decode_webhook(wrapped.as_bytes()).unwrap(), task);
    assert!(decode_webhook(b"[]").is_err());
}

/// MAP-03.
#[test]
fn the_context_is_always_written() {
    let bare = Task {
        context_id: None,
        ..task(TaskState::Working)
    };
    for shown in result(&Outcome::Task(bare)) {
        assert_eq!(shown["contextId"], "");
    }
}

/// V03-05, V03-12, V03-REST-05.
#[test]
fn a_subscription_to_a_finished_task_is_answered_with_the_task() {
    let mut subscribe = SubscribeToTaskRequest::new("t");
    subscribe.tenant = Some("acme".to_owned());
    let asked = Operation::SubscribeToTask(subscribe);
    let error = |kind| A2aError::new(kind, "x");
    let instead = V0_3.instead(&asked, &error(ErrorKind::UnsupportedOperation));
    let Some(Operation::GetTask(get)) = instead else {
        panic!()
    };
    assert_eq!(
        (get.id.as_str(), get.tenant.as_deref()),
        ("t", Some("acme"))
    );
    assert!(
        V0_3.instead(&asked, &error(ErrorKind::TaskNotFound))
            .is_none()
    );
    let other = Operation::GetTask(GetTaskRequest::new("t"));
    assert!(
        V0_3.instead(&other, &error(ErrorKind::UnsupportedOperation))
            .is_none()
    );
    assert_eq!(V0_3.extensions_header(), "x-a2a-extensions");
    assert!(!V0_3.has_own_media_type());
}
