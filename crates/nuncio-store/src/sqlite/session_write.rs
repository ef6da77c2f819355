//! Sessions and state: writing them.

use std::sync::Arc;

use nuncio_protocol::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write, slot};
use super::failure::Failure;
use crate::sessions::{MAX_PRUNED, MAX_STATES, TOO_MANY_STATES};
use crate::{Scope, SessionAppend, SessionAppended, SessionKey, StateChange, StateScope};

/// Adds entries and changes state; what it is given has been checked.
pub(super) struct AppendSession(pub(super) SessionAppend);

impl Write for AppendSession {
    type Reply = SessionAppended;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<SessionAppended, Failure> {
        let Self(append) = self;
        let found = find(batch, &append.key)?;
        let last = found.map_or(0, |(_, last)| last);
        if last != append.after {
            return Ok(SessionAppended::Conflict { last });
        }
        let end = last + append.entries.len() as u64;
        // What does not fit is refused before anything is written.
        slot(0, end)?;
        let scope = batch.scope_or_new(&append.key.scope)?;
        // What has been written is taken back if there turns out to be no room.
        let undo = |statement| batch.connection.prepare_cached(statement)?.execute([]);
        undo("SAVEPOINT append")?;
        let written = self.write(batch.connection, scope, end);
        if let Err(Failure::Refused(_)) = &written {
            undo("ROLLBACK TO append")?;
        }
        undo("RELEASE append")?;
        written?;
        Ok(SessionAppended::Done { last: end })
    }
}

impl AppendSession {
    fn write(&self, connection: &Connection, scope: i64, end: u64) -> Result<(), Failure> {
        let Self(append) = self;
        let session = self.touch(connection, scope, end)?;
        for (position, json) in (append.after + 1..).zip(&append.entries) {
            connection
                .prepare_cached(
                    "INSERT INTO session_entries (slot, task, at_ms, body) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    slot(session, position)?,
                    append.task.as_str(),
                    append.at.unix_ms(),
                    json,
                ])?;
        }
        for change in &append.state {
            match change.scope {
                StateScope::Context => of_number(connection, "session", session, change)?,
                StateScope::Caller => of_number(connection, "scope", scope, change)?,
                StateScope::Agent => of_agent(connection, &append.key.scope, change)?,
            }
        }
        let sets = append.state.iter().any(|change| change.value.is_some());
        if sets && most_states(connection, session, scope, &append.key.scope)? > MAX_STATES as i64 {
            return Err(TOO_MANY_STATES.into());
        }
        Ok(())
    }

    /// Notes where the session ends from now on, and gives its number.
    fn touch(&self, connection: &Connection, scope: i64, end: u64) -> rusqlite::Result<i64> {
        connection
            .prepare_cached(
                "INSERT INTO sessions (scope, context, last, at_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (scope, context) DO UPDATE
                 SET last = excluded.last, at_ms = max(at_ms, excluded.at_ms)
                 RETURNING number",
            )?
            .query_row(
                params![
                    scope,
                    self.0.key.context.as_str(),
                    end as i64,
                    self.0.at.unix_ms()
                ],
                |row| row.get(0),
            )
    }
}

/// How many states share the scope that most share.
fn most_states(
    connection: &Connection,
    session: i64,
    scope: i64,
    of: &Scope,
) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "SELECT max((SELECT count(*) FROM session_states WHERE session = ?1),
                        (SELECT count(*) FROM caller_states WHERE scope = ?2),
                        (SELECT count(*) FROM agent_states WHERE workspace = ?3 AND agent = ?4))",
        )?
        .query_row(
            params![session, scope, of.workspace.as_str(), of.agent.as_str()],
            |row| row.get(0),
        )
}

