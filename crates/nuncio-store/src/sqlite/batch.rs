//! Writes that share a transaction.

use std::collections::HashMap;
use std::thread::ThreadId;

use nuncio_protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::failure::Failure;
use super::lease::{LeaseTime, whole_ms};
use super::schema::FORMAT;
use crate::{Idempotency, Lease, Scope, StoreError};

/// One write: what to change, and what to reply once it is on disk.
///
/// `apply` may run twice, the second time alone, if a neighbour in its transaction failed. What
/// it refuses it has not begun to write.
pub(super) trait Write: Send + 'static {
    /// What the caller gets.
    type Reply: Send + 'static;

    /// Changes the database inside the transaction of `batch`.
    fn apply(&self, batch: &mut Batch<'_>) -> Result<Self::Reply, Failure>;
}

/// A write with its caller, whatever its type.
pub(super) trait Queued: Send {
    /// Runs the write and keeps its reply.
    fn apply(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()>;

    /// Where the caller waits.
    fn origin(&self) -> &Origin;

    /// Gives the caller the reply, or the error that befell the transaction.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A [`Write`] on its way.
pub(super) struct Pending<W: Write> {
    pub(super) write: W,
    pub(super) outcome: Option<Result<W::Reply, StoreError>>,
    pub(super) reply: oneshot::Sender<Result<W::Reply, StoreError>>,
    pub(super) origin: Origin,
}

/// Where a caller waits for its reply.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) thread: ThreadId,
    pub(super) runtime: Option<Handle>,
}

impl Origin {
    /// The thread this runs on.
    pub(super) fn here() -> Self {
        Self {
            thread: std::thread::current().id(),
            runtime: Handle::try_current().ok(),
        }
    }
}

impl<W: Write> Queued for Pending<W> {
    fn apply(&mut self, batch: &mut Batch<'_>) -> rusqlite::Result<()> {
        self.outcome = match self.write.apply(batch) {
            Ok(reply) => Some(Ok(reply)),
            Err(Failure::Refused(error)) => Some(Err(error)),
            Err(Failure::Sql(error)) => return Err(error),
        };
        Ok(())
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { outcome, reply, .. } = *self;
        let lost = || Err(StoreError::Unavailable("the write was lost".to_owned()));
        // A caller that has gone away does not undo its write.
        let _ = reply.send(committed.and_then(|()| outcome.unwrap_or_else(lost)));
    }
}

/// The numbers of scopes, as far as the writer has met them.
pub(super) type ScopeNumbers = HashMap<Scope, i64>;

const MAX_KNOWN_SCOPES: usize = 65_536;

/// The transaction under way.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    scopes: &'a mut ScopeNumbers,
    time: LeaseTime,
    totals: HashMap<(i64, i32), i64>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        connection: &'a Connection,
        scopes: &'a mut ScopeNumbers,
        time: LeaseTime,
    ) -> Self {
        Self {
            connection,
            scopes,
            time,
            totals: HashMap::new(),
        }
    }

    /// The time that leases are counted on.
    pub(super) fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }

    /// When a lease given now is over.
    pub(super) fn until(&self, lease: &Lease) -> i64 {
        self.now_ms().saturating_add(whole_ms(lease.term))
    }

    /// The number of a scope, if it has one.
    pub(super) fn scope(&mut self, scope: &Scope) -> rusqlite::Result<Option<i64>> {
        if let Some(number) = self.scopes.get(scope) {
            return Ok(Some(*number));
        }
        let number = scope_number(self.connection, scope)?;
        if let Some(number) = number {
            self.remember(scope, number);
        }
        Ok(number)
    }

    /// The number of a scope, given now if it is new.
    pub(super) fn scope_or_new(&mut self, scope: &Scope) -> rusqlite::Result<i64> {
        if let Some(number) = self.scope(scope)? {
            return Ok(number);
        }
        self.connection
            .prepare_cached("INSERT INTO scopes (workspace, agent, caller) VALUES (?1, ?2, ?3)")?
            .execute(params![
                scope.workspace.as_str(),
                scope.agent.as_str(),
                scope.caller.as_str()
            ])?;
        let number = self.connection.last_insert_rowid();
        self.remember(scope, number);
        Ok(number)
    }

    fn remember(&mut self, scope: &Scope, number: i64) {
        if self.scopes.len() >= MAX_KNOWN_SCOPES {
            self.scopes.clear();
        }
        self.scopes.insert(scope.clone(), number);
    }

    /// What a key was used for: the task, and whether by the same request.
    pub(super) fn key_use(
        &self,
        scope: i64,
        key: Option<&Idempotency>,
    ) -> rusqlite::Result<Option<(String, bool)>> {
        let Some(key) = key else { return Ok(None) };
        self.connection
            .prepare_cached(
                "SELECT tasks.id, keys.request_hash = ?3 FROM keys
                 JOIN tasks ON tasks.number = keys.task
                 WHERE keys.scope = ?1 AND keys.key = ?2",
            )?
            .query_row(params![scope, key.key, key.request_hash], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
    }

    pub(super) fn note_key(
        &self,
        scope: i64,
        task: i64,
        key: Option<&Idempotency>,
    ) -> rusqlite::Result<()> {
        let Some(key) = key else { return Ok(()) };
        self.connection
            .prepare_cached(
                "INSERT INTO keys (scope, key, task, request_hash) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![scope, key.key, task, key.request_hash])?;
        Ok(())
    }

    pub(super) fn log(
        &self,
        task: i64,
        first: u64,
        count: usize,
        payload: &str,
    ) -> Result<(), Failure> {
        self.connection
            .prepare_cached(
                "INSERT INTO log (slot, count, format, payload) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![slot(task, first)?, count as i64, FORMAT, payload])?;
        Ok(())
    }

    pub(super) fn keep_snapshot(&self, task: i64, seq: u64, body: &str) -> Result<(), Failure> {
        self.connection
            .prepare_cached(
                "INSERT INTO snapshots (task, seq, format, body) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (task) DO UPDATE
                 SET seq = excluded.seq, format = excluded.format, body = excluded.body",
            )?
            .execute(params![task, seq as i64, FORMAT, body])?;
        Ok(())
    }

    pub(super) fn keep_checkpoint(&self, task: i64, body: &str) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO checkpoints (task, body) VALUES (?1, ?2)
                 ON CONFLICT (task) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![task, body])?;
        Ok(())
    }

    /// Keeps what accompanied the message at a position.
    pub(super) fn keep_request(
        &self,
        task: i64,
        position: u64,
        body: &str,
    ) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT INTO requests (task, position, body) VALUES (?1, ?2, ?3)")?
            .execute(params![task, position as i64, body])?;
        Ok(())
    }

    /// Counts a task in a state, or no longer.
    pub(super) fn count(&mut self, scope: i64, state: TaskState, by: i64) {
        *self.totals.entry((scope, state.number())).or_insert(0) += by;
    }

    /// Writes the totals; the last thing before the commit.
    pub(super) fn settle(self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO totals (scope, state, count) VALUES (?1, ?2, ?3)
             ON CONFLICT (scope, state) DO UPDATE SET count = count + excluded.count",
        )?;
        for ((scope, state), by) in self.totals {
            if by != 0 {
                statement.execute(params![scope, state, by])?;
            }
        }
        Ok(())
    }
}

/// The number of a scope, if it has one.
pub(super) fn scope_number(
    connection: &Connection,
    scope: &Scope,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT number FROM scopes WHERE workspace = ?1 AND agent = ?2 AND caller = ?3",
        )?
        .query_row(
            params![
                scope.workspace.as_str(),
                scope.agent.as_str(),
                scope.caller.as_str()
            ],
            |row| row.get(0),
        )
        .optional()
}

/// The place of a position in the table of all logs.
pub(super) fn slot(task: i64, position: u64) -> Result<i64, StoreError> {
    let full = |_| StoreError::Corrupt("a log has four thousand million events".to_owned());
    let position = u32::try_from(position).map_err(full)?;
    Ok((task << 32) | i64::from(position))
}

/// The position at a place.
pub(super) fn position(slot: i64) -> u64 {
    (slot & 0xffff_ffff) as u64
}
