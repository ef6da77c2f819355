//! The HTTP+JSON binding. Spec: §11

use http::{Method, StatusCode};
use nuncio_protocol::v1::rest;
use nuncio_protocol::{A2aError, Operation, json};
use serde_json::Value;
use url::Url;

use super::{Prepared, Sender, refine};
use crate::failure::{bad_answer, of_the_agent};

#[derive(Debug)]
pub(super) struct Rest {
    base: Url,
}

impl Rest {
    pub(super) fn new(base: Url) -> Self {
        Self { base }
    }

    /// The address of a path and query below the base; a query of the base itself is kept.
    fn url(&self, target: &str) -> Option<Url> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut url = self.base.clone();
        let whole = format!("{}{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&whole);
        url.set_fragment(None);
        let queries = [self.base.query().unwrap_or_default(), query];
        let query = queries.into_iter().filter(|q| !q.is_empty());
        let query = query.collect::<Vec<_>>().join("&");
        url.set_query((!query.is_empty()).then_some(query.as_str()));
        // Ids like ".." would be taken for steps in the path.
        (url.path() == whole).then_some(url)
    }

    fn prepare_as(&self, operation: &Operation, method: Option<Method>) -> Option<Prepared> {
        let request = rest::encode_request(operation);
        Some(Prepared {
            method: method.or_else(|| request.method.parse().ok())?,
            url: self.url(&request.target)?,
            body: request.body.unwrap_or_default().into(),
        })
    }
}

impl Sender for Rest {
    fn prepare(&self, operation: &Operation) -> Result<Prepared, A2aError> {
        self.prepare_as(operation, None)
            .ok_or_else(|| A2aError::invalid_field("id", "cannot stand in the path of a URL"))
    }

    fn prepare_otherwise(&self, operation: &Operation) -> Option<Prepared> {
        match operation {
            Operation::SubscribeToTask(_) => self.prepare_as(operation, Some(Method::GET)),
            _ => None,
        }
    }

    fn accept(&self) -> &'static str {
        "application/a2a+json, application/json, text/event-stream"
    }

    fn result<'a>(&self, body: &'a [u8]) -> Result<&'a str, A2aError> {
        let text = json::check(body)
            .map_err(|error| bad_answer(format!("the agent's answer cannot be read: {error}")))?;
        if text.contains("\"error\"") && is_error(text) {
            return Err(of_the_agent(rest::decode_error(500, body)));
        }
        Ok(text)
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> A2aError {
        let error = rest::decode_error(status.as_u16(), body);
        refine(of_the_agent(error), status)
    }
}

fn is_error(text: &str) -> bool {
    let read: Result<Value, _> = serde_json::from_str(text);
    read.is_ok_and(|value| value["error"].is_object())
}
