//! JSON-RPC 2.0 envelopes and the methods of version 1.0. Spec: §9

use std::borrow::Cow;

use serde::{Deserialize, de};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{self, DecodeError, DecodeErrorKind};
use crate::{A2aError, ErrorKind, Operation, OperationKind, Outcome, StreamResponse};

/// The id of a request, kept as the JSON text it came as, so that it is echoed with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// The id of a reply to what had none that could be read.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A text id, as clients send.
    pub fn text(id: &str) -> Self {
        Self(json::encode(&id).into())
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

/// A decoded request envelope.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// To be echoed.
    pub id: RequestId,
    /// The method, unjudged.
    pub method: Cow<'a, str>,
    /// The params as JSON text: an object, `{}` if absent.
    pub params: &'a str,
}

/// A request that could not be read, with the id to answer under.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The request's id, `null` if it could not be read.
    pub id: RequestId,
    /// Why.
    pub error: A2aError,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// Reads the envelope of one request (RPC-03, RPC-05, RPC-06, RPC-07, RPC-14).
    ///
    /// # Errors
    /// [`Refusal`] with a parse error, an invalid request, or invalid params if those are no object.
    pub fn decode(body: &'a [u8]) -> Result<Self, Box<Refusal>> {
        let refuse = |id, error| Box::new(Refusal { id, error });
        let text = json::check_within(body, json::MAX_REQUEST_DEPTH + 1)
            .map_err(|error| refuse(RequestId::null(), error.into()))?;
        let envelope: Envelope<'a> = decode_object(text).map_err(|error| {
            let error = match error.kind {
                DecodeErrorKind::Syntax => error.into(),
                DecodeErrorKind::Data => not_one_object(text),
            };
            refuse(RequestId::null(), error)
        })?;
        let id = envelope
            .request_id()
            .map_err(|error| refuse(RequestId::null(), error))?;
        match envelope.parts() {
            Ok((method, params)) => Ok(Self { id, method, params }),
            Err(error) => Err(refuse(id, error)),
        }
    }

    /// Reads the operation.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotFound`] or [`ErrorKind::InvalidParams`].
    pub fn operation(&self) -> Result<Operation, A2aError> {
        let kind =
            OperationKind::from_name(&self.method).ok_or_else(|| unknown_method(&self.method))?;
        super::decode_operation(kind, self.params)
    }
}

/// Reads the members of an object; a derived reader alone takes a list of their values too.
fn decode_object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, DecodeError> {
    if text.trim_start().starts_with('{') {
        return json::decode_checked(text);
    }
    json::decode_checked::<de::IgnoredAny>(text)?;
    Err(DecodeError::data("", "expected an object"))
}

fn not_one_object(text: &str) -> A2aError {
    let message = if text.trim_start().starts_with('[') {
        "batches are not supported: send one request object"
    } else {
        "expected one JSON-RPC request object"
    };
    A2aError::new(ErrorKind::InvalidRequest, message)
}

fn unknown_method(method: &str) -> A2aError {
    let shown: String = method.chars().take(64).collect();
    let hint = match method {
        "tasks/send" | "tasks/sendSubscribe" => {
            "; this is a method of protocol 0.1, 1.0 has SendMessage"
        }
        _ if method.contains('/') => {
            "; this is a method of protocol 0.3, 1.0 has names like SendMessage"
        }
        _ => "",
    };
    A2aError::new(
        ErrorKind::MethodNotFound,
        format!("unknown method \"{shown}\"{hint}"),
    )
}

impl<'a> Envelope<'a> {
    fn request_id(&self) -> Result<RequestId, A2aError> {
        let text = self.id.map_or("null", RawValue::get);
        match text.as_bytes().first() {
            Some(b'"' | b'-' | b'0'..=b'9' | b'n') => Ok(RequestId(text.into())),
            _ => Err(A2aError::new(
                ErrorKind::InvalidRequest,
                "id must be a string, a number or null",
            )),
        }
    }

    fn parts(&self) -> Result<(Cow<'a, str>, &'a str), A2aError> {
        let invalid = |message: &str| A2aError::new(ErrorKind::InvalidRequest, message);
        if self.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(invalid("jsonrpc must be \"2.0\""));
        }
        let method = self.method.ok_or_else(|| invalid("method is missing"))?;
        let method = serde_json::from_str::<BorrowedText<'a>>(method.get())
            .map_err(|_| invalid("method must be a string"))?;
        let params = self.params.map_or("null", RawValue::get);
        match params.as_bytes().first() {
            Some(b'{') => Ok((method.0, params)),
            _ if params == "null" => Ok((method.0, "{}")),
            _ => Err(A2aError::invalid_field("params", "must be an object")),
        }
    }
}

#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Writes a request.
pub fn encode_request(id: &RequestId, operation: &Operation) -> String {
    let method = operation.kind().as_str();
    let params = operation.encode();
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
        id.as_json()
    )
}

/// Writes a result; `None` for a stream, whose events go through [`encode_result`].
pub fn encode_outcome(id: &RequestId, outcome: &Outcome) -> Option<String> {
    super::encode_outcome(outcome, "null").map(|result| encode_result(id, &result))
}

