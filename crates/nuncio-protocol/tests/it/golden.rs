//! Every message, event and error in both JSON bindings: first version 1.0 by its functions, then
//! each version that has a dialect.
//!
//! The files are written from the specification's tables, never by our encoder. A changed file is
//! a changed protocol.

use std::collections::BTreeSet;

use nuncio_protocol::dialect::{JsonRpcDialect, RestDialect, StreamKind};
use nuncio_protocol::v0_3::{self, V0_3};
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{A2aError, Event, Operation, OperationKind, StatusProfile, json};
use serde_json::Value;

use crate::support::{Form, Golden, assert_same, goldens, goldens_of, members, messages, normal};

fn rpc_operation(golden: &Golden) -> (json_rpc::RequestId, Operation) {
    let request = json_rpc::Request::decode(golden.text.as_bytes()).unwrap();
    (request.id.clone(), request.operation().unwrap())
}

/// RPC-02, RPC-03, RPC-05, JSON-01, JSON-02, JSON-03, JSON-04, JSON-08, JSON-09, BR-118, BR-134,
/// BR-139, BR-141.
#[test]
fn json_rpc_requests_are_read_and_written_back() {
    for golden in messages("json_rpc") {
        if golden.form != Form::Request {
            continue;
        }
        let (id, operation) = rpc_operation(&golden);
        assert_eq!(operation.kind(), golden.kind());
        let written = json_rpc::encode_request(&id, &operation);
        assert_same(&golden.name, &written, &golden.text);
    }
}

/// RPC-04, OP-LIST-05, OP-PDEL-03, JSON-09, JSON-13, BR-118.
#[test]
fn json_rpc_responses_are_read_and_written_back() {
    for golden in messages("json_rpc") {
        if golden.form != Form::Response {
            continue;
        }
        let outcome = json_rpc::decode_outcome(golden.kind(), golden.text.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}", golden.name));
        let written = json_rpc::encode_outcome(&envelope_id(&golden), &outcome).unwrap();
        assert_same(&golden.name, &written, &golden.text);
    }
}

/// RPC-09, EV-02.
#[test]
fn json_rpc_events_are_read_and_written_back() {
    for golden in messages("json_rpc") {
        if golden.form != Form::Event {
            continue;
        }
        let event = json_rpc::decode_event(golden.text.as_bytes()).unwrap();
        let shared = nuncio_protocol::Event::from(event);
        let written = json_rpc::encode_result(&envelope_id(&golden), shared.json());
        assert_same(&golden.name, &written, &golden.text);
    }
}

/// RPC-05: the id is echoed as it came, whatever its type.
fn envelope_id(golden: &Golden) -> json_rpc::RequestId {
    let id = golden.value()["id"].take();
    let probe = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
    json_rpc::Request::decode(probe.as_bytes()).unwrap().id
}

/// RPC-11, ERR-01, ERR-02, ERR-09.
#[test]
fn json_rpc_errors_are_read_and_written_back() {
    let mut seen = 0;
    for golden in goldens("json_rpc") {
        if golden.form != Form::Error {
            continue;
        }
        let error = json_rpc::decode_response(golden.text.as_bytes()).unwrap_err();
        let written = json_rpc::encode_error(&envelope_id(&golden), &error);
        assert_same(&golden.name, &written, &golden.text);
        if let Some(reason) = error.kind.reason() {
            assert_eq!(reason.to_lowercase(), file_stem(&golden), "ERR-04");
        }
        seen += 1;
    }
    assert!(seen >= 14, "{seen}");
}

fn file_stem(golden: &Golden) -> &str {
    let name = golden.name.strip_suffix(".error").unwrap();
    let name = name.split('@').next().unwrap();
    if name == "foreign_domain" {
        "task_not_found"
    } else {
        name
    }
}

