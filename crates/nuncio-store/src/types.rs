//! The storage traits and the values they speak in.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::upkeep::{Imported, Sweep, Swept, WholeTask};
use crate::{Deliveries, Nodes, Owners, PartPlace, Sessions, StoredPart};
use nuncio_protocol::{
    AgentId, CallerId, ContextId, Event, PushConfigId, Task, TaskId, TaskPushNotificationConfig,
    TaskState, Timestamp, Version, WorkspaceId,
};
use tokio::sync::broadcast;

/// Whose data a query may see: one caller's, at one agent, in one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The workspace; no query leaves it.
    pub workspace: WorkspaceId,
    /// The agent.
    pub agent: AgentId,
    /// The caller.
    pub caller: CallerId,
}

/// What makes a send happen once: a key of the caller with a hash of the whole request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Unique per [`Scope`].
    pub key: String,
    /// SHA-256 of the request; the same key with another hash is a conflict.
    pub request_hash: [u8; 32],
}

/// Who is to run a task, and for how long without a further word.
///
/// The store counts the term on a time of its own, which no step of a wall clock moves: the
/// database's where processes share one, else the time since the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The process that runs it, unique per start of the process.
    pub owner: Arc<str>,
    /// After how long another process may take over, unless it is renewed; counted in whole
    /// milliseconds. Zero is over at once.
    pub term: Duration,
}

/// Which runs to claim; never those that the claiming owner holds itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Those that nobody holds, and those whose lease is over.
    Expired,
    /// As [`Claim::Expired`], of these agents only: for a process beside others that host other
    /// agents.
    ExpiredOf(Arc<[AgentId]>),
    /// Those that anybody else holds too. For a process that has the store to itself: whatever
    /// holds them is gone.
    AllOthers,
}

impl Claim {
    /// The agents whose runs are meant; all if `None`.
    pub(crate) fn agents(&self) -> Option<&[AgentId]> {
        match self {
            Self::ExpiredOf(agents) => Some(agents),
            Self::Expired | Self::AllOthers => None,
        }
    }
}

/// A task to be stored for the first time.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Whose it is.
    pub scope: Scope,
    /// The conversation; noted in the caller's contexts.
    pub context: ContextId,
    /// The first events: position 1 is the whole [`Task`], more may follow, without gaps.
    pub events: Vec<Event>,
    /// The task with all of these events folded in.
    pub task: Arc<Task>,
    /// Whether `task` is to be kept as snapshot already (it has ended, or will rest).
    pub snapshot: bool,
    /// The key of the send, if it has one.
    pub idempotency: Option<Idempotency>,
    /// The first run's lease; `None` if nothing runs (it has ended or paused already).
    pub lease: Option<Lease>,
    /// What the agent asked to find again after a restart, as JSON text.
    pub checkpoint: Option<Arc<str>>,
    /// What accompanied the message that begins the task and is no part of its log, as JSON text:
    /// for whoever answers it after a crash. See [`Store::requests`].
    pub request: Option<Arc<str>>,
    /// A webhook to register along with the task; it gets every event.
    pub push_config: Option<Webhook>,
}

/// What became of a [`NewTask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is stored; its run, if it has a lease, has epoch 1.
    New,
    /// The key has been used: by the same request, or by another.
    Existing {
        /// The task it made, or wrote to.
        task: TaskId,
        /// Whether the request hash is the same.
        same_request: bool,
    },
}

/// Where a task stands, beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The position of the newest event.
    pub last: u64,
    /// The state after it.
    pub state: TaskState,
    /// The number of the newest run; writes of older ones are refused.
    pub epoch: u64,
    /// The position of the message that the newest run answers.
    pub turn: u64,
    /// How often a run has begun to answer it: 1, and one more for each claim after a crash.
    pub attempt: u64,
    /// Whose lease it is, over or not; `None` if nobody runs it.
    pub owner: Option<Arc<str>>,
    /// What the agent asked to find again after a restart, as JSON text.
    pub checkpoint: Option<Arc<str>>,
}

