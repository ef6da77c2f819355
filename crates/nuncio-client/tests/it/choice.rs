//! Which interface is used, and when the next one (CARD-03, CARD-04).

use nuncio_client::{Cause, ConnectError, cause};
use nuncio_protocol::{
    A2aError, AgentInterface, AgentService as _, Binding, ErrorKind, GetTaskRequest,
    ListTasksRequest, Operation, Outcome, SendMessageResponse, Task, Version,
};

use crate::agent::{Agent, Reply};
use crate::support::{Answer, Fake, Request, builder, call, hello, task_item};

/// An address where nobody listens.
async fn dead() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/dead", listener.local_addr().unwrap())
}

#[tokio::test]
async fn card_04_the_next_interface_serves_when_the_first_cannot_be_reached() {
    let fake = Fake::start(|request: &Request| request.ok(&task_item("COMPLETED"))).await;
    let mut card = fake.card(Binding::HttpJson, false);
    let first = AgentInterface::new(dead().await, Binding::JsonRpc);
    card.supported_interfaces.insert(0, first);
    let client = builder().build(card).unwrap();
    assert_eq!(client.binding(), Binding::JsonRpc);
    for _ in 0..2 {
        client.send_message(call(), hello()).await.unwrap();
        assert_eq!(client.binding(), Binding::HttpJson);
        assert!(client.interface().url.starts_with(&fake.base));
    }
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn card_04_an_error_of_the_agent_is_not_a_reason_to_go_elsewhere() {
    for status in [500, 503, 401, 404] {
        let failing =
            Fake::start(move |_: &Request| Answer::with_type(status, "text/plain", "")).await;
        let other = Fake::start(|request: &Request| request.ok(&task_item("COMPLETED"))).await;
        let mut card = failing.card(Binding::JsonRpc, false);
        card.supported_interfaces
            .extend(other.card(Binding::HttpJson, false).supported_interfaces);
        let client = builder().build(card).unwrap();
        client.send_message(call(), hello()).await.unwrap_err();
        assert_eq!(other.requests().len(), 0, "{status}");
    }
}

#[tokio::test]
async fn nobody_anywhere_is_an_error_that_names_the_address() {
    let fake = Fake::start(|_: &Request| Answer::default()).await;
    let mut card = fake.card(Binding::JsonRpc, false);
    card.supported_interfaces[0].url = dead().await;
    let client = builder().build(card).unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    assert_eq!(
        (error.kind, cause(&error)),
        (ErrorKind::Unavailable, Some(Cause::Connect))
    );
    assert!(
        error.message.contains("http://127.0.0.1:"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_binding_can_be_pinned_and_what_is_not_offered_is_listed() {
    let fake = Fake::start(|_: &Request| Answer::default()).await;
    let card = fake.card(Binding::HttpJson, false);
    let pinned = builder().binding(Binding::HttpJson).build(card.clone());
    assert_eq!(pinned.unwrap().binding(), Binding::HttpJson);
    let error = builder().binding(Binding::JsonRpc).build(card).unwrap_err();
    assert!(
        matches!(error, ConnectError::NoInterface { .. }),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("HTTP+JSON 1.0 at http://127.0.0.1:"),
        "{error}"
    );
}

/// The default policy of servers does not let a card lead into the private network (BR-171).
#[tokio::test]
async fn br_171_a_cards_private_addresses_are_refused() {
    let fake = Fake::start(|_: &Request| Answer::default()).await;
    let egress = nuncio_egress::Egress::new(nuncio_egress::EgressPolicy::default()).unwrap();
    let client = nuncio_client::ClientBuilder::new(egress)
        .build(fake.card(Binding::JsonRpc, false))
        .unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    assert_eq!(cause(&error), Some(Cause::Refused));
    assert!(!error.message.contains("127.0.0.1"), "{}", error.message);
    assert_eq!(fake.requests().len(), 0);
}

/// Agents that know their version only, and cards that list both.
async fn two_versions(newest: impl Fn() -> Reply + Send + 'static) -> (Agent, Agent) {
    let newer = Agent::start(Version::V1_0, move |_| newest()).await;
    let older = Agent::start(Version::V0_3, |asked| match asked.operation {
        Operation::SendMessage(_) => {
            let mut task = Task::default();
            (task.id, task.context_id) = ("t1".into(), Some("c1".into()));
            Reply::Outcome(Outcome::Sent(SendMessageResponse::Task(task)))
        }
        _ => Reply::Error(A2aError::new(ErrorKind::TaskNotFound, "no such task")),
    })
    .await;
    (newer, older)
}

/// VER-09: the step down is remembered and told, and a pinned version forbids it.
#[tokio::test]
async fn ver_09_an_agent_that_refuses_the_version_is_asked_in_an_older_one() {
    for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
        for kind in [ErrorKind::VersionNotSupported, ErrorKind::MethodNotFound] {
            let refusal = move || Reply::Error(A2aError::new(kind, "not in this version"));
            let (newer, older) = two_versions(refusal).await;
            let mut card = older.card(binding);
            card.supported_interfaces.push(newer.interface(binding));
            let client = builder().build(card.clone()).unwrap();
            assert_eq!(client.version(), Version::V1_0);
            // A task that is not there proves nothing about versions: the next call begins anew.
            let error = client.get_task(call(), GetTaskRequest::new("t1")).await;
            assert_eq!(error.unwrap_err().kind, ErrorKind::TaskNotFound);
            assert_eq!(client.version(), Version::V1_0);
            client.send_message(call(), hello()).await.unwrap();
            assert_eq!(client.version(), Version::V0_3);
            assert_eq!(client.interface().protocol_version, "0.3");
            client.send_message(call(), hello()).await.unwrap();
            assert_eq!(
                (newer.asked().len(), older.asked().len()),
                (2, 3),
                "{binding} {kind:?}"
            );
            let pinned = builder().versions([Version::V1_0]).build(card).unwrap();
            let error = pinned.send_message(call(), hello()).await.unwrap_err();
            assert_eq!(error.kind, kind);
            assert_eq!(older.asked().len(), 3);
        }
    }
}

/// An unknown method that not every agent has, or another error, is no matter of versions.
#[tokio::test]
async fn ver_09_other_errors_lead_to_no_older_version() {
    for (kind, listing) in [
        (ErrorKind::MethodNotFound, true),
        (ErrorKind::UnsupportedOperation, false),
        (ErrorKind::InvalidRequest, false),
    ] {
        let (newer, older) = two_versions(move || Reply::Error(A2aError::new(kind, "no"))).await;
        let mut card = newer.card(Binding::JsonRpc);
        card.supported_interfaces
            .push(older.interface(Binding::JsonRpc));
        let client = builder().build(card).unwrap();
        let error = if listing {
            client
                .list_tasks(call(), ListTasksRequest::default())
                .await
                .err()
        } else {
            client.send_message(call(), hello()).await.err()
        };
        assert_eq!(error.unwrap().kind, kind);
        assert_eq!(older.asked().len(), 0, "{kind:?}");
    }
}

/// Neither version: the newest one's answer is told.
#[tokio::test]
async fn ver_09_the_newest_version_says_why_if_none_is_known() {
    let refusal = || {
        Reply::Error(A2aError::new(
            ErrorKind::VersionNotSupported,
            "1.0 is unknown",
        ))
    };
    let (newer, _) = two_versions(refusal).await;
    let mut card = newer.card(Binding::JsonRpc);
    let mut older = AgentInterface::new(dead().await, Binding::JsonRpc);
    "0.3".clone_into(&mut older.protocol_version);
    card.supported_interfaces.push(older);
    let client = builder().build(card).unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    assert_eq!(error.message, "1.0 is unknown");
    assert_eq!(client.version(), Version::V1_0);
}
