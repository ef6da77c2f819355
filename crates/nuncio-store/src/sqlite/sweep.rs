//! Removing what has expired, in small parts, and giving its room back.
//!
//! There is no index of ended tasks by time: it would be one more write for each task. Numbers
//! follow the order of creation, so whoever goes along them meets the old ones first.

use nuncio_protocol::{TaskId, Timestamp, json};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write, slot};
use super::failure::Failure;
use super::read::{self, Which};
use crate::upkeep::{Candidate, Found, LOOKED_AT, choose};
use crate::{Scope, Sweep, SweepKind};

/// Pages given back at once: 1 MiB.
const RECLAIMED: i64 = 256;

/// Finds the next tasks for a sweep.
pub(super) fn find(connection: &Connection, sweep: &Sweep) -> Result<Found, Failure> {
    let after = sweep.from.map_or(0, |mark| mark.0 as i64);
    let rows = match sweep.kind {
        SweepKind::Expire => all_after(connection, after)?,
        SweepKind::Compact => with_log_after(connection, after)?,
    };
    Ok(choose(&rows, sweep, |task| is_outbox(connection, task))?)
}

fn candidate(row: &rusqlite::Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        number: row.get(0)?,
        created_ms: row.get(1)?,
        status_ms: row.get(2)?,
        state: read::state(row, 3)?,
        last: row.get::<_, i64>(4)? as u64,
    })
}

fn all_after(connection: &Connection, after: i64) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, created_ms, status_ms, state, last FROM tasks
         WHERE number > ?1 ORDER BY number LIMIT ?2",
    )?;
    let rows = statement.query_map(params![after, LOOKED_AT as i64], candidate)?;
    rows.collect()
}

/// Goes from log to log: what is compacted has none, and is not met again.
fn with_log_after(connection: &Connection, after: i64) -> Result<Vec<Candidate>, Failure> {
    let mut next_log =
        connection.prepare_cached("SELECT slot >> 32 FROM log WHERE slot >= ?1 ORDER BY slot")?;
    let mut task = connection.prepare_cached(
        "SELECT number, created_ms, status_ms, state, last FROM tasks WHERE number = ?1",
    )?;
    let (mut rows, mut after) = (Vec::new(), after);
    while rows.len() < LOOKED_AT {
        let number: Option<i64> = next_log
            .query_row(params![slot(after + 1, 0)?], |row| row.get(0))
            .optional()?;
        let Some(number) = number else { break };
        rows.extend(task.query_row(params![number], candidate).optional()?);
        after = number;
    }
    Ok(rows)
}

/// Whether a webhook still needs the log of a task.
fn is_outbox(connection: &Connection, task: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM push_configs JOIN tasks ON tasks.number = push_configs.task
             WHERE push_configs.task = ?1 AND push_configs.cursor < tasks.last)",
        )?
        .query_row(params![task], |row| row.get(0))
}

/// Does to the tasks found what the sweep is for, if they are still as they were found.
pub(super) struct Remove {
    pub(super) kind: SweepKind,
    pub(super) before: Timestamp,
    pub(super) tasks: Vec<i64>,
}

impl Write for Remove {
    type Reply = Vec<(Scope, TaskId)>;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<Self::Reply, Failure> {
        let mut removed = Vec::with_capacity(self.tasks.len());
        for number in &self.tasks {
            let Some(named) = self.still_ended(batch.connection, *number)? else {
                continue;
            };
            match self.kind {
                SweepKind::Expire => expire(batch, *number)?,
                SweepKind::Compact if is_outbox(batch.connection, *number)? => continue,
                SweepKind::Compact => compact(batch, *number)?,
            }
            removed.push(named);
        }
        Ok(removed)
    }
}

impl Remove {
    fn still_ended(
        &self,
        connection: &Connection,
        task: i64,
    ) -> rusqlite::Result<Option<(Scope, TaskId)>> {
        let found = connection
            .prepare_cached(
                "SELECT workspace, agent, caller, tasks.id, tasks.state FROM tasks
                 JOIN scopes ON scopes.number = tasks.scope
                 WHERE tasks.number = ?1 AND tasks.status_ms < ?2",
            )?
            .query_row(params![task, self.before.unix_ms()], |row| {
                let named = (read::scope(row, 0)?, row.get::<_, String>(3)?.into());
                Ok((named, read::state(row, 4)?))
            })
            .optional()?;
        Ok(found.and_then(|(named, state)| state.is_terminal().then_some(named)))
    }
}

fn expire(batch: &mut Batch<'_>, task: i64) -> Result<(), Failure> {
    forget_log(batch.connection, task)?;
    for statement in [
        "DELETE FROM snapshots WHERE task = ?1",
        "DELETE FROM checkpoints WHERE task = ?1",
        "DELETE FROM keys WHERE task = ?1",
        "DELETE FROM push_configs WHERE task = ?1",
        "DELETE FROM push_states WHERE task = ?1",
        "DELETE FROM push_letters WHERE task = ?1",
        "DELETE FROM push_calls WHERE task = ?1",
        "DELETE FROM nodes WHERE task = ?1",
    ] {
        batch
            .connection
            .prepare_cached(statement)?
            .execute(params![task])?;
    }
    let (scope, state) = batch
        .connection
        .prepare_cached("DELETE FROM tasks WHERE number = ?1 RETURNING scope, state")?
        .query_row(params![task], |row| Ok((row.get(0)?, read::state(row, 1)?)))?;
    batch.count(scope, state, -1);
    Ok(())
}

fn compact(batch: &Batch<'_>, task: i64) -> Result<(), Failure> {
    let kept: Option<bool> = batch
        .connection
        .prepare_cached(
            "SELECT snapshots.seq = tasks.last FROM tasks
             LEFT JOIN snapshots ON snapshots.task = tasks.number WHERE tasks.number = ?1",
        )?
        .query_row(params![task], |row| row.get(0))?;
    if kept != Some(true)
        && let Some(stored) = read::load(batch.connection, &Which::Number(task))?
    {
        batch.keep_snapshot(task, stored.head.last, &json::encode(&*stored.task))?;
    }
    forget_log(batch.connection, task)?;
    batch
        .connection
        .prepare_cached("UPDATE tasks SET forgotten = last WHERE number = ?1")?
        .execute(params![task])?;
    Ok(())
}

/// Removes a log and what accompanied its messages.
fn forget_log(connection: &Connection, task: i64) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM requests WHERE task = ?1")?
        .execute([task])?;
    connection
        .prepare_cached("DELETE FROM log WHERE slot >= ?1 AND slot <= ?2")?
        .execute([slot(task, 0)?, slot(task, u64::from(u32::MAX))?])?;
    Ok(())
}

/// Gives free pages back to the file system; some stay, for what will be written next.
pub(super) struct Reclaim;

impl Write for Reclaim {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let pragma = |name| {
            let value = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            batch.connection.pragma_query_value(None, name, value)
        };
        let spare = RECLAIMED.max(pragma("page_count")? / 10);
        let excess = pragma("freelist_count")? - spare;
        if excess <= 0 || pragma("auto_vacuum")? != INCREMENTAL {
            return Ok(false);
        }
        let count = excess.min(RECLAIMED);
        // One row for each page: all of them have to be taken.
        let mut vacuum = batch
            .connection
            .prepare(&format!("PRAGMA incremental_vacuum({count})"))?;
        let mut pages = vacuum.query([])?;
        while pages.next()?.is_some() {}
        Ok(excess > count)
    }
}

/// The value of `auto_vacuum` in databases made by us; older ones shrink when they are restored.
const INCREMENTAL: i64 = 2;
