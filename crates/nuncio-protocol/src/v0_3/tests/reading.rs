//! What strangers send: mixed forms are taken, requests of 1.0 refused with a hint.

use serde_json::{Value, json};

use super::super::V0_3;
use super::{first_part, http, params, send, with_content, with_part};
use crate::dialect::{JsonRpcDialect, RestDialect};
use crate::v1::rest::RouteError;
use crate::{
    ErrorKind, Limits, ListTaskPushNotificationConfigsResponse, Operation, OperationKind, Outcome,
    Part, Role, StreamResponse, TaskPushNotificationConfig, TaskState, Validate as _,
};

/// The field that a request is refused for, with the hint that 0.3 spells it otherwise.
#[track_caller]
fn refused(read: Result<Operation, crate::A2aError>, field: &str, word: &str) {
    let error = read.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
    assert_eq!(error.violations()[0].field, field, "{error}");
    assert!(error.message.contains(word), "{error}");
}

#[test]
fn requests_of_1_0_in_json_rpc_are_refused_with_a_hint() {
    let sent = |change: fn(&mut Value)| {
        let mut body = with_part(json!({"kind": "text", "text": "x"}));
        change(&mut body);
        params("message/send", body)
    };
    refused(
        sent(|body| body["message"]["role"] = "ROLE_USER".into()),
        "message.role",
        "1.0",
    );
    refused(
        sent(|body| body["message"]["parts"] = json!([{"url": "https://x.example"}])),
        "message.parts[0].url",
        "`file`",
    );
    refused(
        sent(|body| body["message"]["parts"] = json!([{"raw": "AA=="}])),
        "message.parts[0].raw",
        "1.0",
    );
    refused(
        sent(|body| body["message"]["parts"] = json!([{"data": [1]}])),
        "message.parts[0].data",
        "1.0",
    );
    refused(
        sent(|body| body["configuration"] = json!({"returnImmediately": true})),
        "configuration.returnImmediately",
        "`blocking`",
    );
    refused(
        sent(|body| body["configuration"] = json!({"task_push_notification_config": {"url": "u"}})),
        "configuration.taskPushNotificationConfig",
        "`pushNotificationConfig`",
    );
    let flat = json!({"taskId": "t", "url": "https://x.example"});
    refused(
        params("tasks/pushNotificationConfig/set", flat),
        "url",
        "1.0",
    );
    for method in ["get", "list", "delete"] {
        let method = format!("tasks/pushNotificationConfig/{method}");
        let newer = json!({"taskId": "t", "id": "p"});
        refused(params(&method, newer), "taskId", "pushNotificationConfigId");
    }
}

#[test]
fn requests_of_1_0_over_http_are_refused_with_a_hint() {
    let mut newer = with_content(json!({"text": "x"}));
    newer["message"] = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]});
    let read = http("POST", "/v1/message:send", newer);
    refused(read, "message.parts", "`content`");
    let mut newer = with_content(json!({"text": "x"}));
    newer["configuration"] = json!({"returnImmediately": false});
    let read = http("POST", "/v1/message:stream", newer);
    refused(read, "configuration.returnImmediately", "`blocking`");
    let flat = json!({"url": "https://x.example"});
    let path = "/v1/tasks/t/pushNotificationConfigs";
    refused(http("POST", path, flat), "url", "1.0");
}

/// TRAP-32: what cannot be mistaken is taken in either form.
#[test]
fn mixed_forms_of_a_message_are_read() {
    let parts = json!([{"text": "x"}]);
    for body in [
        json!({"message_id": "m", "role": "user", "parts": parts, "context_id": "c"}),
        json!({"messageId": "m", "role": "user", "content": parts, "contextId": "c"}),
    ] {
        let message = send(params("message/send", json!({"message": body})))
            .message
            .unwrap();
        assert_eq!(message.message_id.as_str(), "m");
        assert_eq!(message.context_id.unwrap().as_str(), "c");
        assert_eq!(message.parts, [Part::text("x")]);
    }
    for body in [
        json!({"message": {"messageId": "m", "role": "user", "content": parts}}),
        json!({"request": {"message_id": "m", "role": 1, "content": parts}}),
        json!({"request": {"message_id": "m", "role": "ROLE_USER",
            "content": [{"kind": "text", "text": "x"}]}}),
    ] {
        let message = send(http("POST", "/v1/message:send", body))
            .message
            .unwrap();
        assert_eq!((message.role, message.text().as_str()), (Role::User, "x"));
    }
}

