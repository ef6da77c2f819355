//! Secrets that an earlier version has stored as they are.

use nuncio_protocol::TaskPushNotificationConfig;
use nuncio_store::{Delivery, DeliveryFilter, StoreError};

use super::Courier;
use crate::sealing::has_plain_secret;

/// Webhooks read at a time.
const PAGE: usize = 200;

impl Courier {
    /// Seals what an earlier version has left unsealed.
    pub(super) async fn seal_plain_secrets(&self) {
        match self.seal_all().await {
            Ok(0) => {}
            Ok(webhooks) => tracing::info!(webhooks, "secrets of webhooks have been sealed"),
            Err(error) => {
                tracing::warn!(%error, "secrets of webhooks stay unsealed until next time");
            }
        }
    }

    async fn seal_all(&self) -> Result<usize, StoreError> {
        let (filter, mut after, mut sealed) = (DeliveryFilter::default(), None, 0);
        loop {
            let page = self
                .core
                .store
                .deliveries(&filter, after.as_ref(), PAGE)
                .await?;
            let plain = |config: &TaskPushNotificationConfig| has_plain_secret(&mut config.clone());
            for delivery in page.iter().filter(|one| plain(&one.webhook.config)) {
                sealed += usize::from(self.seal_one(delivery).await?);
            }
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id()),
                _ => return Ok(sealed),
            }
        }
    }

    /// Seals one webhook, as it is now; its owner may be changing it.
    async fn seal_one(&self, found: &Delivery) -> Result<bool, StoreError> {
        let id = found.id();
        let core = &self.core;
        let opened = core
            .hub
            .open(core.store.as_ref(), &found.scope, &id.task)
            .await?;
        let Some(cell) = opened else {
            return Ok(false);
        };
        let _writing = cell.writing.lock().await;
        let Some(mut now) = core.store.delivery(&id).await? else {
            return Ok(false);
        };
        core.sealer.seal(&now.scope, &mut now.webhook.config);
        core.store.put_push_config(&now.scope, &now.webhook).await
    }
}
