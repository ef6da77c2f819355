//! What accompanies a message: no part of the log, and wanted by whoever answers it.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_protocol::{
    Event, ForwardedHeaders, Message, Metadata, StreamResponse, TaskId, TraceContext,
};
use nuncio_store::{Scope, StoreError};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cell::{Cell, QueuedMessage, messages};
use crate::engine::Core;

/// What accompanied a message besides itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RequestParts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) accepted_output_modes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extensions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "trace")]
    pub(crate) trace: Option<TraceContext>,
    /// May hold credentials, and so is not stored: a run after a crash has none.
    #[serde(skip)]
    pub(crate) forwarded: ForwardedHeaders,
}

/// What is no trace was kept once too; it is none.
fn trace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TraceContext>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

impl RequestParts {
    /// As it is stored along with the message; most messages come alone.
    pub(crate) fn stored(&self) -> Option<Arc<str>> {
        if *self == Self::default() {
            return None;
        }
        // Names are texts and numbers come from JSON: there is nothing that JSON cannot say.
        serde_json::to_string(self).ok().map(Arc::from)
    }

    fn read(stored: &str) -> Result<Self, StoreError> {
        serde_json::from_str(stored)
            .map_err(|_| StoreError::Corrupt("a stored request does not read".to_owned()))
    }
}

impl Core {
    /// What accompanied a task's first message.
    pub(crate) async fn first_request(
        &self,
        scope: &Scope,
        task: &TaskId,
    ) -> Result<RequestParts, StoreError> {
        let requests = self.store.requests(scope, task, 0).await?;
        match requests.first() {
            Some((1, stored)) => RequestParts::read(stored),
            _ => Ok(RequestParts::default()),
        }
    }

    /// Where the sender of a task's first message stood in its trace.
    pub(crate) async fn first_trace(
        &self,
        scope: &Scope,
        task: &TaskId,
    ) -> Result<Option<TraceContext>, StoreError> {
        Ok(self.first_request(scope, task).await?.trace)
    }

    /// The messages among stored events, each with what accompanied it, for a run to answer.
    pub(crate) async fn to_answer(
        &self,
        cell: &Cell,
        events: &[Event],
    ) -> Result<Vec<QueuedMessage>, StoreError> {
        let first = events.first().and_then(first_message);
        let mut found: Vec<_> = first.into_iter().chain(messages(events)).collect();
        let Some((earliest, _)) = found.first() else {
            return Ok(Vec::new());
        };
        let after = earliest - 1;
        let requests = self.store.requests(&cell.scope, &cell.id, after).await?;
        let mut requests: HashMap<_, _> = requests.into_iter().collect();
        let queued = |(position, message): (u64, &Message)| {
            let stored = requests.remove(&position);
            Ok(QueuedMessage {
                position,
                message: message.clone(),
                request: stored.map_or(Ok(RequestParts::default()), |s| RequestParts::read(&s))?,
            })
        };
        found.drain(..).map(queued).collect()
    }
}

/// The message that began a task, if this is its first event.
fn first_message(event: &Event) -> Option<(u64, &Message)> {
    match event.response() {
        StreamResponse::Task(task) => Some((1, task.history.last()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_none_does_not_harm_what_was_stored_with_it() {
        let read =
            RequestParts::read(r#"{"trace":"00-what-is-this","extensions":["urn:x"]}"#).unwrap();
        assert_eq!(
            (read.trace, read.extensions),
            (None, vec!["urn:x".to_owned()])
        );
    }
}
