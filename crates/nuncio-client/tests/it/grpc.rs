//! What only gRPC has: statuses, trailers, frames, addresses (GRPC-*, BR-132, BR-135).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::{BodyExt as _, Full};
use nuncio_client::{ApiKeyPlace, Cause, Credentials, Timeouts, cause};
use nuncio_protocol::dialect::{self, StreamKind};
use nuncio_protocol::grpc::frame;
use nuncio_protocol::{
    A2aError, AgentService as _, Artifact, Binding, ErrorDetail, ErrorKind, Event, GetTaskRequest,
    Operation, OperationKind, Outcome, Part, SendMessageResponse, StreamResponse, Task, TaskState,
    TaskStatus, Version,
};

use crate::agent::{Agent, Reply, grpc, ok, trailers_only};
use crate::support::{builder, call, collect, hello};

const VERSIONS: [Version; 2] = [Version::V1_0, Version::V0_3];

fn task() -> Task {
    let mut status = TaskStatus::default();
    status.state = TaskState::Completed;
    Task::new("t1".into(), "c1".into(), status)
}

async fn get(version: Version, reply: impl Fn() -> Reply + Send + 'static) -> A2aError {
    let agent = Agent::start(version, move |_| reply()).await;
    let client = agent.client(Binding::Grpc);
    let got = client.get_task(call(), GetTaskRequest::new("t1")).await;
    let by_get = got.unwrap_err();
    let streamed = client.send_streaming_message(call(), hello()).await;
    let by_stream = match streamed {
        Err(error) => error,
        Ok(stream) => collect(stream).await.1.unwrap(),
    };
    assert_eq!(by_stream.kind, by_get.kind);
    by_get
}

fn trailers(code: &'static str, message: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(code));
    trailers.insert("grpc-message", HeaderValue::from_static(message));
    trailers
}

/// BR-132: five reasons are five errors; without one the error is a generic one.
#[tokio::test]
async fn br_132_preconditions_are_told_apart() {
    for version in VERSIONS {
        for kind in [
            ErrorKind::TaskNotCancelable,
            ErrorKind::PushNotificationNotSupported,
            ErrorKind::UnsupportedOperation,
            ErrorKind::ExtendedAgentCardNotConfigured,
            ErrorKind::ExtensionSupportRequired,
            ErrorKind::VersionNotSupported,
        ] {
            let error = get(version, move || Reply::Error(A2aError::new(kind, "why"))).await;
            assert_eq!((error.kind, error.message.as_str()), (kind, "why"));
        }
        let bare = || Reply::Raw(grpc(Vec::new(), Some(trailers("9", "no such%20luck"))));
        let error = get(version, bare).await;
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
        assert_eq!(error.message, "no such luck");
    }
}

/// GRPC-03, V03-REST-07: codes alone, and the names that SDKs of 0.3 put before the message.
#[tokio::test]
async fn codes_and_names_decide_where_there_is_no_reason() {
    for (code, message, kind) in [
        ("5", "gone", ErrorKind::TaskNotFound),
        ("5", "TaskNotFoundError: gone", ErrorKind::TaskNotFound),
        (
            "2",
            "TaskNotCancelableError: gone",
            ErrorKind::TaskNotCancelable,
        ),
        ("3", "gone", ErrorKind::InvalidParams),
        ("12", "gone", ErrorKind::MethodNotFound),
        ("16", "gone", ErrorKind::Unauthenticated),
        ("7", "gone", ErrorKind::PermissionDenied),
        ("14", "gone", ErrorKind::Unavailable),
        ("999", "gone", ErrorKind::Internal),
        ("x", "gone", ErrorKind::Internal),
    ] {
        let reply = move || Reply::Raw(grpc(Vec::new(), Some(trailers(code, message))));
        let error = get(Version::V0_3, reply).await;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (kind, "gone"),
            "{code} {message}"
        );
        assert_eq!(cause(&error), None);
    }
}

/// An answer that does not say how it ended has not ended well.
#[tokio::test]
async fn an_answer_without_a_status_is_cut() {
    let message = || {
        dialect::grpc(Version::V1_0).encode_result(OperationKind::GetTask, &Outcome::Task(task()))
    };
    for trailers in [None, Some(HeaderMap::new())] {
        let agent = Agent::start(Version::V1_0, move |_| {
            let framed = frame::encode(&message().unwrap());
            Reply::Raw(grpc(vec![Ok(framed)], trailers.clone()))
        })
        .await;
        let client = agent.client(Binding::Grpc);
        let error = client.get_task(call(), GetTaskRequest::new("t1")).await;
        let error = error.unwrap_err();
        assert_eq!(
            (error.kind, cause(&error)),
            (ErrorKind::Unavailable, Some(Cause::Cut))
        );
        // A read does no harm, so that it was tried again.
        assert_eq!(agent.asked().len(), 3);
        client.send_message(call(), hello()).await.unwrap_err();
        assert_eq!(agent.asked().len(), 4);
    }
}

