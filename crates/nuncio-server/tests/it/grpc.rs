//! The gRPC binding on a real HTTP/2 connection.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nuncio_protocol::grpc::frame::{self, FrameDecoder};
use nuncio_protocol::{
    A2aError, Binding, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Operation, OperationKind,
    Outcome, Part, Role, SendMessageRequest, StatusProfile, StreamResponse, SubscribeToTaskRequest,
    TaskPushNotificationConfig, TaskState, Version, dialect, grpc,
};
use nuncio_server::Authenticator;
use serde_json::json;
use tokio::net::TcpStream;

use crate::auth::key;
use crate::fake::{SECRET, task_event};
use crate::harness::{Headers, PATIENCE, Served, Setup, serve};

/// What came back of a call.
#[derive(Debug)]
struct Answered {
    headers: HeaderMap,
    messages: Vec<Bytes>,
    trailers: HeaderMap,
}

impl Answered {
    /// The number of the status, wherever it stands.
    fn code(&self) -> i32 {
        self.status("grpc-status").unwrap().parse().unwrap()
    }

    fn status(&self, name: &str) -> Option<&str> {
        let value = self.trailers.get(name).or_else(|| self.headers.get(name))?;
        Some(value.to_str().unwrap())
    }

    fn error(&self) -> A2aError {
        use base64::Engine as _;
        let message = frame::decode_message(self.status("grpc-message").unwrap_or_default());
        let details = self.status("grpc-status-details-bin").map(|text| {
            base64::engine::general_purpose::STANDARD_NO_PAD
                .decode(text)
                .unwrap()
        });
        grpc::decode_status(self.code(), &message, details.as_deref())
    }
}

async fn raw_call(served: &Served, path: &str, headers: Headers<'_>, body: Bytes) -> Answered {
    let stream = TcpStream::connect(served.address).await.unwrap();
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut client, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::post(format!("http://{}{path}", served.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body)).unwrap();
    let exchange = async {
        let response = client.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200, "GRPC: always");
        let (parts, body) = response.into_parts();
        (parts.headers, body.collect().await.unwrap())
    };
    let (headers, collected) = tokio::time::timeout(PATIENCE, exchange).await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let mut decoder = FrameDecoder::new(64 << 20);
    decoder.push(&collected.to_bytes());
    let mut messages = Vec::new();
    while let Some(message) = decoder.next_message().unwrap() {
        messages.push(message);
    }
    decoder.finish().unwrap();
    Answered {
        headers,
        messages,
        trailers,
    }
}

async fn call(
    served: &Served,
    version: Version,
    operation: &Operation,
    headers: Headers<'_>,
) -> Answered {
    let dialect = dialect::grpc(version);
    let method = dialect.method(operation.kind()).unwrap();
    let path = format!("/{}/{method}", dialect.service());
    let message = dialect.encode_request(operation).unwrap();
    raw_call(served, &path, headers, frame::encode(&message)).await
}

fn say(text: &str) -> SendMessageRequest {
    let mut message = Message::default();
    message.message_id = "m1".into();
    message.role = Role::User;
    message.parts = vec![Part::text(text)];
    SendMessageRequest::new(message)
}

/// One of each operation.
fn operations() -> Vec<Operation> {
    let mut create = TaskPushNotificationConfig::default();
    create.task_id = Some("t1".into());
    create.url = "https://example.com/hook".to_owned();
    let mut get = GetTaskPushNotificationConfigRequest::default();
    (get.task_id, get.id) = ("t1".into(), "p1".into());
    let mut list = ListTaskPushNotificationConfigsRequest::default();
    list.task_id = "t1".into();
    let mut delete = DeleteTaskPushNotificationConfigRequest::default();
    (delete.task_id, delete.id) = ("t1".into(), "p1".into());
    vec![
        Operation::SendMessage(say("hi")),
        Operation::SendStreamingMessage(say("hi")),
        Operation::GetTask(GetTaskRequest::new("t1")),
        Operation::ListTasks(ListTasksRequest::default()),
        Operation::CancelTask(CancelTaskRequest::new("t1")),
        Operation::SubscribeToTask(SubscribeToTaskRequest::new("t1")),
        Operation::CreateTaskPushNotificationConfig(create),
        Operation::GetTaskPushNotificationConfig(get),
        Operation::ListTaskPushNotificationConfigs(list),
        Operation::DeleteTaskPushNotificationConfig(delete),
        Operation::GetExtendedAgentCard(GetExtendedAgentCardRequest::default()),
    ]
}

