//! [`SqliteStore`] as [`Deliveries`].

use std::time::Duration;

use nuncio_protocol::Timestamp;

use super::settle::{Prune, Record, Redeliver, Settle};
use super::store::SqliteStore;
use super::webhooks;
use crate::{
    CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, Redelivery, Settlement,
    StoreFuture, WebhookId,
};

impl Deliveries for SqliteStore {
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>> {
        let webhook = webhook.clone();
        Box::pin(
            self.readers
                .run(move |connection| webhooks::one(connection, &webhook)),
        )
    }

    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>> {
        let (filter, after) = (filter.clone(), after.cloned());
        Box::pin(
            self.readers
                .run(move |connection| webhooks::page(connection, &filter, after.as_ref(), limit)),
        )
    }

    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { Ok(self.claims.claim(webhook, owner, term)) })
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.claims.release(webhook, owner);
            Ok(())
        })
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            if let Some(owner) = &settlement.owner
                && !self.claims.holds(&settlement.webhook, owner)
            {
                return Ok(false);
            }
            self.writer.run(Settle(settlement)).await?;
            Ok(true)
        })
    }

    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>> {
        let webhook = webhook.clone();
        Box::pin(
            self.readers
                .run(move |connection| webhooks::letters(connection, &webhook, requested, limit)),
        )
    }

    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64> {
        Box::pin(self.writer.run(Redeliver(which.clone())))
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.run(Record { calls, keep }))
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        let webhook = webhook.clone();
        Box::pin(
            self.readers
                .run(move |connection| webhooks::calls(connection, &webhook, limit)),
        )
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.writer.run(Prune { before, limit }))
    }
}
