//! [`MemoryStore`] and its face as a [`Store`].

use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use nuncio_protocol::{ContextId, Event, PushConfigId, TaskId, Timestamp};
use tokio::sync::broadcast;

use super::contents::Contents;
use super::hearing::Hearers;
use crate::claims::Claims;
use crate::{
    Append, Appended, Change, Claim, ClaimedRun, Created, Head, HeldRun, Imported, Lease,
    ListFilter, NewTask, PageKey, PushConfigRow, Scope, Store, StoreError, StoreFuture, StoredTask,
    Sweep, Swept, TaskPage, Webhook, WholeTask,
};

/// How much a [`MemoryStore`] keeps.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// How many ended tasks are kept, with their keys; the ones that ended first go first.
    pub max_finished: usize,
    /// How many sessions are kept; those to which nothing has been written for longest go first.
    pub max_sessions: usize,
    /// Of how many tasks and conversations of agents elsewhere it is known whose they are; those that
    /// were taken longest ago go first.
    pub max_owned: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            max_finished: 100_000,
            max_sessions: 10_000,
            max_owned: 100_000,
        }
    }
}

/// A store that lives and dies with the process.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    tag: u64,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    contents: RwLock<Contents>,
    hearers: Hearers,
    claims: Claims,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryOptions::default())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        Self::on(Arc::new(Shared {
            contents: RwLock::new(Contents::new(&options)),
            hearers: Hearers::default(),
            claims: Claims::default(),
        }))
    }

    /// Another handle to the same contents, as another process would have it: each hears of what
    /// the others write, and closing one leaves the others open.
    pub fn replica(&self) -> Self {
        Self::on(Arc::clone(&self.shared))
    }

    fn on(shared: Arc<Shared>) -> Self {
        Self {
            tag: shared.hearers.enter(),
            shared,
            closed: AtomicBool::new(false),
        }
    }

    /// Who delivers to which webhook.
    pub(super) fn claims(&self) -> &Claims {
        &self.shared.claims
    }

    fn open(&self) -> Result<&Shared, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        Ok(&self.shared)
    }

    pub(super) fn read(&self) -> Result<RwLockReadGuard<'_, Contents>, StoreError> {
        Ok(self.open()?.contents.read())
    }

    pub(super) fn write(&self) -> Result<RwLockWriteGuard<'_, Contents>, StoreError> {
        Ok(self.open()?.contents.write())
    }

    fn append_now(&self, append: Append) -> Result<Appended, StoreError> {
        let task = append.task.clone();
        let appended = self.change(|contents| contents.append(append))?;
        if let Appended::Done { .. } = appended {
            self.shared.hearers.tell(self.tag, &task);
        }
        Ok(appended)
    }

    /// Changes tasks; what is forgotten over it is freed after the lock.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Contents) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut contents = self.write()?;
        let result = change(&mut contents);
        let evicted = contents.take_evicted();
        drop(contents);
        drop(evicted);
        result
    }

    fn load_now(&self, scope: &Scope, task: &TaskId) -> Result<Option<StoredTask>, StoreError> {
        let contents = self.read()?;
        let Some(entry) = contents.entry(scope, task) else {
            return Ok(None);
        };
        let (head, view) = (entry.head.clone(), entry.view());
        let has_webhooks = !entry.push_configs.is_empty();
        drop(contents);
        Ok(Some(StoredTask {
            scope: scope.clone(),
            task: view.task()?,
            head,
            has_webhooks,
        }))
    }

    fn list_now(
        &self,
        scope: &Scope,
        filter: &ListFilter,
        from: Option<&PageKey>,
        size: usize,
    ) -> Result<TaskPage, StoreError> {
        let contents = self.read()?;
        let (mut places, total) = match contents.scope(scope) {
            Some(lists) => lists.page(filter, from, size + 1),
            None => (Vec::new(), 0),
        };
        let more = places.len() > size;
        places.truncate(size);
        let views: Vec<_> = places
            .iter()
            .filter_map(|place| contents.listed(&place.task))
            .map(|entry| entry.view())
            .collect();
        drop(contents);
        let tasks = views.into_iter().map(|view| view.task());
        Ok(TaskPage {
            tasks: tasks.collect::<Result<_, _>>()?,
            next: places.pop().filter(|_| more).map(|place| PageKey {
                status_time: Timestamp::from_unix_ms(place.status_ms),
                task: place.task,
            }),
            total,
        })
    }

    fn claim_now(
        &self,
        lease: &Lease,
        claim: &Claim,
        limit: usize,
    ) -> Result<Vec<ClaimedRun>, StoreError> {
        let claimed = self.write()?.claim(lease, claim, limit);
        for (_, task) in &claimed {
            self.shared.hearers.tell(self.tag, task);
        }
        let loaded = claimed
            .iter()
            .filter_map(|(scope, task)| self.load_now(scope, task).transpose());
        loaded
            .map(|stored| stored.map(|stored| ClaimedRun { stored }))
            .collect()
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        self.shared.hearers.leave(self.tag);
    }
}

