//! Each wrong field of each operation, by its exact path (GEN-04, OP-SEND-02).

use nuncio_protocol::{ErrorKind, Limits, Operation, OperationKind, Validate as _};
use serde_json::{Value, json};

use crate::support::{Form, messages};

fn found(kind: OperationKind, params: &Value, limits: &Limits) -> Vec<String> {
    let operation = Operation::decode(kind, &params.to_string()).unwrap();
    match operation.check(limits) {
        Ok(()) => Vec::new(),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            let fields = error.violations().iter();
            let fields: Vec<String> = fields.map(|v| v.field.clone()).collect();
            for field in &fields {
                assert!(error.message.contains(field), "ERR-02: {}", error.message);
            }
            fields
        }
    }
}

#[track_caller]
fn wrong(kind: OperationKind, params: Value, fields: &[&str]) {
    let found = found(kind, &params, &Limits::default());
    assert_eq!(found, fields, "{kind:?} {params}");
}

fn message(change: impl FnOnce(&mut Value)) -> Value {
    let mut message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]});
    change(&mut message);
    json!({"message": message})
}

const SENDS: [OperationKind; 2] = [
    OperationKind::SendMessage,
    OperationKind::SendStreamingMessage,
];

/// OP-SEND-02, OP-SEND-03, OP-SEND-19, OP-STRM-05.
#[test]
fn wrong_fields_of_a_message_are_named() {
    for kind in SENDS {
        wrong(kind, json!({}), &["message"]);
        wrong(kind, json!({"message": null}), &["message"]);
        wrong(
            kind,
            json!({"message": {}}),
            &["message.messageId", "message.role", "message.parts"],
        );
        wrong(
            kind,
            message(|m| m["messageId"] = json!("")),
            &["message.messageId"],
        );
        wrong(
            kind,
            message(|m| m["messageId"] = json!("a\u{0}")),
            &["message.messageId"],
        );
        wrong(
            kind,
            message(|m| m["contextId"] = json!("a\nb")),
            &["message.contextId"],
        );
        wrong(
            kind,
            message(|m| m["taskId"] = json!("a\u{7f}")),
            &["message.taskId"],
        );
        wrong(
            kind,
            message(|m| m["role"] = json!("ROLE_AGENT")),
            &["message.role"],
        );
        wrong(
            kind,
            message(|m| m["role"] = json!("ROLE_UNSPECIFIED")),
            &["message.role"],
        );
        wrong(kind, message(|m| m["role"] = json!(9)), &["message.role"]);
        wrong(
            kind,
            message(|m| m["parts"] = json!([])),
            &["message.parts"],
        );
        wrong(
            kind,
            message(|m| m["parts"] = json!(null)),
            &["message.parts"],
        );
        wrong(
            kind,
            message(|m| m["referenceTaskIds"] = json!(["ok", "a\u{1}"])),
            &["message.referenceTaskIds[1]"],
        );
        wrong(kind, message(|_| {}), &[]);
    }
}

/// OP-SEND-19, OP-SEND-20, OP-PCRE-02.
#[test]
fn wrong_fields_of_a_configuration_are_named() {
    for kind in SENDS {
        let configured = |configuration: Value| {
            let mut request = message(|_| {});
            request["configuration"] = configuration;
            request
        };
        wrong(
            kind,
            configured(json!({"historyLength": -1})),
            &["configuration.historyLength"],
        );
        wrong(kind, configured(json!({"historyLength": 0})), &[]);
        let hook = "configuration.taskPushNotificationConfig";
        let hooked = |config: Value| configured(json!({"taskPushNotificationConfig": config}));
        wrong(kind, hooked(json!({})), &[&format!("{hook}.url")]);
        wrong(
            kind,
            hooked(json!({"url": "ftp://x"})),
            &[&format!("{hook}.url")],
        );
        wrong(
            kind,
            hooked(json!({"url": "/hook", "id": "\u{2}", "authentication": {}})),
            &[
                &format!("{hook}.url"),
                &format!("{hook}.id"),
                &format!("{hook}.authentication.scheme"),
            ],
        );
        wrong(kind, hooked(json!({"url": "http://x"})), &[]);
        let mut both = hooked(json!({}));
        both["message"] = json!({"messageId": "m"});
        wrong(
            kind,
            both,
            &["message.role", "message.parts", &format!("{hook}.url")],
        );
    }
}

