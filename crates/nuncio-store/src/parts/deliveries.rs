//! Deliveries have no parts: they are the other store's alone.

use std::time::Duration;

use nuncio_protocol::Timestamp;

use super::LargeParts;
use crate::{
    CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, Redelivery, Settlement,
    StoreFuture, WebhookId,
};

impl Deliveries for LargeParts {
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>> {
        self.inner.delivery(webhook)
    }

    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        self.inner.deliveries(filter, after, limit)
    }

    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool> {
        self.inner.claim_delivery(webhook, owner, term)
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.inner.release_deliveries(webhook, owner)
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        self.inner.settle_delivery(settlement)
    }

    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>> {
        self.inner.dead_letters(webhook, requested, limit)
    }

    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64> {
        self.inner.redeliver(which)
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        self.inner.record_calls(calls, keep)
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        self.inner.calls(webhook, limit)
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.inner.prune_calls(before, limit)
    }
}
