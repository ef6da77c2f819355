//! Codes and bodies of errors.

use serde_json::json;

use super::super::{V0_3, decode_error};
use crate::dialect::{JsonRpcDialect, RestDialect};
use crate::{A2aError, ErrorKind, StatusProfile};

/// V03-02: two codes are not of 0.3; the text stays, and the details say what it was.
#[test]
fn codes_that_0_3_lacks_become_older_ones() {
    for (kind, code) in [
        (ErrorKind::ExtensionSupportRequired, -32600),
        (ErrorKind::VersionNotSupported, -32004),
        (ErrorKind::ExtendedAgentCardNotConfigured, -32007),
    ] {
        let shown = JsonRpcDialect::encode_error(&V0_3, &A2aError::new(kind, "told"));
        assert_eq!(
            (&shown["code"], &shown["message"]),
            (&json!(code), &json!("told"))
        );
        assert_eq!(shown["data"][0]["reason"], kind.reason().unwrap());
        let body = RestDialect::encode_error(
            &V0_3,
            &A2aError::new(kind, "told"),
            StatusProfile::default(),
        );
        assert_eq!(decode_error(400, body.as_bytes()).kind, kind);
    }
}

/// ERR-05: every shape met in the wild gives the peer's words.
#[test]
fn bodies_of_every_shape_are_understood() {
    use ErrorKind::{
        InvalidParams, MethodNotFound, ResourceExhausted, TaskNotFound, Unauthenticated,
        UnsupportedOperation,
    };
    for (status, body, kind) in [
        (
            404,
            json!({"code": -32001, "message": "gone", "data": null}),
            TaskNotFound,
        ),
        (
            400,
            json!({"code": -32004, "message": "gone"}),
            UnsupportedOperation,
        ),
        (
            404,
            json!({"type": "TaskNotFoundError", "message": "gone"}),
            TaskNotFound,
        ),
        (404, json!({"message": "gone"}), MethodNotFound),
        (
            200,
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "gone"}}),
            InvalidParams,
        ),
        (404, json!({"detail": "gone"}), MethodNotFound),
        (
            429,
            json!({"type": "about:blank", "title": "gone"}),
            ResourceExhausted,
        ),
        (
            404,
            json!({"type": "https://a2a-protocol.org/errors/task-not-found", "detail": "gone"}),
            TaskNotFound,
        ),
        (
            401,
            json!({"code": -32600, "message": "gone"}),
            Unauthenticated,
        ),
        (
            400,
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "gone"}}),
            InvalidParams,
        ),
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "gone", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
                 "domain": "a2a-protocol.org"}]}}),
            TaskNotFound,
        ),
    ] {
        let error = decode_error(status, body.to_string().as_bytes());
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, "gone"),
            "{body}"
        );
    }
    for body in [
        "",
        "<html>",
        "[]",
        "7",
        "{}",
        "\"text\"",
        r#"{"error":"x"}"#,
    ] {
        let kind = |status| decode_error(status, body.as_bytes()).kind;
        assert_eq!(kind(404), MethodNotFound, "{body}");
        assert_eq!(kind(502), ErrorKind::Unavailable, "{body}");
        assert_eq!(kind(500), ErrorKind::InvalidAgentResponse, "{body}");
    }
}

/// V03-02: `data` is free-form.
#[test]
fn data_of_any_form_is_kept() {
    for data in [json!("text"), json!({"a": 1}), json!(5)] {
        let body = json!({"code": -32000, "message": "x", "data": data});
        let error = decode_error(500, body.to_string().as_bytes());
        assert_eq!(error.kind, ErrorKind::Other(-32000));
        assert_eq!(error.details_json(), [data]);
    }
}