/// GRPC-01: every operation of both packages is answered; streams give their events.
#[tokio::test]
async fn every_operation_is_served_in_both_packages() {
    let mut setup = Setup::default();
    setup.fake.extended = Some(setup.card.clone());
    setup.authenticator = Authenticator::with_keys([key("secret", "alice")]);
    let served = setup.start().await;
    let headers = [("authorization", "Bearer secret")];
    let mut count = 0;
    for version in Version::ALL {
        let dialect = dialect::grpc(*version);
        for operation in operations() {
            let kind = operation.kind();
            if dialect.method(kind).is_none() {
                assert_eq!((*version, kind), (Version::V0_3, OperationKind::ListTasks));
                continue;
            }
            let answered = call(&served, *version, &operation, &headers).await;
            assert_eq!(answered.code(), 0, "{version} {kind:?}: {answered:?}");
            assert_eq!(answered.headers["content-type"], "application/grpc");
            let position = answered.headers.get("last-event-id");
            let position = position.map(|position| position.to_str().unwrap());
            assert_eq!(
                position,
                kind.streams().then_some("1"),
                "{version} {kind:?}"
            );
            if kind.streams() {
                let events: Vec<_> = answered.messages.iter().collect();
                assert_eq!(events.len(), 2, "{version} {kind:?}");
                let last = dialect.decode_event(events[1]).unwrap();
                let Some(StreamResponse::StatusUpdate(update)) = last else {
                    panic!("{last:?}");
                };
                assert_eq!(update.status.state, TaskState::Completed);
            } else {
                let outcome = dialect.decode_result(kind, &answered.messages[0]).unwrap();
                match outcome {
                    Outcome::Task(task) => assert_eq!(task.id.as_str(), "t1"),
                    Outcome::Card(card) => assert_eq!(card.name, "Echo"),
                    _ => {}
                }
            }
            if kind != OperationKind::GetExtendedAgentCard {
                assert_eq!(served.fake.last().version, *version);
                assert_eq!(served.fake.last().caller.id.as_str(), "alice");
            }
            count += 1;
        }
    }
    assert_eq!(count, 21);
}

/// GRPC-03, GRPC-09, BR-125, BR-131: status, message and details of each kind, before a stream too.
#[tokio::test]
async fn errors_carry_their_details_in_trailers() {
    let served = serve().await;
    for (text, kind, code) in [
        ("missing", ErrorKind::TaskNotFound, 5),
        ("not-cancelable", ErrorKind::TaskNotCancelable, 9),
        ("bad-agent", ErrorKind::InvalidAgentResponse, 13),
        ("ended", ErrorKind::UnsupportedOperation, 9),
        ("busy", ErrorKind::Unavailable, 14),
        ("internal", ErrorKind::Internal, 13),
        ("panic", ErrorKind::Internal, 13),
    ] {
        for operation in [
            Operation::SendMessage(say(text)),
            Operation::SendStreamingMessage(say(text)),
        ] {
            let answered = call(&served, Version::V1_0, &operation, &[]).await;
            assert_eq!(answered.code(), code, "{text}");
            assert_eq!(answered.error().kind, kind, "{text}");
            assert!(
                answered.messages.is_empty() && answered.trailers.is_empty(),
                "trailers only"
            );
            assert!(!format!("{answered:?}").contains(SECRET), "ERR-06");
        }
    }
}

/// GRPC-04, BR-009: what is wrong is named, as in the other bindings, and changes nothing.
#[tokio::test]
async fn invalid_requests_name_the_field() {
    let served = serve().await;
    let mut no_parts = say("x");
    no_parts.message.as_mut().unwrap().parts.clear();
    let mut no_id = say("x");
    no_id.message.as_mut().unwrap().message_id = "".into();
    for (request, field) in [
        (no_parts, "message.parts"),
        (no_id, "message.messageId"),
        (SendMessageRequest::default(), "message"),
    ] {
        let answered = call(
            &served,
            Version::V1_0,
            &Operation::SendMessage(request),
            &[],
        )
        .await;
        assert_eq!(answered.code(), 3);
        assert_eq!(answered.error().violations()[0].field, field);
    }
    let path = "/lf.a2a.v1.A2AService/GetTask";
    for (body, code) in [
        (Bytes::new(), 3),
        (Bytes::from_static(b"\0\0\0\0\x05ab"), 3),
        (Bytes::from_static(b"\x01\0\0\0\x01a"), 12),
        (frame::encode(b"\xff\xff\xff"), 3),
    ] {
        let answered = raw_call(&served, path, &[], body.clone()).await;
        assert_eq!(answered.code(), code, "{body:?}");
    }
    assert_eq!(served.fake.calls(), 0, "GEN-04: no side effect");
}