#[test]
fn files_and_data_are_read_in_either_form() {
    let url = Part::url("https://x.example").with_media_type("image/png");
    for file in [
        json!({"uri": "https://x.example", "mimeType": "image/png"}),
        json!({"fileWithUri": "https://x.example", "mime_type": "image/png"}),
        json!({"file_with_uri": "https://x.example", "mimeType": "image/png"}),
    ] {
        let part = json!({ "file": file });
        assert_eq!(
            first_part(params("message/send", with_part(part.clone()))),
            url
        );
        let read = http("POST", "/v1/message:send", with_content(part));
        assert_eq!(first_part(read), url);
    }
    let data = |part| first_part(http("POST", "/v1/message:send", with_content(part)));
    assert_eq!(
        data(json!({"data": {"data": {"a": 1}}})),
        Part::data(json!({"a": 1}))
    );
    assert_eq!(data(json!({"data": {"a": 1}})), Part::data(json!({"a": 1})));
    assert_eq!(
        data(json!({"data": {"data": 5}})),
        Part::data(json!({"data": 5}))
    );
    assert_eq!(data(json!({"data": {}})), Part::data(json!({})));
    let part = json!({"kind": "data", "data": {"data": {"a": 1}}});
    assert_eq!(
        first_part(params("message/send", with_part(part))),
        Part::data(json!({"data": {"a": 1}})),
        "the schema has no second object"
    );
}

/// V03-01: file parts with both or neither of bytes and uri, and parts of no kind.
#[test]
fn parts_that_say_nothing_or_two_things_are_refused() {
    for (part, field) in [
        (json!({}), "message.parts[0]"),
        (json!({"kind": "text"}), "message.parts[0]"),
        (
            json!({"text": "x", "file": {"uri": "u"}}),
            "message.parts[0]",
        ),
        (
            json!({"kind": "video", "text": "x"}),
            "message.parts[0].kind",
        ),
        (json!({"kind": "text", "text": 5}), "message.parts[0].text"),
        (json!({"kind": "file", "file": {}}), "message.parts[0].file"),
        (
            json!({"kind": "file", "file": {"uri": "u", "bytes": "AA=="}}),
            "message.parts[0].file",
        ),
        (
            json!({"kind": "file", "file": {"bytes": "!"}}),
            "message.parts[0].file.bytes",
        ),
        (
            json!({"kind": "data", "data": "x"}),
            "message.parts[0].data",
        ),
        (json!("x"), "message.parts[0]"),
    ] {
        refused(params("message/send", with_part(part)), field, "expected");
    }
}

#[test]
fn wrong_members_are_named_by_their_path() {
    for (body, field) in [
        (json!({"message": []}), "message"),
        (
            json!({"message": {"role": "user", "parts": {}}}),
            "message.parts",
        ),
        (
            json!({"message": {"role": "user", "parts": [], "message_id": 5}}),
            "message.messageId",
        ),
        (json!({"message": {"role": "system"}}), "message.role"),
        (json!({"message": {}}), "message.role"),
        (
            json!({"message": {"role": "user", "extensions": [5]}}),
            "message.extensions[0]",
        ),
        (
            json!({"configuration": {"historyLength": 1.5}}),
            "configuration.historyLength",
        ),
        (
            json!({"configuration": {"blocking": "yes"}}),
            "configuration.blocking",
        ),
        (json!({"metadata": []}), "metadata"),
        (
            json!({"message": {"role": "user", "messageId": "a", "message_id": "b"}}),
            "message.messageId",
        ),
    ] {
        refused(params("message/send", body), field, "");
    }
}

/// Some routes make the id; validation judges.
#[test]
fn a_missing_message_id_is_left_to_validation() {
    let mut body = with_part(json!({"kind": "text", "text": "x"}));
    body["message"].as_object_mut().unwrap().remove("messageId");
    let read = params("message/send", body).unwrap();
    let error = read.check(&Limits::default()).unwrap_err();
    assert_eq!(error.violations()[0].field, "message.messageId");
    let empty = params("message/send", json!({})).unwrap();
    let error = empty.check(&Limits::default()).unwrap_err();
    assert_eq!(error.violations()[0].field, "message");
}

