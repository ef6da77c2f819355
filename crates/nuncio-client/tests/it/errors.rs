//! Errors of every shape become values of one type (ERR-04, ERR-05, RPC-10, TRAP-15, BR-037).

use std::time::Duration;

use nuncio_client::{Cause, cause};
use nuncio_protocol::{A2aError, AgentService as _, Binding, ErrorKind, GetTaskRequest};
use serde_json::json;

use crate::support::{Answer, BINDINGS, Fake, Request, call, collect, hello};

async fn get(binding: Binding, answer: Answer) -> A2aError {
    let fake = Fake::start(move |_: &Request| answer.clone()).await;
    let client = fake.client(binding, false);
    let task = client.get_task(call(), GetTaskRequest::new("t1")).await;
    task.unwrap_err()
}

#[tokio::test]
async fn a_status_without_body_is_a_typed_error() {
    use ErrorKind::{
        DeadlineExceeded, InvalidAgentResponse, InvalidRequest, MethodNotAllowed, MethodNotFound,
        PayloadTooLarge, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable,
        UnsupportedMediaType,
    };
    for binding in BINDINGS {
        for (status, kind) in [
            (400, InvalidRequest),
            (401, Unauthenticated),
            (403, PermissionDenied),
            (404, MethodNotFound),
            (405, MethodNotAllowed),
            (413, PayloadTooLarge),
            (415, UnsupportedMediaType),
            (429, ResourceExhausted),
            (500, InvalidAgentResponse),
            (502, Unavailable),
            (503, Unavailable),
            (504, DeadlineExceeded),
        ] {
            for body in ["", "<html>oops</html>", "oops", "[]", "null", "{\"x\":1}"] {
                let answer = Answer::with_type(status, "text/html", body);
                let error = get(binding, answer).await;
                assert_eq!(error.kind, kind, "{binding} {status} {body:?}");
                assert!(
                    error.message.contains(&status.to_string()),
                    "{}",
                    error.message
                );
            }
        }
    }
}

#[tokio::test]
async fn bodies_of_every_known_shape_are_understood() {
    let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"}]);
    for (status, body, kind) in [
        // The reason decides, whatever the codes say.
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "m", "details": info}}),
            ErrorKind::TaskNotFound,
        ),
        (
            400,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "m", "data": info}}),
            ErrorKind::TaskNotFound,
        ),
        // Then the JSON-RPC code, over any status and in any envelope.
        (
            500,
            json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32009, "message": "m"}}),
            ErrorKind::VersionNotSupported,
        ),
        (
            400,
            json!({"code": -32004, "message": "m"}),
            ErrorKind::UnsupportedOperation,
        ),
        (
            404,
            json!({"code": -32001, "message": "m", "data": null}),
            ErrorKind::TaskNotFound,
        ),
        (
            400,
            json!({"error": {"code": -32077, "message": "m"}}),
            ErrorKind::Other(-32077),
        ),
        // Codes that several kinds share are told apart by the status.
        (
            401,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "m"}}),
            ErrorKind::Unauthenticated,
        ),
        (
            503,
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "m"}}),
            ErrorKind::Unavailable,
        ),
        // Then the status.
        (404, json!({"detail": "m"}), ErrorKind::MethodNotFound),
        (
            403,
            json!({"title": "m", "status": 403}),
            ErrorKind::PermissionDenied,
        ),
        (
            400,
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "m"}}),
            ErrorKind::InvalidParams,
        ),
    ] {
        for binding in BINDINGS {
            let error = get(binding, Answer::json(status, &body)).await;
            assert_eq!(error.kind, kind, "{binding} {body}");
            assert_eq!(error.message, "m", "{binding} {body}");
            assert_eq!(cause(&error), None, "{binding} {body}");
        }
    }
}

#[tokio::test]
async fn an_error_in_a_success_is_still_an_error() {
    let body = json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32001, "message": "m"}});
    let error = get(Binding::JsonRpc, Answer::json(200, &body)).await;
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
    let body = json!({"error": {"code": -32001, "message": "m"}});
    let error = get(Binding::HttpJson, Answer::json(200, &body)).await;
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn what_is_no_answer_of_the_protocol_is_named() {
    for binding in BINDINGS {
        for (kind, body) in [
            ("text/html", "<html></html>"),
            ("application/json", "{"),
            ("application/json", "[1]"),
            ("application/json", "\"x\""),
            ("text/event-stream", "data: {}\n\n"),
        ] {
            let error = get(binding, Answer::with_type(200, kind, body)).await;
            assert_eq!(
                error.kind,
                ErrorKind::InvalidAgentResponse,
                "{binding} {body}"
            );
        }
    }
}

