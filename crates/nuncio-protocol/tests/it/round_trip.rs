//! Whatever is written is read as the same again (GEN-01, BR-134, BR-139, BR-141).

use std::fmt::Debug;

use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{Outcome, json};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert_eq, proptest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::strategies;

fn same_again<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let text = json::encode(value);
    let read: T = json::decode(text.as_bytes())
        .map_err(|error| TestCaseError::fail(format!("{}: {error} in {text}", error.path)))?;
    prop_assert_eq!(&read, value, "{}", text);
    // Through a tree, as the store and the console read it.
    let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
    let read: T = serde_json::from_value(tree).unwrap();
    prop_assert_eq!(&read, value, "{}", text);
    Ok(())
}

/// What both bindings make of an outcome, after reading it again.
fn same_outcome(
    kind: nuncio_protocol::OperationKind,
    outcome: &Outcome,
) -> Result<(), TestCaseError> {
    let id = json_rpc::RequestId::text("é\"\\\u{0}");
    let text = json_rpc::encode_outcome(&id, outcome).unwrap();
    let read = json_rpc::decode_outcome(kind, text.as_bytes()).unwrap();
    prop_assert_eq!(json_rpc::encode_outcome(&id, &read).unwrap(), text);
    let text = rest::encode_outcome(outcome).unwrap();
    let read = rest::decode_outcome(kind, text.as_bytes()).unwrap();
    prop_assert_eq!(rest::encode_outcome(&read).unwrap(), text);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_json_value(value in strategies::json()) {
        same_again(&value)?;
    }

    #[test]
    fn parts(part in strategies::part()) {
        same_again(&part)?;
    }

    #[test]
    fn messages(message in strategies::message()) {
        same_again(&message)?;
    }

    #[test]
    fn tasks(task in strategies::task()) {
        same_again(&task)?;
        same_outcome(nuncio_protocol::OperationKind::GetTask, &Outcome::Task(task))?;
    }

    #[test]
    fn events(event in strategies::stream_response()) {
        same_again(&event)?;
        let text = json::encode(&event);
        prop_assert_eq!(&rest::decode_event(text.as_bytes()).unwrap(), &event);
        let framed = json_rpc::encode_result(&json_rpc::RequestId::text("i"), &text);
        prop_assert_eq!(&json_rpc::decode_event(framed.as_bytes()).unwrap(), &event);
    }

    #[test]
    fn answers_to_messages(sent in strategies::send_response()) {
        same_again(&sent)?;
        same_outcome(nuncio_protocol::OperationKind::SendMessage, &Outcome::Sent(sent))?;
    }

    #[test]
    fn pages_of_tasks(page in strategies::list_response()) {
        same_again(&page)?;
        same_outcome(nuncio_protocol::OperationKind::ListTasks, &Outcome::Tasks(page))?;
    }

    #[test]
    fn webhooks(list in strategies::push_configs()) {
        same_again(&list)?;
        let kind = nuncio_protocol::OperationKind::ListTaskPushNotificationConfigs;
        same_outcome(kind, &Outcome::PushConfigs(list))?;
    }

    #[test]
    fn cards(card in strategies::card()) {
        same_again(&card)?;
        let kind = nuncio_protocol::OperationKind::GetExtendedAgentCard;
        same_outcome(kind, &Outcome::Card(Box::new(card)))?;
    }

    #[test]
    fn timestamps(time in strategies::timestamp()) {
        same_again(&time)?;
        let ms = time.unix_ms();
        let floor = nuncio_protocol::Timestamp::from_unix_ms(ms);
        prop_assert_eq!(floor.unix_ms(), ms);
        proptest::prop_assert!(floor <= time);
    }

    /// RPC-02, RPC-03, RPC-05.
    #[test]
    fn operations_over_json_rpc(operation in strategies::operation(), id in strategies::text()) {
        let id = json_rpc::RequestId::text(&id);
        let text = json_rpc::encode_request(&id, &operation);
        let request = json_rpc::Request::decode(text.as_bytes()).unwrap();
        prop_assert_eq!(&request.id, &id);
        prop_assert_eq!(&*request.method, operation.kind().as_str());
        prop_assert_eq!(request.operation().unwrap(), operation);
    }

    /// REST-01, REST-02, REST-05, TEN-02: ids with slashes, colons, percent signs and any unicode.
    #[test]
    fn operations_over_rest(operation in strategies::operation()) {
        let request = rest::encode_request(&operation);
        proptest::prop_assert!(request.target.is_ascii(), "{}", request.target);
        let (path, query) = match request.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request.target.as_str(), None),
        };
        let route = rest::route(request.method, path).unwrap();
        prop_assert_eq!(route.kind, operation.kind());
        let body = request.body.unwrap_or_default();
        let read = route.operation(query, body.as_bytes()).unwrap();
        prop_assert_eq!(read, operation);
    }
}