#[tokio::test]
async fn what_is_no_answer_of_grpc_is_named() {
    let answer = |status: u16, kind: &'static str, body: &'static str| {
        move || {
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
            let response = Response::builder()
                .status(status)
                .header("content-type", kind);
            Reply::Raw(response.body(body.boxed()).unwrap())
        }
    };
    for (status, kind) in [
        (401, ErrorKind::Unauthenticated),
        (403, ErrorKind::PermissionDenied),
        (404, ErrorKind::MethodNotFound),
        (429, ErrorKind::ResourceExhausted),
        (502, ErrorKind::Unavailable),
        (503, ErrorKind::Unavailable),
    ] {
        let error = get(Version::V1_0, answer(status, "text/html", "<html>")).await;
        assert_eq!(error.kind, kind, "{status}");
        assert!(
            error.message.contains(&status.to_string()),
            "{}",
            error.message
        );
    }
    let error = get(Version::V1_0, answer(200, "text/html", "<html>")).await;
    assert_eq!(cause(&error), Some(Cause::BadAnswer));
    assert!(error.message.contains("text/html"), "{}", error.message);
    for body in [
        &[][..],
        &[1, 0, 0, 0, 1, 7],
        &[9, 0, 0, 0, 0],
        &[0, 0, 0, 0, 9, 1],
        &[0, 0, 0, 0, 1, 7],
    ] {
        let body = Bytes::from_static(body);
        let reply = move || Reply::Raw(grpc(vec![Ok(body.clone())], Some(ok())));
        let error = get(Version::V1_0, reply).await;
        assert_eq!(error.kind, ErrorKind::InvalidAgentResponse);
        assert_eq!(cause(&error), Some(Cause::BadAnswer));
    }
}

/// BR-135: large answers are a matter of the setting, and too large ones are not asked for again.
#[tokio::test]
async fn br_135_ten_megabytes_fit_and_what_does_not_is_not_retried() {
    for version in VERSIONS {
        let large = || {
            let mut task = task();
            let text = "x".repeat(10 << 20);
            task.artifacts = vec![Artifact::new("a1", vec![Part::text(text)])];
            task
        };
        let agent = Agent::start(version, move |asked| match asked.operation {
            Operation::SendStreamingMessage(_) => {
                let items = vec![StreamResponse::Task(large())];
                Reply::Stream(items, crate::agent::End::Well)
            }
            _ => Reply::Outcome(Outcome::Task(large())),
        })
        .await;
        for (limit, fits) in [(16 << 20, true), (4 << 20, false)] {
            let before = agent.asked().len();
            let builder = builder().max_response_bytes(limit);
            let client = agent.client_of(builder, Binding::Grpc);
            let got = client.get_task(call(), GetTaskRequest::new("t1")).await;
            let streamed = client.send_streaming_message(call(), hello()).await;
            assert_eq!((got.is_ok(), streamed.is_ok()), (fits, fits), "{version}");
            for error in [got.err(), streamed.err()].into_iter().flatten() {
                assert_eq!(error.kind, ErrorKind::PayloadTooLarge, "{}", error.message);
                assert_eq!(cause(&error), Some(Cause::BadAnswer));
            }
            assert_eq!(agent.asked().len(), before + 2);
        }
        // The agent's own limit.
        let agent = Agent::start(version, |_| {
            Reply::Error(A2aError::new(ErrorKind::ResourceExhausted, "too large"))
        })
        .await;
        let client = agent.client(Binding::Grpc);
        let got = client.get_task(call(), GetTaskRequest::new("t1")).await;
        assert_eq!(got.unwrap_err().kind, ErrorKind::ResourceExhausted);
        assert_eq!(agent.asked().len(), 1);
    }
}

/// Messages are found wherever the network has cut them.
#[tokio::test]
async fn items_are_whole_however_they_are_cut() {
    for version in VERSIONS {
        for size in [1, 3, 7, 1000] {
            let dialect = dialect::grpc(version);
            let mut body = Vec::new();
            for text in ["Hello", "", "漢字"] {
                let mut task = task();
                task.artifacts = vec![Artifact::new("a1", vec![Part::text(text)])];
                let event = Event::from(StreamResponse::Task(task));
                let item = dialect.encode_event(&event, StreamKind::Send).unwrap();
                body.extend_from_slice(&frame::encode(&item));
            }
            let agent = Agent::start(version, move |_| {
                let pieces = body
                    .chunks(size)
                    .map(|piece| Ok(Bytes::copy_from_slice(piece)));
                Reply::Raw(grpc(pieces.collect(), Some(ok())))
            })
            .await;
            let client = agent.client(Binding::Grpc);
            let stream = client
                .send_streaming_message(call(), hello())
                .await
                .unwrap();
            let (events, error) = collect(stream).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(events.len(), 3, "{version} {size}");
        }
    }
}

