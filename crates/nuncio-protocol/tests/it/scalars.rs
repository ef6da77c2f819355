//! Numbers, times, bytes and enums in every spelling that ProtoJSON allows.

use nuncio_protocol::{
    AgentCard, ErrorKind, GetTaskRequest, ListTasksRequest, ListTasksResponse, Message, Operation,
    OperationKind, Part, PartContent, Role, SendMessageResponse, StreamResponse, TaskState,
    TaskStatus, Timestamp, Validate as _, json,
};

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, json::DecodeError> {
    json::decode(text.as_bytes())
}

/// JSON-05, OP-GET-04.
#[test]
fn int32_is_a_number_an_integral_float_or_either_as_text() {
    let length = |value: &str| {
        read::<GetTaskRequest>(&format!(r#"{{"id":"t","historyLength":{value}}}"#))
            .map(|request| request.history_length)
    };
    for (value, number) in [
        ("0", 0),
        ("5", 5),
        ("5.0", 5),
        ("5e0", 5),
        ("50E-1", 5),
        ("-0", 0),
        ("-3", -3),
        ("\"5\"", 5),
        ("\"-3\"", -3),
        ("\"5.0\"", 5),
        ("\"1e2\"", 100),
        ("2147483647", i32::MAX),
        ("2147483647.0", i32::MAX),
        ("\"2147483647\"", i32::MAX),
        ("-2147483648", i32::MIN),
        ("\"-2147483648\"", i32::MIN),
    ] {
        assert_eq!(length(value), Ok(Some(number)), "{value}");
    }
    assert_eq!(length("null"), Ok(None));
    for value in [
        "2147483648",
        "-2147483649",
        "\"2147483648\"",
        "9223372036854775808",
        "1e10",
        "1.5",
        "\"1.5\"",
        "\"\"",
        "\" 5\"",
        "\"five\"",
        "\"NaN\"",
        "\"inf\"",
        "\"Infinity\"",
        "\"0x5\"",
        "true",
        "[]",
        "{}",
    ] {
        let error = length(value).unwrap_err();
        assert_eq!(error.kind, json::DecodeErrorKind::Data, "{value}");
        assert_eq!(error.path, "historyLength", "{value}");
    }
}

/// JSON-05 at the other places of an int32.
#[test]
fn every_int32_field_takes_text() {
    let list: ListTasksRequest = read(r#"{"pageSize":"7","history_length":3.0}"#).unwrap();
    assert_eq!((list.page_size, list.history_length), (Some(7), Some(3)));
    let page: ListTasksResponse = read(r#"{"page_size":"50","totalSize":1e3}"#).unwrap();
    assert_eq!((page.page_size, page.total_size), (50, 1000));
    let text = r#"{"taskId":"t","pageSize":"9"}"#;
    let Operation::ListTaskPushNotificationConfigs(configs) =
        Operation::decode(OperationKind::ListTaskPushNotificationConfigs, text).unwrap()
    else {
        panic!("another operation");
    };
    assert_eq!(configs.page_size, 9);
    let text = r#"{"configuration":{"historyLength":"2"}}"#;
    let Operation::SendMessage(send) = Operation::decode(OperationKind::SendMessage, text).unwrap()
    else {
        panic!("another operation");
    };
    assert_eq!(send.history_length(), Some(2));
}

/// JSON-03.
#[test]
fn timestamps_are_read_with_any_offset_and_fraction_and_written_in_utc() {
    for (text, written) in [
        ("2025-10-28T10:30:00Z", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28t10:30:00z", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28T10:30:00.1Z", "2025-10-28T10:30:00.100Z"),
        ("2025-10-28T10:30:00.12Z", "2025-10-28T10:30:00.120Z"),
        ("2025-10-28T10:30:00.123Z", "2025-10-28T10:30:00.123Z"),
        ("2025-10-28T10:30:00.1234Z", "2025-10-28T10:30:00.123400Z"),
        ("2025-10-28T10:30:00.12345Z", "2025-10-28T10:30:00.123450Z"),
        ("2025-10-28T10:30:00.123456Z", "2025-10-28T10:30:00.123456Z"),
        (
            "2025-10-28T10:30:00.1234567Z",
            "2025-10-28T10:30:00.123456700Z",
        ),
        (
            "2025-10-28T10:30:00.12345678Z",
            "2025-10-28T10:30:00.123456780Z",
        ),
        (
            "2025-10-28T10:30:00.123456789Z",
            "2025-10-28T10:30:00.123456789Z",
        ),
        ("2025-10-28T12:30:00+02:00", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28T05:00:00.5-05:30", "2025-10-28T10:30:00.500Z"),
        ("2025-10-28T10:30:00+00:00", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28T10:30:00-00:00", "2025-10-28T10:30:00.000Z"),
        ("2024-02-29T23:59:59.999Z", "2024-02-29T23:59:59.999Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-30T21:59:59.999Z", "9999-12-30T21:59:59.999Z"),
    ] {
        let time = Timestamp::parse(text).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!(time.to_string(), written, "{text}");
        assert_eq!(Timestamp::parse(written), Ok(time));
        let status: TaskStatus = read(&format!(r#"{{"timestamp":"{text}"}}"#)).unwrap();
        assert_eq!(status.timestamp, Some(time));
    }
}

/// Frameworks tell local times without a zone; what is asked for must have one.
#[test]
fn a_time_that_is_told_without_a_zone_is_utc() {
    for (text, written) in [
        ("2025-10-28T10:30:00", "2025-10-28T10:30:00.000Z"),
        ("2025-10-28T10:30:00.123456", "2025-10-28T10:30:00.123456Z"),
    ] {
        let status: TaskStatus = read(&format!(r#"{{"timestamp":"{text}"}}"#)).unwrap();
        assert_eq!(status.timestamp.unwrap().to_string(), written);
    }
    for text in ["now", "2025-10-28", "2025-10-28T10:30:00 Z"] {
        let error = read::<TaskStatus>(&format!(r#"{{"timestamp":"{text}"}}"#)).unwrap_err();
        assert_eq!(error.path, "timestamp", "{text}");
    }
}

/// JSON-03.
#[test]
fn what_is_no_timestamp_is_refused_with_its_path() {
    for text in [
        "",
        "now",
        "2025-10-28",
        "2025-10-28T10:30:00",
        "10:30:00Z",
        "20251028T103000Z",
        "2025-13-01T00:00:00Z",
        "2025-02-30T00:00:00Z",
        "2025-10-28T24:00:01Z",
        "2025-10-28T10:30:00.1234567890Z",
        "2025-10-28T10:30:00Z[UTC]",
        "2025-10-28T10:30:00 Z",
        " 2025-10-28T10:30:00Z",
        "0000-12-31T23:59:59.999999999Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "+002025-10-28T10:30:00Z",
        "-000001-10-28T10:30:00Z",
    ] {
        assert!(Timestamp::parse(text).is_err(), "{text}");
        let request = format!(r#"{{"statusTimestampAfter":"{text}"}}"#);
        let error = Operation::decode(OperationKind::ListTasks, &request).unwrap_err();
        assert_eq!(error.path, "statusTimestampAfter", "{text}");
    }
    for value in ["1761647400", "true", "{}", "[]"] {
        assert!(read::<TaskStatus>(&format!(r#"{{"timestamp":{value}}}"#)).is_err());
    }
}

/// JSON-04.
#[test]
fn bytes_are_read_in_both_alphabets_and_without_padding() {
    let raw = |text: &str| {
        read::<Part>(&format!(r#"{{"raw":"{text}"}}"#)).map(|part| match part.content {
            PartContent::Raw(bytes) => bytes.to_vec(),
            other => panic!("{other:?}"),
        })
    };
    let bytes: &[u8] = &[0xfb, 0xff, 0xfe, 0xff];
    for text in ["+//+/w==", "+//+/w", "+//+/w=", "-__-_w==", "-__-_w"] {
        assert_eq!(raw(text).unwrap(), bytes, "{text}");
    }
    assert_eq!(raw("").unwrap(), b"");
    assert_eq!(raw("YQ").unwrap(), b"a");
    assert_eq!(raw("\\u0059Q==").unwrap(), b"a");
    for text in [
        "Y",
        "YQ===",
        "Y Q=",
        "YQ\\n",
        "+_-/",
        "YWFh\u{e9}",
        "=",
        "YQ==YQ==",
    ] {
        let error = raw(text).unwrap_err();
        assert_eq!(
            (error.path.as_str(), error.kind),
            ("raw", json::DecodeErrorKind::Data),
            "{text}"
        );
    }
    assert_eq!(
        json::encode(&Part::raw(bytes)),
        r#"{"raw":"+//+/w=="}"#,
        "written in the standard alphabet with padding"
    );
}

/// JSON-02, BR-137: the whole table.
#[test]
fn enums_are_read_by_name_and_number_and_written_by_name() {
    for state in TaskState::ALL {
        for value in [
            format!("\"{}\"", state.as_str()),
            state.number().to_string(),
        ] {
            let status: TaskStatus = read(&format!(r#"{{"state":{value}}}"#)).unwrap();
            assert_eq!(status.state, *state, "{value}");
        }
    }
    for role in Role::ALL {
        for value in [format!("\"{}\"", role.as_str()), role.number().to_string()] {
            let message: Message = read(&format!(r#"{{"role":{value}}}"#)).unwrap();
            assert_eq!(message.role, *role, "{value}");
        }
    }
}

/// JSON-02, BR-138: of a newer version, in an answer.
#[test]
fn unknown_enum_values_of_an_answer_read_as_unspecified() {
    for value in [
        "\"TASK_STATE_PAUSED\"",
        "\"task_state_working\"",
        "\"\"",
        "99",
        "-1",
        "9223372036854775807",
        "18446744073709551615",
    ] {
        let status: TaskStatus = read(&format!(r#"{{"state":{value}}}"#)).unwrap();
        assert_eq!(status.state, TaskState::Unspecified, "{value}");
        assert!(!status.state.is_terminal(), "ST-02");
    }
    for value in ["true", "[]", "{}"] {
        assert!(read::<TaskStatus>(&format!(r#"{{"state":{value}}}"#)).is_err());
    }
}

/// JSON-02, OP-SEND-02, OP-LIST-08: in a request.
#[test]
fn unknown_enum_values_of_a_request_are_refused() {
    for value in ["\"TASK_STATE_PAUSED\"", "\"working\"", "99", "-1", "true"] {
        let text = format!(r#"{{"status":{value}}}"#);
        let error = Operation::decode(OperationKind::ListTasks, &text).unwrap_err();
        assert_eq!(error.path, "status", "{value}");
    }
    for value in ["\"TASK_STATE_UNSPECIFIED\"", "0", "null"] {
        let request: ListTasksRequest = read(&format!(r#"{{"status":{value}}}"#)).unwrap();
        assert_eq!(request.status, None, "{value}");
    }
    for value in ["\"ROLE_SYSTEM\"", "7", "0", "\"ROLE_UNSPECIFIED\"", "null"] {
        let text =
            format!(r#"{{"message":{{"messageId":"m","parts":[{{"text":"x"}}],"role":{value}}}}}"#);
        let operation = Operation::decode(OperationKind::SendMessage, &text).unwrap();
        let error = operation.check(&Default::default()).unwrap_err();
        assert_eq!(error.violations()[0].field, "message.role", "{value}");
    }
}

/// JSON-07, BR-140.
#[test]
fn a_part_has_exactly_one_content() {
    for text in [
        r#"{"text":"a","url":"http://x"}"#,
        r#"{"text":"a","data":null}"#,
        r#"{"raw":"YQ==","data":1}"#,
        r#"{"text":"","raw":""}"#,
        r#"{"data":null,"url":"u"}"#,
        r#"{}"#,
        r#"{"text":null}"#,
        r#"{"filename":"f","mediaType":"text/plain","metadata":{}}"#,
        r#"{"kind":"text"}"#,
        r#"[]"#,
        r#"null"#,
        r#""text""#,
    ] {
        let params = format!(r#"{{"message":{{"parts":[{{"text":"ok"}},{text}]}}}}"#);
        let error = Operation::decode(OperationKind::SendMessage, &params).unwrap_err();
        assert_eq!(error.path, "message.parts[1]", "{text}");
        let error = nuncio_protocol::A2aError::from(error);
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{text}");
    }
    let part: Part = read(r#"{"text":"a","url":null,"raw":null}"#).unwrap();
    assert_eq!(part.content, PartContent::Text("a".to_owned()));
}

/// JSON-06, JSON-08, BR-139.
#[test]
fn a_content_at_its_default_is_a_content() {
    for text in [
        r#"{"text":""}"#,
        r#"{"raw":""}"#,
        r#"{"url":""}"#,
        r#"{"data":null}"#,
        r#"{"data":{}}"#,
        r#"{"data":false}"#,
    ] {
        let part: Part = read(text).unwrap();
        assert_eq!(json::encode(&part), text);
    }
}

/// JSON-07: wrappers.
#[test]
fn a_payload_wrapper_has_exactly_one_member() {
    let task = r#"{"id":"t","status":{"state":"TASK_STATE_WORKING"}}"#;
    let message = r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}"#;
    for text in [
        format!(r#"{{"task":{task},"message":{message}}}"#),
        format!(r#"{{"message":{message},"task":{task}}}"#),
        r#"{}"#.to_owned(),
        r#"{"task":null,"message":null}"#.to_owned(),
        r#"{"Task":{}}"#.to_owned(),
        r#"null"#.to_owned(),
        r#"[]"#.to_owned(),
    ] {
        assert!(read::<SendMessageResponse>(&text).is_err(), "{text}");
        assert!(read::<StreamResponse>(&text).is_err(), "{text}");
    }
    let text = format!(r#"{{"message":null,"task":{task},"other":{{}}}}"#);
    assert!(read::<SendMessageResponse>(&text).is_ok());
    assert!(read::<StreamResponse>(&text).is_ok());
    for text in [
        r#"{"statusUpdate":{},"status_update":{}}"#,
        r#"{"statusUpdate":{},"artifactUpdate":{}}"#,
    ] {
        assert!(read::<StreamResponse>(text).is_err(), "{text}");
    }
}

/// JSON-07, CARD-09, CARD-05: of a foreign card, one scheme less is still a card.
#[test]
fn a_scheme_of_unknown_kind_is_left_out_of_a_card() {
    let text = r#"{"name":"a","skills":null,"supportedInterfaces":[{"url":"u","protocolBinding":"NEW","protocolVersion":"1.0.1"}],
      "securitySchemes":{
        "new":{"postQuantumSecurityScheme":{}},
        "none":{},
        "two":{"apiKeySecurityScheme":{"location":"header","name":"k"},"mtlsSecurityScheme":{}},
        "newFlow":{"oauth2SecurityScheme":{"flows":{"magic":{}}}},
        "twoFlows":{"oauth2SecurityScheme":{"flows":{"implicit":{},"password":{}}}},
        "broken":{"apiKeySecurityScheme":7},
        "known":{"mtls_security_scheme":{}},
        "old":{"oauth2_security_scheme":{"flows":{"device_code":{"token_url":"t"}},"oauth2_metadata_url":"m"}}}}"#;
    let card: AgentCard = read(text).unwrap();
    let names: Vec<&String> = card.security_schemes.0.keys().collect();
    assert_eq!(names, ["known", "old"]);
    assert_eq!(card.supported_interfaces[0].binding(), None);
}

/// JSON-11, JSON-12, BR-134, BR-141: what is free-form stays as it is.
#[test]
fn free_form_values_keep_every_digit_and_null() {
    for text in [
        r#"{"data":{"big":9007199254740993,"f":1.5,"rev":1,"whole":1.0}}"#,
        r#"{"data":[18446744073709551615,-9223372036854775808,0.1,1e-7,1e+300,0.30000000000000004]}"#,
        r#"{"data":[2.2250738585072014e-308,5e-324,1.7976931348623157e+308,123456789.12345679]}"#,
        r#"{"data":{"":null,"a":{"b":[null,{"c":null}]},"e":{}}}"#,
        r#"{"text":"x","metadata":{"null":null,"{}":{},"é 🗼":["\u0000","\""]}}"#,
    ] {
        let part: Part = read(text).unwrap();
        assert_eq!(json::encode(&part), text);
    }
    for metadata in ["[]", "7", "\"x\"", "true"] {
        let text = format!(r#"{{"text":"x","metadata":{metadata}}}"#);
        assert_eq!(read::<Part>(&text).unwrap_err().path, "metadata", "JSON-12");
    }
    for data in ["NaN", "Infinity", "1e999", "01", "\"\\ud800\"", "+1"] {
        let error = read::<Part>(&format!(r#"{{"data":{data}}}"#)).unwrap_err();
        assert_eq!(error.kind, json::DecodeErrorKind::Syntax, "{data}");
    }
}

/// JSON-09: an empty text that a program set is written no more than an unset one.
#[test]
fn empty_texts_are_left_out_when_writing() {
    let mut artifact = nuncio_protocol::Artifact::new(
        "a",
        vec![Part::text("x").with_filename("").with_media_type("")],
    );
    artifact.name = Some(String::new());
    artifact.description = Some(String::new());
    assert_eq!(
        json::encode(&artifact),
        r#"{"artifactId":"a","parts":[{"text":"x"}]}"#
    );
    let mut message = Message::agent("m", vec![Part::text("x")]);
    message.context_id = Some("".into());
    message.task_id = Some("".into());
    assert_eq!(
        json::encode(&message),
        r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}"#
    );
}
