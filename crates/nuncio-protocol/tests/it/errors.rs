//! Error replies of every shape met in the wild, and what of them reaches the caller.

use std::time::Duration;

use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{A2aError, ErrorDetail, ErrorKind, FieldViolation, StatusProfile};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

/// ERR-04, ERR-05, TRAP-20, TRAP-29.
#[test]
fn rest_errors_of_any_shape_are_read() {
    let info = |reason: &str, domain: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain}]);
    let a2a = "a2a-protocol.org";
    for (status, body, kind, message) in [
        // Ours, and the same without its wrapper.
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "m", "details": info("TASK_NOT_FOUND", a2a)}}),
            ErrorKind::TaskNotFound,
            "m",
        ),
        (
            404,
            json!({"code": 404, "status": "NOT_FOUND", "message": "m", "details": info("TASK_NOT_FOUND", a2a)}),
            ErrorKind::TaskNotFound,
            "m",
        ),
        // The reason decides over code and status.
        (
            500,
            json!({"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "m", "details": info("TASK_NOT_CANCELABLE", a2a)}}),
            ErrorKind::TaskNotCancelable,
            "m",
        ),
        // Another domain's reason does not, and HTTP alone names no A2A error.
        (
            404,
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "m", "details": info("TASK_NOT_FOUND", "example.com")}}),
            ErrorKind::MethodNotFound,
            "m",
        ),
        (
            400,
            json!({"error": {"code": 400, "status": "FAILED_PRECONDITION", "message": "m"}}),
            ErrorKind::InvalidRequest,
            "m",
        ),
        (
            400,
            json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "m"}}),
            ErrorKind::InvalidParams,
            "m",
        ),
        // JSON-RPC over REST, bare (0.3 JS) and wrapped.
        (
            404,
            json!({"code": -32001, "message": "m", "data": null}),
            ErrorKind::TaskNotFound,
            "m",
        ),
        (
            500,
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32002, "message": "m"}}),
            ErrorKind::TaskNotCancelable,
            "m",
        ),
        // Problem details (0.3 Go) and FastAPI.
        (
            404,
            json!({"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such task"}),
            ErrorKind::MethodNotFound,
            "no such task",
        ),
        (
            409,
            json!({"detail": "conflict"}),
            ErrorKind::Internal,
            "conflict",
        ),
        (
            401,
            json!({"title": "Unauthorized", "status": 401}),
            ErrorKind::Unauthenticated,
            "Unauthorized",
        ),
        (
            429,
            json!({"message": "slow down"}),
            ErrorKind::ResourceExhausted,
            "slow down",
        ),
        (
            503,
            json!({"message": null, "title": null, "detail": "later"}),
            ErrorKind::Unavailable,
            "later",
        ),
        // Ids of a proxy around the A2A error.
        (
            404,
            json!({"error": {"code": 404, "message": "m", "details": info("TASK_NOT_FOUND", a2a)}, "code": "E17", "message": 5}),
            ErrorKind::TaskNotFound,
            "m",
        ),
    ] {
        let error = rest::decode_error(status, body.to_string().as_bytes());
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, message),
            "{body}"
        );
    }
}

/// ERR-04, ERR-05: what tells nothing leaves what the status tells.
#[test]
fn bodies_that_are_no_errors_leave_the_status() {
    for body in [
        "",
        "<html>502</html>",
        "null",
        "7",
        "[]",
        "[-32001,null,\"x\"]",
        "{}",
        "\"text\"",
        r#"{"error":"invalid_token"}"#,
        r#"{"error":{}}"#,
        r#"{"error":[]}"#,
        r#"{"error":{"code":"x","message":7}}"#,
        "\u{feff}",
        "{\"a\":1,\"a\":2}",
        r#"{"code":1e300}"#,
        r#"{"code":-1}"#,
    ] {
        for (status, kind) in [
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::Unauthenticated),
            (403, ErrorKind::PermissionDenied),
            (404, ErrorKind::MethodNotFound),
            (405, ErrorKind::MethodNotAllowed),
            (413, ErrorKind::PayloadTooLarge),
            (429, ErrorKind::ResourceExhausted),
            (500, ErrorKind::InvalidAgentResponse),
            (503, ErrorKind::Unavailable),
            (504, ErrorKind::DeadlineExceeded),
            (418, ErrorKind::Internal),
        ] {
            let error = rest::decode_error(status, body.as_bytes());
            assert_eq!(error.kind, kind, "{status} {body}");
            assert!(error.message.contains(&status.to_string()), "{body}");
        }
    }
}

