//! What only a foreign peer would write.

use prost::Message as _;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp as ProtoTime, Value as ProtoValue};
use serde_json::{Value, json};

use super::convert::Proto;
use super::generated::{a2a_v1 as old, lf_a2a_v1 as new};
use super::{V0_3, V1};
use crate::dialect::GrpcDialect;
use crate::{
    A2aError, AgentCard, AgentInterface, Binding, ErrorKind, Metadata, Operation, OperationKind,
    Outcome, Part, PartContent, Role, Task, TaskState,
};

fn request(dialect: &dyn GrpcDialect, kind: OperationKind, bytes: &[u8]) -> Operation {
    dialect.decode_request(kind, bytes).unwrap()
}

fn refused(dialect: &dyn GrpcDialect, kind: OperationKind, bytes: &[u8]) -> (String, String) {
    let error: A2aError = dialect.decode_request(kind, bytes).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{error}");
    let violation = &error.violations()[0];
    (violation.field.clone(), violation.description.clone())
}

/// The enums have the same numbers and names here and in the protos, but for one name of 0.3.
#[test]
fn enums_are_those_of_the_protos() {
    for state in TaskState::ALL {
        let name = new::TaskState::try_from(state.number())
            .unwrap()
            .as_str_name();
        assert_eq!(name, state.as_str());
        let older = old::TaskState::try_from(state.number())
            .unwrap()
            .as_str_name();
        assert_eq!(older.replace("CANCELLED", "CANCELED"), state.as_str());
    }
    for role in Role::ALL {
        let name = new::Role::try_from(role.number()).unwrap().as_str_name();
        assert_eq!(name, role.as_str());
    }
}