/// V03-REST-04, TRAP-19: whole, whole in proto names, and the config alone; `task` for `tasks`.
#[test]
fn the_three_bodies_that_create_a_webhook_mean_the_same() {
    let name = "tasks/t/pushNotificationConfigs/p";
    let inner = json!({"url": "https://x.example"});
    let whole = json!({"parent": "tasks/t", "configId": "p",
        "config": {"name": name, "pushNotificationConfig": inner}});
    let proto = json!({"parent": "tasks/t", "config_id": "p",
        "config": {"name": name, "push_notification_config": inner}});
    let bare = json!({"name": name, "pushNotificationConfig": inner});
    let unnamed = json!({"pushNotificationConfig": inner});
    for path in ["/v1/tasks/t", "/v1/task/t"] {
        for (query, body) in [
            ("", &whole),
            ("", &proto),
            ("", &bare),
            ("?configId=p", &bare),
            ("?config_id=p", &unnamed),
        ] {
            let target = format!("{path}/pushNotificationConfigs{query}");
            let read = http("POST", &target, body.clone()).unwrap();
            let Operation::CreateTaskPushNotificationConfig(config) = read else {
                panic!("{target}")
            };
            assert_eq!(config.id.unwrap().as_str(), "p", "{target} {body}");
            assert_eq!(config.task_id.unwrap().as_str(), "t");
            assert_eq!(config.url, "https://x.example");
        }
    }
    let path = "/v1/tasks/t/pushNotificationConfigs";
    let none =
        json!({"name": "tasks/t/pushNotificationConfigs/None", "pushNotificationConfig": inner});
    let Ok(Operation::CreateTaskPushNotificationConfig(config)) = http("POST", path, none) else {
        panic!()
    };
    assert_eq!(config.id, None, "what an SDK writes for no id");
    for (body, field) in [
        (json!({"parent": "tasks/other", "config": bare}), "parent"),
        (
            json!({"config": {"name": "tasks/other", "pushNotificationConfig": inner}}),
            "config.name",
        ),
    ] {
        refused(http("POST", path, body), field, "differs from the path");
    }
}