/// BR-111, VER-05, VER-10: a version in the metadata has to be the package's.
#[tokio::test]
async fn metadata_and_package_must_agree() {
    let served = serve().await;
    let get = Operation::GetTask(GetTaskRequest::new("t1"));
    for (package, said, code) in [
        (Version::V1_0, "", 0),
        (Version::V1_0, "1.0", 0),
        (Version::V1_0, "1.0.3", 0),
        (Version::V1_0, "99.0", 9),
        (Version::V1_0, "abc", 9),
        (Version::V1_0, "0.3", 12),
        (Version::V0_3, "", 0),
        (Version::V0_3, "0.3", 0),
        (Version::V0_3, "1.0", 12),
    ] {
        let answered = call(&served, package, &get, &[("a2a-version", said)]).await;
        assert_eq!(answered.code(), code, "{package} {said:?}: {answered:?}");
        if code == 9 {
            assert_eq!(answered.error().kind, ErrorKind::VersionNotSupported);
            assert_eq!(answered.error().metadata["supportedVersions"], "0.3,1.0");
        }
    }
    for path in ["/lf.a2a.v1.A2AService/Dance", "/some.Service/GetTask", "/"] {
        let answered = raw_call(&served, path, &[], frame::encode(b"")).await;
        assert_eq!(answered.code(), 12, "{path}");
    }
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_dialects([Version::V1_0]);
    let newer = setup.start().await;
    assert_eq!(call(&newer, Version::V0_3, &get, &[]).await.code(), 12);
}

/// AUTH-11, GRPC-04: the same keys as everywhere.
#[tokio::test]
async fn keys_travel_as_metadata() {
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([key("secret", "alice")]);
    let served = setup.start().await;
    let get = Operation::GetTask(GetTaskRequest::new("t1"));
    for (headers, code) in [
        (&[][..], 16),
        (&[("authorization", "Bearer wrong")][..], 16),
        (&[("authorization", "Bearer secret")][..], 0),
        (&[("x-api-key", "secret")][..], 0),
    ] {
        let answered = call(&served, Version::V1_0, &get, headers).await;
        assert_eq!(answered.code(), code, "{headers:?}");
    }
}

/// TEN-02, TEN-06: the tenant names the agent, with its workspace or without.
#[tokio::test]
async fn the_tenant_names_the_agent() {
    let served = serve().await;
    served.server.switchboard().set_default(None);
    for (tenant, code) in [
        (None, 5),
        (Some("echo"), 0),
        (Some("default/echo"), 0),
        (Some("nobody"), 5),
        (Some("other/echo"), 5),
    ] {
        let mut get = GetTaskRequest::new("t1");
        get.tenant = tenant.map(str::to_owned);
        let answered = call(&served, Version::V1_0, &Operation::GetTask(get), &[]).await;
        assert_eq!(answered.code(), code, "{tenant:?}");
    }
}

/// GEN-03: what an agent's card does not name is not answered, and what it names is.
#[tokio::test]
async fn an_agent_is_called_over_the_bindings_of_its_card() {
    let get = Operation::GetTask(GetTaskRequest::new("t1"));
    for offered in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        let mut setup = Setup::default();
        setup.shape = match offered {
            Binding::JsonRpc => |endpoint| endpoint.with_bindings([Binding::JsonRpc]),
            Binding::HttpJson => |endpoint| endpoint.with_bindings([Binding::HttpJson]),
            Binding::Grpc => |endpoint| endpoint.with_bindings([Binding::Grpc]),
        };
        let served = setup.start().await;
        let card = served.get("/.well-known/agent-card.json").await.json();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 2, "one for each version: {card}");
        for interface in interfaces {
            assert_eq!(interface["protocolBinding"], offered.as_str());
        }
        let over = |binding, good| if binding == offered { 0 } else { good };
        let rpc = served.rpc("GetTask", json!({"id": "t1"})).await;
        assert_eq!(rpc.code(), over(Binding::JsonRpc, -32601), "{offered:?}");
        let rest = served.get("/tasks/t1").await;
        assert_eq!(
            rest.status,
            if offered == Binding::HttpJson {
                200
            } else {
                404
            }
        );
        let grpc = call(&served, Version::V1_0, &get, &[]).await;
        assert_eq!(i64::from(grpc.code()), over(Binding::Grpc, 12));
    }
}

/// GRPC-07: the deadline reaches the agent's side, which goes on all the same.
#[tokio::test]
async fn the_deadline_is_handed_on() {
    let served = serve().await;
    let send = Operation::SendMessage(say("hi"));
    call(&served, Version::V1_0, &send, &[("grpc-timeout", "1500m")]).await;
    let waits = std::time::Duration::from_millis(1500);
    assert_eq!(served.fake.last().timeout, Some(waits));
}

