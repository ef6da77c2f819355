//! Which interface is used, and when the next one (CARD-03, CARD-04).

use nuncio_client::{Cause, ConnectError, cause};
use nuncio_protocol::{AgentInterface, AgentService as _, Binding, ErrorKind};

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
