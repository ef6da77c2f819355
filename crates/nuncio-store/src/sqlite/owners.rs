//! Whose the tasks and conversations of agents elsewhere are.

use nuncio_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::store::SqliteStore;
use crate::owners::{TASK, to_take};
use crate::{OwnedId, Owners, Scope, StoreFuture};

impl Owners for SqliteStore {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (scope, ids) = (scope.clone(), to_take(ids)?);
            self.writer.run(Take { scope, ids, at }).await
        })
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        let (scope, ids) = (scope.clone(), ids.to_vec());
        Box::pin(
            self.readers
                .run(move |connection| owned(connection, &scope, ids)),
        )
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        let scope = scope.clone();
        Box::pin(
            self.readers
                .run(move |connection| owned_tasks(connection, &scope)),
        )
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.writer.run(Prune { before, limit }))
    }
}

fn owned(
    connection: &Connection,
    scope: &Scope,
    ids: Vec<OwnedId>,
) -> Result<Vec<(OwnedId, Timestamp)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT at_ms FROM owned JOIN scopes ON scopes.number = owned.scope
         WHERE owned.agent = ?1 AND kind = ?2 AND id = ?3 AND workspace = ?4 AND caller = ?5",
    )?;
    let mut owned = Vec::new();
    for id in ids {
        let values = params![
            scope.agent.as_str(),
            id.kind(),
            id.as_str(),
            scope.workspace.as_str(),
            scope.caller.as_str(),
        ];
        let at = statement.query_row(values, |row| row.get(0)).optional()?;
        owned.extend(at.map(|at| (id, Timestamp::from_unix_ms(at))));
    }
    Ok(owned)
}

fn owned_tasks(connection: &Connection, scope: &Scope) -> Result<u64, Failure> {
    let count: i64 = connection
        .prepare_cached(
            "SELECT count(*) FROM scopes JOIN owned ON owned.scope = scopes.number
             WHERE workspace = ?1 AND scopes.agent = ?2 AND caller = ?3 AND kind = ?4",
        )?
        .query_row(
            params![
                scope.workspace.as_str(),
                scope.agent.as_str(),
                scope.caller.as_str(),
                TASK,
            ],
            |row| row.get(0),
        )?;
    Ok(count as u64)
}

/// Takes ids; they have been checked.
struct Take {
    scope: Scope,
    ids: Vec<OwnedId>,
    at: Timestamp,
}

impl Write for Take {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let (agent, scope) = (self.scope.agent.as_str(), batch.scope(&self.scope)?);
        let connection = batch.connection;
        let mut find = connection
            .prepare_cached("SELECT scope FROM owned WHERE agent = ?1 AND kind = ?2 AND id = ?3")?;
        for id in &self.ids {
            let values = params![agent, id.kind(), id.as_str()];
            let owner: Option<i64> = find.query_row(values, |row| row.get(0)).optional()?;
            if owner.is_some() && owner != scope {
                return Ok(false);
            }
        }
        let scope = batch.scope_or_new(&self.scope)?;
        let mut take = connection.prepare_cached(
            "INSERT INTO owned (agent, kind, id, scope, at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (agent, kind, id) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)",
        )?;
        for id in &self.ids {
            take.execute(params![
                agent,
                id.kind(),
                id.as_str(),
                scope,
                self.at.unix_ms()
            ])?;
        }
        Ok(true)
    }
}

/// Forgets ids that have not been taken for long.
struct Prune {
    before: Timestamp,
    limit: usize,
}

impl Write for Prune {
    type Reply = u64;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<u64, Failure> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let pruned = batch
            .connection
            .prepare_cached(
                "DELETE FROM owned WHERE (agent, kind, id) IN (
                     SELECT agent, kind, id FROM owned WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
            )?
            .execute(params![self.before.unix_ms(), limit])?;
        Ok(pruned as u64)
    }
}