/// A future that gives `value` at once.
pub(super) fn at_once<'a, T: Send + 'a>(
    value: Result<T, StoreError>,
) -> std::pin::Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>> {
    Box::pin(ready(value))
}

impl Store for MemoryStore {
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created> {
        at_once(self.change(|contents| contents.create(new)))
    }

    fn append(&self, append: Append) -> StoreFuture<'_, Appended> {
        at_once(self.append_now(append))
    }

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        at_once(self.read().map(|contents| {
            let used = contents.scope(scope)?.keys.get(key)?;
            Some((used.task.clone(), used.request_hash))
        }))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        at_once(self.load_now(scope, task))
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        at_once(
            self.read()
                .and_then(|contents| match contents.entry(scope, task) {
                    Some(entry) => entry.log.read(after, limit),
                    None => Ok(Vec::new()),
                }),
        )
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        at_once(self.read().map(|contents| {
            let entry = contents.entry(scope, task);
            entry.map_or_else(Vec::new, |entry| {
                let later = entry
                    .requests
                    .iter()
                    .filter(|(position, _)| *position > after);
                later.cloned().collect()
            })
        }))
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        at_once(self.list_now(scope, filter, from, size))
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        at_once(self.read().map(|contents| {
            let lists = contents.scope(scope).into_iter();
            let waiting = lists.flat_map(|lists| lists.waiting(context));
            waiting.take(2).cloned().collect()
        }))
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        at_once(self.claim_now(&lease, &claim, limit))
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        at_once(self.write().map(|mut contents| contents.renew(lease)))
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        at_once(self.read().map(|contents| contents.held(owner)))
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        at_once(self.write().map(|mut contents| contents.release_all(owner)))
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        let put = self
            .write()
            .map(|mut contents| contents.put_push_config(scope, webhook));
        if let (Ok(true), Some(task)) = (&put, &webhook.config.task_id) {
            self.shared.hearers.tell(self.tag, task);
        }
        at_once(put)
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        at_once(self.read().map(|contents| {
            let entry = contents.entry(scope, task)?;
            Some(entry.push_configs.values().cloned().collect())
        }))
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        at_once(self.write().map(|mut contents| {
            let entry = contents.entry_mut(scope, task);
            entry.is_some_and(|entry| {
                entry.push_configs.remove(config);
                entry.desks.remove(config);
                true
            })
        }))
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        at_once(
            self.write()
                .map(|mut contents| contents.advance_push_cursor(task, config, cursor)),
        )
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        at_once(
            self.read()
                .map(|contents| contents.push_backlog(after, limit)),
        )
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        self.shared.hearers.subscribe(self.tag)
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        at_once(self.read().map(|contents| {
            let stands = |(scope, task): &(Scope, TaskId)| {
                let entry = contents.entry(scope, task)?;
                Some((task.clone(), entry.head.clone()))
            };
            tasks.iter().filter_map(stands).collect()
        }))
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        at_once(self.read().map(|_| ()))
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        at_once(self.change(|contents| contents.sweep(&sweep)))
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        at_once(
            self.read()
                .and_then(|contents| contents.export(after, limit)),
        )
    }

    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported> {
        at_once(self.change(|contents| contents.import(whole)))
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.closed.store(true, Ordering::Release);
        at_once(Ok(()))
    }
}