/// OP-GET-04, OP-GET-06.
#[test]
fn wrong_fields_of_reading_a_task_are_named() {
    let kind = OperationKind::GetTask;
    wrong(kind, json!({}), &["id"]);
    wrong(kind, json!({"id": ""}), &["id"]);
    wrong(kind, json!({"id": "t\r"}), &["id"]);
    wrong(
        kind,
        json!({"id": "t", "historyLength": -1}),
        &["historyLength"],
    );
    wrong(kind, json!({"historyLength": -1}), &["id", "historyLength"]);
    wrong(kind, json!({"id": "t", "historyLength": 0}), &[]);
}

/// OP-LIST-04.
#[test]
fn wrong_fields_of_listing_are_named() {
    let kind = OperationKind::ListTasks;
    for size in [0, -1, 101, i32::MAX, i32::MIN] {
        wrong(kind, json!({"pageSize": size}), &["pageSize"]);
    }
    for size in [1, 50, 100] {
        wrong(kind, json!({"pageSize": size}), &[]);
    }
    wrong(kind, json!({}), &[]);
    wrong(kind, json!({"historyLength": -5}), &["historyLength"]);
    wrong(kind, json!({"contextId": "\u{9}"}), &["contextId"]);
    wrong(
        kind,
        json!({"contextId": "\u{9}", "pageSize": 0, "historyLength": -1}),
        &["contextId", "pageSize", "historyLength"],
    );
}

#[test]
fn wrong_fields_of_cancelling_and_subscribing_are_named() {
    for kind in [OperationKind::CancelTask, OperationKind::SubscribeToTask] {
        wrong(kind, json!({}), &["id"]);
        wrong(kind, json!({"id": "\u{85}"}), &["id"]);
        wrong(kind, json!({"id": "t"}), &[]);
    }
}

/// OP-PCRE-02.
#[test]
fn wrong_fields_of_webhooks_are_named() {
    let kind = OperationKind::CreateTaskPushNotificationConfig;
    wrong(kind, json!({}), &["taskId", "url"]);
    wrong(kind, json!({"taskId": "t"}), &["url"]);
    wrong(kind, json!({"url": "https://x"}), &["taskId"]);
    for url in [
        "",
        "x",
        "//x",
        "file:///etc/passwd",
        "ws://x",
        "javascript:0",
        " http://x",
    ] {
        wrong(kind, json!({"taskId": "t", "url": url}), &["url"]);
    }
    for url in ["http://x", "https://x/y?z#f", "HTTPS://x", "hTTp://x"] {
        wrong(kind, json!({"taskId": "t", "url": url}), &[]);
    }
    wrong(
        kind,
        json!({"taskId": "t", "url": "http://x", "authentication": {"credentials": "c"}}),
        &["authentication.scheme"],
    );
    wrong(
        kind,
        json!({"taskId": "t", "url": "http://x", "id": "\u{0}"}),
        &["id"],
    );

    for kind in [
        OperationKind::GetTaskPushNotificationConfig,
        OperationKind::DeleteTaskPushNotificationConfig,
    ] {
        wrong(kind, json!({}), &["taskId", "id"]);
        wrong(kind, json!({"taskId": "t"}), &["id"]);
        wrong(kind, json!({"id": "c"}), &["taskId"]);
        wrong(kind, json!({"taskId": "t", "id": "c"}), &[]);
    }
    let kind = OperationKind::ListTaskPushNotificationConfigs;
    wrong(kind, json!({}), &["taskId"]);
    wrong(kind, json!({"taskId": "t", "pageSize": -1}), &["pageSize"]);
    wrong(kind, json!({"taskId": "t", "pageSize": 0}), &[]);
    wrong(OperationKind::GetExtendedAgentCard, json!({}), &[]);
}

/// The golden requests are right, but for the one whose size is out of range on purpose.
#[test]
fn the_golden_requests_are_valid() {
    for golden in messages("json_rpc") {
        if golden.form == Form::Request && !golden.name.contains("defaults_set") {
            let found = found(golden.kind(), &golden.message(), &Limits::default());
            assert!(found.is_empty(), "{}: {found:?}", golden.name);
        }
    }
}

