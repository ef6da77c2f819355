//! [`PostgresStore`] and its face as a [`Store`].

use std::sync::Arc;

use nuncio_protocol::{ContextId, Event, PushConfigId, TaskId};
use tokio::sync::broadcast;

use super::connection::Connector;
use super::failure::unavailable;
use super::feed::Feed;
use super::lease::{self, Claimed};
use super::link::Links;
use super::options::PostgresOptions;
use super::write::Write;
use super::writer::Writers;
use super::{check, list, push, read, schema, sweep, transfer};
use crate::{
    Append, Appended, Change, CheckReport, Claim, ClaimedRun, Created, Head, HeldRun, Imported,
    Lease, ListFilter, NewTask, PageKey, PushConfigRow, SchemaReport, Scope, Store, StoreError,
    StoreFuture, StoredTask, Sweep, Swept, TaskPage, Webhook, WholeTask,
};

/// Connections for small writes: leases, webhooks, pings.
const SIDE_WRITERS: usize = 2;

/// A store in the schema `nuncio` of a PostgreSQL database (tested with 15), which many processes
/// may share.
///
/// Replies come after the commit. Dropping the future of a write does not undo it. While the
/// database is away calls give [`StoreError::Unavailable`], mostly at once, and at the latest after
/// three times [`PostgresOptions::statement_timeout`]; connections come back by themselves. A write whose
/// connection broke before the reply gives that too, and may have been written. Needs sessions: a
/// pooler in front of it must not hand one connection to several at a time.
#[derive(Debug)]
pub struct PostgresStore {
    writers: Writers,
    pub(super) side: Links,
    pub(super) readers: Links,
    feed: Arc<Feed>,
}

impl PostgresStore {
    /// Connects to `postgres://USER:PASSWORD@HOST/DATABASE`, and brings the schema to the newest
    /// shape; it is made if it is new, for which the user must be allowed to.
    ///
    /// `sslmode` is `disable`, `prefer` (the default), `require`, `verify-ca` or `verify-full`. The
    /// last two, which are one, ask for a certificate of that host, from an authority of this
    /// machine or of the PEM file `sslrootcert`. To be called on the tokio runtime that is to drive
    /// the connections.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL that does not do, and for a schema of something else or of
    /// a newer version; [`StoreError::Unavailable`] if there is no database.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let connector = Arc::new(Connector::new(url, &options)?);
        schema::prepare(&connector).await?;
        let side = Links::new(&connector, SIDE_WRITERS);
        let feed = Arc::new(match &options.wake_ups {
            None => Feed::by_notify(&connector).await?,
            Some(url) => {
                let mut fresh = [0; 32];
                getrandom::fill(&mut fresh)
                    .map_err(|_| unavailable("no random bytes to be had"))?;
                let secret = schema::secret(&side, &fresh).await?;
                Feed::over_nats(&connector, url, &secret).await?
            }
        });
        Ok(Self {
            writers: Writers::start(&connector, &feed, &options),
            side,
            readers: Links::new(&connector, options.readers),
            feed,
        })
    }

    /// Brings the schema to the newest shape, as opening it does; gives the steps it had taken before.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn migrate(url: &str) -> Result<usize, StoreError> {
        let connector = Connector::new(url, &PostgresOptions::default())?;
        let before = schema::version(connector.open().await?.client()).await?;
        schema::prepare(&connector).await?;
        Ok(before)
    }

    /// Looks in which shape the schema is, without changing it.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for a URL that does not do, and for a schema of something else;
    /// [`StoreError::Unavailable`] if there is no database.
    pub async fn examine(url: &str) -> Result<SchemaReport, StoreError> {
        let connector = Connector::new(url, &PostgresOptions::default())?;
        check::examine(&connector).await
    }

    /// Checks what is in the schema: gapless logs, snapshots that are the fold of their logs,
    /// references that lead somewhere, totals that add up. Whether the disk is sound is for the
    /// database's own tools to say.
    ///
    /// Reads one moment of it, beside the processes that serve it, and takes as long as reading all
    /// of it does.
    ///
    /// # Errors
    /// As [`PostgresStore::examine`], and [`StoreError::Refused`] for a newer version or if there is
    /// nothing yet; what is wrong with readable data is in the report.
    pub async fn check(url: &str) -> Result<CheckReport, StoreError> {
        let connector = Connector::new(url, &PostgresOptions::default())?;
        check::check(&connector).await
    }

    /// Reads what has been claimed; a run that somebody has taken or ended since is left out.
    async fn load_claimed(&self, claimed: &[Claimed]) -> Result<Vec<ClaimedRun>, StoreError> {
        let numbers: Vec<i64> = claimed.iter().map(|claimed| claimed.task).collect();
        let mut runs = read::load_numbered(&self.readers, &numbers).await?;
        runs.retain(|stored| {
            let head = &stored.head;
            let ours =
                |claimed: &Claimed| claimed.id == stored.task.id && claimed.epoch == head.epoch;
            claimed.iter().any(ours) && !head.state.is_terminal()
        });
        Ok(runs
            .into_iter()
            .map(|stored| ClaimedRun { stored })
            .collect())
    }
}