/// A task as it is stored: snapshot and tail folded.
#[derive(Clone, Debug)]
pub struct StoredTask {
    /// Whose it is.
    pub scope: Scope,
    /// The task.
    pub task: Arc<Task>,
    /// Where it stands.
    pub head: Head,
    /// Whether it has webhooks.
    pub has_webhooks: bool,
}

/// Events to add to a task, all or none.
///
/// Compare-and-set: it is written only if the newest position is `after`, the state is not
/// terminal, and (if given) the epoch is `epoch`.
#[derive(Clone, Debug)]
pub struct Append {
    /// Whose task.
    pub scope: Scope,
    /// Which task.
    pub task: TaskId,
    /// The newest position the writer knows.
    pub after: u64,
    /// The run that writes; `None` for a message or a cancel from outside.
    pub epoch: Option<u64>,
    /// Positions `after + 1 …`; may be empty to change only what follows.
    pub events: Vec<Event>,
    /// The state after the events.
    pub state: TaskState,
    /// The time of that state; never earlier than before.
    pub status_time: Timestamp,
    /// The whole task after the events, to be kept as snapshot; `None` leaves the tail to grow.
    pub snapshot: Option<Arc<Task>>,
    /// What becomes of the lease.
    pub lease: LeaseChange,
    /// The position of the message that the run answers, if it changes.
    pub turn: Option<u64>,
    /// A new checkpoint, if it changes.
    pub checkpoint: Option<Arc<str>>,
    /// What accompanied the message that is the first of `events`, as [`NewTask::request`].
    pub request: Option<Arc<str>>,
    /// The key of the send that these events record, if they record one.
    pub idempotency: Option<Idempotency>,
    /// A webhook to register along with these events; it gets them and all that follow.
    pub push_config: Option<Webhook>,
}

/// What an [`Append`] does to the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// Nothing.
    Keep,
    /// The run is over.
    Release,
    /// A new run begins: the epoch rises by one.
    Take(Lease),
}

/// What became of an [`Append`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is stored; this is the epoch now.
    Done {
        /// The number of the newest run.
        epoch: u64,
    },
    /// Somebody else was quicker, or the task has ended: nothing was written.
    Conflict(Head),
    /// No such task in this scope.
    Missing,
    /// The key has been used: nothing was written.
    Existing {
        /// The task it made, or wrote to.
        task: TaskId,
        /// Whether the request hash is the same.
        same_request: bool,
    },
}

/// Which tasks of a scope to list; conditions combine with "and".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Of this conversation.
    pub context: Option<ContextId>,
    /// In exactly this state.
    pub state: Option<TaskState>,
    /// With a status at least this new.
    pub not_before: Option<Timestamp>,
}

/// The last task of a page: the next page begins after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageKey {
    /// Its status time.
    pub status_time: Timestamp,
    /// Its id, which orders tasks of the same time.
    pub task: TaskId,
}

/// A page of tasks, newest status first, then by id descending.
#[derive(Clone, Debug)]
pub struct TaskPage {
    /// The tasks, whole.
    pub tasks: Vec<Arc<Task>>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<PageKey>,
    /// How many tasks match the filter in all.
    pub total: u64,
}

/// A run that nobody continues, now claimed by this process under a new epoch.
#[derive(Clone, Debug)]
pub struct ClaimedRun {
    /// The task as stored; `head` has the new epoch and lease.
    pub stored: StoredTask,
}

/// What another process has written to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Events, or a run that has changed hands.
    Task(TaskId),
    /// Some may have been missed: look at everything.
    Unknown,
}

/// A run and who holds it, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeldRun {
    /// Whose task it is.
    pub scope: Scope,
    /// The task.
    pub task: TaskId,
    /// The number of the run.
    pub epoch: u64,
}

/// A webhook as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Webhook {
    /// Where and how to notify; `id` and `task_id` are set.
    pub config: TaskPushNotificationConfig,
    /// The version of the request that created it, in which it is notified (PUSH-15).
    pub version: Version,
}