/// LIM-01, LIM-02: at the limit nothing happens, one above it the field is named.
#[test]
fn limits_hold_on_both_sides() {
    let mut limits = Limits::default();
    limits.max_id_bytes = 8;
    limits.max_parts = 3;
    limits.max_list_entries = 2;
    limits.max_url_bytes = 20;
    type Params = Box<dyn Fn(usize) -> Value>;
    let cases: Vec<(OperationKind, &str, Params)> = vec![
        (
            OperationKind::SendMessage,
            "message.messageId",
            Box::new(|n| message(|m| m["messageId"] = json!("é".repeat(3) + &"x".repeat(n + 2)))),
        ),
        (
            OperationKind::SendMessage,
            "message.contextId",
            Box::new(|n| message(|m| m["contextId"] = json!("x".repeat(n + 8)))),
        ),
        (
            OperationKind::SendMessage,
            "message.taskId",
            Box::new(|n| message(|m| m["taskId"] = json!("x".repeat(n + 8)))),
        ),
        (
            OperationKind::SendMessage,
            "message.referenceTaskIds[0]",
            Box::new(|n| message(|m| m["referenceTaskIds"] = json!(["x".repeat(n + 8)]))),
        ),
        (
            OperationKind::SendMessage,
            "message.parts",
            Box::new(|n| message(|m| m["parts"] = json!(vec![json!({"text": "x"}); n + 3]))),
        ),
        (
            OperationKind::SendMessage,
            "message.extensions",
            Box::new(|n| message(|m| m["extensions"] = json!(vec!["u"; n + 2]))),
        ),
        (
            OperationKind::SendMessage,
            "message.referenceTaskIds",
            Box::new(|n| message(|m| m["referenceTaskIds"] = json!(vec!["u"; n + 2]))),
        ),
        (
            OperationKind::SendMessage,
            "configuration.acceptedOutputModes",
            Box::new(|n| {
                let mut request = message(|_| {});
                request["configuration"] = json!({"acceptedOutputModes": vec!["u"; n + 2]});
                request
            }),
        ),
        (
            OperationKind::SendStreamingMessage,
            "configuration.taskPushNotificationConfig.url",
            Box::new(|n| {
                let mut request = message(|_| {});
                request["configuration"] = json!({"taskPushNotificationConfig": {"url": format!("http://{}", "x".repeat(n + 13))}});
                request
            }),
        ),
        (
            OperationKind::GetTask,
            "id",
            Box::new(|n| json!({"id": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::CancelTask,
            "id",
            Box::new(|n| json!({"id": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::SubscribeToTask,
            "id",
            Box::new(|n| json!({"id": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::ListTasks,
            "contextId",
            Box::new(|n| json!({"contextId": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::CreateTaskPushNotificationConfig,
            "taskId",
            Box::new(|n| json!({"taskId": "x".repeat(n + 8), "url": "http://x"})),
        ),
        (
            OperationKind::CreateTaskPushNotificationConfig,
            "id",
            Box::new(|n| json!({"taskId": "t", "id": "x".repeat(n + 8), "url": "http://x"})),
        ),
        (
            OperationKind::CreateTaskPushNotificationConfig,
            "url",
            Box::new(|n| json!({"taskId": "t", "url": format!("http://{}", "x".repeat(n + 13))})),
        ),
        (
            OperationKind::GetTaskPushNotificationConfig,
            "taskId",
            Box::new(|n| json!({"taskId": "x".repeat(n + 8), "id": "c"})),
        ),
        (
            OperationKind::GetTaskPushNotificationConfig,
            "id",
            Box::new(|n| json!({"taskId": "t", "id": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::ListTaskPushNotificationConfigs,
            "taskId",
            Box::new(|n| json!({"taskId": "x".repeat(n + 8)})),
        ),
        (
            OperationKind::DeleteTaskPushNotificationConfig,
            "taskId",
            Box::new(|n| json!({"taskId": "x".repeat(n + 8), "id": "c"})),
        ),
        (
            OperationKind::DeleteTaskPushNotificationConfig,
            "id",
            Box::new(|n| json!({"taskId": "t", "id": "x".repeat(n + 8)})),
        ),
    ];
    for (kind, field, params) in cases {
        assert_eq!(
            found(kind, &params(0), &limits),
            Vec::<String>::new(),
            "{kind:?} {field}"
        );
        assert_eq!(found(kind, &params(1), &limits), [field], "{kind:?}");
    }
}