impl Store for PostgresStore {
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created> {
        Box::pin(async move {
            let outcome = self.writers.run(Write::create(new)?).await?;
            Write::created(outcome)
        })
    }

    fn append(&self, append: Append) -> StoreFuture<'_, Appended> {
        Box::pin(async move {
            let outcome = self.writers.run(Write::append(append)?).await?;
            Write::appended(outcome)
        })
    }

    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>> {
        Box::pin(read::find_key(&self.readers, scope, key))
    }

    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>> {
        Box::pin(read::load(&self.readers, scope, task))
    }

    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>> {
        Box::pin(read::events(&self.readers, scope, task, after, limit))
    }

    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>> {
        Box::pin(read::requests(&self.readers, scope, task, after))
    }

    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage> {
        Box::pin(list::page(&self.readers, scope, filter, from, size))
    }

    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>> {
        Box::pin(list::waiting(&self.readers, scope, context))
    }

    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>> {
        Box::pin(async move {
            let claimed = lease::claim(&self.side, &lease, &claim, limit).await?;
            for Claimed { id, .. } in &claimed {
                self.feed.tell(id.as_str());
            }
            if claimed.is_empty() {
                return Ok(Vec::new());
            }
            self.load_claimed(&claimed).await
        })
    }

    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()> {
        Box::pin(async move { lease::renew(&self.side, &lease).await })
    }

    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>> {
        Box::pin(lease::held(&self.readers, owner))
    }

    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(lease::release_all(&self.side, owner))
    }

    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let put = push::put(&self.side, scope, webhook).await?;
            if let (true, Some(task)) = (put, &webhook.config.task_id) {
                self.feed.tell(task.as_str());
            }
            Ok(put)
        })
    }

    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>> {
        Box::pin(push::configs(&self.readers, scope, task))
    }

    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool> {
        Box::pin(push::delete(&self.side, scope, task, config))
    }

    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()> {
        Box::pin(push::advance(&self.side, task, config, cursor))
    }

    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>> {
        Box::pin(push::backlog(&self.readers, after, limit))
    }

    fn changes(&self) -> Option<broadcast::Receiver<Change>> {
        Some(self.feed.subscribe())
    }

    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>> {
        Box::pin(read::heads(&self.readers, tasks))
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> StoreFuture<'_, Option<[u8; 32]>> {
        Box::pin(async move { Ok(Some(schema::secret(&self.side, &fresh).await?)) })
    }

    fn ping(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            lease::beat(&self.side).await?;
            let sql = "SELECT beats FROM nuncio.pulse WHERE number = 1";
            self.readers.read(sql, &[]).await?;
            Ok(())
        })
    }

    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept> {
        Box::pin(async move { sweep::part(&self.readers, &self.side, &sweep).await })
    }

    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>> {
        Box::pin(transfer::export(&self.readers, after, limit))
    }

    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported> {
        Box::pin(async move { transfer::import(&self.side, &self.readers, whole).await })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.writers.close().await;
            self.feed.close().await;
            self.side.close().await;
            self.readers.close().await;
            Ok(())
        })
    }
}
