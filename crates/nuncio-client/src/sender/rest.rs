//! The HTTP+JSON binding. Spec: §11

use http::{Method, StatusCode};
use nuncio_protocol::dialect::{Dialect, RestDialect};
use nuncio_protocol::{A2aError, Operation, OperationKind, Outcome, StreamResponse, json};
use serde_json::Value;
use url::Url;

use super::Prepared;
use super::json::{Framing, refine};
use crate::failure::{bad_answer, of_the_agent};

#[derive(Debug)]
pub(super) struct Rest {
    base: Url,
    dialect: &'static dyn RestDialect,
}

impl Rest {
    pub(super) fn new(base: Url, dialect: &'static dyn RestDialect) -> Self {
        Self { base, dialect }
    }

    /// The address of a path and query below the base; a query of the base itself is kept.
    fn url(&self, target: &str) -> Option<Url> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut url = self.base.clone();
        let mut base = self.base.path().trim_end_matches('/');
        if path.starts_with("/v1/") {
            // Some cards of 0.3 name the address with the prefix that belongs to the paths.
            base = base.strip_suffix("/v1").unwrap_or(base);
        }
        let whole = format!("{base}{path}");
        url.set_path(&whole);
        url.set_fragment(None);
        let queries = [self.base.query().unwrap_or_default(), query];
        let query = queries.into_iter().filter(|q| !q.is_empty());
        let query = query.collect::<Vec<_>>().join("&");
        url.set_query((!query.is_empty()).then_some(query.as_str()));
        // Ids like ".." would be taken for steps in the path.
        (url.path() == whole).then_some(url)
    }

    fn prepare_as(
        &self,
        operation: &Operation,
        method: Option<Method>,
    ) -> Result<Prepared, A2aError> {
        let request = self.dialect.encode_request(operation)?;
        let url = self.url(&request.target);
        let url = url.ok_or_else(|| A2aError::invalid_field("id", "cannot stand in the path"))?;
        let own = || request.method.parse().map_err(|_| A2aError::internal());
        Ok(Prepared {
            method: method.map_or_else(own, Ok)?,
            url,
            body: request.body.unwrap_or_default().into(),
        })
    }
}

impl Framing for Rest {
    fn dialect(&self) -> &dyn Dialect {
        self.dialect
    }

    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        self.prepare_as(operation, None)
    }

    fn prepare_otherwise(&self, operation: &Operation) -> Option<Prepared> {
        match operation {
            Operation::SubscribeToTask(_) => self.prepare_as(operation, Some(Method::GET)).ok(),
            _ => None,
        }
    }

    fn accept(&self) -> &'static str {
        if self.dialect.has_own_media_type() {
            "application/a2a+json, application/json, text/event-stream"
        } else {
            "application/json, text/event-stream"
        }
    }

    fn result<'a>(&self, body: &'a [u8]) -> Result<&'a str, A2aError> {
        let text = json::check(body)
            .map_err(|error| bad_answer(format!("the agent's answer cannot be read: {error}")))?;
        if is_error(text) {
            return Err(of_the_agent(self.dialect.decode_error(500, body)));
        }
        Ok(text)
    }

    fn decode_result(&self, kind: OperationKind, result: &str) -> Result<Outcome, A2aError> {
        self.dialect.decode_result(kind, result.as_bytes())
    }

    fn decode_event(&self, result: &str) -> Result<Option<StreamResponse>, A2aError> {
        self.dialect.decode_event(result.as_bytes())
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> A2aError {
        let error = self.dialect.decode_error(status.as_u16(), body);
        refine(of_the_agent(error), status)
    }
}

/// Whether a text is an error in either version's form, whatever the status said.
fn is_error(text: &str) -> bool {
    if !text.contains("\"error\"") && !text.contains("\"code\"") {
        return false;
    }
    let read: Result<Value, _> = serde_json::from_str(text);
    read.is_ok_and(|value| {
        value["error"].is_object() || (value["code"].is_i64() && value["message"].is_string())
    })
}
