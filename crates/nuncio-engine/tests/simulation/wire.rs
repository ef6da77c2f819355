//! The way from a process to the database, which may be slow, cut, frozen or gone.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{ContextId, Event, PushConfigId, TaskId};
use nuncio_store::{
    Append, Appended, Change, Claim, ClaimedRun, Created, Head, HeldRun, Imported, Lease,
    ListFilter, NewTask, PageKey, PushConfigRow, Scope, Store, StoreError, StoreFuture, StoredTask,
    Sweep, Swept, TaskPage, Webhook, WholeTask,
};
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use crate::chance::Chance;

/// What the way is like at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Calls fail; of one under way nobody knows whether it was carried out.
    Cut,
    /// The process stands still.
    Frozen,
    /// The process has ended: nothing of it goes on.
    Gone,
}

/// A task as it stood when a process took it over.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) task: TaskId,
    pub(crate) last: u64,
    pub(crate) turn: u64,
    pub(crate) attempt: u64,
}

/// All that have been taken over, by whichever process.
pub(crate) type Claims = Arc<Mutex<Vec<Claimed>>>;

/// A store behind such a way.
#[derive(Debug)]
pub(crate) struct Wire {
    inner: Arc<dyn Store>,
    way: Mutex<Way>,
    changed: Notify,
    chance: Chance,
    heard: broadcast::Sender<Change>,
    claims: Claims,
}

impl Wire {
    pub(crate) fn new(inner: Arc<dyn Store>, chance: Chance, claims: Claims) -> Arc<Self> {
        let wire = Arc::new(Self {
            inner,
            way: Mutex::new(Way::Open),
            changed: Notify::new(),
            chance,
            heard: broadcast::Sender::new(64),
            claims,
        });
        if let Some(changes) = wire.inner.changes() {
            tokio::spawn(Arc::clone(&wire).hear(changes));
        }
        wire
    }

    pub(crate) fn set(&self, way: Way) {
        let mut now = self.way.lock();
        if *now != Way::Gone {
            *now = way;
        }
        drop(now);
        self.changed.notify_waiters();
    }

    /// Passes changes on, a tenth of them never.
    async fn hear(self: Arc<Self>, mut changes: broadcast::Receiver<Change>) {
        while let Ok(change) = changes.recv().await {
            if self.way() == Way::Open && !self.chance.once_in(10) {
                let _ = self.heard.send(change);
            }
        }
    }

    fn way(&self) -> Way {
        *self.way.lock()
    }

    /// Takes a while, or as long as the process stands still.
    async fn step(&self) -> Result<(), StoreError> {
        tokio::time::sleep(Duration::from_millis(self.chance.below(5))).await;
        loop {
            let changed = self.changed.notified();
            match self.way() {
                Way::Open => return Ok(()),
                Way::Cut => return Err(StoreError::Unavailable("cut off".to_owned())),
                Way::Frozen | Way::Gone => {}
            }
            changed.await;
        }
    }

    pub(crate) fn pass<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.step().await?;
            let done = call(self.inner.as_ref()).await;
            self.step().await?;
            match self.chance.once_in(40) {
                true => Err(StoreError::Unavailable("the answer was lost".to_owned())),
                false => done,
            }
        })
    }
}

impl Store for Wire {
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created> {
        self.pass(|store| store.create(new))
    }

    fn append(&self, append: Append) -> StoreFuture<'_, Appended> {
        self.pass(|store| store.append(append))
    }

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        self.pass(|store| store.find_key(scope, key))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        self.pass(|store| store.load(scope, task))
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        self.pass(move |store| store.events(scope, task, after, limit))
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        self.pass(move |store| store.requests(scope, task, after))
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        self.pass(move |store| store.list(scope, filter, from, size))
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        self.pass(|store| store.waiting(scope, context))
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        self.pass(move |store| {
            Box::pin(async move {
                let claimed = store.claim_expired(lease, claim, limit).await?;
                self.claims.lock().extend(claimed.iter().map(|run| Claimed {
                    task: run.stored.task.id.clone(),
                    last: run.stored.head.last,
                    turn: run.stored.head.turn,
                    attempt: run.stored.head.attempt,
                }));
                Ok(claimed)
            })
        })
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        self.pass(|store| store.renew(lease))
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        self.pass(|store| store.held(owner))
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        self.pass(|store| store.release_all(owner))
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        self.pass(|store| store.put_push_config(scope, webhook))
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        self.pass(|store| store.push_configs(scope, task))
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        self.pass(|store| store.delete_push_config(scope, task, config))
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        self.pass(move |store| store.advance_push_cursor(task, config, cursor))
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        self.pass(move |store| store.push_backlog(after, limit))
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.heard.subscribe())
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        self.pass(|store| store.heads(tasks))
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.pass(|store| store.ping())
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        self.pass(|store| store.sweep(sweep))
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        self.pass(move |store| store.export(after, limit))
    }

    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported> {
        self.pass(|store| store.import(whole))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.pass(|store| store.close())
    }
}
