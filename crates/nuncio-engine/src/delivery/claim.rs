//! Who delivers: of several processes at one store, one at a time for each webhook.

use std::sync::Arc;
use std::time::Duration;

use nuncio_store::{StoreError, WebhookId};
use tokio::time::Instant;

use super::Courier;

/// How long to leave a webhook alone that another process has.
pub(super) const HELD: Duration = Duration::from_secs(1);

/// The right to deliver to a webhook.
#[derive(Debug)]
pub(super) enum Claim {
    /// Nobody else could.
    Sole,
    /// For a while, from when on it was claimed or prolonged last.
    Until {
        /// Who has it.
        owner: Arc<str>,
        /// Since when.
        since: Instant,
    },
}

impl Claim {
    /// Whose claim the store has to know; `None` if there are no claims.
    pub(super) fn owner(&self) -> Option<Arc<str>> {
        match self {
            Self::Sole => None,
            Self::Until { owner, .. } => Some(Arc::clone(owner)),
        }
    }
}

impl Courier {
    /// How long a claim holds: a process that dies loses its claims after this.
    pub(super) fn claim_term(&self) -> Duration {
        let call = self.outbound.settings.call_timeout;
        (2 * call).max(self.core.settings.lease)
    }

    /// Whether it may be worth claiming a webhook: another process may have done it all.
    pub(super) async fn is_due(&self, webhook: &WebhookId) -> Result<bool, StoreError> {
        if !self.core.shared {
            return Ok(true);
        }
        let delivery = self.core.store.delivery(webhook).await?;
        Ok(delivery.is_some_and(|one| one.cursor < one.last || one.requested > 0))
    }

    /// Claims a webhook; `None` if another process has it.
    pub(super) async fn claim(&self, webhook: &WebhookId) -> Result<Option<Claim>, StoreError> {
        if !self.core.shared {
            return Ok(Some(Claim::Sole));
        }
        let (owner, since) = (Arc::clone(&self.core.owner), Instant::now());
        let (store, term) = (&self.core.store, self.claim_term());
        let claimed = store.claim_delivery(webhook, &owner, term).await?;
        Ok(claimed.then_some(Claim::Until { owner, since }))
    }

    /// Sees to it that the claim holds for a whole call; `false` if another process has it.
    pub(super) async fn prolong(
        &self,
        webhook: &WebhookId,
        claim: &mut Claim,
    ) -> Result<bool, StoreError> {
        let Claim::Until { owner, since } = claim else {
            return Ok(true);
        };
        let term = self.claim_term();
        if since.elapsed() < term / 3 {
            return Ok(true);
        }
        let now = Instant::now();
        let claimed = self.core.store.claim_delivery(webhook, owner, term).await?;
        *since = now;
        Ok(claimed)
    }

    /// Lets others have every webhook.
    pub(super) async fn give_up_all(&self) {
        if !self.core.shared {
            return;
        }
        let released = self.core.store.release_deliveries(None, &self.core.owner);
        if let Err(error) = released.await {
            tracing::warn!(%error, "claims on webhooks are not given up, and end by themselves");
        }
    }

    /// Lets others have the webhook. A claim that cannot be given up ends by itself.
    pub(super) async fn give_up(&self, webhook: &WebhookId, claim: Claim) {
        if let Claim::Until { owner, .. } = claim {
            let released = self.core.store.release_deliveries(Some(webhook), &owner);
            if let Err(error) = released.await {
                tracing::debug!(%error, "a claim on a webhook is not given up");
            }
        }
    }
}