/// OP-PCRE, TRAP-19: replies of other SDKs are nested, flat, or a bare list.
#[test]
fn webhooks_in_replies_are_read_in_every_shape() {
    let kind = OperationKind::GetTaskPushNotificationConfig;
    for reply in [
        json!({"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "u"}}),
        json!({"taskId": "t", "config": {"id": "p", "url": "u"}}),
        json!({"taskId": "t", "id": "p", "url": "u"}),
        json!({"name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": {"url": "u"}}),
        json!({"name": "tasks/t/pushNotificationConfigs/p", "push_notification_config": {"url": "u"}}),
    ] {
        let rpc = JsonRpcDialect::decode_result(&V0_3, kind, &reply.to_string());
        let rest = RestDialect::decode_result(&V0_3, kind, reply.to_string().as_bytes());
        for read in [rpc, rest] {
            let Ok(Outcome::PushConfig(config)) = read else {
                panic!("{reply}")
            };
            assert_eq!(config.task_id.unwrap().as_str(), "t", "{reply}");
            assert_eq!(config.id.unwrap().as_str(), "p", "{reply}");
        }
        let kind = OperationKind::ListTaskPushNotificationConfigs;
        for list in [json!([reply]), json!({"configs": [reply]})] {
            let read = JsonRpcDialect::decode_result(&V0_3, kind, &list.to_string());
            let Ok(Outcome::PushConfigs(read)) = read else {
                panic!("{list}")
            };
            assert_eq!(read.configs.len(), 1);
        }
    }
}

/// BR-118: bare by `kind`, by shape, or wrapped; what nobody knows is skipped.
#[test]
fn items_of_a_stream_are_told_apart() {
    let task = json!({"id": "t", "status": {"state": "working"}});
    let message = json!({"messageId": "m", "role": "agent", "parts": []});
    let status =
        json!({"taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": false});
    let artifact =
        json!({"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": []}});
    let shapes = [
        ("task", "task", task),
        ("message", "message", message.clone()),
        ("message", "msg", message),
        ("status-update", "statusUpdate", status.clone()),
        ("status-update", "status_update", status),
        ("artifact-update", "artifact_update", artifact),
    ];
    for (kind, wrapper, bare) in shapes {
        let mut with_kind = bare.clone();
        with_kind["kind"] = kind.into();
        for item in [bare.clone(), with_kind, json!({ wrapper: bare })] {
            let text = item.to_string();
            let rpc = JsonRpcDialect::decode_event(&V0_3, &text).unwrap();
            let rest = RestDialect::decode_event(&V0_3, text.as_bytes()).unwrap();
            assert_eq!(rpc, rest, "{item}");
            let found = match rpc.unwrap() {
                StreamResponse::Task(_) => "task",
                StreamResponse::Message(_) => "message",
                StreamResponse::StatusUpdate(_) => "status-update",
                StreamResponse::ArtifactUpdate(_) => "artifact-update",
            };
            assert_eq!(found, kind, "{item}");
        }
    }
    for unknown in [
        json!({}),
        json!({"kind": "progress", "id": "t"}),
        json!({"x": 1}),
    ] {
        let read = JsonRpcDialect::decode_event(&V0_3, &unknown.to_string());
        assert_eq!(read.unwrap(), None, "{unknown}");
    }
    for broken in [json!([]), json!(null), json!({"kind": "task", "id": 5})] {
        let error = JsonRpcDialect::decode_event(&V0_3, &broken.to_string()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidAgentResponse, "{broken}");
    }
}

/// Enum values of a later version are kept from doing harm.
#[test]
fn unknown_values_in_replies_are_unspecified() {
    for state in [
        json!("paused"),
        json!(99),
        json!(null),
        json!({}),
        json!(""),
    ] {
        let reply = json!({"kind": "task", "id": "t", "contextId": "c", "status": {"state": state},
            "history": [{"kind": "message", "messageId": "m", "role": "system", "parts": []}]});
        let read = JsonRpcDialect::decode_result(&V0_3, OperationKind::GetTask, &reply.to_string());
        let Ok(Outcome::Task(task)) = read else {
            panic!("{state}")
        };
        assert_eq!(task.status.state, TaskState::Unspecified);
        assert_eq!(task.history[0].role, Role::Unspecified);
    }
}

/// V03-REST-05, REST-05, REST-06.
#[test]
fn paths_are_those_below_v1() {
    use OperationKind::{CancelTask, GetTask, ListTasks, SendMessage, SubscribeToTask};
    for (method, path, kind, id) in [
        ("POST", "/v1/message:send", SendMessage, None),
        ("POST", "/v1/message:send/", SendMessage, None),
        ("GET", "/v1/tasks", ListTasks, None),
        ("GET", "/v1/tasks/a:b", GetTask, Some("a:b")),
        ("HEAD", "/v1/task/a%2Fb", GetTask, Some("a/b")),
        ("POST", "/v1/tasks/a:b:cancel", CancelTask, Some("a:b")),
        ("GET", "/v1/tasks/a:subscribe", SubscribeToTask, Some("a")),
        ("POST", "/v1/tasks/a:subscribe", SubscribeToTask, Some("a")),
    ] {
        let route = V0_3.route(method, path).unwrap();
        assert_eq!((route.kind, route.task_id.as_deref()), (kind, id), "{path}");
        assert_eq!(route.tenant, None);
    }
    for path in [
        "",
        "/",
        "/v1",
        "/v1/",
        "/v1/x",
        "/tasks",
        "/message:send",
        "/v1/extendedAgentCard",
        "/v1/acme/tasks",
        "/v1/tasks/a/b",
        "/v1/tasks/%FF",
        "v1/tasks",
    ] {
        assert_eq!(V0_3.route("GET", path), Err(RouteError::NotFound), "{path}");
    }
    let allowed = |path| match V0_3.route("PATCH", path) {
        Err(RouteError::MethodNotAllowed(methods)) => methods,
        other => panic!("{other:?}"),
    };
    assert_eq!(allowed("/v1/card"), ["GET"]);
    assert_eq!(allowed("/v1/tasks/a:cancel"), ["POST"]);
    assert_eq!(
        allowed("/v1/tasks/a/pushNotificationConfigs"),
        ["GET", "POST"]
    );
    assert_eq!(
        allowed("/v1/tasks/a/pushNotificationConfigs/p"),
        ["GET", "DELETE"]
    );
}

/// V03-REST-05: empty bodies where nothing is needed, and nowhere else.
#[test]
fn bodies_that_hold_nothing_are_fine_for_cancel() {
    let cancel = V0_3.route("POST", "/v1/tasks/t:cancel").unwrap();
    for body in ["", " \n", "null", "{}", r#"{"name":"tasks/t"}"#] {
        assert!(
            V0_3.decode_request(&cancel, None, body.as_bytes()).is_ok(),
            "{body}"
        );
    }
    let other = V0_3.decode_request(&cancel, None, br#"{"name":"tasks/u"}"#);
    refused(other, "name", "differs");
    let send = V0_3.route("POST", "/v1/message:send").unwrap();
    let kind = |body: &[u8]| V0_3.decode_request(&send, None, body).unwrap_err().kind;
    assert_eq!(kind(b""), ErrorKind::ParseError);
    assert_eq!(kind(b"{"), ErrorKind::ParseError);
    assert_eq!(kind(b"null"), ErrorKind::InvalidParams);
    assert_eq!(kind(b"[]"), ErrorKind::InvalidParams);
    let get = V0_3.route("GET", "/v1/tasks/t").unwrap();
    for query in ["historyLength=x", "historyLength=1&history_length=2"] {
        refused(
            V0_3.decode_request(&get, Some(query), b""),
            "historyLength",
            "",
        );
    }
}

/// The kit, and whoever writes through a proto, leaves an empty object where nothing is meant.
#[test]
fn an_empty_authentication_is_none() {
    let read = |authentication: Value| {
        let params = json!({"taskId": "t", "pushNotificationConfig": {
            "url": "https://h/", "authentication": authentication
        }});
        let kind = OperationKind::CreateTaskPushNotificationConfig;
        let operation = JsonRpcDialect::decode_params(&V0_3, kind, &params.to_string()).unwrap();
        let Operation::CreateTaskPushNotificationConfig(config) = operation else {
            panic!("another operation");
        };
        config.authentication.map(|told| told.scheme)
    };
    assert_eq!(read(json!({})), None);
    assert_eq!(read(json!({"schemes": []})), None);
    assert_eq!(
        read(json!({"schemes": ["Basic"]})),
        Some("Basic".to_owned())
    );
    let missing = json!({"schemes": [], "credentials": "secret"});
    assert_eq!(
        read(missing),
        Some(String::new()),
        "for validation to judge"
    );
}

/// V03-08: no id and "default" ask for the one webhook of a task, as the kit and older clients do.
#[test]
fn a_webhook_without_a_name_is_found() {
    let asks = |id: Value| {
        let asked = json!({"id": "t", "pushNotificationConfigId": id});
        params("tasks/pushNotificationConfig/get", asked)
            .unwrap()
            .kind()
    };
    assert_eq!(
        asks(Value::Null),
        OperationKind::ListTaskPushNotificationConfigs
    );
    assert_eq!(
        asks(json!("default")),
        OperationKind::ListTaskPushNotificationConfigs
    );
    assert_eq!(
        asks(json!("p")),
        OperationKind::GetTaskPushNotificationConfig
    );
    let told = |ids: &[&str]| {
        let configs = ids.iter().map(|id| TaskPushNotificationConfig {
            id: Some((*id).into()),
            task_id: Some("t".into()),
            ..TaskPushNotificationConfig::default()
        });
        let list = ListTaskPushNotificationConfigsResponse {
            configs: configs.collect(),
            ..ListTaskPushNotificationConfigsResponse::default()
        };
        let kind = OperationKind::GetTaskPushNotificationConfig;
        let written = JsonRpcDialect::encode_result(&V0_3, kind, &Outcome::PushConfigs(list));
        let written: Value = serde_json::from_str(&written?).unwrap();
        Ok::<_, crate::A2aError>(written["pushNotificationConfig"]["id"].clone())
    };
    assert_eq!(told(&["a", "b"]).unwrap(), "a");
    assert_eq!(told(&["a", "default"]).unwrap(), "default");
    assert_eq!(told(&[]).unwrap_err().kind, ErrorKind::TaskNotFound);
}
