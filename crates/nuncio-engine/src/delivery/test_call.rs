//! A call for trying out, which changes nothing.

use std::time::Duration;

use nuncio_protocol::dialect;
use nuncio_protocol::{Event, StreamResponse, Timestamp, TraceContext};
use nuncio_store::{CallOutcome, StoreError, WebhookId};

use super::Outbound;
use super::call::{Asked, Called, call};
use crate::engine::Core;

/// What a call for trying out came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestCall {
    /// The `webhook-id` that went along; no event has it.
    pub message_id: String,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// What it came to.
    pub outcome: CallOutcome,
}

impl Core {
    /// Calls a webhook with its task as it stands; `None` if it is not there.
    pub(crate) async fn test_call(
        &self,
        outbound: &Outbound,
        id: &WebhookId,
    ) -> Result<Option<TestCall>, StoreError> {
        let Some(delivery) = self.store.delivery(id).await? else {
            return Ok(None);
        };
        let Some(stored) = self.store.load(&delivery.scope, &id.task).await? else {
            return Ok(None);
        };
        let mut webhook = delivery.webhook;
        let opened = self.sealer.open(&delivery.scope, &mut webhook.config);
        let message_id = format!("{}.test-{}", id.task, self.environment.ids.next());
        let called = match opened {
            Ok(()) => {
                let task = (*stored.task).clone();
                let event = Event::new(None, StreamResponse::Task(task));
                let dialect = dialect::json_rpc(webhook.version);
                let notification = dialect.encode_notification(&event, &stored.task);
                let clock = self.environment.clock.as_ref();
                let asked = Asked {
                    message_id: &message_id,
                    trace: TraceContext::of_task(&id.task).child(&*self.environment.ids),
                    notification,
                };
                call(outbound, clock, &webhook, asked).await
            }
            Err(error) => {
                tracing::error!(task.id = %id.task, webhook.id = %id.config, %error, "a webhook cannot be called");
                Called::not_made(self.now())
            }
        };
        Ok(Some(TestCall {
            message_id,
            at: called.at,
            took: called.took,
            outcome: called.outcome,
        }))
    }
}
