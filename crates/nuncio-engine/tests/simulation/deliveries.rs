//! [`Wire`] as [`Deliveries`].

use std::time::Duration;

use nuncio_protocol::Timestamp;
use nuncio_store::{
    CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, Redelivery, Settlement,
    StoreFuture, WebhookId,
};

use crate::wire::Wire;

impl Deliveries for Wire {
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>> {
        self.pass(|store| store.delivery(webhook))
    }

    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        self.pass(move |store| store.deliveries(filter, after, limit))
    }

    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool> {
        self.pass(move |store| store.claim_delivery(webhook, owner, term))
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.pass(move |store| store.release_deliveries(webhook, owner))
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        self.pass(|store| store.settle_delivery(settlement))
    }

    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>> {
        self.pass(move |store| store.dead_letters(webhook, requested, limit))
    }

    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64> {
        self.pass(|store| store.redeliver(which))
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        self.pass(move |store| store.record_calls(calls, keep))
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        self.pass(move |store| store.calls(webhook, limit))
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.pass(move |store| store.prune_calls(before, limit))
    }
}
