//! Large parts outside of the rows: a store around another one.
//!
//! Parts of bytes above a limit go to a place for objects before the commit that refers to them,
//! and come back when a task is read. What stands in their place is a URL of a scheme of our own;
//! nobody else's URL is ever taken for one. Each task has its folder there, so that what is
//! referred to is the task's own, and goes with it.

mod deliveries;
mod folder;
mod owners;
mod place;
mod reference;
mod sessions;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{ContextId, Event, PushConfigId, Task, TaskId};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;

pub(crate) use self::folder::{copy_parts, has_parts, parts_of, wrong_parts};
use self::place::{Folder, Place};
pub(crate) use self::place::{another, told};
use self::reference::{HasParts, Reference, is_to_take_out, put_back, referred, take_out};
use crate::{
    Append, Appended, Change, Claim, ClaimedRun, Created, Head, HeldRun, Imported, Lease,
    ListFilter, NewTask, PageKey, PartPlace, PushConfigRow, Scope, Store, StoreError, StoreFuture,
    StoredPart, StoredTask, Sweep, SweepKind, Swept, TaskPage, Webhook, WholeTask,
};

/// Where large parts are kept, and from which size on.
#[derive(Clone)]
#[non_exhaustive]
pub struct PartsOptions {
    /// `file:PATH`, a folder that every process of the store has to see, or `s3://BUCKET/PREFIX`.
    ///
    /// If absent, SQLite has them in a folder beside its file, of the same name with `.parts`;
    /// PostgreSQL has them in its rows, for no folder is seen by all.
    pub place: Option<String>,
    /// Parts of more bytes are kept there; 256 KiB by default.
    pub above: usize,
    /// Settings of a service that speaks S3, as `AWS_REGION` and `AWS_ENDPOINT_URL` have them in
    /// the environment.
    pub service: Vec<(String, String)>,
}

/// Shows no setting of the service: some are secrets.
impl fmt::Debug for PartsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsOptions")
            .field("place", &self.place)
            .field("above", &self.above)
            .finish_non_exhaustive()
    }
}

impl Default for PartsOptions {
    fn default() -> Self {
        Self {
            place: None,
            above: 256 << 10,
            service: Vec::new(),
        }
    }
}

/// How long parts may be without their task, which may be about to be stored.
const STRAY_AFTER: Duration = Duration::from_secs(60 * 60);

/// Groups of folders that are looked through for parts without a task.
const GROUPS: u8 = 16;

/// A store whose large parts are elsewhere.
#[derive(Debug)]
pub(crate) struct LargeParts {
    inner: Arc<dyn Store>,
    place: Place,
    above: usize,
    strays: Mutex<Strays>,
}

/// Parts of tasks that are not there: a send that was not stored, or a removal that was cut off.
#[derive(Debug, Default)]
struct Strays {
    /// The group to look through next.
    group: u8,
    /// What had no task, and since when this is known.
    seen: HashMap<Folder, Instant>,
}

impl LargeParts {
    /// # Errors
    /// [`StoreError::Refused`] for a place that cannot be.
    pub(crate) fn around(
        inner: Arc<dyn Store>,
        place: &str,
        options: &PartsOptions,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            inner,
            place: Place::open(place, options)?,
            above: options.above,
            strays: Mutex::default(),
        })
    }

    async fn keep<T: HasParts>(
        &self,
        of: (&Scope, &TaskId),
        mut whole: T,
    ) -> Result<T, StoreError> {
        for (reference, bytes) in take_out(&mut whole, self.above) {
            self.place.keep(of, reference, bytes).await?;
        }
        Ok(whole)
    }

    async fn keep_events(
        &self,
        of: (&Scope, &TaskId),
        events: &mut [Event],
    ) -> Result<(), StoreError> {
        for event in events {
            if is_to_take_out(event.response(), self.above) {
                let kept = self.keep(of, event.response().clone()).await?;
                *event = Event::new(event.position, kept);
            }
        }
        Ok(())
    }

    async fn keep_task(
        &self,
        of: (&Scope, &TaskId),
        task: &mut Arc<Task>,
    ) -> Result<(), StoreError> {
        if is_to_take_out(&**task, self.above) {
            *task = Arc::new(self.keep(of, Task::clone(task)).await?);
        }
        Ok(())
    }

    async fn fetch<T: HasParts>(
        &self,
        of: (&Scope, &TaskId),
        whole: &mut T,
    ) -> Result<(), StoreError> {
        let (references, _) = referred(whole);
        let read = self.place.read(of, references).await?;
        let read: HashMap<_, _> = read.into_iter().collect();
        put_back(whole, &|reference| read.get(&reference).cloned());
        Ok(())
    }

    async fn fetch_task(
        &self,
        of: (&Scope, &TaskId),
        task: &mut Arc<Task>,
    ) -> Result<(), StoreError> {
        if referred(&**task).1 {
            self.fetch(of, Arc::make_mut(task)).await?;
        }
        Ok(())
    }

    async fn fetch_events(
        &self,
        of: (&Scope, &TaskId),
        events: &mut [Event],
    ) -> Result<(), StoreError> {
        for event in events {
            if referred(event.response()).1 {
                let mut response = event.response().clone();
                self.fetch(of, &mut response).await?;
                *event = Event::new(event.position, response);
            }
        }
        Ok(())
    }

    /// Looks through the next group for parts whose task is not there, and has not been for long.
    async fn remove_strays(&self) -> Result<bool, StoreError> {
        let group = self.strays.lock().group;
        let (folders, owners): (Vec<_>, Vec<_>) =
            self.place.owners(group).await?.into_iter().unzip();
        let there = self.inner.heads(&owners).await?;
        let there: HashSet<_> = there.into_iter().map(|(task, _)| task).collect();
        for (folder, (_, task)) in folders.into_iter().zip(owners) {
            if !there.contains(&task) && self.strays.lock().is_stray(&folder) {
                self.place.remove(&folder).await?;
            }
        }
        let next = (group + 1) % GROUPS;
        self.strays.lock().group = next;
        Ok(next != 0)
    }
}