/// ERR-05: the members of an error that are missing or null take nothing from the rest.
#[test]
fn json_rpc_errors_with_missing_members_are_read() {
    for (error, kind, message) in [
        (
            json!({"code": -32001, "message": "m"}),
            ErrorKind::TaskNotFound,
            "m",
        ),
        (
            json!({"code": -32001, "message": null, "data": null}),
            ErrorKind::TaskNotFound,
            "",
        ),
        (json!({"code": -32001}), ErrorKind::TaskNotFound, ""),
        (
            json!({"code": -32001.0, "message": "m"}),
            ErrorKind::TaskNotFound,
            "m",
        ),
        (
            json!({"code": null, "message": "m"}),
            ErrorKind::Other(0),
            "m",
        ),
        (json!({"message": "m"}), ErrorKind::Other(0), "m"),
        (
            json!({"code": -32050, "message": "m", "data": "text"}),
            ErrorKind::Other(-32050),
            "m",
        ),
        (
            json!({"code": 7, "message": "m", "data": [1, null]}),
            ErrorKind::Other(7),
            "m",
        ),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": "1", "result": null, "error": error});
        let read = json_rpc::decode_response(body.to_string().as_bytes()).unwrap_err();
        assert_eq!(
            (read.kind, read.message.as_str()),
            (kind, message),
            "{body}"
        );
    }
    for body in [r#"{"error":null,"result":{}}"#, r#"{"result":{}}"#] {
        assert_eq!(json_rpc::decode_response(body.as_bytes()).unwrap(), "{}");
    }
    for body in ["{}", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"result":null}"#] {
        assert_eq!(
            json_rpc::decode_response(body.as_bytes()).unwrap(),
            "null",
            "OP-PDEL-03"
        );
    }
}

/// ERR-09: an unknown reason reaches the caller whole, and so does a second `ErrorInfo`.
#[test]
fn unknown_reasons_are_kept() {
    let unknown = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "NEW", "domain": "a2a-protocol.org", "metadata": {"k": "v"}});
    let foreign = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND", "domain": "example.com"});
    let untagged = json!({"k": "v"});
    let details = [unknown.clone(), foreign.clone(), untagged.clone(), json!(7)];
    let error = A2aError::new(ErrorKind::Other(-32050), "m").with_details_json(&details);
    assert_eq!(error.kind, ErrorKind::Other(-32050));
    assert_eq!(error.details_json(), details);
}

/// TRAP-29: values that should be text are read as text.
#[test]
fn metadata_of_any_type_is_read_as_text() {
    let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
        "domain": "a2a-protocol.org", "metadata": {"n": 7, "l": ["a"], "s": "t", "z": null}});
    let error = A2aError::new(ErrorKind::Internal, "m").with_details_json(&[info]);
    let read: Vec<(&str, &str)> = error
        .metadata
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        read,
        [("l", "[\"a\"]"), ("n", "7"), ("s", "t"), ("z", "null")]
    );
}

/// ERR-04, ERR-07: every kind but those that share a code comes back through JSON-RPC, and every
/// A2A error through both bindings and both profiles.
#[test]
fn every_error_keeps_its_kind_through_the_bindings() {
    for kind in ErrorKind::ALL {
        let error = A2aError::new(*kind, "m").with("k", "v");
        let text = json_rpc::encode_error(&json_rpc::RequestId::null(), &error);
        let read = json_rpc::decode_response(text.as_bytes()).unwrap_err();
        assert_eq!(read.kind.json_rpc_code(), kind.json_rpc_code());
        for profile in [StatusProfile::V1_0_1, StatusProfile::V1_0_0] {
            let text = rest::encode_error(&error, profile);
            let read_again = rest::decode_error(kind.http_status(profile), text.as_bytes());
            if kind.reason().is_some() && *kind != ErrorKind::UnsupportedMediaType {
                assert_eq!((read.kind, read_again.kind), (*kind, *kind));
                assert_eq!(read_again.metadata, error.metadata);
            }
        }
    }
    let violations = vec![FieldViolation {
        field: "a.b[0]".to_owned(),
        description: "is wrong".to_owned(),
    }];
    let error = A2aError::invalid_fields(violations.clone());
    let text = rest::encode_error(&error, StatusProfile::V1_0_1);
    let read = rest::decode_error(400, text.as_bytes());
    assert_eq!(
        (read.kind, read.violations()),
        (ErrorKind::InvalidParams, &violations[..])
    );
}

/// Days in nanoseconds have more digits than a float; and what is no delay is none.
#[test]
fn retry_delays_are_read_digit_by_digit() {
    let read = |text: &str| {
        let details =
            json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": text}]);
        let details = details.as_array().unwrap();
        let error = A2aError::new(ErrorKind::Unavailable, "m").with_details_json(details);
        error.retry_after()
    };
    let delay = |seconds, nanos| Some(Duration::new(seconds, nanos));
    assert_eq!(read("65536.809481753s"), delay(65_536, 809_481_753));
    assert_eq!(read("3s"), delay(3, 0));
    assert_eq!(read("1.5s"), delay(1, 500_000_000));
    assert_eq!(read("0.000000001s"), delay(0, 1));
    for wrong in [
        "",
        "s",
        "3",
        "-1s",
        "+1s",
        "1e3s",
        ".5s",
        "1.s",
        "1.0000000001s",
        "NaNs",
        "99999999999999999999s",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// `google.protobuf.Duration`: at most nine digits after the point, and the same time again.
    #[test]
    fn a_retry_delay_survives_to_the_nanosecond(seconds in 0u64..100_000, nanos in 0u32..1_000_000_000) {
        let delay = Duration::new(seconds, nanos);
        let error = A2aError::new(ErrorKind::Unavailable, "m").with_detail(ErrorDetail::RetryAfter(delay));
        let details = error.details_json();
        let text = details[0]["retryDelay"].as_str().unwrap();
        let digits = text.trim_end_matches('s').split_once('.').map_or(0, |(_, d)| d.len());
        prop_assert!(digits <= 9, "{text}");
        let read = A2aError::new(ErrorKind::Unavailable, "m").with_details_json(&details);
        prop_assert_eq!(read.retry_after(), Some(delay));
    }
}
