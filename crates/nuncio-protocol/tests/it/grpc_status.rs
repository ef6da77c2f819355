//! Errors over gRPC: codes, details, and what is made of the errors of others.

use std::time::Duration;

use nuncio_protocol::grpc::{decode_status, encode_status};
use nuncio_protocol::{
    A2aError, ErrorDetail, ErrorKind, FieldViolation, GrpcStatus, StatusProfile,
};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};

const PROFILES: [StatusProfile; 2] = [StatusProfile::V1_0_1, StatusProfile::V1_0_0];

fn through(error: &A2aError, profile: StatusProfile) -> A2aError {
    let parts = encode_status(error, profile);
    assert_eq!(parts.code, error.kind.grpc_status(profile).number());
    decode_status(parts.code, &parts.message, Some(&parts.details_bin))
}

/// GRPC-03, BR-131, BR-132: the reason tells the kind, whatever the code.
#[test]
fn every_error_of_a2a_survives() {
    for profile in PROFILES {
        for kind in ErrorKind::ALL.iter().filter(|kind| kind.reason().is_some()) {
            let read = through(
                &A2aError::new(*kind, "wörter").with("taskId", "t1"),
                profile,
            );
            assert_eq!(read.kind.reason(), kind.reason());
            assert_eq!(read.message, "wörter");
            assert_eq!(read.metadata["taskId"], "t1");
        }
    }
}

/// BR-131: NOT_FOUND with reason and domain for an unknown task.
#[test]
fn an_unknown_task_is_told_by_detail() {
    let parts = encode_status(
        &A2aError::task_not_found(&"t1".into()),
        StatusProfile::default(),
    );
    assert_eq!(parts.code, 5);
    let text = String::from_utf8_lossy(&parts.details_bin);
    for word in [
        "type.googleapis.com/google.rpc.ErrorInfo",
        "TASK_NOT_FOUND",
        "a2a-protocol.org",
    ] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

/// GRPC-04: wrong fields and the time to wait.
#[test]
fn details_survive() {
    let violation = |field: &str| FieldViolation {
        field: field.to_owned(),
        description: "is required".to_owned(),
    };
    let error = A2aError::invalid_fields(vec![violation("message.parts[0]"), violation("id")])
        .with_detail(ErrorDetail::RetryAfter(Duration::from_millis(1500)));
    let read = through(&error, StatusProfile::default());
    assert_eq!(read.kind, ErrorKind::InvalidParams);
    assert_eq!(read.details, error.details);
    assert_eq!(read.message, error.message);
}

/// BR-132, ERR-04: a code alone is generic, and its message is kept.
#[test]
fn codes_alone_name_no_error_of_a2a() {
    for (code, kind) in [
        (3, ErrorKind::InvalidParams),
        (4, ErrorKind::DeadlineExceeded),
        (7, ErrorKind::PermissionDenied),
        (8, ErrorKind::ResourceExhausted),
        (9, ErrorKind::InvalidRequest),
        (12, ErrorKind::MethodNotFound),
        (13, ErrorKind::Internal),
        (14, ErrorKind::Unavailable),
        (16, ErrorKind::Unauthenticated),
        (2, ErrorKind::Internal),
        (99, ErrorKind::Internal),
        (-1, ErrorKind::Internal),
    ] {
        for details in [None, Some(&b"\xff\xff no message"[..])] {
            let error = decode_status(code, "no luck", details);
            assert_eq!(
                (error.kind, error.message.as_str()),
                (kind, "no luck"),
                "{code}"
            );
            assert_eq!(error.kind.reason(), None);
        }
    }
    assert_eq!(decode_status(5, "", None).kind, ErrorKind::TaskNotFound);
}

/// The SDKs of 0.3 write the class of an error before its message.
#[test]
fn errors_of_0_3_are_told_by_name() {
    for (message, kind, rest) in [
        (
            "TaskNotCancelableError: too late",
            ErrorKind::TaskNotCancelable,
            "too late",
        ),
        ("TaskNotFoundError: None", ErrorKind::TaskNotFound, "None"),
        ("MethodNotFoundError: x", ErrorKind::MethodNotFound, "x"),
        (
            "SomeOtherError: x",
            ErrorKind::MethodNotFound,
            "SomeOtherError: x",
        ),
    ] {
        let error = decode_status(12, message, None);
        assert_eq!((error.kind, error.message.as_str()), (kind, rest));
    }
}

/// ERR-09: details of others are kept as they came.
#[test]
fn unknown_details_are_kept() {
    // google.rpc.Status with one Any: type "x/y", value 01 02.
    let status = b"\x08\x09\x12\x01m\x1a\x09\x0a\x03x/y\x12\x02\x01\x02";
    let error = decode_status(9, "", Some(status));
    assert_eq!(error.message, "m");
    let expected = serde_json::json!({"@type": "x/y", "value": "AQI="});
    assert_eq!(error.details, [ErrorDetail::Other(expected)]);
}

/// Trailers are small: whatever an error says, it arrives.
#[test]
fn large_errors_are_cut_to_fit_a_trailer() {
    let violations = (0..1000)
        .map(|place| FieldViolation {
            field: format!("message.parts[{place}]"),
            description: "ü".repeat(2000),
        })
        .collect();
    let error = A2aError::invalid_fields(violations);
    let parts = encode_status(&error, StatusProfile::default());
    assert!(parts.message.len() <= 1024);
    assert!(
        parts.details_bin.len() < 5000,
        "{}",
        parts.details_bin.len()
    );
    let read = through(&error, StatusProfile::default());
    assert_eq!(read.violations()[0].field, "message.parts[0]");
}

#[test]
fn the_numbers_are_grpcs() {
    for (number, status) in [
        (2, GrpcStatus::Unknown),
        (9, GrpcStatus::FailedPrecondition),
        (16, GrpcStatus::Unauthenticated),
    ] {
        assert_eq!(status.number(), number);
        assert_eq!(GrpcStatus::from_number(number), Some(status));
        assert_eq!(GrpcStatus::from_name(status.as_str()), Some(status));
    }
    assert_eq!(GrpcStatus::from_number(0), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_details_do_harm(code in any::<i32>(), message in "(?s).{0,20}", details in vec(any::<u8>(), 0..80)) {
        decode_status(code, &message, Some(&details));
    }
}