/// REST-01, REST-02, REST-05, TEN-02: each means the same operation as its JSON-RPC twin.
#[test]
fn rest_requests_are_read_and_written_back() {
    let twins = messages("json_rpc");
    let mut seen = 0;
    for golden in messages("rest") {
        if golden.form != Form::Request {
            continue;
        }
        let file = golden.value();
        let method = file["method"].as_str().unwrap();
        let target = file["target"].as_str().unwrap();
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let body = match &file["body"] {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let route = rest::route(method, path).unwrap();
        let operation = route.operation(query, body.as_bytes()).unwrap();
        let twin = twins.iter().find(|twin| twin.name == golden.name).unwrap();
        assert_eq!(operation, rpc_operation(twin).1, "{}", golden.name);

        let written = rest::encode_request(&operation);
        assert_eq!((written.method, written.target.as_str()), (method, target));
        let written = written.body.unwrap_or_else(|| "null".to_owned());
        assert_same(&golden.name, &written, &file["body"].to_string());
        seen += 1;
    }
    let requests = twins.iter().filter(|twin| twin.form == Form::Request);
    assert_eq!(seen, requests.count(), "every request in both bindings");
}

/// Section 9 of the checklist, OP-PDEL-03.
#[test]
fn rest_responses_and_events_are_read_and_written_back() {
    for golden in messages("rest") {
        let written = match golden.form {
            Form::Response => {
                let outcome = rest::decode_outcome(golden.kind(), golden.text.as_bytes()).unwrap();
                rest::encode_outcome(&outcome).unwrap()
            }
            Form::Event => json::encode(&rest::decode_event(golden.text.as_bytes()).unwrap()),
            Form::Request | Form::Error => continue,
        };
        assert_same(&golden.name, &written, &golden.text);
    }
}

/// REST-08, ERR-03: both texts of the status table.
#[test]
fn rest_errors_are_read_and_written_back_in_both_profiles() {
    let mut reasons = [BTreeSet::new(), BTreeSet::new()];
    for golden in goldens("rest") {
        if golden.form != Form::Error {
            continue;
        }
        let file = golden.value();
        let status = u16::try_from(file["error"]["code"].as_u64().unwrap()).unwrap();
        let old = golden.name.contains("@1.0.0");
        let profile = if old {
            StatusProfile::V1_0_0
        } else {
            StatusProfile::V1_0_1
        };
        let error = rest::decode_error(status, golden.text.as_bytes());
        assert_eq!(error.kind.http_status(profile), status, "{}", golden.name);
        let written = rest::encode_error(&error, profile);
        assert_same(&golden.name, &written, &golden.text);
        if let Some(reason) = error.kind.reason() {
            assert_eq!(reason.to_lowercase(), file_stem(&golden), "ERR-04");
            reasons[usize::from(old)].insert(reason);
        }
    }
    assert_eq!(reasons.each_ref().map(BTreeSet::len), [9, 9]);
}

/// A failing stream ends with the error in the binding's own form (OP-STRM-08, REST-09).
#[test]
fn an_error_at_the_end_of_a_stream_is_read_as_that_error() {
    for golden in goldens("rest") {
        if golden.form != Form::Error {
            continue;
        }
        let error = rest::decode_event(golden.text.as_bytes()).unwrap_err();
        let message = golden.value()["error"]["message"].take();
        assert_eq!(error.message, message, "{}", golden.name);
    }
    for golden in goldens("json_rpc") {
        if golden.form != Form::Error {
            continue;
        }
        let error = json_rpc::decode_event(golden.text.as_bytes()).unwrap_err();
        let message = golden.value()["error"]["message"].take();
        assert_eq!(error.message, message, "{}", golden.name);
    }
}

/// GEN-02: nobody forgot an operation.
#[test]
fn every_operation_has_its_files() {
    for binding in ["json_rpc", "rest"] {
        let files = messages(binding);
        for kind in OperationKind::ALL {
            let answer = if kind.streams() {
                Form::Event
            } else {
                Form::Response
            };
            for form in [Form::Request, answer] {
                assert!(
                    files.iter().any(|f| f.kind() == *kind && f.form == form),
                    "{binding}: {kind:?} {form:?}"
                );
            }
        }
    }
}

/// Sections 2 and 6 of the checklist: every field of every message stands in a golden file.
#[test]
fn every_field_of_the_tables_is_in_a_file() {
    let found: BTreeSet<String> = messages("json_rpc")
        .iter()
        .flat_map(|golden| members(&golden.message()))
        .map(|(_, name)| name)
        .collect();
    let table = "tenant message configuration metadata acceptedOutputModes \
        taskPushNotificationConfig historyLength returnImmediately task statusUpdate \
        artifactUpdate id contextId status pageSize pageToken statusTimestampAfter \
        includeArtifacts tasks nextPageToken totalSize taskId url token authentication scheme \
        credentials configs artifacts history state timestamp messageId role parts extensions \
        referenceTaskIds text raw data filename mediaType artifactId name description artifact \
        append lastChunk supportedInterfaces provider version documentationUrl capabilities \
        securitySchemes securityRequirements defaultInputModes defaultOutputModes skills \
        signatures iconUrl protocolBinding protocolVersion organization streaming \
        pushNotifications extendedAgentCard uri required params tags examples inputModes \
        outputModes protected signature header schemes list apiKeySecurityScheme \
        httpAuthSecurityScheme oauth2SecurityScheme openIdConnectSecurityScheme \
        mtlsSecurityScheme location bearerFormat flows oauth2MetadataUrl openIdConnectUrl \
        authorizationCode clientCredentials implicit password deviceCode authorizationUrl \
        tokenUrl refreshUrl scopes pkceRequired deviceAuthorizationUrl";
    let table: BTreeSet<String> = table.split_whitespace().map(str::to_owned).collect();
    let diff: Vec<_> = table.symmetric_difference(&found).collect();
    assert!(diff.is_empty(), "{diff:?}");
}

/// JSON-13: nothing of version 0.3 is written.
#[test]
fn no_member_of_the_older_version_is_written() {
    for golden in messages("json_rpc") {
        let written = normal(&golden.reread(&golden.message().to_string()).unwrap());
        for member in ["\"kind\":", "\"final\":"] {
            assert!(!written.contains(member), "{}", golden.name);
        }
    }
}

/// The versions whose dialect is a value.
const JSON_RPC: &[&dyn JsonRpcDialect] = &[&V0_3];
const REST: &[&dyn RestDialect] = &[&V0_3];

fn of_form(dialect: &dyn JsonRpcDialect, form: Form) -> Vec<Golden> {
    let mut found = goldens_of(dialect.version(), "json_rpc");
    found.retain(|golden| golden.form == form);
    found
}

fn rest_of_form(dialect: &dyn RestDialect, form: Form) -> Vec<Golden> {
    let mut found = goldens_of(dialect.version(), "rest");
    found.retain(|golden| golden.form == form);
    found
}

fn rpc_params(dialect: &dyn JsonRpcDialect, golden: &Golden) -> Operation {
    let file = golden.value();
    let kind = dialect.kind(file["method"].as_str().unwrap());
    assert_eq!(kind, Some(golden.kind()), "{}", golden.name);
    assert_eq!(dialect.method(golden.kind()).unwrap(), file["method"]);
    dialect
        .decode_params(golden.kind(), &file["params"].to_string())
        .unwrap_or_else(|error| panic!("{}: {error}", golden.name))
}

/// V03-01, BR-118.
#[test]
fn params_of_each_dialect_are_read_and_written_back() {
    for dialect in JSON_RPC {
        for golden in of_form(*dialect, Form::Request) {
            let operation = rpc_params(*dialect, &golden);
            assert_eq!(operation.kind(), golden.kind());
            let written = dialect.encode_params(&operation).unwrap();
            assert_same(&golden.name, &written, &golden.message().to_string());
        }
    }
}

/// V03-01, BR-118: schema-shaped answers, bare and with `kind` in 0.3.
#[test]
fn results_of_each_dialect_are_read_and_written_back() {
    for dialect in JSON_RPC {
        for golden in of_form(*dialect, Form::Response) {
            let result = golden.message().to_string();
            let outcome = dialect.decode_result(golden.kind(), &result).unwrap();
            let written = dialect.encode_result(golden.kind(), &outcome).unwrap();
            assert_same(&golden.name, &written, &result);
        }
    }
}

/// V03-04, TRAP-33: what is final depends on the kind of stream.
#[test]
fn events_of_each_dialect_are_read_and_written_back() {
    for dialect in JSON_RPC {
        for golden in of_form(*dialect, Form::Event) {
            let result = golden.message().to_string();
            let event: Event = dialect.decode_event(&result).unwrap().unwrap().into();
            let written = dialect.encode_event(&event, StreamKind::of(golden.kind()));
            assert_same(&golden.name, &written, &result);
        }
    }
    for dialect in REST {
        for golden in rest_of_form(*dialect, Form::Event) {
            let body = golden.text.as_bytes();
            let event: Event = dialect.decode_event(body).unwrap().unwrap().into();
            let written = dialect.encode_event(&event, StreamKind::of(golden.kind()));
            assert_same(&golden.name, &written, &golden.text);
        }
    }
}

/// V03-02: codes of that version; the details of 1.0 keep the kind of error for who reads them.
#[test]
fn errors_of_each_dialect_are_read_and_written_back() {
    for dialect in JSON_RPC {
        for golden in of_form(*dialect, Form::Error) {
            let error = json_rpc::decode_response(golden.text.as_bytes()).unwrap_err();
            let written = dialect.encode_error(&error).to_string();
            assert_same(&golden.name, &written, &golden.value()["error"].to_string());
            if let Some(reason) = error.kind.reason() {
                assert_eq!(reason.to_lowercase(), file_stem(&golden), "ERR-04");
            }
        }
    }
}

/// V03-REST-07.
#[test]
fn error_bodies_of_each_dialect_are_read_and_written_back() {
    for dialect in REST {
        for golden in rest_of_form(*dialect, Form::Error) {
            let read = |status| -> A2aError { v0_3::decode_error(status, golden.text.as_bytes()) };
            let profile = StatusProfile::default();
            let error = read(read(500).kind.http_status(profile));
            let written = dialect.encode_error(&error, profile);
            assert_same(&golden.name, &written, &golden.text);
            let told = dialect.decode_event(golden.text.as_bytes()).unwrap_err();
            assert_eq!(told.message, error.message, "{}", golden.name);
        }
    }
}

/// BR-116, V03-REST-01..04: each means the same operation as its JSON-RPC twin.
#[test]
fn http_requests_of_each_dialect_are_read_and_written_back() {
    for (dialect, rpc) in REST.iter().zip(JSON_RPC) {
        let twins = of_form(*rpc, Form::Request);
        for golden in rest_of_form(*dialect, Form::Request) {
            let file = golden.value();
            let (method, target) = (file["method"].as_str().unwrap(), file["target"].as_str());
            let target = target.unwrap();
            let (path, query) = match target.split_once('?') {
                Some((path, query)) => (path, Some(query)),
                None => (target, None),
            };
            let body = match &file["body"] {
                Value::Null => String::new(),
                body => body.to_string(),
            };
            let route = dialect.route(method, path).unwrap();
            let operation = dialect
                .decode_request(&route, query, body.as_bytes())
                .unwrap_or_else(|error| panic!("{}: {error}", golden.name));
            let twin = twins.iter().find(|twin| twin.name == golden.name).unwrap();
            assert_eq!(operation, rpc_params(*rpc, twin), "{}", golden.name);

            let written = dialect.encode_request(&operation).unwrap();
            assert_eq!((written.method, written.target.as_str()), (method, target));
            let written = written.body.unwrap_or_else(|| "null".to_owned());
            assert_same(&golden.name, &written, &file["body"].to_string());
        }
    }
}

/// BR-116, V03-REST-01.
#[test]
fn http_results_of_each_dialect_are_read_and_written_back() {
    for dialect in REST {
        for golden in rest_of_form(*dialect, Form::Response) {
            let body = golden.text.as_bytes();
            let outcome = dialect.decode_result(golden.kind(), body).unwrap();
            let written = dialect.encode_result(golden.kind(), &outcome).unwrap();
            assert_same(&golden.name, &written, &golden.text);
        }
    }
}

/// GEN-02: nobody forgot an operation that a dialect has.
#[test]
fn every_operation_of_each_dialect_has_its_files() {
    for dialect in JSON_RPC {
        for binding in ["json_rpc", "rest"] {
            let files = goldens_of(dialect.version(), binding);
            for kind in OperationKind::ALL {
                if dialect.method(*kind).is_none() {
                    continue;
                }
                let answer = if kind.streams() {
                    Form::Event
                } else {
                    Form::Response
                };
                for form in [Form::Request, answer] {
                    assert!(
                        files
                            .iter()
                            .any(|f| f.kind == Some(*kind) && f.form == form),
                        "{binding}: {kind:?} {form:?}"
                    );
                }
            }
        }
    }
}

/// Section 16 of the checklist: every member of 0.3 stands in a golden file of its binding.
#[test]
fn every_member_of_0_3_is_in_a_file() {
    let of_both = "message configuration metadata acceptedOutputModes historyLength blocking \
        messageId role contextId taskId extensions text file data mimeType name id status state \
        timestamp artifacts history artifactId parts description final append lastChunk artifact \
        pushNotificationConfig url token authentication schemes credentials preferredTransport \
        additionalInterfaces transport protocolVersion provider version documentationUrl iconUrl \
        capabilities streaming pushNotifications supportsAuthenticatedExtendedCard \
        securitySchemes security type in scheme bearerFormat flows oauth2MetadataUrl \
        openIdConnectUrl defaultInputModes defaultOutputModes skills";
    let of_one = [
        (
            "json_rpc",
            "kind pushNotificationConfigId referenceTaskIds bytes uri",
        ),
        (
            "rest",
            "content fileWithBytes fileWithUri task statusUpdate artifactUpdate pushNotification \
             parent configId config configs nextPageToken tasks pageSize totalSize",
        ),
    ];
    for (binding, own) in of_one {
        let files = goldens_of(nuncio_protocol::Version::V0_3, binding);
        let text: String = files.iter().map(|golden| golden.text.as_str()).collect();
        for member in of_both.split_whitespace().chain(own.split_whitespace()) {
            assert!(
                text.contains(&format!("\"{member}\":")),
                "{binding}: {member}"
            );
        }
    }
}