/// An agent that declines for now is asked again, if it says when.
#[tokio::test]
async fn an_agent_that_declines_for_now_is_asked_again() {
    for delay in [Duration::ZERO, Duration::from_secs(3600)] {
        let mut first = true;
        let agent = Agent::start(Version::V1_0, move |_| {
            if std::mem::replace(&mut first, false) {
                let error = A2aError::new(ErrorKind::Unavailable, "busy");
                let error = error.with_detail(ErrorDetail::RetryAfter(delay));
                return Reply::Raw(trailers_only(&error));
            }
            Reply::Outcome(Outcome::Sent(SendMessageResponse::Task(task())))
        })
        .await;
        let sent = agent
            .client(Binding::Grpc)
            .send_message(call(), hello())
            .await;
        assert_eq!(sent.is_ok(), delay.is_zero());
        assert_eq!(
            sent.err().and_then(|error| error.retry_after()),
            (!delay.is_zero()).then_some(delay)
        );
    }
}

/// GRPC-02: gRPC has no queries and no cookies worth the name, but metadata.
#[tokio::test]
async fn keys_go_as_metadata_to_their_origin() {
    let agent = Agent::start(Version::V1_0, |_| Reply::Outcome(Outcome::Task(task()))).await;
    let key = |place| Credentials::ApiKey {
        place,
        name: "x-api-key".to_owned(),
        key: "s3cret".to_owned(),
    };
    for address in [agent.address.clone(), format!("grpc://{}", agent.address)] {
        for place in [ApiKeyPlace::Header, ApiKeyPlace::Query] {
            let builder = builder().credentials_for(address.clone(), key(place));
            let client = agent.client_of(builder, Binding::Grpc);
            client
                .get_task(call(), GetTaskRequest::new("t1"))
                .await
                .unwrap();
            let asked = agent.asked().pop().unwrap();
            assert_eq!(
                asked.header("x-api-key"),
                Some("s3cret"),
                "{address} {place:?}"
            );
            assert_eq!(asked.path, "/lf.a2a.v1.A2AService/GetTask");
        }
    }
    let elsewhere = builder().credentials_for("http://127.0.0.1:1", key(ApiKeyPlace::Header));
    let client = agent.client_of(elsewhere, Binding::Grpc);
    client
        .get_task(call(), GetTaskRequest::new("t1"))
        .await
        .unwrap();
    assert_eq!(agent.asked().pop().unwrap().header("x-api-key"), None);
}

/// The idle limit counts until something comes; then the connection keeps itself alive (GRPC-07).
#[tokio::test]
async fn br_157_a_quiet_stream_is_borne_and_a_dumb_one_is_not() {
    for (items, expected) in [(1, Cause::TotalTimeout), (0, Cause::IdleTimeout)] {
        let agent = Agent::start(Version::V1_0, move |_| {
            let mut working = task();
            working.status.state = TaskState::Working;
            let items = vec![StreamResponse::Task(working); items];
            Reply::Stream(items, crate::agent::End::Never)
        })
        .await;
        let limits = Timeouts {
            idle: Some(Duration::from_secs(20)),
            total: Some(Duration::from_secs(3600)),
            ..Timeouts::default()
        };
        let client = agent.client_of(builder().timeouts(limits), Binding::Grpc);
        let opening = client.send_streaming_message(call(), hello());
        let error = if items == 0 {
            let stopped = async {
                while agent.asked().is_empty() {
                    tokio::task::yield_now().await;
                }
                tokio::time::pause();
                std::future::pending::<()>().await;
            };
            tokio::select! {
                opened = opening => opened.err().unwrap(),
                () = stopped => unreachable!("it never ends"),
            }
        } else {
            let stream = opening.await.unwrap();
            tokio::time::pause();
            collect(stream).await.1.unwrap()
        };
        assert_eq!(cause(&error), Some(expected));
        tokio::time::resume();
    }
}

/// The caller's deadline is watched at both ends; it is the same limit.
#[tokio::test]
async fn a_deadline_that_the_agent_tells_first_is_ours() {
    let agent = Agent::start(Version::V1_0, |_| {
        Reply::Error(A2aError::new(ErrorKind::DeadlineExceeded, "too late"))
    })
    .await;
    let client = agent.client(Binding::Grpc);
    let mut call = call();
    call.timeout = Some(Duration::from_secs(60));
    let error = client
        .get_task(call, GetTaskRequest::new("t1"))
        .await
        .unwrap_err();
    assert_eq!(cause(&error), Some(Cause::TotalTimeout));
    let told = agent.asked()[0]
        .header("grpc-timeout")
        .and_then(frame::parse_timeout);
    assert!(
        told.is_some_and(|told| told <= Duration::from_secs(60)),
        "{told:?}"
    );
}
