//! Both versions in protobuf: what is written is read as the same again, but for what the version
//! or a double cannot say (GEN-01, JSON-11, MAP-01).

use nuncio_protocol::dialect::{Dialect as _, GrpcDialect, StreamKind};
use nuncio_protocol::{
    A2aError, AgentCard, Artifact, ErrorKind, Event, Limits, Message, Metadata, OAuthFlows,
    Operation, OperationKind, Outcome, Part, PartContent, SecurityScheme, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskPushNotificationConfig,
    TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp, Validate as _, Version, grpc, json,
};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, TestCaseError, any, prop_assert_eq, proptest};
use proptest::sample::{Index, select};
use serde::Serialize;
use serde_json::Value;

use crate::strategies;
use crate::support::as_older_webhook;

const DIALECTS: [&dyn GrpcDialect; 2] = [&grpc::V1, &grpc::V0_3];

/// The JSON of a value, its numbers as a double leaves them: whole ones below 2^53 as integers.
fn in_doubles(value: &impl Serialize) -> Value {
    let mut tree: Value = serde_json::from_str(&json::encode(value)).unwrap();
    double(&mut tree);
    tree
}

fn double(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().unwrap();
            let is_whole = double.fract() == 0.0 && double.abs() < 9_007_199_254_740_992.0;
            *value = if is_whole {
                Value::from(double as i64)
            } else {
                Value::from(double)
            };
        }
        Value::Array(list) => list.iter_mut().for_each(double),
        Value::Object(object) => object.values_mut().for_each(double),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn read_text(value: &impl Serialize) -> Value {
    serde_json::from_str(&json::encode(value)).unwrap()
}