impl Strays {
    fn is_stray(&mut self, folder: &Folder) -> bool {
        let now = Instant::now();
        let since = *self.seen.entry(folder.clone()).or_insert(now);
        let stray = now.duration_since(since) >= STRAY_AFTER;
        if stray {
            self.seen.remove(folder);
        }
        stray
    }
}

impl Store for LargeParts {
    fn create(&self, mut new: NewTask) -> StoreFuture<'_, Created> {
        Box::pin(async move {
            let (scope, id) = (new.scope.clone(), new.task.id.clone());
            self.keep_events((&scope, &id), &mut new.events).await?;
            self.keep_task((&scope, &id), &mut new.task).await?;
            self.inner.create(new).await
        })
    }

    fn append(&self, mut append: Append) -> StoreFuture<'_, Appended> {
        Box::pin(async move {
            let (scope, id) = (append.scope.clone(), append.task.clone());
            self.keep_events((&scope, &id), &mut append.events).await?;
            if let Some(snapshot) = &mut append.snapshot {
                self.keep_task((&scope, &id), snapshot).await?;
            }
            self.inner.append(append).await
        })
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        Box::pin(async move {
            let mut stored = self.inner.load(scope, task).await?;
            if let Some(stored) = &mut stored {
                self.fetch_task((scope, task), &mut stored.task).await?;
            }
            Ok(stored)
        })
    }

    fn part<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        place: &'a PartPlace,
    ) -> StoreFuture<'a, Option<StoredPart>> {
        Box::pin(async move {
            let stored = self.inner.load(scope, task).await?;
            let found = stored.as_ref().and_then(|stored| place.find(&stored.task));
            Ok(found.and_then(|part| match Reference::of_part(part) {
                Some(reference) => Some(self.place.open_part((scope, task), part, &reference)),
                None => StoredPart::at_hand(part),
            }))
        })
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        Box::pin(async move {
            let mut events = self.inner.events(scope, task, after, limit).await?;
            self.fetch_events((scope, task), &mut events).await?;
            Ok(events)
        })
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        self.inner.list(scope, filter, from, size)
    }

    fn complete<'a>(&'a self, scope: &'a Scope, mut task: Task) -> StoreFuture<'a, Task> {
        Box::pin(async move {
            if referred(&task).1 {
                let id = task.id.clone();
                self.fetch((scope, &id), &mut task).await?;
            }
            Ok(task)
        })
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        Box::pin(async move {
            let mut claimed = self.inner.claim_expired(lease, claim, limit).await?;
            for ClaimedRun { stored } in &mut claimed {
                let (scope, id) = (stored.scope.clone(), stored.task.id.clone());
                self.fetch_task((&scope, &id), &mut stored.task).await?;
            }
            Ok(claimed)
        })
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        Box::pin(async move {
            let expires = sweep.kind == SweepKind::Expire;
            let swept = self.inner.sweep(sweep).await?;
            // What is cut off here is found as a stray.
            for (scope, task) in swept.tasks.iter().filter(|_| expires) {
                self.place.forget(scope, task).await?;
            }
            Ok(swept)
        })
    }

    fn reclaim(&self) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let more = self.remove_strays().await?;
            Ok(self.inner.reclaim().await? || more)
        })
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        Box::pin(async move {
            let mut tasks = self.inner.export(after, limit).await?;
            for whole in &mut tasks {
                let (scope, id) = (whole.scope.clone(), whole.task.id.clone());
                self.fetch_task((&scope, &id), &mut whole.task).await?;
                if let Some(log) = &mut whole.log {
                    self.fetch_events((&scope, &id), log).await?;
                }
            }
            Ok(tasks)
        })
    }

    fn import(&self, mut whole: WholeTask) -> StoreFuture<'_, Imported> {
        Box::pin(async move {
            let (scope, id) = (whole.scope.clone(), whole.task.id.clone());
            self.keep_task((&scope, &id), &mut whole.task).await?;
            if let Some(log) = &mut whole.log {
                self.keep_events((&scope, &id), log).await?;
            }
            self.inner.import(whole).await
        })
    }

    // What has no parts is the other store's alone.

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        self.inner.find_key(scope, key)
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        self.inner.requests(scope, task, after)
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        self.inner.waiting(scope, context)
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        self.inner.renew(lease)
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        self.inner.held(owner)
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        self.inner.release_all(owner)
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        self.inner.put_push_config(scope, webhook)
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        self.inner.push_configs(scope, task)
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        self.inner.delete_push_config(scope, task, config)
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        self.inner.advance_push_cursor(task, config, cursor)
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        self.inner.push_backlog(after, limit)
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        self.inner.changes()
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        self.inner.heads(tasks)
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> StoreFuture<'_, Option<[u8; 32]>> {
        self.inner.shared_secret(fresh)
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        self.inner.ping()
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.inner.close()
    }
}
