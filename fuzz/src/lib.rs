//! The bodies of the fuzz targets: every decoder of foreign bytes, with what must hold of it.
//!
//! Plain functions, so that `crates/nuncio-protocol/tests/it/fuzz.rs` runs them in every test run
//! over random bytes and damaged golden files; `fuzz_targets/` wraps each for `cargo fuzz`:
//!
//! ```sh
//! cargo +nightly fuzz run json_rpc_request fuzz/corpus/json_rpc_request \
//!     crates/nuncio-protocol/tests/wire/1.0/json_rpc
//! ```
//!
//! Beyond "never panics": what was decoded is encoded and decoded to the same again, and
//! `json::check` agrees with a slow and simple reading of the same rules.

use std::collections::HashSet;
use std::fmt;

use nuncio_protocol::dialect::{JsonRpcDialect, RestDialect, StreamKind};
use nuncio_protocol::v0_3::{self, V0_3};
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{
    AgentCard, Event, Limits, Operation, OperationKind, Part, StatusProfile, StreamResponse, Task,
    Timestamp, Validate as _, json,
};
use serde::Serialize;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer};

/// A target's name and body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("json_rpc_request", json_rpc_request),
    ("json_rpc_response", json_rpc_response),
    ("rest_request", rest_request),
    ("rest_response", rest_response),
    ("rest_error", rest_error),
    ("card", card),
    ("part", part),
    ("task", task),
    ("timestamp", timestamp),
    ("json_check", json_check),
    ("older_json_rpc", older_json_rpc),
    ("older_rest_request", older_rest_request),
    ("older_rest_response", older_rest_response),
    ("older_card", older_card),
];

/// A request to the JSON-RPC binding.
pub fn json_rpc_request(data: &[u8]) {
    match json_rpc::Request::decode(data) {
        Ok(request) => {
            let Ok(operation) = request.operation() else {
                return;
            };
            let _ = operation.check(&Limits::default());
            let text = json_rpc::encode_request(&request.id, &operation);
            let again = json_rpc::Request::decode(text.as_bytes()).expect("our own request");
            assert_eq!(again.id, request.id);
            assert_eq!(again.operation().expect("our own params"), operation);
        }
        Err(refusal) => {
            let text = json_rpc::encode_error(&refusal.id, &refusal.error);
            assert!(json_rpc::decode_response(text.as_bytes()).is_err());
        }
    }
}

/// A response or event of the JSON-RPC binding.
pub fn json_rpc_response(data: &[u8]) {
    if let Err(error) = json_rpc::decode_response(data) {
        let id = json_rpc::RequestId::null();
        let text = json_rpc::encode_error(&id, &error);
        let again = json_rpc::decode_response(text.as_bytes()).expect_err("an error");
        assert_eq!(again.message, error.message);
        assert_eq!(again.kind.json_rpc_code(), error.kind.json_rpc_code());
        return;
    }
    for kind in OperationKind::ALL {
        let Ok(outcome) = json_rpc::decode_outcome(*kind, data) else {
            continue;
        };
        let text = json_rpc::encode_outcome(&json_rpc::RequestId::null(), &outcome)
            .expect("no stream is decoded");
        let again = json_rpc::decode_outcome(*kind, text.as_bytes()).expect("our own result");
        let again = json_rpc::encode_outcome(&json_rpc::RequestId::null(), &again);
        assert_eq!(again.as_deref(), Some(text.as_str()));
    }
    if let Ok(event) = json_rpc::decode_event(data) {
        same_again(&event);
    }
}

/// A request to the HTTP+JSON binding: `<method> <path>[?<query>]`, a line break, the body.
pub fn rest_request(data: &[u8]) {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (line, body) = data.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return;
    };
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let Ok(route) = rest::route(method, path) else {
        return;
    };
    let Ok(operation) = route.operation(query, body) else {
        return;
    };
    assert_eq!(operation.kind(), route.kind);
    if operation.check(&Limits::default()).is_ok() {
        round_trip_over_rest(&operation);
    }
}

fn round_trip_over_rest(operation: &Operation) {
    // Only a body can name such a tenant; no path can (TEN-03).
    if operation
        .tenant()
        .is_some_and(|tenant| rest::RESERVED_TENANTS.contains(&tenant))
    {
        return;
    }
    let request = rest::encode_request(operation);
    let (path, query) = match request.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (request.target.as_str(), None),
    };
    let route = rest::route(request.method, path).expect("our own path");
    let body = request.body.unwrap_or_default();
    let again = route
        .operation(query, body.as_bytes())
        .expect("our own request");
    assert_eq!(&again, operation);
}

