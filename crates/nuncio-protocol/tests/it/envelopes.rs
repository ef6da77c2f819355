//! Envelopes, paths and queries from strangers.

use nuncio_protocol::v1::json_rpc;
use nuncio_protocol::v1::rest::{self, RouteError};
use nuncio_protocol::{ErrorKind, Operation, OperationKind, json};

fn refused(body: &str) -> (ErrorKind, String) {
    let refusal = json_rpc::Request::decode(body.as_bytes()).unwrap_err();
    (refusal.error.kind, refusal.id.as_json().to_owned())
}

/// RPC-06, RPC-07: an array is a batch, also one whose entries look like the envelope's members.
#[test]
fn an_array_is_never_an_envelope() {
    for body in [
        r#"["2.0",1,"GetTask",{"id":"t"}]"#,
        r#"["2.0",null,"GetTask"]"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}]"#,
        r#" [ ] "#,
    ] {
        let refusal = json_rpc::Request::decode(body.as_bytes()).unwrap_err();
        assert_eq!(refusal.error.kind, ErrorKind::InvalidRequest, "{body}");
        assert!(refusal.error.message.contains("batch"), "{body}");
    }
    for body in [
        r#"["2.0",{}]"#,
        r#"[{"id":"t"}]"#,
        r#"[null,{"code":-32001,"message":"x"}]"#,
        r#"{"error":[-32001,"x"]}"#,
        "7",
        "null",
    ] {
        let error = json_rpc::decode_response(body.as_bytes()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidAgentResponse, "{body}");
    }
}

/// RPC-05: the id keeps its type and its digits.
#[test]
fn ids_are_echoed_as_they_came() {
    for id in [
        r#""text""#,
        r#""\u00e9\"""#,
        "7",
        "-7",
        "1.50",
        "12345678901234567890123",
        "1e2",
        "null",
        r#""""#,
    ] {
        let body = format!(r#"{{"method":"GetTask","id": {id} ,"jsonrpc":"2.0"}}"#);
        let request = json_rpc::Request::decode(body.as_bytes()).unwrap();
        assert_eq!(request.id.as_json(), id);
    }
    for id in ["true", "{}", "[]", "false"] {
        let body = format!(r#"{{"method":"GetTask","id":{id},"jsonrpc":"2.0"}}"#);
        assert_eq!(
            refused(&body),
            (ErrorKind::InvalidRequest, "null".to_owned())
        );
    }
}

/// RPC-06, RPC-14, JSON-14, CT-01.
#[test]
fn texts_that_cannot_be_trusted_are_parse_errors() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{{"x":{}1{}}}}}"#,
        "[".repeat(80),
        "]".repeat(80)
    );
    for body in [
        "",
        " ",
        "{",
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}x"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}{}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","meth\u006fd":"SendMessage"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a","\u0069d":"b"}}"#,
        r#"{'jsonrpc':'2.0'}"#,
        &deep,
    ] {
        assert_eq!(
            refused(body),
            (ErrorKind::ParseError, "null".to_owned()),
            "{body}"
        );
    }
    let refusal = json_rpc::Request::decode(b"{\"id\":\"\xff\"}").unwrap_err();
    assert_eq!(refusal.error.kind, ErrorKind::ParseError);
    let with_mark = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ListTasks\"}";
    assert!(json_rpc::Request::decode(with_mark.as_bytes()).is_ok());
}

/// RPC-14: a repeated key is found among many, whatever its spelling and its place.
#[test]
fn a_repeated_key_cannot_hide_among_many() {
    for escaped in [0, 1] {
        for first in [3, 16, 17, 40] {
            let mut keys: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
            keys[first] = ["a", r"\u0061"][escaped].to_owned();
            keys[49] = [r"\u0061", "a"][escaped].to_owned();
            let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":0")).collect();
            let text = format!("{{{}}}", members.join(","));
            let error = json::check(text.as_bytes()).unwrap_err();
            assert!(error.message.contains("twice"), "{first}: {error}");
        }
    }
}

