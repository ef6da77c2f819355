//! A store that fails when told, for what must survive it.

mod owners;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_protocol::{ContextId, Event, PushConfigId, TaskId, Timestamp};
use nuncio_store::{
    Append, Appended, CallRecord, Change, Claim, ClaimedRun, Created, DeadLetter, Deliveries,
    Delivery, DeliveryFilter, Head, HeldRun, Imported, Lease, ListFilter, NewTask, PageKey,
    PushConfigRow, Redelivery, Scope, Settlement, Store, StoreError, StoreFuture, StoredTask,
    Sweep, Swept, TaskPage, Webhook, WebhookId, WholeTask,
};
use tokio::sync::broadcast;

/// Passes everything on, except while writes are refused.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    refusing: AtomicBool,
    deaf: AtomicBool,
    /// What it tells of others, when it does.
    heard: broadcast::Sender<Change>,
    /// Commits asked for, refused ones included.
    pub writes: AtomicUsize,
    /// Questions asked.
    pub reads: AtomicUsize,
}

impl FaultyStore {
    /// A store that works until told otherwise.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            refusing: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
            heard: broadcast::Sender::new(1),
            writes: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
        }
    }

    /// Refuses writes, or takes them again.
    pub fn refuse_writes(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }

    /// Tells nothing of what other processes write, or tells it again.
    ///
    /// To be said before somebody listens.
    pub fn be_deaf(&self, deaf: bool) {
        self.deaf.store(deaf, Ordering::SeqCst);
    }

    fn read(&self) -> &dyn Store {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.as_ref()
    }

    fn write<'a, T: Send + 'a>(
        &self,
        write: impl FnOnce() -> StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        if self.refusing.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError::Unavailable("told to refuse".to_owned())) });
        }
        write()
    }
}

impl Store for FaultyStore {
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created> {
        self.write(|| self.inner.create(new))
    }

    fn append(&self, append: Append) -> StoreFuture<'_, Appended> {
        self.write(|| self.inner.append(append))
    }

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        self.read().find_key(scope, key)
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        self.read().load(scope, task)
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        self.read().events(scope, task, after, limit)
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        self.read().requests(scope, task, after)
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        self.read().list(scope, filter, from, size)
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        self.read().waiting(scope, context)
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        self.write(|| self.inner.claim_expired(lease, claim, limit))
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        self.write(|| self.inner.renew(lease))
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        self.read().held(owner)
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        self.write(|| self.inner.release_all(owner))
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.put_push_config(scope, webhook))
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        self.read().push_configs(scope, task)
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.delete_push_config(scope, task, config))
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        self.write(|| self.inner.advance_push_cursor(task, config, cursor))
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        self.read().push_backlog(after, limit)
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        match self.deaf.load(Ordering::SeqCst) {
            true => Some(self.heard.subscribe()),
            false => self.inner.changes(),
        }
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        self.read().heads(tasks)
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.inner.ping()
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        self.write(|| self.inner.sweep(sweep))
    }

    fn reclaim(&self) -> StoreFuture<'_, bool> {
        self.write(|| self.inner.reclaim())
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        self.inner.export(after, limit)
    }

    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported> {
        self.write(|| self.inner.import(whole))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.inner.close()
    }
}

impl Deliveries for FaultyStore {
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
        self.write(|| self.inner.claim_delivery(webhook, owner, term))
    }

    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()> {
        self.write(|| self.inner.release_deliveries(webhook, owner))
    }

    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool> {
        self.write(|| self.inner.settle_delivery(settlement))
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
        self.write(|| self.inner.redeliver(which))
    }

    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()> {
        self.write(|| self.inner.record_calls(calls, keep))
    }

    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>> {
        self.inner.calls(webhook, limit)
    }

    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.write(|| self.inner.prune_calls(before, limit))
    }
}