/// A result or event of the HTTP+JSON binding.
pub fn rest_response(data: &[u8]) {
    for kind in OperationKind::ALL {
        if let Ok(outcome) = rest::decode_outcome(*kind, data) {
            let text = rest::encode_outcome(&outcome).expect("no stream is decoded");
            let again = rest::decode_outcome(*kind, text.as_bytes()).expect("our own result");
            assert_eq!(rest::encode_outcome(&again), Some(text));
        }
    }
    if let Ok(event) = rest::decode_event(data) {
        same_again::<StreamResponse>(&event);
    }
}

/// An error body of the HTTP+JSON binding, under several statuses.
pub fn rest_error(data: &[u8]) {
    for status in [0, 200, 400, 404, 409, 500, 502, 503, u16::MAX] {
        let error = rest::decode_error(status, data);
        for profile in [StatusProfile::V1_0_1, StatusProfile::V1_0_0] {
            let text = rest::encode_error(&error, profile);
            let again = rest::decode_error(error.kind.http_status(profile), text.as_bytes());
            assert_eq!(again.message, error.message);
            if error.kind.reason().is_some() {
                assert_eq!(again.kind.reason(), error.kind.reason());
                assert_eq!(again.metadata, error.metadata);
            }
        }
    }
}

/// An agent card.
pub fn card(data: &[u8]) {
    decode_again::<AgentCard>(data);
}

/// A part, the one message with a hand-written reader.
pub fn part(data: &[u8]) {
    decode_again::<Part>(data);
}

/// A task, and an event folded into it.
pub fn task(data: &[u8]) {
    decode_again::<Task>(data);
    let (Ok(event), Ok(mut task)) = (
        json::decode::<StreamResponse>(data),
        json::decode::<Task>(br#"{"id":"task-1","status":{"state":1}}"#),
    ) else {
        return;
    };
    task.apply_leniently(&event);
    task.apply_leniently(&event);
    same_again(&task);
}

/// A timestamp.
pub fn timestamp(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(time) = Timestamp::parse(text) {
        let written = time.to_string();
        assert_eq!(Timestamp::parse(&written), Ok(time), "{text}");
        assert!(
            written.ends_with('Z') && written.as_bytes()[4] == b'-',
            "{written}"
        );
        assert!(!written.starts_with("0000"), "{written}");
        assert!(matches!(written.len(), 24 | 27 | 30), "{written}");
        let floor = Timestamp::from_unix_ms(time.unix_ms());
        assert!(floor <= time && floor.unix_ms() == time.unix_ms(), "{text}");
    }
}

/// The checker, against a slow reading of the same rules.
pub fn json_check(data: &[u8]) {
    let checked = json::check(data);
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(checked.is_err(), "not UTF-8");
        return;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(same) = checked {
        assert_eq!(same, text);
    }
    // What no reader takes may pass the check; what a reader takes must be judged right.
    match serde_json::from_str::<Strict>(text) {
        Ok(strict) => assert_eq!(
            checked.is_ok(),
            !strict.repeats && strict.depth <= json::MAX_DEPTH,
            "{checked:?} {text}"
        ),
        Err(error) => assert!(!error.is_data(), "{error}"),
    }
}

/// Params, results and events of version 0.3 in JSON-RPC.
pub fn older_json_rpc(data: &[u8]) {
    let Ok(text) = json::check(data) else {
        return;
    };
    for kind in OperationKind::ALL {
        if let Ok(operation) = V0_3.decode_params(*kind, text) {
            // A webhook asked for without its id is a list of them.
            let params = V0_3.encode_params(&operation).expect("0.3 said so itself");
            let again = V0_3.decode_params(operation.kind(), &params);
            assert_eq!(again.expect("our own params"), operation);
        }
        let Ok(outcome) = JsonRpcDialect::decode_result(&V0_3, *kind, text) else {
            continue;
        };
        let text = JsonRpcDialect::encode_result(&V0_3, *kind, &outcome).expect("not a stream");
        let again = JsonRpcDialect::decode_result(&V0_3, *kind, &text).expect("our own result");
        let again = JsonRpcDialect::encode_result(&V0_3, *kind, &again).expect("not a stream");
        assert_eq!(members(&again), members(&text));
    }
    if let Ok(Some(item)) = JsonRpcDialect::decode_event(&V0_3, text) {
        let write = |item| {
            let event = Event::from(item);
            JsonRpcDialect::encode_event(&V0_3, &event, StreamKind::Send).into_owned()
        };
        let text = write(item);
        let again = JsonRpcDialect::decode_event(&V0_3, &text).expect("our own event");
        let again = write(again.expect("of a known kind"));
        assert_eq!(members(&again), members(&text));
    }
    if let Ok(task) = v0_3::decode_webhook(data) {
        let text = v0_3::encode_webhook(&task);
        let again = v0_3::decode_webhook(text.as_bytes()).expect("our own call");
        assert_eq!(members(&v0_3::encode_webhook(&again)), members(&text));
    }
}

/// What a text of ours says; the order of members says nothing.
fn members(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON of our own")
}

/// A request of version 0.3 over HTTP, framed as for [`rest_request`].
pub fn older_rest_request(data: &[u8]) {
    let end = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (line, body) = data.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return;
    };
    let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let Ok(route) = V0_3.route(method, path) else {
        return;
    };
    let Ok(operation) = V0_3.decode_request(&route, query, body) else {
        return;
    };
    assert_eq!(operation.kind(), route.kind);
    if operation.check(&Limits::default()).is_ok() {
        let _ = RestDialect::encode_request(&V0_3, &operation);
    }
}