fn outcome_json(outcome: &Outcome) -> Value {
    let text = nuncio_protocol::v1::rest::encode_outcome(outcome).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Writes and reads an outcome; the other side must have `expected`.
fn answered(
    dialect: &dyn GrpcDialect,
    kind: OperationKind,
    outcome: &Outcome,
    expected: &impl Serialize,
) -> Result<(), TestCaseError> {
    let bytes = dialect.encode_result(kind, outcome).unwrap();
    let read = dialect.decode_result(kind, &bytes).unwrap();
    prop_assert_eq!(outcome_json(&read), in_doubles(expected));
    Ok(())
}

fn streamed(
    dialect: &dyn GrpcDialect,
    item: StreamResponse,
    expected: &StreamResponse,
) -> Result<(), TestCaseError> {
    for stream in [StreamKind::Send, StreamKind::Subscription] {
        let bytes = dialect
            .encode_event(&Event::from(item.clone()), stream)
            .unwrap();
        let read = dialect.decode_event(&bytes).unwrap().unwrap();
        prop_assert_eq!(read_text(&read), in_doubles(expected));
    }
    Ok(())
}

/// What 0.3 loses of each type (CHECKLIST section 17).
trait Lossy: Clone {
    fn lose(&mut self);

    fn lost(&self) -> Self {
        let mut copy = self.clone();
        copy.lose();
        copy
    }
}

impl Lossy for Part {
    fn lose(&mut self) {
        if matches!(self.content, PartContent::Text(_) | PartContent::Data(_)) {
            self.filename = None;
            self.media_type = None;
        }
        let wrapped = matches!(&self.content, PartContent::Data(data) if !data.is_object());
        if wrapped && self.metadata.as_ref().is_some_and(Metadata::is_empty) {
            self.metadata = None;
        }
    }
}

impl Lossy for Message {
    fn lose(&mut self) {
        self.parts.iter_mut().for_each(Lossy::lose);
        self.reference_task_ids.clear();
    }
}

impl Lossy for Artifact {
    fn lose(&mut self) {
        self.parts.iter_mut().for_each(Lossy::lose);
    }
}

impl Lossy for TaskStatus {
    fn lose(&mut self) {
        self.message.iter_mut().for_each(Lossy::lose);
    }
}

impl Lossy for Task {
    fn lose(&mut self) {
        self.status.lose();
        self.history.iter_mut().for_each(Lossy::lose);
        self.artifacts.iter_mut().for_each(Lossy::lose);
    }
}

impl Lossy for StreamResponse {
    fn lose(&mut self) {
        match self {
            Self::Task(task) => task.lose(),
            Self::Message(message) => message.lose(),
            Self::StatusUpdate(update) => update.status.lose(),
            Self::ArtifactUpdate(update) => update.artifact.lose(),
            other => panic!("{other:?}"),
        }
    }
}

impl Lossy for SendMessageResponse {
    fn lose(&mut self) {
        match self {
            Self::Task(task) => task.lose(),
            Self::Message(message) => message.lose(),
            other => panic!("{other:?}"),
        }
    }
}

impl Lossy for TaskPushNotificationConfig {
    fn lose(&mut self) {
        as_older_webhook(self);
    }
}

impl Lossy for SendMessageConfiguration {
    fn lose(&mut self) {
        if self.history_length == Some(0) {
            self.history_length = Some(1);
        }
        if let Some(config) = &mut self.task_push_notification_config {
            config.lose();
            config.task_id = None;
        }
    }
}

impl Lossy for SendMessageRequest {
    fn lose(&mut self) {
        self.message.iter_mut().for_each(Lossy::lose);
        self.configuration.get_or_insert_default().lose();
    }
}

impl Lossy for Operation {
    fn lose(&mut self) {
        self.set_tenant(None);
        match self {
            Self::SendMessage(request) | Self::SendStreamingMessage(request) => request.lose(),
            Self::GetTask(request) if request.history_length == Some(0) => {
                request.history_length = Some(1);
            }
            Self::CancelTask(request) => request.metadata = None,
            Self::CreateTaskPushNotificationConfig(config) => config.lose(),
            _ => {}
        }
    }
}

impl Lossy for AgentCard {
    fn lose(&mut self) {
        let set = |flag: &mut Option<bool>| *flag = flag.filter(|set| *set);
        set(&mut self.capabilities.streaming);
        set(&mut self.capabilities.push_notifications);
        set(&mut self.capabilities.extended_agent_card);
        self.supported_interfaces.clear();
        self.signatures.clear();
        for url in [&mut self.documentation_url, &mut self.icon_url] {
            *url = url.take().filter(|url| !url.is_empty());
        }
        for scheme in self.security_schemes.0.values_mut() {
            let SecurityScheme::OAuth2(oauth) = scheme else {
                continue;
            };
            match &mut oauth.flows {
                Some(OAuthFlows::DeviceCode(_)) => oauth.flows = None,
                Some(OAuthFlows::AuthorizationCode(flow)) => flow.pkce_required = false,
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// GRPC-05, BR-134, BR-139, BR-141.
    #[test]
    fn operations_of_1_0(operation in strategies::operation()) {
        let bytes = grpc::V1.encode_request(&operation).unwrap();
        let read = grpc::V1.decode_request(operation.kind(), &bytes).unwrap();
        prop_assert_eq!(read.kind(), operation.kind());
        let expected: Value = serde_json::from_str(&operation.encode()).unwrap();
        let read: Value = serde_json::from_str(&read.encode()).unwrap();
        prop_assert_eq!(read, in_doubles(&expected));
    }

    /// MAP-01.
    #[test]
    fn operations_of_0_3(operation in strategies::operation()) {
        if operation.kind() == OperationKind::ListTasks {
            let error = grpc::V0_3.encode_request(&operation).unwrap_err();
            prop_assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
            return Ok(());
        }
        let bytes = grpc::V0_3.encode_request(&operation).unwrap();
        let read = grpc::V0_3.decode_request(operation.kind(), &bytes).unwrap();
        prop_assert_eq!(read.kind(), operation.kind());
        let expected: Value = serde_json::from_str(&operation.lost().encode()).unwrap();
        let read: Value = serde_json::from_str(&read.encode()).unwrap();
        prop_assert_eq!(read, in_doubles(&expected));
    }

    #[test]
    fn items_of_streams(item in strategies::stream_response()) {
        streamed(&grpc::V1, item.clone(), &item)?;
        streamed(&grpc::V0_3, item.clone(), &item.lost())?;
    }

    #[test]
    fn answers_to_messages(sent in strategies::send_response()) {
        let kind = OperationKind::SendMessage;
        answered(&grpc::V1, kind, &Outcome::Sent(sent.clone()), &sent)?;
        answered(&grpc::V0_3, kind, &Outcome::Sent(sent.clone()), &sent.lost())?;
    }

    #[test]
    fn tasks(task in strategies::task()) {
        for kind in [OperationKind::GetTask, OperationKind::CancelTask] {
            answered(&grpc::V1, kind, &Outcome::Task(task.clone()), &task)?;
            answered(&grpc::V0_3, kind, &Outcome::Task(task.clone()), &task.lost())?;
        }
    }

    #[test]
    fn pages_of_tasks(page in strategies::list_response()) {
        answered(&grpc::V1, OperationKind::ListTasks, &Outcome::Tasks(page.clone()), &page)?;
    }

    #[test]
    fn webhooks(list in strategies::push_configs()) {
        let mut lost = list.clone();
        lost.configs.iter_mut().for_each(Lossy::lose);
        let kind = OperationKind::ListTaskPushNotificationConfigs;
        answered(&grpc::V1, kind, &Outcome::PushConfigs(list.clone()), &list)?;
        answered(&grpc::V0_3, kind, &Outcome::PushConfigs(list.clone()), &lost)?;
        for config in list.configs {
            for kind in [
                OperationKind::CreateTaskPushNotificationConfig,
                OperationKind::GetTaskPushNotificationConfig,
            ] {
                answered(&grpc::V1, kind, &Outcome::PushConfig(config.clone()), &config)?;
                answered(&grpc::V0_3, kind, &Outcome::PushConfig(config.clone()), &config.lost())?;
            }
        }
    }

    #[test]
    fn cards(card in strategies::card()) {
        let kind = OperationKind::GetExtendedAgentCard;
        let outcome = Outcome::Card(Box::new(card.clone()));
        answered(&grpc::V1, kind, &outcome, &card)?;
        answered(&grpc::V0_3, kind, &outcome, &card.lost())?;
    }
}

/// Every decoder over the same bytes; what it says does not matter.
fn decode_all(bytes: &[u8]) {
    for dialect in DIALECTS {
        for kind in OperationKind::ALL {
            let _ = dialect.decode_request(*kind, bytes);
            let _ = dialect.decode_result(*kind, bytes);
        }
        let _ = dialect.decode_event(bytes);
    }
    let _ = grpc::decode_status(9, "", Some(bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_harm_no_decoder(bytes in vec(any::<u8>(), 0..200)) {
        decode_all(&bytes);
    }

    #[test]
    fn damaged_messages_harm_no_decoder(
        operation in strategies::operation(),
        item in strategies::stream_response(),
        is_0_3 in any::<bool>(),
        damages in vec((any::<Index>(), any::<u8>()), 1..4),
    ) {
        let dialect = DIALECTS[usize::from(is_0_3)];
        let request = dialect.encode_request(&operation).unwrap_or_default();
        let item = dialect.encode_event(&Event::from(item), StreamKind::Send).unwrap();
        for mut bytes in [request, item] {
            for (at, byte) in &damages {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = *byte;
                }
            }
            decode_all(&bytes);
        }
    }

    /// Only part of a message: what a cut connection leaves.
    #[test]
    fn cut_messages_harm_no_decoder(item in strategies::stream_response(), at in any::<Index>()) {
        for dialect in DIALECTS {
            let event = Event::from(item.clone());
            let bytes = dialect.encode_event(&event, StreamKind::Send).unwrap();
            decode_all(&bytes[..at.index(bytes.len() + 1)]);
        }
    }

    /// BR-009: what is missing is told in the same words in every binding.
    #[test]
    fn missing_fields_are_found_by_the_same_validation(kind in select(OperationKind::ALL)) {
        let said = |operation: &Operation| {
            let found = operation.check(&Limits::default());
            found.map_err(|error| error.message)
        };
        let over_json = Operation::decode(kind, "{}").unwrap();
        let over_grpc = grpc::V1.decode_request(kind, b"").unwrap();
        prop_assert_eq!(said(&over_grpc), said(&over_json));
        if kind != OperationKind::ListTasks {
            let over_0_3 = grpc::V0_3.decode_request(kind, b"").unwrap();
            prop_assert_eq!(said(&over_0_3), said(&over_json));
        }
    }
}

fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(content);
    bytes
}

/// JSON-14: lists in lists, further than any stack is deep.
#[test]
fn values_that_nest_too_deep_are_refused() {
    let cancel = |levels: usize| {
        // Value.list_value is field 6, ListValue.values 1.
        let list = (0..levels).fold(Vec::new(), |inner, _| field(0x32, &field(0x0a, &inner)));
        // CancelTaskRequest.metadata is field 3, Struct.fields 1, the value of an entry 2.
        let bytes = field(0x1a, &field(0x0a, &field(0x12, &list)));
        grpc::V1.decode_request(OperationKind::CancelTask, &bytes)
    };
    assert!(cancel(43).is_ok());
    for levels in [44, 49, 50, 2_000] {
        let error = cancel(levels).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{levels}: {error}");
    }
}

/// What a request may hold is readable at the deepest place of an answer.
#[test]
fn what_is_taken_can_be_given_back() {
    let mut value = Value::Null;
    let send = |value: Value| {
        let message = Message::user("m1", vec![Part::data(value)]);
        let operation = Operation::SendMessage(SendMessageRequest::new(message));
        let bytes = grpc::V1.encode_request(&operation).unwrap();
        grpc::V1.decode_request(OperationKind::SendMessage, &bytes)
    };
    while send(value.clone()).is_ok() {
        let mut status = TaskStatus::new(TaskState::Working, Timestamp::from_unix_ms(0));
        status.message = Some(Message::agent("m2", vec![Part::data(value.clone())]));
        let mut page = nuncio_protocol::ListTasksResponse::default();
        page.tasks = vec![Task::new("t1".into(), "c1".into(), status)];
        let outcome = Outcome::Tasks(page);
        let kind = OperationKind::ListTasks;
        let bytes = grpc::V1.encode_result(kind, &outcome).unwrap();
        assert!(grpc::V1.decode_result(kind, &bytes).is_ok(), "{value}");
        value = serde_json::json!({ "a": value });
    }
    assert!(value.to_string().matches("\"a\"").count() > 25, "{value}");
}

#[test]
fn the_methods_are_those_of_the_protos() {
    for kind in OperationKind::ALL {
        assert_eq!(grpc::V1.method(*kind), Some(kind.as_str()));
        assert_eq!(grpc::V1.kind(kind.as_str()), Some(*kind));
        let method = grpc::V0_3.method(*kind);
        assert_eq!(method.is_none(), *kind == OperationKind::ListTasks);
        assert_eq!(
            method.and_then(|name| grpc::V0_3.kind(name)),
            method.map(|_| *kind)
        );
    }
    assert_eq!(
        grpc::V0_3.method(OperationKind::SubscribeToTask),
        Some("TaskSubscription")
    );
    assert_eq!(grpc::V1.kind("sendMessage"), None);
    assert_eq!(grpc::V0_3.kind("ListTasks"), None);
    assert_eq!(grpc::V1.service(), "lf.a2a.v1.A2AService");
    assert_eq!(grpc::V0_3.service(), "a2a.v1.A2AService");
    assert_eq!(grpc::V1.extensions_header(), "a2a-extensions");
    assert_eq!(grpc::V0_3.extensions_header(), "x-a2a-extensions");
    assert_eq!(
        (grpc::V1.version(), grpc::V0_3.version()),
        (Version::V1_0, Version::V0_3)
    );
}

/// GRPC-08: reflection shows every method and every message it names.
#[test]
fn the_descriptors_hold_both_services() {
    let text = String::from_utf8_lossy(grpc::DESCRIPTORS);
    for dialect in DIALECTS {
        let package = dialect.service().strip_suffix(".A2AService").unwrap();
        for name in OperationKind::ALL
            .iter()
            .filter_map(|kind| dialect.method(*kind))
        {
            assert!(text.contains(name), "{name}");
        }
        for message in ["SendMessageRequest", "StreamResponse", "AgentCard"] {
            assert!(
                text.contains(&format!(".{package}.{message}")),
                "{package}.{message}"
            );
        }
    }
    for import in ["struct", "timestamp", "empty"] {
        assert!(text.contains(&format!("google/protobuf/{import}.proto")));
    }
}

fn task_outcome() -> Outcome {
    let status = TaskStatus::new(TaskState::Completed, Timestamp::from_unix_ms(0));
    Outcome::Task(Task::new("t1".into(), "c1".into(), status))
}

/// V03-05: a finished task answers a subscription of 0.3, as one item of the stream.
#[test]
fn a_finished_task_answers_a_subscription_of_0_3() {
    let asked = Operation::SubscribeToTask(nuncio_protocol::SubscribeToTaskRequest::new("t1"));
    let over = A2aError::new(ErrorKind::UnsupportedOperation, "the task has ended");
    assert_eq!(grpc::V1.instead(&asked, &over), None);
    assert_eq!(
        grpc::V0_3.instead(&asked, &over),
        Some(Operation::GetTask(nuncio_protocol::GetTaskRequest::new(
            "t1"
        )))
    );
    let absent = A2aError::task_not_found(&"t1".into());
    assert_eq!(grpc::V0_3.instead(&asked, &absent), None);
    let kind = OperationKind::SubscribeToTask;
    let bytes = grpc::V0_3.encode_result(kind, &task_outcome()).unwrap();
    let item = grpc::V0_3.decode_event(&bytes).unwrap();
    assert!(matches!(item, Some(StreamResponse::Task(task)) if task.id.as_str() == "t1"));
}

/// OP-PDEL-03: deleting answers `google.protobuf.Empty`.
#[test]
fn deleting_answers_nothing() {
    let kind = OperationKind::DeleteTaskPushNotificationConfig;
    for dialect in DIALECTS {
        assert_eq!(dialect.encode_result(kind, &Outcome::Deleted).unwrap(), b"");
        assert!(matches!(
            dialect.decode_result(kind, b""),
            Ok(Outcome::Deleted)
        ));
    }
}

/// JSON-07: an item of a kind that does not exist yet is passed over; an answer needs one.
#[test]
fn items_of_unknown_kind_are_none() {
    let field_9_of_two_bytes = [0x4a, 0x02, 0x08, 0x01];
    for dialect in DIALECTS {
        for bytes in [&field_9_of_two_bytes[..], b""] {
            assert_eq!(dialect.decode_event(bytes).unwrap(), None);
            let error = dialect
                .decode_result(OperationKind::SendMessage, bytes)
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::InvalidAgentResponse);
        }
    }
}

/// V03-04, TRAP-33: `final` at the end, and where a sender's stream waits for input.
#[test]
fn items_of_0_3_tell_which_is_the_last() {
    for state in TaskState::ALL {
        let status = TaskStatus::new(*state, Timestamp::from_unix_ms(0));
        let update = TaskStatusUpdateEvent::new("t1".into(), "c1".into(), status);
        let event = Event::from(StreamResponse::StatusUpdate(update));
        // `final` is field 4 of the event, a bool.
        let is_final = |stream| {
            let bytes = grpc::V0_3.encode_event(&event, stream).unwrap();
            bytes.ends_with(&[0x20, 0x01])
        };
        let waits = *state == TaskState::InputRequired;
        assert_eq!(
            is_final(StreamKind::Send),
            state.is_terminal() || waits,
            "{state:?}"
        );
        assert_eq!(
            is_final(StreamKind::Subscription),
            state.is_terminal(),
            "{state:?}"
        );
    }
}