/// GRPC-06, BR-138: a state of a newer version is not specified, and nothing breaks.
#[test]
fn unknown_enum_numbers_are_unspecified() {
    let status = new::TaskStatus {
        state: 99,
        message: Some(new::Message {
            role: -5,
            ..new::Message::default()
        }),
        ..new::TaskStatus::default()
    };
    let task = new::Task {
        status: Some(status),
        ..new::Task::default()
    };
    let outcome = V1.decode_result(OperationKind::GetTask, &task.encode_to_vec());
    let Ok(Outcome::Task(task)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(task.status.state, TaskState::Unspecified);
    assert_eq!(task.status.message.unwrap().role, Role::Unspecified);
}

/// OP-LIST-08: a filter that nobody knows is not "no filter".
#[test]
fn an_unknown_state_is_no_filter() {
    let asked = |status| new::ListTasksRequest {
        status,
        ..new::ListTasksRequest::default()
    };
    let kind = OperationKind::ListTasks;
    let (field, description) = refused(&V1, kind, &asked(99).encode_to_vec());
    assert_eq!(field, "status");
    let over_json = Operation::decode(kind, r#"{"status":99}"#).unwrap_err();
    assert_eq!((over_json.path, over_json.message), (field, description));
    let Operation::ListTasks(list) = request(&V1, kind, &asked(0).encode_to_vec()) else {
        panic!("another operation");
    };
    assert_eq!(list.status, None);
}

/// OP-SEND-02: in the words of the JSON bindings.
#[test]
fn a_part_without_content_is_named() {
    let message = new::Message {
        parts: vec![new::Part::default()],
        ..new::Message::default()
    };
    let send = new::SendMessageRequest {
        message: Some(message),
        ..new::SendMessageRequest::default()
    };
    let kind = OperationKind::SendMessage;
    let found = refused(&V1, kind, &send.encode_to_vec());
    let over_json = Operation::decode(kind, r#"{"message":{"parts":[{}]}}"#).unwrap_err();
    assert_eq!(found, (over_json.path, over_json.message));
    assert_eq!(found.0, "message.parts[0]");

    let file = old::Part {
        part: Some(old::part::Part::File(old::FilePart::default())),
        metadata: None,
    };
    let message = old::Message {
        content: vec![file],
        ..old::Message::default()
    };
    let send = old::SendMessageRequest {
        request: Some(message),
        ..old::SendMessageRequest::default()
    };
    let (field, _) = refused(&V0_3, kind, &send.encode_to_vec());
    assert_eq!(field, "message.content[0].file");
}

#[test]
fn times_outside_the_calendar_are_named() {
    let kind = OperationKind::ListTasks;
    for (seconds, nanos) in [
        (i64::MAX, 0),
        (i64::MIN, 0),
        (0, -1),
        (0, 1_000_000_000),
        (253_402_300_800, 0),
    ] {
        let list = new::ListTasksRequest {
            status_timestamp_after: Some(ProtoTime { seconds, nanos }),
            ..new::ListTasksRequest::default()
        };
        let (field, _) = refused(&V1, kind, &list.encode_to_vec());
        assert_eq!(field, "statusTimestampAfter", "{seconds}s {nanos}ns");
    }
    let before_1970 = ProtoTime {
        seconds: -1,
        nanos: 500_000_000,
    };
    let time = crate::Timestamp::from_proto(before_1970).unwrap();
    assert_eq!(time.to_string(), "1969-12-31T23:59:59.500Z");
    assert_eq!(time.to_proto(), before_1970);
}

/// JSON-11: what JSON cannot say is refused by its path.
#[test]
fn numbers_that_are_none_are_named() {
    let number = ProtoValue {
        kind: Some(Kind::NumberValue(f64::NAN)),
    };
    let inner = Struct {
        fields: [("b".to_owned(), number)].into(),
    };
    let outer = ProtoValue {
        kind: Some(Kind::StructValue(inner)),
    };
    let cancel = new::CancelTaskRequest {
        metadata: Some(Struct {
            fields: [("a".to_owned(), outer)].into(),
        }),
        ..new::CancelTaskRequest::default()
    };
    let (field, _) = refused(&V1, OperationKind::CancelTask, &cancel.encode_to_vec());
    assert_eq!(field, "metadata.a.b");
}

/// BR-141: whole numbers stay whole, and what is too large for that is a double.
#[test]
fn whole_numbers_have_no_fraction() {
    let value =
        json!({"rev": 1, "f": 1.5, "zero": 0, "minus": -3, "big": 9_007_199_254_740_993_u64});
    let read = Value::from_proto(value.to_proto()).unwrap();
    assert_eq!(
        read.to_string(),
        r#"{"big":9007199254740992.0,"f":1.5,"minus":-3,"rev":1,"zero":0}"#
    );
}

/// BR-134, BR-139: null is a value, as data and anywhere inside.
#[test]
fn null_survives() {
    let mut part = Part::data(Value::Null);
    let metadata = json!({"x": null, "nested": {"y": [null, {"z": null}]}, "empty": {}});
    part.metadata = metadata.as_object().cloned();
    let bytes = Proto::<new::Part>::to_proto(&part).encode_to_vec();
    let read = Part::from_proto(new::Part::decode(&*bytes).unwrap()).unwrap();
    assert_eq!(read, part);
    let bytes = Proto::<old::Part>::to_proto(&part).encode_to_vec();
    let read = Part::from_proto(old::Part::decode(&*bytes).unwrap()).unwrap();
    assert_eq!(read, part);

    let of_no_kind = new::Part {
        content: Some(new::part::Content::Data(ProtoValue { kind: None })),
        ..new::Part::default()
    };
    assert_eq!(
        Part::from_proto(of_no_kind).unwrap(),
        Part::data(Value::Null)
    );
}

#[test]
fn bytes_that_are_no_message_are_invalid_params() {
    let error = V1
        .decode_request(OperationKind::GetTask, b"\xff")
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    let no_text = [0x12, 0x01, 0xff];
    let error = V1
        .decode_request(OperationKind::GetTask, &no_text)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    let error = V1
        .decode_result(OperationKind::GetTask, b"\xff")
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidAgentResponse);
}

/// V03-GRPC-02: base64 text in bytes, or the bytes themselves.
#[test]
fn files_of_0_3_are_base64_twice_or_once() {
    let read = |bytes: &'static [u8]| {
        let file = old::FilePart {
            file: Some(old::file_part::File::FileWithBytes(bytes.into())),
            name: "a.png".to_owned(),
            ..old::FilePart::default()
        };
        let part = old::Part {
            part: Some(old::part::Part::File(file)),
            metadata: Some(Struct::default()),
        };
        Part::from_proto(part).unwrap()
    };
    let part = read(b"aGk=");
    assert_eq!(part.content, PartContent::Raw("hi".into()));
    assert_eq!(part.filename.as_deref(), Some("a.png"));
    assert_eq!(part.metadata, Some(Metadata::new()));
    assert_eq!(
        read(b"\x89PNG").content,
        PartContent::Raw(b"\x89PNG".as_slice().into())
    );
    let written: old::Part = Part::raw("hi").to_proto();
    let Some(old::part::Part::File(file)) = written.part else {
        panic!("{written:?}");
    };
    let expected = old::file_part::File::FileWithBytes("aGk=".into());
    assert_eq!(file.file, Some(expected));
}

/// V03-03, V03-07: what is not set is false and 0.
#[test]
fn unset_fields_of_0_3_mean_do_not_wait_and_all_of_the_history() {
    let kind = OperationKind::SendMessage;
    for configuration in [None, Some(old::SendMessageConfiguration::default())] {
        let send = old::SendMessageRequest {
            configuration,
            ..old::SendMessageRequest::default()
        };
        let Operation::SendMessage(read) = request(&V0_3, kind, &send.encode_to_vec()) else {
            panic!("another operation");
        };
        assert!(read.returns_immediately());
        assert_eq!(read.history_length(), None);
    }
    let plain = Operation::SendMessage(crate::SendMessageRequest::default());
    let bytes = V0_3.encode_request(&plain).unwrap();
    let sent = old::SendMessageRequest::decode(&*bytes).unwrap();
    assert!(
        sent.configuration.unwrap().blocking,
        "1.0 waits if nothing is said"
    );
}

/// GRPC-05: 0 is not unset.
#[test]
fn numbers_of_1_0_have_presence() {
    for (bytes, length) in [(&b"\x12\x01t"[..], None), (b"\x12\x01t\x18\x00", Some(0))] {
        let Operation::GetTask(get) = request(&V1, OperationKind::GetTask, bytes) else {
            panic!("another operation");
        };
        assert_eq!(get.history_length, length);
    }
}

#[test]
fn names_of_0_3_are_read_as_peers_write_them() {
    let kind = OperationKind::GetTaskPushNotificationConfig;
    for (name, task, config) in [
        ("tasks/t1/pushNotificationConfigs/c1", "t1", "c1"),
        ("task/t1/pushNotificationConfigs/c1", "t1", "c1"),
        ("tasks/a/b/pushNotificationConfigs/c/d", "a/b", "c/d"),
        ("tasks/t1/pushNotificationConfigs/", "t1", ""),
        ("tasks/t1/pushNotificationConfigs", "t1", ""),
        ("tasks/t1/pushNotificationConfigs/None", "t1", ""),
        ("tasks/t1", "t1", ""),
        ("", "", ""),
    ] {
        let get = old::GetTaskPushNotificationConfigRequest {
            name: name.to_owned(),
        };
        let read = request(&V0_3, kind, &get.encode_to_vec());
        let Operation::GetTaskPushNotificationConfig(read) = read else {
            panic!("another operation");
        };
        assert_eq!(
            (read.task_id.as_str(), read.id.as_str()),
            (task, config),
            "{name}"
        );
    }
    let get = old::GetTaskRequest {
        name: "t1".to_owned(),
        history_length: 0,
    };
    let (field, _) = refused(&V0_3, OperationKind::GetTask, &get.encode_to_vec());
    assert_eq!(field, "name");
}

/// V03-REST-04: the ids of a new webhook stand in any of three places.
#[test]
fn a_new_webhook_of_0_3_has_its_ids_somewhere() {
    let kind = OperationKind::CreateTaskPushNotificationConfig;
    let create = |parent: &str, config_id: &str, name: &str| {
        old::CreateTaskPushNotificationConfigRequest {
            parent: parent.to_owned(),
            config_id: config_id.to_owned(),
            config: Some(old::TaskPushNotificationConfig {
                name: name.to_owned(),
                push_notification_config: None,
            }),
        }
        .encode_to_vec()
    };
    for (parent, config_id, name, id) in [
        ("tasks/t1", "c1", "", Some("c1")),
        ("tasks/t1/pushNotificationConfigs", "", "", None),
        ("", "", "tasks/t1/pushNotificationConfigs/c1", Some("c1")),
        (
            "tasks/t1",
            "c2",
            "tasks/t1/pushNotificationConfigs/None",
            Some("c2"),
        ),
        ("tasks/t1", "c2", "whatever", Some("c2")),
    ] {
        let read = request(&V0_3, kind, &create(parent, config_id, name));
        let Operation::CreateTaskPushNotificationConfig(read) = read else {
            panic!("another operation");
        };
        assert_eq!(read.task_id.unwrap().as_str(), "t1");
        assert_eq!(read.id.as_ref().map(|id| id.as_str()), id);
    }
    let other = create("tasks/t1", "", "tasks/t2/pushNotificationConfigs/c1");
    assert_eq!(refused(&V0_3, kind, &other).0, "config.name");
}

/// A webhook of 0.3 may name several schemes; 1.0 has room for one.
#[test]
fn the_scheme_every_sender_knows_is_kept() {
    for (schemes, kept) in [
        (&["Digest", "bearer"][..], "bearer"),
        (&["Digest", "Hoba"], "Digest"),
        (&[], ""),
    ] {
        let info = old::AuthenticationInfo {
            schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
            credentials: String::new(),
        };
        assert_eq!(
            crate::AuthenticationInfo::from_proto(info).unwrap().scheme,
            kept
        );
    }
}

/// CARD-09: a scheme of a newer version is left out, the rest of the card stays.
#[test]
fn schemes_of_unknown_kind_are_skipped() {
    let flows = new::OAuth2SecurityScheme {
        flows: Some(new::OAuthFlows { flow: None }),
        ..new::OAuth2SecurityScheme::default()
    };
    let flows = new::security_scheme::Scheme::Oauth2SecurityScheme(flows);
    let scheme = |scheme| new::SecurityScheme { scheme };
    let known =
        new::security_scheme::Scheme::MtlsSecurityScheme(new::MutualTlsSecurityScheme::default());
    let card = new::AgentCard {
        name: "a".to_owned(),
        security_schemes: [
            ("newer".to_owned(), scheme(None)),
            ("newer flow".to_owned(), scheme(Some(flows))),
            ("known".to_owned(), scheme(Some(known))),
        ]
        .into(),
        ..new::AgentCard::default()
    };
    let read = AgentCard::from_proto(card).unwrap();
    let names: Vec<&String> = read.security_schemes.0.keys().collect();
    assert_eq!(names, ["known"]);
}

/// CHECKLIST section 17: the main address first, each once, only those of 0.3.
#[test]
fn addresses_of_cards_are_those_of_0_3() {
    let of = |url: &str, binding, version: &str| {
        let mut interface = AgentInterface::new(url, binding);
        interface.protocol_version = version.to_owned();
        interface
    };
    let card = AgentCard {
        supported_interfaces: vec![
            of("https://a.example/1", Binding::JsonRpc, "1.0"),
            of("a.example:443", Binding::Grpc, "0.3"),
            of("https://a.example/0", Binding::JsonRpc, "0.3"),
        ],
        ..AgentCard::default()
    };
    let written: old::AgentCard = card.to_proto();
    assert_eq!(written.url, "a.example:443");
    assert_eq!(written.preferred_transport, "GRPC");
    assert_eq!(written.protocol_version, "0.3.0");
    assert_eq!(written.additional_interfaces.len(), 2);
    let read = AgentCard::from_proto(written).unwrap();
    assert_eq!(read.supported_interfaces, card.supported_interfaces[1..]);
}

#[test]
fn a_task_without_status_is_read() {
    let read = Task::from_proto(new::Task::default()).unwrap();
    assert_eq!(read, Task::default());
}
