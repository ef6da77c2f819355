//! Who delivers to which webhook, where one process has the store: nothing of it outlives it.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::WebhookId;

/// The claims of the deliverers in this process.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<WebhookId, Claim>>);

#[derive(Debug)]
struct Claim {
    owner: String,
    until: Instant,
}

impl Claims {
    /// Claims a webhook, or prolongs the claim.
    pub(crate) fn claim(&self, webhook: &WebhookId, owner: &str, term: Duration) -> bool {
        let now = Instant::now();
        let mut claims = self.0.lock();
        let known = claims.get(webhook);
        if known.is_some_and(|claim| claim.owner != owner && claim.until > now) {
            return false;
        }
        let claim = Claim {
            owner: owner.to_owned(),
            until: now + term,
        };
        claims.insert(webhook.clone(), claim);
        true
    }

    /// Whether an owner's claim still holds.
    pub(crate) fn holds(&self, webhook: &WebhookId, owner: &str) -> bool {
        let claims = self.0.lock();
        let claim = claims.get(webhook);
        claim.is_some_and(|claim| claim.owner == owner && claim.until > Instant::now())
    }

    /// Gives up one claim of an owner, or all.
    pub(crate) fn release(&self, webhook: Option<&WebhookId>, owner: &str) {
        let mut claims = self.0.lock();
        match webhook {
            Some(webhook) if claims.get(webhook).is_some_and(|c| c.owner == owner) => {
                claims.remove(webhook);
            }
            Some(_) => {}
            None => claims.retain(|_, claim| claim.owner != owner),
        }
    }
}