/// BR-135: the limit is that of the other bindings, not gRPC's 4 MiB.
#[tokio::test]
async fn large_messages_pass_up_to_the_servers_own_limit() {
    let mut setup = Setup::default();
    setup.settings.max_body_bytes = 12 << 20;
    let served = setup.start().await;
    let text = "x".repeat(10 << 20);
    let answered = call(
        &served,
        Version::V1_0,
        &Operation::SendMessage(say(&text)),
        &[],
    )
    .await;
    assert_eq!(answered.code(), 0);
    let text = "x".repeat(13 << 20);
    let answered = call(
        &served,
        Version::V1_0,
        &Operation::SendMessage(say(&text)),
        &[],
    )
    .await;
    assert_eq!(answered.code(), 8, "RESOURCE_EXHAUSTED");
}

/// P5: the position to go on from is metadata here.
#[tokio::test]
async fn a_cursor_is_metadata() {
    let served = serve().await;
    let operation = Operation::SubscribeToTask(SubscribeToTaskRequest::new("t1"));
    for (said, heard) in [("41", Some(41)), ("", None)] {
        let headers = [("last-event-id", said)];
        let answered = call(&served, Version::V1_0, &operation, &headers).await;
        assert_eq!(answered.code(), 0);
        assert_eq!(served.fake.last().last_event_id, heard);
    }
    let headers = [("last-event-id", "x")];
    let answered = call(&served, Version::V1_0, &operation, &headers).await;
    let error = answered.error();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert!(error.message.contains("Last-Event-ID"), "{error:?}");
}

/// OP-STRM-08: an error amid a stream stands in its trailers, after the events before it.
#[tokio::test]
async fn a_stream_that_breaks_says_so_in_its_trailers() {
    let served = serve().await;
    let feed = served.fake.feed();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    feed.send(Err(A2aError::new(ErrorKind::InvalidAgentResponse, "broke")))
        .unwrap();
    let send = Operation::SendStreamingMessage(say("hi"));
    let answered = call(&served, Version::V1_0, &send, &[]).await;
    assert_eq!(answered.messages.len(), 1);
    assert!(answered.headers.get("grpc-status").is_none());
    assert_eq!(answered.error().kind, ErrorKind::InvalidAgentResponse);
}

/// EXT-04: extensions by their name in each version.
#[tokio::test]
async fn extensions_are_echoed_by_the_versions_own_name() {
    let mut setup = Setup::default();
    let mut extension = nuncio_protocol::AgentExtension::default();
    extension.uri = "urn:a".to_owned();
    setup.card.capabilities.extensions = vec![extension];
    let served = setup.start().await;
    let get = Operation::GetTask(GetTaskRequest::new("t1"));
    for (version, name) in [
        (Version::V1_0, "a2a-extensions"),
        (Version::V0_3, "x-a2a-extensions"),
    ] {
        let answered = call(&served, version, &get, &[(name, "urn:a,urn:b")]).await;
        assert_eq!(answered.headers[name], "urn:a");
    }
}

/// GRPC-08: health without credentials, reflection with them.
#[tokio::test]
async fn health_and_reflection_are_served() {
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([key("secret", "alice")]);
    let served = setup.start().await;
    let check = "/grpc.health.v1.Health/Check";
    let named = |service: &str| {
        let mut message = BytesMut::from(&[0x0a, service.len() as u8][..]);
        message.extend_from_slice(service.as_bytes());
        frame::encode(&message)
    };
    for service in ["", "lf.a2a.v1.A2AService", "a2a.v1.A2AService"] {
        let answered = raw_call(&served, check, &[], named(service)).await;
        assert_eq!(
            (answered.code(), &*answered.messages[0]),
            (0, &[8, 1][..]),
            "SERVING"
        );
    }
    assert_eq!(raw_call(&served, check, &[], named("x.Y")).await.code(), 5);
    served.server.drain();
    let answered = raw_call(&served, check, &[], frame::encode(b"")).await;
    assert_eq!(&*answered.messages[0], [8, 2], "NOT_SERVING");

    let list = || frame::encode(&[0x3a, 0]);
    for package in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{package}.ServerReflection/ServerReflectionInfo");
        assert_eq!(raw_call(&served, &path, &[], list()).await.code(), 16);
        let headers = [("authorization", "Bearer secret")];
        let answered = raw_call(&served, &path, &headers, list()).await;
        let listed = String::from_utf8_lossy(&answered.messages[0]).into_owned();
        for service in [
            "lf.a2a.v1.A2AService",
            "a2a.v1.A2AService",
            "grpc.health.v1.Health",
        ] {
            assert!(listed.contains(service), "{listed}");
        }
    }
}

/// ERR-03: the older profile's gRPC codes.
#[tokio::test]
async fn the_status_profile_counts_here_too() {
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_status_profile(StatusProfile::V1_0_0);
    let served = setup.start().await;
    let send = Operation::SendMessage(say("ended"));
    let answered = call(&served, Version::V1_0, &send, &[]).await;
    assert_eq!(
        (answered.code(), answered.error().kind),
        (12, ErrorKind::UnsupportedOperation)
    );
}
