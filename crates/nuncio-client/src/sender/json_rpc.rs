//! The JSON-RPC binding. Spec: §9

use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, StatusCode};
use nuncio_protocol::dialect::{Dialect, JsonRpcDialect};
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{A2aError, ErrorKind, Operation, OperationKind, Outcome, StreamResponse};
use serde_json::Value;
use url::Url;

use super::Prepared;
use super::json::{Framing, refine};
use crate::failure::{bad_answer, of_the_agent};

#[derive(Debug)]
pub(super) struct JsonRpc {
    url: Url,
    dialect: &'static dyn JsonRpcDialect,
    requests: AtomicU64,
}

impl JsonRpc {
    pub(super) fn new(url: Url, dialect: &'static dyn JsonRpcDialect) -> Self {
        Self {
            url,
            dialect,
            requests: AtomicU64::new(1),
        }
    }
}

impl Framing for JsonRpc {
    fn dialect(&self) -> &dyn Dialect {
        self.dialect
    }

    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        let kind = operation.kind();
        let method = self.dialect.method(kind).ok_or_else(|| {
            let version = self.dialect.version();
            A2aError::new(
                ErrorKind::UnsupportedOperation,
                format!("protocol {version} has no {} over JSON-RPC", kind.as_str()),
            )
        })?;
        let params = self.dialect.encode_params(operation)?;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(Prepared {
            method: Method::POST,
            url: self.url.clone(),
            body: format!(
                r#"{{"jsonrpc":"2.0","id":"{number}","method":"{method}","params":{params}}}"#
            )
            .into(),
        })
    }

    fn prepare_otherwise(&self, _operation: &Operation) -> Option<Prepared> {
        None
    }

    fn accept(&self) -> &'static str {
        "application/json, text/event-stream"
    }

    fn result<'a>(&self, body: &'a [u8]) -> Result<&'a str, A2aError> {
        json_rpc::decode_response(body).map_err(|error| {
            if is_error_response(body) {
                of_the_agent(error)
            } else {
                bad_answer(error.message)
            }
        })
    }

    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError> {
        self.dialect.decode_result(kind, result)
    }

    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError> {
        self.dialect.decode_event(result)
    }

    /// A JSON-RPC body counts at any status (TRAP-15); anything else is read as it comes.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> A2aError {
        if is_error_response(body)
            && let Err(error) = json_rpc::decode_response(body)
        {
            return refine(of_the_agent(error), status);
        }
        of_the_agent(rest::decode_error(status.as_u16(), body))
    }
}

fn is_error_response(body: &[u8]) -> bool {
    let read: Result<Value, _> = serde_json::from_slice(body);
    read.is_ok_and(|value| {
        let code = value["error"]["code"].as_i64();
        value["error"].is_object()
            && (value["jsonrpc"].is_string() || code.is_some_and(|code| code < 0))
    })
}
