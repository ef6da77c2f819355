//! [`MemoryStore`] as [`Deliveries`].

use std::time::Duration;

use nuncio_protocol::Timestamp;

use super::store::{MemoryStore, at_once};
use crate::{
    CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, Redelivery, Settlement,
    StoreFuture, WebhookId,
};

impl Deliveries for MemoryStore {
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>> {
        at_once(self.read().map(|contents| contents.delivery(webhook)))
    }

    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        at_once(
            self.read()
                .map(|contents| contents.deliveries(filter, after, limit)),
        )
    }

    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool> {
        at_once(Ok(self.claims().claim(webhook, owner, term)))
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.claims().release(webhook, owner);
        at_once(Ok(()))
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        let owner = settlement.owner.clone();
        let held = owner.is_none_or(|owner| self.claims().holds(&settlement.webhook, &owner));
        at_once(self.write().map(|mut contents| {
            if held {
                contents.settle(settlement);
            }
            held
        }))
    }

    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>> {
        at_once(self.read().map(|contents| {
            let letters = contents.desk(webhook).into_iter();
            let letters = letters.flat_map(|desk| desk.letters.values());
            let wanted = letters.filter(|letter| letter.requested || !requested);
            wanted.take(limit).cloned().collect()
        }))
    }

    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64> {
        at_once(self.write().map(|mut contents| contents.redeliver(which)))
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        at_once(
            self.write()
                .map(|mut contents| contents.record_calls(calls, keep)),
        )
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        at_once(self.read().map(|contents| {
            let calls = contents.desk(webhook).into_iter();
            let calls = calls.flat_map(|desk| desk.calls.iter().rev());
            calls.take(limit).cloned().collect()
        }))
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        at_once(
            self.write()
                .map(|mut contents| contents.prune_calls(before, limit)),
        )
    }
}