/// Changes a state of a session, or of a caller.
fn of_number(
    connection: &Connection,
    of: &str,
    number: i64,
    change: &StateChange,
) -> rusqlite::Result<()> {
    let table = match of {
        "session" => "session_states",
        _ => "caller_states",
    };
    match &change.value {
        Some(value) => connection
            .prepare_cached(&format!(
                "INSERT INTO {table} ({of}, name, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT ({of}, name) DO UPDATE SET body = excluded.body"
            ))?
            .execute(params![number, change.name, value])?,
        None => connection
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE {of} = ?1 AND name = ?2"
            ))?
            .execute(params![number, change.name])?,
    };
    Ok(())
}

/// Changes a state of an agent.
fn of_agent(connection: &Connection, scope: &Scope, change: &StateChange) -> rusqlite::Result<()> {
    let (workspace, agent) = (scope.workspace.as_str(), scope.agent.as_str());
    match &change.value {
        Some(value) => connection
            .prepare_cached(
                "INSERT INTO agent_states (workspace, agent, name, body) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (workspace, agent, name) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![workspace, agent, change.name, value])?,
        None => connection
            .prepare_cached(
                "DELETE FROM agent_states WHERE workspace = ?1 AND agent = ?2 AND name = ?3",
            )?
            .execute(params![workspace, agent, change.name])?,
    };
    Ok(())
}

/// The number of a session and where it ends, if it is there.
fn find(batch: &mut Batch<'_>, key: &SessionKey) -> rusqlite::Result<Option<(i64, u64)>> {
    let Some(scope) = batch.scope(&key.scope)? else {
        return Ok(None);
    };
    batch
        .connection
        .prepare_cached("SELECT number, last FROM sessions WHERE scope = ?1 AND context = ?2")?
        .query_row(params![scope, key.context.as_str()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })
        .optional()
}

/// Puts a summary in the place of all entries up to a position.
pub(super) struct CompactSession {
    pub(super) key: SessionKey,
    pub(super) through: u64,
    pub(super) summary: Arc<str>,
}

impl Write for CompactSession {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let Some((session, last)) = find(batch, &self.key)? else {
            return Ok(false);
        };
        if self.through == 0 || self.through > last {
            return Ok(false);
        }
        let through = slot(session, self.through)?;
        let replaced = batch
            .connection
            .prepare_cached("UPDATE session_entries SET body = ?2 WHERE slot = ?1")?
            .execute(params![through, self.summary])?;
        if replaced == 0 {
            return Ok(false);
        }
        batch
            .connection
            .prepare_cached("DELETE FROM session_entries WHERE slot >= ?1 AND slot < ?2")?
            .execute(params![slot(session, 0)?, through])?;
        Ok(true)
    }
}

/// Deletes a session.
pub(super) struct DeleteSession(pub(super) SessionKey);

impl Write for DeleteSession {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let Some((session, _)) = find(batch, &self.0)? else {
            return Ok(false);
        };
        delete(batch.connection, session)?;
        Ok(true)
    }
}

fn delete(connection: &Connection, session: i64) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM session_entries WHERE slot >= ?1 AND slot <= ?2")?
        .execute([slot(session, 0)?, slot(session, u32::MAX.into())?])?;
    for statement in [
        "DELETE FROM session_states WHERE session = ?1",
        "DELETE FROM sessions WHERE number = ?1",
    ] {
        connection.prepare_cached(statement)?.execute([session])?;
    }
    Ok(())
}

/// Deletes sessions to which nothing has been written for long.
pub(super) struct PruneSessions {
    pub(super) before: Timestamp,
    pub(super) limit: usize,
}

impl Write for PruneSessions {
    type Reply = u64;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<u64, Failure> {
        let mut statement = batch.connection.prepare_cached(
            "SELECT number, last FROM sessions WHERE at_ms < ?1 ORDER BY at_ms, number LIMIT ?2",
        )?;
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let old = statement.query_map(params![self.before.unix_ms(), limit], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        let old = old.collect::<rusqlite::Result<Vec<(i64, i64)>>>()?;
        let (mut pruned, mut entries) = (0, 0);
        for (session, last) in old {
            entries += last;
            if pruned > 0 && entries > MAX_PRUNED {
                break;
            }
            delete(batch.connection, session)?;
            pruned += 1;
        }
        Ok(pruned)
    }
}
