//! What accompanies a message: no part of the log, and wanted by whoever answers it.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_protocol::{Event, Message, Metadata, StreamResponse};
use nuncio_store::StoreError;
use serde::{Deserialize, Serialize};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
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