/// REST-01, REST-06.
#[test]
fn paths_and_methods_lead_to_the_operations_of_the_table() {
    use OperationKind::{
        CancelTask, CreateTaskPushNotificationConfig, DeleteTaskPushNotificationConfig,
        GetExtendedAgentCard, GetTask, GetTaskPushNotificationConfig,
        ListTaskPushNotificationConfigs, ListTasks, SendMessage, SendStreamingMessage,
        SubscribeToTask,
    };
    for (method, path, kind) in [
        ("POST", "/message:send", SendMessage),
        ("POST", "/message:stream", SendStreamingMessage),
        ("GET", "/tasks/t", GetTask),
        ("HEAD", "/tasks/t", GetTask),
        ("GET", "/tasks", ListTasks),
        ("POST", "/tasks/t:cancel", CancelTask),
        ("POST", "/tasks/t:subscribe", SubscribeToTask),
        ("GET", "/tasks/t:subscribe", SubscribeToTask),
        (
            "POST",
            "/tasks/t/pushNotificationConfigs",
            CreateTaskPushNotificationConfig,
        ),
        (
            "GET",
            "/tasks/t/pushNotificationConfigs",
            ListTaskPushNotificationConfigs,
        ),
        (
            "GET",
            "/tasks/t/pushNotificationConfigs/c",
            GetTaskPushNotificationConfig,
        ),
        (
            "DELETE",
            "/tasks/t/pushNotificationConfigs/c",
            DeleteTaskPushNotificationConfig,
        ),
        ("GET", "/extendedAgentCard", GetExtendedAgentCard),
    ] {
        for tenant in [None, Some("acme")] {
            let prefix = tenant.map(|t| format!("/{t}")).unwrap_or_default();
            let found = rest::route(method, &format!("{prefix}{path}")).unwrap();
            assert_eq!((found.kind, found.tenant.as_deref()), (kind, tenant));
        }
    }
    for (method, path, allowed) in [
        ("GET", "/message:send", vec!["POST"]),
        ("PUT", "/acme/message:stream", vec!["POST"]),
        ("POST", "/tasks", vec!["GET"]),
        ("DELETE", "/tasks/t", vec!["GET"]),
        ("GET", "/tasks/t:cancel", vec!["POST"]),
        ("DELETE", "/tasks/t:subscribe", vec!["GET", "POST"]),
        (
            "PUT",
            "/tasks/t/pushNotificationConfigs",
            vec!["GET", "POST"],
        ),
        (
            "POST",
            "/tasks/t/pushNotificationConfigs/c",
            vec!["GET", "DELETE"],
        ),
        ("POST", "/extendedAgentCard", vec!["GET"]),
        ("post", "/message:send", vec!["POST"]),
    ] {
        let error = rest::route(method, path).unwrap_err();
        let RouteError::MethodNotAllowed(methods) = error else {
            panic!("{method} {path}: {error:?}");
        };
        let mut methods = methods.to_vec();
        methods.sort_unstable();
        let mut allowed = allowed;
        allowed.sort_unstable();
        assert_eq!(methods, allowed, "{method} {path}");
    }
    for path in [
        "",
        "/",
        "tasks",
        "/nothing",
        "/acme",
        "/message:Send",
        "/message%3Asend",
        "/v1/message:send",
        "/v1/tasks",
        "/.well-known/tasks",
        "/acme/beta/tasks",
        "//tasks",
        "/acme//tasks",
        "/tasks/t/pushNotificationConfigs/c/d",
        "/tasks/t/other",
        "/tasks/%ff",
    ] {
        assert_eq!(
            rest::route("GET", path),
            Err(RouteError::NotFound),
            "{path}"
        );
    }
}

/// TEN-03: a reserved name is no tenant, however it is encoded.
#[test]
fn reserved_names_are_no_tenants() {
    for name in rest::RESERVED_TENANTS {
        let encoded: String = name.bytes().map(|b| format!("%{b:02X}")).collect();
        for path in [
            format!("/{encoded}/extendedAgentCard"),
            format!("/{encoded}/tasks/t/x"),
        ] {
            assert_eq!(
                rest::route("GET", &path),
                Err(RouteError::NotFound),
                "{path}"
            );
        }
        let plain = format!("/{name}/extendedAgentCard");
        let found = rest::route("GET", &plain);
        assert!(
            found.as_ref().is_ok_and(|route| route.tenant.is_none()) || found.is_err(),
            "{plain}: {found:?}"
        );
    }
}

