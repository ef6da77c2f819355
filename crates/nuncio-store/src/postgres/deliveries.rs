//! [`PostgresStore`] as [`Deliveries`].

use std::time::Duration;

use nuncio_protocol::Timestamp;

use super::store::PostgresStore;
use super::{settle, webhooks};
use crate::{
    CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, Redelivery, Settlement,
    StoreFuture, WebhookId,
};

impl Deliveries for PostgresStore {
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>> {
        Box::pin(webhooks::one(&self.readers, webhook))
    }

    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        Box::pin(webhooks::page(&self.readers, filter, after, limit))
    }

    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(settle::claim(&self.side, webhook, owner, term))
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        Box::pin(settle::release(&self.side, webhook, owner))
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        Box::pin(settle::settle(&self.side, settlement))
    }

    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>> {
        Box::pin(webhooks::letters(&self.readers, webhook, requested, limit))
    }

    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64> {
        Box::pin(settle::redeliver(&self.side, which))
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        Box::pin(settle::record(&self.side, calls, keep))
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        Box::pin(webhooks::calls(&self.readers, webhook, limit))
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(settle::prune(&self.side, before, limit))
    }
}