/// A webhook with its place in the task's log.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfigRow {
    /// The webhook.
    pub webhook: Webhook,
    /// The newest position delivered to it.
    pub cursor: u64,
}

/// Why the store could not do it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It may work later: busy, full, cut off. Nothing was written, or, if the connection to a
    /// database broke before its answer, perhaps all of it: the same again shows which, as a key
    /// that has been used or a conflict.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be read.
    #[error("the store holds what it should not: {0}")]
    Corrupt(String),
    /// The store was made by a newer version, or is in use by another process.
    #[error("{0}")]
    Refused(String),
    /// A text is above its limit; nothing was written.
    #[error("{what} has {bytes} bytes, {limit} are allowed")]
    TooLarge {
        /// Which text.
        what: &'static str,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There would be more of something than there may be; nothing was written.
    #[error("there may be {limit} {what}, and no more")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

/// What a store method gives, some time later; dropping it does not undo the write.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What the engine needs of a database.
pub trait Store: Deliveries + Sessions + Nodes + Owners + Send + Sync + fmt::Debug {
    /// Stores a new task with its first events, key, context and webhook, in one commit.
    fn create(&self, new: NewTask) -> StoreFuture<'_, Created>;

    /// Adds events to a task in one commit, if nobody was quicker.
    fn append(&self, append: Append) -> StoreFuture<'_, Appended>;

    /// Finds what a key was used for.
    fn find_key<'a>(
        &'a self,
        scope: &'a Scope,
        key: &'a str,
    ) -> StoreFuture<'a, Option<(TaskId, [u8; 32])>>;

    /// Reads a task: snapshot and tail folded.
    fn load<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<StoredTask>>;

    /// Opens one part of a task, so that large ones need not be in memory as a whole; `None` if the
    /// task or the part is not there, or the part only says where its content is.
    fn part<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        place: &'a PartPlace,
    ) -> StoreFuture<'a, Option<StoredPart>> {
        Box::pin(async move {
            let stored = self.load(scope, task).await?;
            let found = stored.as_ref().and_then(|stored| place.find(&stored.task));
            Ok(found.and_then(StoredPart::at_hand))
        })
    }

    /// Reads at most `limit` events after a position, in order; empty if there are none or no task.
    fn events<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Event>>;

    /// Reads what accompanied the messages after a position, as [`NewTask::request`] and
    /// [`Append::request`] had it, with the positions of those messages, in order.
    fn requests<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        after: u64,
    ) -> StoreFuture<'a, Vec<(u64, Arc<str>)>>;

    /// Lists tasks, `size` at most, after `from`.
    fn list<'a>(
        &'a self,
        scope: &'a Scope,
        filter: &'a ListFilter,
        from: Option<&'a PageKey>,
        size: usize,
    ) -> StoreFuture<'a, TaskPage>;

    /// A listed task with all its content: in a list, large parts that are kept elsewhere may stand
    /// as references, for most lists leave them out.
    fn complete<'a>(&'a self, _scope: &'a Scope, task: Task) -> StoreFuture<'a, Task> {
        Box::pin(std::future::ready(Ok(task)))
    }

    /// The tasks of a conversation that wait for input, two at most.
    fn waiting<'a>(
        &'a self,
        scope: &'a Scope,
        context: &'a ContextId,
    ) -> StoreFuture<'a, Vec<TaskId>>;

    /// Claims runs (SUBMITTED or WORKING) of all scopes, `limit` at most.
    ///
    /// Each gets the next epoch and `lease`. Of two claims at a time one gets a run. What
    /// `lease.owner` holds itself is not claimed, even if it has not been renewed in time.
    fn claim_expired(
        &self,
        lease: Lease,
        claim: Claim,
        limit: usize,
    ) -> StoreFuture<'_, Vec<ClaimedRun>>;

    /// Prolongs every lease that `lease.owner` still has to `lease.term` from now; never shortens
    /// one. What another has claimed meanwhile stays with it.
    fn renew(&self, lease: Lease) -> StoreFuture<'_, ()>;

    /// The runs that an owner holds, whether its leases are over or not.
    ///
    /// For a process that looks for those it does not know of: an answer may have been lost.
    fn held<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, Vec<HeldRun>>;

    /// Gives up every lease of an owner at once, so that others may claim its runs.
    fn release_all<'a>(&'a self, owner: &'a str) -> StoreFuture<'a, ()>;

    /// Stores a webhook, replacing the one of the same id; `false` if there is no such task.
    ///
    /// A new one gets the events to come, a replacement those that the replaced one has not had; how
    /// the replaced one's calls have gone is forgotten, its dead letters stay.
    fn put_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        webhook: &'a Webhook,
    ) -> StoreFuture<'a, bool>;

    /// The webhooks of a task by id; `None` if there is no such task.
    fn push_configs<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<Vec<PushConfigRow>>>;

    /// Deletes a webhook, if it is there; `false` if there is no such task.
    fn delete_push_config<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        config: &'a PushConfigId,
    ) -> StoreFuture<'a, bool>;

    /// Notes how far a webhook's delivery has come; never backwards.
    fn advance_push_cursor<'a>(
        &'a self,
        task: &'a TaskId,
        config: &'a PushConfigId,
        cursor: u64,
    ) -> StoreFuture<'a, ()>;

    /// Tasks with an enabled webhook that has not had all events yet, or that has dead letters to be
    /// delivered again, `limit` at most, of all scopes.
    ///
    /// For a process that has just started: whose deliveries it has to continue. The order is the
    /// store's own; `after` is the last task of the page before.
    fn push_backlog<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(Scope, TaskId)>>;

    /// Commits of other processes to tasks that were there, and to their webhooks, as they are heard
    /// of; `None` if no other process can write.
    ///
    /// A hint: ids only, soon after the commit, several commits to a task perhaps as one. One may
    /// be lost, so a reader looks for itself once in a while. A receiver that lags
    /// ([`broadcast::error::RecvError::Lagged`]) has missed some, as after [`Change::Unknown`].
    fn changes(&self) -> Option<broadcast::Receiver<Change>>;

    /// Where tasks stand, for whoever waits for another process; in no order, and those that are
    /// not there are left out.
    fn heads<'a>(&'a self, tasks: &'a [(Scope, TaskId)]) -> StoreFuture<'a, Vec<(TaskId, Head)>>;

    /// The secret that all processes of the store share: the one that is there, else `fresh`, which
    /// is kept. `None` if the store belongs to one process, which keeps its secrets itself.
    fn shared_secret(&self, _fresh: [u8; 32]) -> StoreFuture<'_, Option<[u8; 32]>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Looks whether reading and writing work.
    fn ping(&self) -> StoreFuture<'_, ()>;

    /// Waits for writes under way and closes; later calls give [`StoreError::Closed`].
    fn close(&self) -> StoreFuture<'_, ()>;

    // What has expired, and what moves to another store.

    /// Does a part of a sweep over the tasks of all scopes.
    ///
    /// Only ended tasks are touched. `next` of the reply leads on; a sweep is over without one.
    fn sweep(&self, sweep: Sweep) -> StoreFuture<'_, Swept>;

    /// Gives some of the room that removed tasks have left back to the file system; tells whether
    /// there is more to give. Where the room is reused by itself, there is nothing to do.
    fn reclaim(&self) -> StoreFuture<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Reads tasks of all scopes, whole, `limit` at most; empty at the end.
    ///
    /// The order is the store's own; `after` is the last task of the page before.
    fn export<'a>(
        &'a self,
        after: Option<&'a TaskId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<WholeTask>>;

    /// Stores a task of another store with its log, keys and webhooks, in one commit.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a task that its log does not make.
    fn import(&self, whole: WholeTask) -> StoreFuture<'_, Imported>;
}