#[tokio::test]
async fn challenge_and_retry_time_reach_the_caller() {
    for binding in BINDINGS {
        let answer = Answer::with_headers(401, "www-authenticate: Bearer realm=\"x\"\r\n", "");
        let error = get(binding, answer).await;
        assert_eq!(error.metadata["wwwAuthenticate"], "Bearer realm=\"x\"");
        let answer = Answer::with_headers(503, "retry-after: 3600\r\n", "");
        let error = get(binding, answer).await;
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
        let dates =
            "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 09:49:37 GMT\r\n";
        let error = get(binding, Answer::with_headers(503, dates, "")).await;
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    }
}

/// BR-037: a refused stream never looks like an empty, successful one.
#[tokio::test]
async fn br_037_a_refused_stream_call_is_an_error_value() {
    let rpc = |code: i64| {
        json!({"jsonrpc": "2.0", "id": "1", "error": {"code": code, "message": "m"}}).to_string()
    };
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": \"1\",\n  \"error\": {\"code\": -32001, \"message\": \"m\"}\n}";
    for (name, answer) in [
        (
            "JSON body",
            Answer::with_type(200, "application/json", &rpc(-32001)),
        ),
        ("JSON body in an SSE head", Answer::sse(&rpc(-32001))),
        ("the same on several lines", Answer::sse(pretty)),
        ("with a newline", Answer::sse(&(rpc(-32001) + "\n"))),
        ("with a blank line", Answer::sse(&(rpc(-32001) + "\n\n"))),
        (
            "an event",
            Answer::sse(&format!("data: {}\n\n", rpc(-32001))),
        ),
        (
            "an event without blank line",
            Answer::sse(&format!("data: {}", rpc(-32001))),
        ),
        (
            "a named event",
            Answer::sse(&format!("event: error\ndata: {}\n\n", rpc(-32001))),
        ),
    ] {
        let fake = Fake::start(move |_: &Request| answer.clone()).await;
        for binding in BINDINGS {
            let client = fake.client(binding, true);
            let stream = client.send_streaming_message(call(), hello()).await;
            let error = stream.err().unwrap();
            assert_eq!(error.kind, ErrorKind::TaskNotFound, "{binding}: {name}");
            let resuming = client.stream(call(), hello()).await;
            let error = resuming.err().unwrap();
            assert_eq!(error.kind, ErrorKind::TaskNotFound, "{binding}: {name}");
        }
    }
}

#[tokio::test]
async fn br_037_a_stream_without_events_is_an_error_value() {
    for text in [
        "",
        ": ping\n\n",
        "\n\n",
        "event: ping\ndata: {}\n\n",
        "data: x",
    ] {
        let fake = Fake::start(move |_: &Request| Answer::sse(text)).await;
        for binding in BINDINGS {
            let client = fake.client(binding, true);
            let stream = client.stream(call(), hello()).await;
            let error = stream.err().unwrap();
            assert_eq!(
                error.kind,
                ErrorKind::InvalidAgentResponse,
                "{binding} {text:?}"
            );
            assert_eq!(cause(&error), Some(Cause::BadAnswer));
        }
    }
}

#[tokio::test]
async fn an_error_in_mid_stream_is_the_last_item() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            let error = match request.json()["method"].is_string() {
                true => {
                    json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32603, "message": "m"}})
                }
                false => json!({"error": {"code": 500, "status": "INTERNAL", "message": "m"}}),
            };
            let first = request.enveloped(&crate::support::task_item("WORKING"));
            Answer::sse(&format!("data: {first}\n\ndata: {error}\n\n"))
        })
        .await;
        let client = fake.client(binding, true);
        let stream = client.stream(call(), hello()).await.unwrap();
        let (events, error) = collect(stream).await;
        assert_eq!(events.len(), 1);
        let error = error.unwrap();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Internal, "m")
        );
        assert_eq!(nuncio_client::task_id(&error), Some("t1".into()));
    }
}

/// An agent cannot make its error look like one of this side.
#[tokio::test]
async fn the_cause_is_never_taken_from_the_wire() {
    let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "domain": "a2a-protocol.org",
        "reason": "TASK_NOT_FOUND", "metadata": {"nuncio.cause": "still-running", "taskId": "t1"}}]);
    for binding in BINDINGS {
        for status in [200, 404] {
            let member = match binding {
                Binding::JsonRpc => "data",
                _ => "details",
            };
            let body = json!({"jsonrpc": "2.0", "id": "1",
                "error": {"code": -32001, "message": "m", member: info}});
            let error = get(binding, Answer::json(status, &body)).await;
            assert_eq!(error.kind, ErrorKind::TaskNotFound);
            assert_eq!(cause(&error), None);
            assert_eq!(error.metadata["taskId"], "t1");
        }
    }
}