/// REST-05.
#[test]
fn ids_are_decoded_once_and_the_verb_is_split_at_the_last_colon() {
    for (path, kind, id) in [
        ("/tasks/a:b", OperationKind::GetTask, "a:b"),
        ("/tasks/a:b:cancel", OperationKind::CancelTask, "a:b"),
        (
            "/tasks/a:cancel:subscribe",
            OperationKind::SubscribeToTask,
            "a:cancel",
        ),
        ("/tasks/a%3Acancel", OperationKind::GetTask, "a:cancel"),
        ("/tasks/a%2Fb", OperationKind::GetTask, "a/b"),
        ("/tasks/a%252Fb", OperationKind::GetTask, "a%2Fb"),
        ("/tasks/a+b", OperationKind::GetTask, "a+b"),
        ("/tasks/%C3%BC", OperationKind::GetTask, "ü"),
        ("/tasks/ü", OperationKind::GetTask, "ü"),
        ("/tasks/100%", OperationKind::GetTask, "100%"),
        ("/tasks/a:cancelled", OperationKind::GetTask, "a:cancelled"),
        ("/tasks/:cancel", OperationKind::CancelTask, ""),
    ] {
        let method = if kind == OperationKind::GetTask {
            "GET"
        } else {
            "POST"
        };
        let route = rest::route(method, path).unwrap();
        assert_eq!(
            (route.kind, route.task_id.as_deref()),
            (kind, Some(id)),
            "{path}"
        );
    }
}

fn asked(path: &str, query: &str) -> Result<Operation, Vec<String>> {
    let route = rest::route("GET", path).unwrap();
    route.operation(Some(query), b"").map_err(|error| {
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        let fields = error.violations().iter();
        fields.map(|violation| violation.field.clone()).collect()
    })
}

/// REST-02.
#[test]
fn queries_are_taken_in_both_spellings() {
    let ours = asked(
        "/tasks",
        "contextId=c&status=TASK_STATE_WORKING&pageSize=5&pageToken=a%2Bb&historyLength=0\
         &statusTimestampAfter=2025-10-28T12%3A30%3A00%2B02%3A00&includeArtifacts=true&x=y&x=z",
    );
    let theirs = asked(
        "/tasks",
        "context_id=c&status=2&page_size=5.0&page_token=a%2Bb&history_length=0\
         &status_timestamp_after=2025-10-28T10:30:00Z&include_artifacts=true",
    );
    assert!(ours.is_ok());
    assert_eq!(ours, theirs);
    assert_eq!(asked("/tasks", ""), asked("/tasks", "unknown=1&&="));
}