/// Results, events and errors of version 0.3 over HTTP.
pub fn older_rest_response(data: &[u8]) {
    for kind in OperationKind::ALL {
        let Ok(outcome) = RestDialect::decode_result(&V0_3, *kind, data) else {
            continue;
        };
        let text = RestDialect::encode_result(&V0_3, *kind, &outcome).expect("not a stream");
        let again = RestDialect::decode_result(&V0_3, *kind, text.as_bytes());
        assert!(again.is_ok(), "our own result {text}");
    }
    if let Ok(Some(item)) = RestDialect::decode_event(&V0_3, data) {
        let event = Event::from(item);
        let text = RestDialect::encode_event(&V0_3, &event, StreamKind::Subscription);
        let again = RestDialect::decode_event(&V0_3, text.as_bytes()).expect("our own event");
        assert!(again.is_some(), "{text}");
    }
    for status in [0, 200, 400, 401, 404, 500, u16::MAX] {
        let error = v0_3::decode_error(status, data);
        let text = RestDialect::encode_error(&V0_3, &error, StatusProfile::default());
        let again = v0_3::decode_error(status, text.as_bytes());
        assert_eq!(again.message, error.message);
    }
}

/// A card of any version.
pub fn older_card(data: &[u8]) {
    let Ok(value) = json::decode::<serde_json::Value>(data) else {
        return;
    };
    if let Ok(card) = v0_3::card::decode(&value) {
        let older = v0_3::card::encode(&card);
        let again = v0_3::card::decode(&older).expect("our own card");
        assert_eq!(v0_3::card::encode(&again), older);
        let union = v0_3::card::union(&card);
        assert!(v0_3::card::decode(&union).is_ok(), "{union}");
    }
}

fn decode_again<T: DeserializeOwned + Serialize + PartialEq + fmt::Debug>(data: &[u8]) {
    if let Ok(value) = json::decode::<T>(data) {
        same_again(&value);
    }
}

fn same_again<T: DeserializeOwned + Serialize + PartialEq + fmt::Debug>(value: &T) {
    let text = json::encode(value);
    let again: T = json::decode(text.as_bytes()).expect("our own text");
    assert_eq!(&again, value, "{text}");
}

/// What the checker judges, told by a full parse.
struct Strict {
    /// Whether a key occurs twice in one object.
    repeats: bool,
    /// How deep it nests.
    depth: usize,
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

const SCALAR: Strict = Strict {
    repeats: false,
    depth: 0,
};

impl<'de> de::Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(SCALAR)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Strict, A::Error> {
        let mut found = Strict {
            repeats: false,
            depth: 1,
        };
        while let Some(inner) = list.next_element::<Strict>()? {
            found.repeats |= inner.repeats;
            found.depth = found.depth.max(inner.depth + 1);
        }
        Ok(found)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut found = Strict {
            repeats: false,
            depth: 1,
        };
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            found.repeats |= !keys.insert(key);
            let inner = map.next_value::<Strict>()?;
            found.repeats |= inner.repeats;
            found.depth = found.depth.max(inner.depth + 1);
        }
        Ok(found)
    }
}
