//! The JSON-RPC binding. Spec: §9

use std::sync::atomic::{AtomicU64, Ordering};

use http::{Method, StatusCode};
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{A2aError, Operation};
use serde_json::Value;
use url::Url;

use super::{Prepared, Sender, refine};
use crate::failure::{bad_answer, of_the_agent};

#[derive(Debug)]
pub(super) struct JsonRpc {
    url: Url,
    requests: AtomicU64,
}

impl JsonRpc {
    pub(super) fn new(url: Url) -> Self {
        Self {
            url,
            requests: AtomicU64::new(1),
        }
    }
}

impl Sender for JsonRpc {
    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let id = json_rpc::RequestId::text(&number.to_string());
        Ok(Prepared {
            method: Method::POST,
            url: self.url.clone(),
            body: json_rpc::encode_request(&id, operation).into(),
        })
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
