//! Webhooks as an operator sees them: all of them, how they stand, and what to do about it.

use std::sync::Arc;

use nuncio_store::{
    CallRecord, DeadLetter, Delivery, DeliveryFilter, Redelivery, StoreError, WebhookId,
};

use crate::engine::Core;
use crate::sealing::redact;
use crate::{Engine, TestCall};

/// All webhooks of an engine's store, whoever registered them; for operators only.
///
/// Their secrets are never shown.
#[derive(Clone, Debug)]
pub struct Webhooks {
    core: Arc<Core>,
}

impl Engine {
    /// The webhooks as an operator sees them.
    pub fn webhooks(&self) -> Webhooks {
        Webhooks {
            core: Arc::clone(&self.core),
        }
    }
}

impl Webhooks {
    /// Lists webhooks, `limit` at most, after the last one of the page before.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn list(
        &self,
        filter: &DeliveryFilter,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut page = self.core.store.deliveries(filter, after, limit).await?;
        for delivery in &mut page {
            redact(&mut delivery.webhook.config);
        }
        Ok(page)
    }

    /// One webhook; `None` if it is not there.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn get(&self, webhook: &WebhookId) -> Result<Option<Delivery>, StoreError> {
        let mut delivery = self.core.store.delivery(webhook).await?;
        if let Some(delivery) = &mut delivery {
            redact(&mut delivery.webhook.config);
        }
        Ok(delivery)
    }

    /// The newest calls of a webhook, newest first, `limit` at most.
    ///
    /// A call shows up here about a second after it was made.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn calls(
        &self,
        webhook: &WebhookId,
        limit: usize,
    ) -> Result<Vec<CallRecord>, StoreError> {
        self.core.store.calls(webhook, limit).await
    }

    /// The dead letters of a webhook by position, `limit` at most.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn dead_letters(
        &self,
        webhook: &WebhookId,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.core.store.dead_letters(webhook, false, limit).await
    }

    /// Has dead letters delivered again, and gives their number. A webhook that is named is enabled
    /// if it was disabled, and goes on at once with what it has not had.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be written; nothing is delivered then.
    pub async fn redeliver(&self, which: &Redelivery) -> Result<u64, StoreError> {
        let store = &self.core.store;
        let marked = store.redeliver(which).await?;
        let wakes = &self.core.hub.wakes;
        match &which.webhook {
            Some(webhook) => {
                if let Some(delivery) = store.delivery(webhook).await? {
                    wakes.change(&delivery.scope, &webhook.task, &webhook.config);
                }
            }
            None => wakes.look_again(),
        }
        Ok(marked)
    }

    /// Calls a webhook with its task as it stands; nothing is changed by what comes of it. `None`
    /// if the webhook is not there, or if nobody delivers.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read.
    pub async fn test(&self, webhook: &WebhookId) -> Result<Option<TestCall>, StoreError> {
        match self.core.outbound.get() {
            Some(outbound) => self.core.test_call(outbound, webhook).await,
            None => Ok(None),
        }
    }
}