/// Writes a response around a result that is JSON text already.
pub fn encode_result(id: &RequestId, result: &str) -> String {
    let mut out = String::with_capacity(result.len() + id.as_json().len() + 40);
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    out.push_str(id.as_json());
    out.push_str(r#","result":"#);
    out.push_str(result);
    out.push('}');
    out
}

/// Writes an error (RPC-11).
pub fn encode_error(id: &RequestId, error: &A2aError) -> String {
    encode_failure(id, &error_object(error))
}

/// Writes a response around an error object.
pub fn encode_failure(id: &RequestId, error: &Value) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#,
        id.as_json()
    )
}

pub(super) fn error_object(error: &A2aError) -> Value {
    let details = error.details_json();
    let mut body = serde_json::Map::new();
    body.insert("code".to_owned(), error.kind.json_rpc_code().into());
    body.insert("message".to_owned(), error.message.clone().into());
    if !details.is_empty() {
        body.insert("data".to_owned(), details.into());
    }
    Value::Object(body)
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Value,
}

/// Reads an error object; what is missing or of another type takes nothing from the rest (ERR-05).
fn peer_error(object: &Value) -> A2aError {
    let code = &object["code"];
    let code = code
        .as_i64()
        .or_else(|| code.as_f64().map(|code| code as i64));
    let kind = ErrorKind::from_json_rpc_code(code.unwrap_or_default());
    let error = A2aError::new(kind, object["message"].as_str().unwrap_or_default());
    match &object["data"] {
        Value::Array(details) => error.with_details_json(details),
        Value::Null => error,
        other => error.with_details_json(std::slice::from_ref(other)),
    }
}

/// Reads a response and gives the text of its result, `null` if it has neither result nor error.
///
/// # Errors
/// The peer's error, or [`ErrorKind::InvalidAgentResponse`] for what is no response.
pub fn decode_response(body: &[u8]) -> Result<&str, A2aError> {
    let invalid = |error: DecodeError| {
        A2aError::new(
            ErrorKind::InvalidAgentResponse,
            format!("unreadable response: {error}"),
        )
    };
    let text = json::check(body).map_err(invalid)?;
    let response: Response<'_> = decode_object(text).map_err(invalid)?;
    match &response.error {
        Value::Null => Ok(response.result.map_or("null", RawValue::get)),
        Value::Object(_) => Err(peer_error(&response.error)),
        _ => Err(invalid(DecodeError::data(
            "error",
            "error is not an object",
        ))),
    }
}

/// Reads the response to an operation that does not stream.
///
/// # Errors
/// As [`decode_response`].
pub fn decode_outcome(kind: OperationKind, body: &[u8]) -> Result<Outcome, A2aError> {
    super::decode_outcome(kind, decode_response(body)?).map_err(unreadable)
}

/// Reads one event of a stream.
///
/// # Errors
/// As [`decode_response`].
pub fn decode_event(data: &[u8]) -> Result<StreamResponse, A2aError> {
    json::decode_checked(decode_response(data)?).map_err(unreadable)
}

pub(super) fn unreadable(error: DecodeError) -> A2aError {
    let at = if error.path.is_empty() {
        String::new()
    } else {
        format!(" at {}", error.path)
    };
    A2aError::new(
        ErrorKind::InvalidAgentResponse,
        format!("unreadable result{at}: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> (i64, String) {
        let refusal = Request::decode(body.as_bytes()).unwrap_err();
        (
            refusal.error.kind.json_rpc_code(),
            refusal.id.as_json().to_owned(),
        )
    }

    /// BR-123, RPC-05..07.
    #[test]
    fn broken_envelopes_have_their_own_codes() {
        let null = || "null".to_owned();
        assert_eq!(refused("{"), (-32700, null()));
        assert_eq!(refused("[]"), (-32600, null()));
        assert_eq!(refused(r#"[{"jsonrpc":"2.0"}]"#), (-32600, null()));
        assert_eq!(refused("7"), (-32600, null()));
        assert_eq!(
            refused(r#"{"jsonrpc":"1.0","id":7,"method":"GetTask"}"#),
            (-32600, "7".to_owned())
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":"a"}"#),
            (-32600, "\"a\"".to_owned())
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":"a","method":5}"#),
            (-32600, "\"a\"".to_owned())
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#),
            (-32600, null())
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":[]}"#),
            (-32602, "1".to_owned())
        );
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask"}"#),
            (-32700, null())
        );
    }

    #[test]
    fn absent_and_null_params_are_an_empty_object() {
        for body in [
            r#"{"jsonrpc":"2.0","id":1.5,"method":"GetExtendedAgentCard"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"GetExtendedAgentCard","params":null}"#,
        ] {
            let request = Request::decode(body.as_bytes()).unwrap();
            assert_eq!((request.params, request.id.as_json()), ("{}", "1.5"));
            assert!(request.operation().is_ok());
        }
    }

    #[test]
    fn methods_of_older_versions_get_a_hint() {
        for (method, word) in [
            ("message/send", "0.3"),
            ("tasks/send", "0.1"),
            ("sendMessage", "unknown"),
        ] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
            let error = Request::decode(body.as_bytes())
                .unwrap()
                .operation()
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::MethodNotFound);
            assert!(error.message.contains(word), "{}", error.message);
        }
    }
}
