//! Requests that must be refused, in both bindings, with the exact code, status and field, and
//! without the agent hearing of them (GEN-04, BR-009, BR-123, BR-140).

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{JSON, Served, rpc, say, serve};

/// What a request is refused with.
#[derive(Clone, Copy, Debug)]
enum Refused {
    /// Not JSON.
    Parse,
    /// Invalid params, naming this field.
    Field(&'static str),
    /// A media type the agent does not take or give.
    MediaType,
}

use Refused::{Field, MediaType, Parse};

/// A body of SendMessage, as JSON text, and why it is refused.
fn bodies() -> Vec<(String, Refused)> {
    let mut cases: Vec<(String, Refused)> = broken_text();
    let message = |message: Value| json!({ "message": message }).to_string();
    let fields = |changes: Value| {
        let mut body = say("x")["message"].clone();
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        message(body)
    };
    let without = |name: &str| {
        let mut body = say("x")["message"].clone();
        body.as_object_mut().unwrap().remove(name);
        message(body)
    };
    let part = |part: Value| fields(json!({ "parts": [part] }));
    let configured = |configuration: Value| {
        let mut body = say("x");
        body["configuration"] = configuration;
        body.to_string()
    };
    let webhook = |config: Value| configured(json!({ "taskPushNotificationConfig": config }));
    cases.extend([
        ("{}".to_owned(), Field("message")),
        (json!({"message": null}).to_string(), Field("message")),
        (message(json!([])), Field("message")),
        (message(json!("x")), Field("message")),
        (message(json!(5)), Field("message")),
        (without("messageId"), Field("message.messageId")),
        (fields(json!({"messageId": ""})), Field("message.messageId")),
        (fields(json!({"messageId": 5})), Field("message.messageId")),
        (
            fields(json!({"messageId": null})),
            Field("message.messageId"),
        ),
        (
            fields(json!({"messageId": "m".repeat(257)})),
            Field("message.messageId"),
        ),
        (
            fields(json!({"messageId": "a\nb"})),
            Field("message.messageId"),
        ),
        (without("role"), Field("message.role")),
        (
            fields(json!({"role": "ROLE_UNSPECIFIED"})),
            Field("message.role"),
        ),
        (fields(json!({"role": "ROLE_AGENT"})), Field("message.role")),
        (fields(json!({"role": "user"})), Field("message.role")),
        (fields(json!({"role": 2})), Field("message.role")),
        (fields(json!({"role": 77})), Field("message.role")),
        (fields(json!({"role": {}})), Field("message.role")),
        (without("parts"), Field("message.parts")),
        (fields(json!({"parts": []})), Field("message.parts")),
        (fields(json!({"parts": {}})), Field("message.parts")),
        (fields(json!({"parts": "x"})), Field("message.parts")),
        (
            fields(json!({"parts": vec![json!({"text": ""}); 1_001]})),
            Field("message.parts"),
        ),
        (part(json!(null)), Field("message.parts[0]")),
        (part(json!("x")), Field("message.parts[0]")),
        (part(json!({})), Field("message.parts[0]")),
        (part(json!({"kind": "text"})), Field("message.parts[0]")),
        (part(json!({"text": null})), Field("message.parts[0]")),
        (
            part(json!({"text": "a", "url": "b"})),
            Field("message.parts[0]"),
        ),
        (
            part(json!({"text": "a", "data": null})),
            Field("message.parts[0]"),
        ),
        (part(json!({"text": 5})), Field("message.parts[0].text")),
        (part(json!({"raw": "*!*"})), Field("message.parts[0].raw")),
        (part(json!({"url": []})), Field("message.parts[0].url")),
        (
            part(json!({"text": "a", "metadata": 5})),
            Field("message.parts[0].metadata"),
        ),
        (
            fields(json!({"parts": [{"text": "a"}, {"text": false}]})),
            Field("message.parts[1].text"),
        ),
        (fields(json!({"metadata": []})), Field("message.metadata")),
        (fields(json!({"metadata": "x"})), Field("message.metadata")),
        (fields(json!({"taskId": 5})), Field("message.taskId")),
        (fields(json!({"taskId": "a\u{1}"})), Field("message.taskId")),
        (fields(json!({"contextId": []})), Field("message.contextId")),
        (
            fields(json!({"contextId": "c".repeat(257)})),
            Field("message.contextId"),
        ),
        (
            fields(json!({"extensions": "x"})),
            Field("message.extensions"),
        ),
        (
            fields(json!({"extensions": [5]})),
            Field("message.extensions[0]"),
        ),
        (
            fields(json!({"extensions": vec!["x"; 101]})),
            Field("message.extensions"),
        ),
        (
            fields(json!({"referenceTaskIds": vec!["x"; 101]})),
            Field("message.referenceTaskIds"),
        ),
        (configured(json!("x")), Field("configuration")),
        (
            configured(json!({"historyLength": -1})),
            Field("configuration.historyLength"),
        ),
        (
            configured(json!({"historyLength": 1.5})),
            Field("configuration.historyLength"),
        ),
        (
            configured(json!({"historyLength": "many"})),
            Field("configuration.historyLength"),
        ),
        (
            configured(json!({"historyLength": 99_999_999_999_i64})),
            Field("configuration.historyLength"),
        ),
        (
            configured(json!({"returnImmediately": "yes"})),
            Field("configuration.returnImmediately"),
        ),
        (
            configured(json!({"acceptedOutputModes": "text/plain"})),
            Field("configuration.acceptedOutputModes"),
        ),
        (
            configured(json!({"acceptedOutputModes": vec!["text/plain"; 101]})),
            Field("configuration.acceptedOutputModes"),
        ),
        (
            webhook(json!({})),
            Field("configuration.taskPushNotificationConfig.url"),
        ),
        (
            webhook(json!({"url": "ftp://x"})),
            Field("configuration.taskPushNotificationConfig.url"),
        ),
        (
            webhook(json!({"url": "/relative"})),
            Field("configuration.taskPushNotificationConfig.url"),
        ),
        (
            webhook(json!({"url": "https://x", "authentication": {}})),
            Field("configuration.taskPushNotificationConfig.authentication.scheme"),
        ),
        (
            json!({"message": 1, "metadata": []}).to_string(),
            Field("message"),
        ),
        (
            json!({"message": say("x")["message"], "metadata": []}).to_string(),
            Field("metadata"),
        ),
        (
            part(json!({"raw": "AAAA", "mediaType": "application/x-none"})),
            MediaType,
        ),
        (
            part(json!({"text": "x", "mediaType": "text/html"})),
            MediaType,
        ),
        (
            configured(json!({"acceptedOutputModes": ["image/png", "audio/*"]})),
            MediaType,
        ),
    ]);
    cases
}

/// Texts that are no JSON, or JSON that two readers may understand differently.
fn broken_text() -> Vec<(String, Refused)> {
    let mut deep = say("x").to_string();
    deep.truncate(deep.len() - 1);
    let nested = |depth: usize| {
        let mut text = deep.clone();
        let _ = write!(text, ",\"metadata\":{}", r#"{"a":"#.repeat(depth));
        let _ = write!(text, "1{}}}", "}".repeat(depth));
        text
    };
    let (deep, deeper) = (nested(64), nested(10_000));
    let texts = [
        r#"{"message":"#.to_owned(),
        r#"{"message":{},}"#.to_owned(),
        r#"{'message':{}}"#.to_owned(),
        r#"{"message":NaN}"#.to_owned(),
        r#"{"message":{"parts":[{"text":"\ud800"}]}}"#.to_owned(),
        r#"{"message":{"parts":[{"text":"\x"}]}}"#.to_owned(),
        "{\"message\":{\"parts\":[{\"text\":\"a\tb\"}]}}".to_owned(),
        r#"{"message":{},"message":{}}"#.to_owned(),
        r#"{"message":{"role":"ROLE_USER","role":"ROLE_AGENT"}}"#.to_owned(),
        r#"{"message":{"role":1,"r\u006fle":2}}"#.to_owned(),
        r#"{"message":{}} {"message":{}}"#.to_owned(),
        r#"{"message":01}"#.to_owned(),
        deep,
        deeper,
    ];
    texts.into_iter().map(|text| (text, Parse)).collect()
}

/// Parameters of the other operations: method, params, wrong field.
const OTHERS: &[(&str, &str, &str)] = &[
    ("GetTask", r#"{}"#, "id"),
    ("GetTask", r#"{"id":""}"#, "id"),
    ("GetTask", r#"{"id":5}"#, "id"),
    (
        "GetTask",
        r#"{"id":"t1","historyLength":-1}"#,
        "historyLength",
    ),
    (
        "GetTask",
        r#"{"id":"t1","historyLength":"x"}"#,
        "historyLength",
    ),
    ("ListTasks", r#"{"pageSize":0}"#, "pageSize"),
    ("ListTasks", r#"{"pageSize":101}"#, "pageSize"),
    ("ListTasks", r#"{"pageSize":-1}"#, "pageSize"),
    ("ListTasks", r#"{"pageSize":{}}"#, "pageSize"),
    ("ListTasks", r#"{"status":"DONE"}"#, "status"),
    ("ListTasks", r#"{"status":99}"#, "status"),
    ("ListTasks", r#"{"historyLength":-1}"#, "historyLength"),
    (
        "ListTasks",
        r#"{"statusTimestampAfter":"yesterday"}"#,
        "statusTimestampAfter",
    ),
    (
        "ListTasks",
        r#"{"statusTimestampAfter":1700000000}"#,
        "statusTimestampAfter",
    ),
    (
        "ListTasks",
        r#"{"includeArtifacts":"maybe"}"#,
        "includeArtifacts",
    ),
    ("ListTasks", r#"{"tenant":"other"}"#, "tenant"),
    ("CancelTask", r#"{}"#, "id"),
    ("CancelTask", r#"{"id":"t1","metadata":5}"#, "metadata"),
    ("SubscribeToTask", r#"{}"#, "id"),
    ("SubscribeToTask", r#"{"id":[]}"#, "id"),
    (
        "CreateTaskPushNotificationConfig",
        r#"{"url":"https://x"}"#,
        "taskId",
    ),
    (
        "CreateTaskPushNotificationConfig",
        r#"{"taskId":"t1"}"#,
        "url",
    ),
    (
        "CreateTaskPushNotificationConfig",
        r#"{"taskId":"t1","url":"file:///x"}"#,
        "url",
    ),
    ("GetTaskPushNotificationConfig", r#"{"taskId":"t1"}"#, "id"),
    ("GetTaskPushNotificationConfig", r#"{"id":"p1"}"#, "taskId"),
    ("ListTaskPushNotificationConfigs", r#"{}"#, "taskId"),
    (
        "ListTaskPushNotificationConfigs",
        r#"{"taskId":"t1","pageSize":-1}"#,
        "pageSize",
    ),
    (
        "DeleteTaskPushNotificationConfig",
        r#"{"taskId":"t1"}"#,
        "id",
    ),
];

/// RPC-03, RPC-05, RPC-06, RPC-07, RPC-13, RPC-14: whole bodies with code and echoed id.
const ENVELOPES: &[(&[u8], i64, &str)] = &[
    (b"", -32700, "null"),
    (b"{", -32700, "null"),
    (b"nul", -32700, "null"),
    (
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        -32700,
        "null",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#,
        -32700,
        "null",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"GetTask"} x"#,
        -32700,
        "null",
    ),
    (b"null", -32600, "null"),
    (b"7", -32600, "null"),
    (b"\"text\"", -32600, "null"),
    (b"[]", -32600, "null"),
    (
        br#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t1"}}]"#,
        -32600,
        "null",
    ),
    (b"{}", -32600, "null"),
    (br#"{"id":1,"method":"GetTask"}"#, -32600, "1"),
    (
        br#"{"jsonrpc":"1.0","id":1,"method":"GetTask"}"#,
        -32600,
        "1",
    ),
    (br#"{"jsonrpc":2.0,"id":1,"method":"GetTask"}"#, -32600, "1"),
    (br#"{"jsonrpc":"2.0","id":"a"}"#, -32600, "\"a\""),
    (
        br#"{"jsonrpc":"2.0","id":"a","method":null}"#,
        -32600,
        "\"a\"",
    ),
    (br#"{"jsonrpc":"2.0","id":"a","method":5}"#, -32600, "\"a\""),
    (
        br#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
        -32600,
        "null",
    ),
    (
        br#"{"jsonrpc":"2.0","id":[1],"method":"GetTask"}"#,
        -32600,
        "null",
    ),
    (
        br#"{"jsonrpc":"2.0","id":true,"method":"GetTask"}"#,
        -32600,
        "null",
    ),
    (br#"{"jsonrpc":"2.0","id":1.5,"method":""}"#, -32601, "1.5"),
    (br#"{"jsonrpc":"2.0","id":1,"method":"Nope"}"#, -32601, "1"),
    (br#"{"jsonrpc":"2.0","method":"Nope"}"#, -32601, "null"),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"sendMessage"}"#,
        -32601,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"message/sent"}"#,
        -32601,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"tasks/sendSubscribe"}"#,
        -32601,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#,
        -32602,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":"x"}"#,
        -32602,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":7}"#,
        -32602,
        "1",
    ),
    (
        br#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":false}"#,
        -32602,
        "1",
    ),
];

#[tokio::test]
async fn json_rpc_refuses_each_with_its_code_and_field() {
    let served = serve().await;
    let mut count = 0;
    for (body, code, id) in ENVELOPES {
        let answer = served.ask("POST", "/", JSON, *body).await;
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status, 200, "{shown}");
        assert_eq!(answer.code(), *code, "{shown}: {}", answer.text());
        assert_eq!(answer.json()["id"].to_string(), *id, "{shown}");
        count += 1;
    }
    for (params, refused) in bodies() {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":"r1","method":"SendMessage","params":{params}}}"#);
        let answer = served.ask("POST", "/", JSON, body).await;
        let shown: String = params.chars().take(200).collect();
        assert_eq!(answer.status, 200, "{shown}");
        let expected = match refused {
            Parse => -32700,
            Field(_) => -32602,
            MediaType => -32005,
        };
        assert_eq!(answer.code(), expected, "{shown}: {}", answer.text());
        check_field(refused, &answer.fields(), &shown);
        count += 1;
    }
    for (method, params, field) in OTHERS {
        let params: Value = serde_json::from_str(params).unwrap();
        let answer = served.post("/", &rpc(method, &params)).await;
        assert_eq!(
            answer.code(),
            -32602,
            "{method} {params}: {}",
            answer.text()
        );
        assert_eq!(answer.fields(), [*field], "{method} {params}");
        count += 1;
    }
    assert!(count >= 60, "{count}");
    assert_eq!(served.fake.calls(), 0, "GEN-04: no side effect");
}

fn check_field(refused: Refused, fields: &[String], shown: &str) {
    match refused {
        Field(field) => assert_eq!(fields, [field], "{shown}"),
        Parse | MediaType => assert!(fields.is_empty(), "{shown}: {fields:?}"),
    }
}

/// REST-03, REST-04, REST-05, REST-06, JSON-14: method, path, body, status and wrong field of what is not a send.
const REQUESTS: &[(&str, &str, &str, u16, Option<&str>)] = &[
    (
        "GET",
        "/tasks/t1?historyLength=-1",
        "",
        400,
        Some("historyLength"),
    ),
    (
        "GET",
        "/tasks/t1?historyLength=x",
        "",
        400,
        Some("historyLength"),
    ),
    (
        "GET",
        "/tasks/t1?history_length=1.5",
        "",
        400,
        Some("historyLength"),
    ),
    (
        "GET",
        "/tasks/t1?historyLength=1&historyLength=2",
        "",
        400,
        Some("historyLength"),
    ),
    ("GET", "/tasks?pageSize=abc", "", 400, Some("pageSize")),
    ("GET", "/tasks?pageSize=0", "", 400, Some("pageSize")),
    ("GET", "/tasks?pageSize=101", "", 400, Some("pageSize")),
    ("GET", "/tasks?page_size=-1", "", 400, Some("pageSize")),
    (
        "GET",
        "/tasks?pageSize=99999999999",
        "",
        400,
        Some("pageSize"),
    ),
    ("GET", "/tasks?pageSize=", "", 400, Some("pageSize")),
    ("GET", "/tasks?status=DONE", "", 400, Some("status")),
    ("GET", "/tasks?status=99", "", 400, Some("status")),
    (
        "GET",
        "/tasks?statusTimestampAfter=yesterday",
        "",
        400,
        Some("statusTimestampAfter"),
    ),
    (
        "GET",
        "/tasks?statusTimestampAfter=1700000000",
        "",
        400,
        Some("statusTimestampAfter"),
    ),
    (
        "GET",
        "/tasks?includeArtifacts=1",
        "",
        400,
        Some("includeArtifacts"),
    ),
    (
        "GET",
        "/tasks?includeArtifacts=TRUE",
        "",
        400,
        Some("includeArtifacts"),
    ),
    (
        "GET",
        "/tasks/t1/pushNotificationConfigs?pageSize=-1",
        "",
        400,
        Some("pageSize"),
    ),
    (
        "GET",
        "/tasks/t1/pushNotificationConfigs?pageSize=x",
        "",
        400,
        Some("pageSize"),
    ),
    (
        "POST",
        "/tasks/t1/pushNotificationConfigs",
        "{}",
        400,
        Some("url"),
    ),
    (
        "POST",
        "/tasks/t1/pushNotificationConfigs",
        r#"{"url":"mailto:x"}"#,
        400,
        Some("url"),
    ),
    (
        "POST",
        "/tasks/t1/pushNotificationConfigs",
        r#"{"url":"https://x","taskId":"t2"}"#,
        400,
        Some("taskId"),
    ),
    ("POST", "/tasks/t1/pushNotificationConfigs", "", 400, None),
    (
        "POST",
        "/tasks/t1/pushNotificationConfigs",
        "[]",
        400,
        Some(""),
    ),
    ("POST", "/tasks/t1:cancel", "[]", 400, Some("")),
    ("POST", "/tasks/t1:cancel", "{", 400, None),
    (
        "POST",
        "/tasks/t1:cancel",
        r#"{"id":"t2"}"#,
        400,
        Some("id"),
    ),
    (
        "POST",
        "/tasks/t1:cancel",
        r#"{"metadata":[]}"#,
        400,
        Some("metadata"),
    ),
    ("POST", "/message:send", "", 400, None),
    ("POST", "/message:send", "null", 400, Some("")),
    ("POST", "/message:send", "7", 400, Some("")),
    ("POST", "/message:send", r#""x""#, 400, Some("")),
    ("POST", "/message:send", "[]", 400, Some("")),
    ("POST", "/message:stream", "{}", 400, Some("message")),
    ("GET", "/nothing", "", 404, None),
    ("GET", "/tasks/t1/nothing", "", 404, None),
    ("GET", "/v1/task", "", 404, None),
    ("POST", "/v1/message:sent", "{}", 404, None),
    ("GET", "/other/tasks", "", 404, None),
    ("GET", "/tasks/%ff", "", 404, None),
    ("GET", "/.well-known/nothing", "", 404, None),
    ("GET", "/message:send", "", 405, None),
    ("DELETE", "/tasks/t1", "", 405, None),
    ("PUT", "/tasks", "", 405, None),
    ("POST", "/tasks/t1", "{}", 405, None),
    ("GET", "/tasks/t1:cancel", "", 405, None),
    ("POST", "/extendedAgentCard", "{}", 405, None),
    (
        "PATCH",
        "/tasks/t1/pushNotificationConfigs/p1",
        "{}",
        405,
        None,
    ),
];

#[tokio::test]
async fn rest_refuses_each_with_its_status_and_field() {
    let served = serve().await;
    let mut count = 0;
    for (method, path, body, status, field) in REQUESTS {
        let answer = served.ask(method, path, JSON, *body).await;
        let shown = format!("{method} {path} {body}: {}", answer.text());
        assert_eq!(answer.status, *status, "{shown}");
        assert_eq!(answer.json()["error"]["code"], *status, "{shown}");
        assert_eq!(answer.reason(), "", "{shown}");
        let fields: Vec<String> = field.iter().map(|f| (*f).to_owned()).collect();
        assert_eq!(answer.fields(), fields, "{shown}");
        count += 1;
    }
    for (body, refused) in bodies() {
        let answer = served
            .ask("POST", "/message:send", JSON, body.clone())
            .await;
        let shown: String = body.chars().take(200).collect();
        assert_eq!(answer.status, 400, "{shown}: {}", answer.text());
        let name = answer.json()["error"]["status"].clone();
        assert_eq!(name, "INVALID_ARGUMENT", "{shown}");
        let media = matches!(refused, MediaType);
        assert_eq!(
            answer.reason() == "CONTENT_TYPE_NOT_SUPPORTED",
            media,
            "{shown}"
        );
        check_field(refused, &answer.fields(), &shown);
        count += 1;
    }
    assert!(count >= 60, "{count}");
    assert_eq!(served.fake.calls(), 0, "GEN-04: no side effect");
}

/// Headers of both bindings: header, value, JSON-RPC status and code, REST status.
const HEADERS: &[(&str, &str, u16, i64, u16)] = &[
    ("Content-Type", "text/plain", 415, -32005, 415),
    ("Content-Type", "application/jsonx", 415, -32005, 415),
    (
        "Content-Type",
        "application/x-www-form-urlencoded",
        415,
        -32005,
        415,
    ),
    ("Content-Encoding", "gzip", 415, -32005, 415),
    ("Content-Encoding", "br, identity", 415, -32005, 415),
    ("A2A-Version", "99.0", 200, -32009, 400),
    ("A2A-Version", "abc", 200, -32009, 400),
    ("A2A-Version", "0.2", 200, -32009, 400),
    ("Last-Event-ID", "x", 200, -32600, 400),
    ("Last-Event-ID", "-1", 200, -32600, 400),
    ("Last-Event-ID", "99999999999999999999999", 200, -32600, 400),
    ("Idempotency-Key", "", 200, -32600, 400),
    ("Accept", "image/png", 406, -32600, 406),
];

#[tokio::test]
async fn wrong_headers_are_named() {
    let served = serve().await;
    for (name, value, rpc_status, code, rest_status) in HEADERS {
        let headers = [(*name, *value)];
        let body = rpc("SendMessage", &say("x")).to_string();
        let answer = served.ask("POST", "/", &headers, body).await;
        assert_eq!(answer.status, *rpc_status, "{name}: {value}");
        assert_eq!(answer.code(), *code, "{name}: {value}");
        let message = answer.json()["error"]["message"].to_string();
        let answer = served
            .ask("POST", "/message:send", &headers, say("x").to_string())
            .await;
        assert_eq!(answer.status, *rest_status, "{name}: {value}");
        assert_eq!(
            answer.json()["error"]["code"],
            *rest_status,
            "{name}: {value}"
        );
        if *name != "A2A-Version" {
            assert!(message.contains(name), "{message}");
        }
    }
    let long = "k".repeat(257);
    assert_eq!(send_with(&served, "Idempotency-Key", &long).await, 400);
    let many: String = (0..65).map(|n| format!("urn:{n},")).collect();
    assert_eq!(send_with(&served, "A2A-Extensions", &many).await, 400);
    let long = format!("urn:{}", "x".repeat(9_000));
    assert_eq!(send_with(&served, "A2A-Extensions", &long).await, 400);
    assert_eq!(served.fake.calls(), 0, "GEN-04: no side effect");
}

async fn send_with(served: &Served, name: &str, value: &str) -> u16 {
    let body = say("x").to_string();
    let answer = served
        .ask("POST", "/message:send", &[(name, value)], body)
        .await;
    answer.status.as_u16()
}
