//! [`SqliteStore`] and its face as a [`Store`].

use std::path::Path;
use std::sync::Arc;

use nuncio_protocol::{ContextId, Event, PushConfigId, TaskId};
use rusqlite::{OptionalExtension as _, params};
use tokio::sync::broadcast;

use super::append::AppendEvents;
use super::batch::scope_number;
use super::connection::SqliteOptions;
use super::create::Create;
use super::lease::{Beat, ClaimRuns, Claimed, ReleaseAll, Renew, held};
use super::list::{self, Page};
use super::push::{self, AdvanceCursor, DeleteConfig, PutConfig};
use super::read::{self, Which};
use super::readers::Readers;
use super::sweep::{self, Reclaim, Remove};
use super::transfer::{self, Import};
use super::writer::Writer;
use crate::claims::Claims;
use crate::upkeep::Found;
use crate::{
    Append, Appended, Change, Claim, ClaimedRun, Created, Head, HeldRun, Imported, Lease,
    ListFilter, NewTask, PageKey, PushConfigRow, Scope, Store, StoreError, StoreFuture, StoredTask,
    Sweep, Swept, TaskPage, Webhook, WholeTask,
};

/// A store in a SQLite file.
///
/// Replies come after the sync. Dropping the future of a write does not undo it. Dropping the
/// store lets the writes under way finish in the background; [`Store::close`] waits for them.
#[derive(Debug)]
pub struct SqliteStore {
    pub(super) writer: Writer,
    pub(super) readers: Readers,
    /// The file belongs to one process, so that nobody else can have a claim.
    pub(super) claims: Claims,
}

impl SqliteStore {
    /// Opens a database, making it, and its folder, readable for this user only if it is new.
    ///
    /// Blocks for as long as SQLite takes to recover what a crash has left.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a file of something else, of a newer version, or in use by
    /// another process; [`StoreError::Unavailable`] and [`StoreError::Corrupt`] as the disk has it.
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let writer = Writer::start(path, &options)?;
        let readers = Readers::start(path, options.readers, options.max_waiting)?;
        Ok(Self {
            writer,
            readers,
            claims: Claims::default(),
        })
    }

    /// Reads what has been claimed; a run that somebody has taken or ended since is left out.
    async fn load_claimed(&self, claimed: Vec<Claimed>) -> Result<Vec<ClaimedRun>, StoreError> {
        let mut runs = Vec::with_capacity(claimed.len());
        for Claimed { task, epoch } in claimed {
            let read = self
                .readers
                .run(move |connection| read::load(connection, &Which::Number(task)));
            let still_ours = |stored: &StoredTask| {
                stored.head.epoch == epoch && !stored.head.state.is_terminal()
            };
            let stored = read.await?.filter(still_ours);
            runs.extend(stored.map(|stored| ClaimedRun { stored }));
        }
        Ok(runs)
    }
}

impl Store for SqliteStore {
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created> {
        Box::pin(async move { self.writer.run(Create::new(new)?).await })
    }

    fn append(&self, append: Append) -> StoreFuture<'_, Appended> {
        Box::pin(async move { self.writer.run(AppendEvents::new(append)?).await })
    }

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        let (scope, key) = (scope.clone(), key.to_owned());
        Box::pin(self.readers.look_up(move |connection| {
            let Some(scope) = scope_number(connection, &scope)? else {
                return Ok(None);
            };
            let used = connection
                .prepare_cached(
                    "SELECT tasks.id, request_hash FROM keys
                     JOIN tasks ON tasks.number = keys.task
                     WHERE keys.scope = ?1 AND key = ?2",
                )?
                .query_row(params![scope, key], |row| {
                    Ok((row.get::<_, String>(0)?.into(), row.get(1)?))
                })
                .optional()?;
            Ok(used)
        }))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(
            self.readers
                .look_up(move |connection| read::load(connection, &Which::Of(&scope, &task))),
        )
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(self.readers.run(move |connection| {
            match read::number(connection, &scope, &task)? {
                Some(task) => read::events(connection, task, after, limit),
                None => Ok(Vec::new()),
            }
        }))
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(self.readers.run(move |connection| {
            match read::number(connection, &scope, &task)? {
                Some(task) => read::requests(connection, task, after),
                None => Ok(Vec::new()),
            }
        }))
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        let page = Page {
            scope: scope.clone(),
            filter: filter.clone(),
            from: from.cloned(),
            size,
        };
        Box::pin(self.readers.run(move |connection| page.read(connection)))
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        let (scope, context) = (scope.clone(), context.clone());
        Box::pin(
            self.readers
                .run(move |connection| list::waiting(connection, &scope, &context)),
        )
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        Box::pin(async move {
            let claim = ClaimRuns {
                claim,
                lease,
                limit,
            };
            let claimed = self.writer.run(claim).await?;
            self.load_claimed(claimed).await
        })
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.run(Renew(lease)))
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        let owner = owner.to_owned();
        Box::pin(self.readers.run(move |connection| held(connection, &owner)))
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(self.writer.run(ReleaseAll(owner.to_owned())))
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        Box::pin(self.writer.run(PutConfig {
            scope: scope.clone(),
            webhook: webhook.clone(),
        }))
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(
            self.readers
                .run(move |connection| push::configs(connection, &scope, &task)),
        )
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        Box::pin(self.writer.run(DeleteConfig {
            scope: scope.clone(),
            task: task.clone(),
            config: config.clone(),
        }))
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(self.writer.run(AdvanceCursor {
            task: task.clone(),
            config: config.clone(),
            cursor,
        }))
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        let after = after.cloned();
        Box::pin(
            self.readers
                .run(move |connection| push::backlog(connection, after.as_ref(), limit)),
        )
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        None
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        let tasks = tasks.to_vec();
        Box::pin(
            self.readers
                .run(move |connection| read::heads(connection, &tasks)),
        )
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.writer.run(Beat).await?;
            let read = self.readers.run(|connection| {
                let mut statement = connection.prepare_cached("SELECT beats FROM pulse")?;
                Ok(statement.query_row([], |_| Ok(()))?)
            });
            read.await
        })
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        Box::pin(async move {
            let looked_for = sweep.clone();
            let found = self
                .readers
                .run(move |connection| sweep::find(connection, &looked_for));
            let Found { tasks, next } = found.await?;
            let (kind, before) = (sweep.kind, sweep.before);
            let tasks = match tasks.is_empty() {
                true => Vec::new(),
                false => {
                    self.writer
                        .run(Remove {
                            kind,
                            before,
                            tasks,
                        })
                        .await?
                }
            };
            Ok(Swept { tasks, next })
        })
    }

    fn reclaim(&self) -> StoreFuture<'_, bool> {
        Box::pin(self.writer.run(Reclaim))
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        let after = after.cloned();
        Box::pin(
            self.readers
                .run(move |connection| transfer::export(connection, after.as_ref(), limit)),
        )
    }

    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported> {
        Box::pin(async move { self.writer.run(Import::new(whole)?).await })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.readers.close().await;
            self.writer.close().await;
            Ok(())
        })
    }
}