/// REST-03, BR-120: never a default for what cannot be read.
#[test]
fn malformed_query_values_name_their_field() {
    for (query, field) in [
        ("pageSize=abc", "pageSize"),
        ("pageSize=", "pageSize"),
        ("pageSize=1.5", "pageSize"),
        ("page_size=99999999999", "pageSize"),
        ("historyLength=x", "historyLength"),
        ("status=WORKING", "status"),
        ("status=", "status"),
        ("status=99", "status"),
        ("status=-1", "status"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        (
            "statusTimestampAfter=2025-10-28T12:30:00+02:00",
            "statusTimestampAfter",
        ),
        ("includeArtifacts=1", "includeArtifacts"),
        ("includeArtifacts=", "includeArtifacts"),
        ("includeArtifacts=TRUE", "includeArtifacts"),
        ("pageSize=1&pageSize=1", "pageSize"),
        ("pageSize=1&page_size=1", "pageSize"),
    ] {
        assert_eq!(
            asked("/tasks", query),
            Err(vec![field.to_owned()]),
            "{query}"
        );
    }
    assert_eq!(
        asked("/tasks/t", "history_length=many"),
        Err(vec!["historyLength".to_owned()])
    );
    assert_eq!(
        asked("/tasks/t/pushNotificationConfigs", "pageSize=many"),
        Err(vec!["pageSize".to_owned()])
    );
}

/// REST-04.
#[test]
fn an_empty_body_is_an_empty_object_where_all_is_optional() {
    let cancel = rest::route("POST", "/tasks/t:cancel").unwrap();
    let subscribe = rest::route("POST", "/tasks/t:subscribe").unwrap();
    for body in ["", " \r\n", "null", "{}", " null "] {
        assert!(cancel.operation(None, body.as_bytes()).is_ok(), "{body:?}");
        assert!(
            subscribe.operation(None, body.as_bytes()).is_ok(),
            "{body:?}"
        );
    }
    let send = rest::route("POST", "/message:send").unwrap();
    for (body, kind) in [
        ("", ErrorKind::ParseError),
        ("null", ErrorKind::InvalidParams),
        ("[]", ErrorKind::InvalidParams),
        ("7", ErrorKind::InvalidParams),
        ("{", ErrorKind::ParseError),
        ("nul", ErrorKind::ParseError),
        ("[}", ErrorKind::ParseError),
        ("{}{}", ErrorKind::ParseError),
        ("\u{a0}{}", ErrorKind::ParseError),
        (r#"{"tenant":"a","tenant":"b"}"#, ErrorKind::ParseError),
        (r#"{"tenant":7}"#, ErrorKind::InvalidParams),
    ] {
        let error = send.operation(None, body.as_bytes()).unwrap_err();
        assert_eq!(error.kind, kind, "{body:?}");
    }
}

/// OP-PCRE-07, TEN-04.
#[test]
fn path_and_body_must_agree() {
    for (path, body, field) in [
        (
            "/tasks/t/pushNotificationConfigs",
            r#"{"taskId":"u"}"#,
            "taskId",
        ),
        ("/tasks/t:cancel", r#"{"id":"u"}"#, "id"),
        ("/a/message:send", r#"{"tenant":"b"}"#, "tenant"),
        ("/a/tasks/t:cancel", r#"{"tenant":"b"}"#, "tenant"),
        (
            "/a/tasks/t/pushNotificationConfigs",
            r#"{"tenant":"b"}"#,
            "tenant",
        ),
    ] {
        let route = rest::route("POST", path).unwrap();
        let error = route.operation(None, body.as_bytes()).unwrap_err();
        assert_eq!(error.violations()[0].field, field, "{path}");
    }
    for (path, body) in [
        ("/tasks/t/pushNotificationConfigs", r#"{"taskId":"t"}"#),
        ("/tasks/t/pushNotificationConfigs", r#"{"taskId":""}"#),
        ("/tasks/t/pushNotificationConfigs", r#"{"task_id":null}"#),
        ("/a/message:send", r#"{"tenant":"a"}"#),
        ("/a/message:send", r#"{}"#),
    ] {
        let route = rest::route("POST", path).unwrap();
        assert!(
            route.operation(None, body.as_bytes()).is_ok(),
            "{path} {body}"
        );
    }
    let route = rest::route("GET", "/a/tasks").unwrap();
    assert!(route.operation(Some("tenant=b"), b"").is_err());
    let operation = route.operation(Some("tenant=a"), b"").unwrap();
    assert_eq!(operation.tenant(), Some("a"));
}

/// JSON-14, GEN-01: what is taken in a request can be read in every answer that carries it, and
/// both bindings take the same.
#[test]
fn a_request_nests_no_deeper_than_its_answers_can_carry() {
    use nuncio_protocol::{ListTasksResponse, Outcome, Task};
    let send = rest::route("POST", "/message:send").unwrap();
    let params = |depth: usize| {
        let data = format!("{}0{}", "[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{data}}}]}}}}"#
        )
    };
    let rest_takes = |depth| send.operation(None, params(depth).as_bytes());
    let rpc_takes = |depth| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}}"#,
            params(depth)
        );
        json_rpc::Request::decode(body.as_bytes()).is_ok()
    };
    let deepest = (1..json::MAX_DEPTH)
        .take_while(|depth| rest_takes(*depth).is_ok())
        .last()
        .unwrap();
    assert!(deepest >= 48, "{deepest}");
    assert!(rpc_takes(deepest) && !rpc_takes(deepest + 1), "{deepest}");

    let Ok(Operation::SendMessage(request)) = rest_takes(deepest) else {
        panic!("another operation");
    };
    let mut task = Task::default();
    task.history.extend(request.message);
    let mut page = ListTasksResponse::default();
    page.tasks.push(task);
    let id = json_rpc::RequestId::null();
    let text = json_rpc::encode_outcome(&id, &Outcome::Tasks(page)).unwrap();
    assert!(json_rpc::decode_outcome(OperationKind::ListTasks, text.as_bytes()).is_ok());
}
