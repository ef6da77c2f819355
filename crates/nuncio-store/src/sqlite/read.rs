//! Reading one task: its row, its snapshot and tail, its events.

use std::sync::Arc;

use nuncio_protocol::{Event, StreamResponse, Task, TaskId, TaskState};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

use super::batch::{position, slot};
use super::failure::Failure;
use super::schema::FORMAT;
use crate::fold::fold;
use crate::{Head, Scope, StoreError, StoredTask};

/// The columns of [`head_of`], from 0, and the joins they need.
const HEAD: &str = "tasks.last, tasks.state, tasks.epoch, tasks.turn, tasks.lease_owner,
    checkpoints.body, tasks.attempt";
const HEAD_JOINS: &str = "LEFT JOIN checkpoints ON checkpoints.task = tasks.number";

fn head_of(row: &Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        last: row.get::<_, i64>(0)? as u64,
        state: state(row, 1)?,
        epoch: row.get::<_, i64>(2)? as u64,
        turn: row.get::<_, i64>(3)? as u64,
        owner: row.get(4)?,
        checkpoint: row.get(5)?,
        attempt: row.get::<_, i64>(6)? as u64,
    })
}

/// Reads where a task stands.
pub(super) fn head(connection: &Connection, task: i64) -> rusqlite::Result<Head> {
    connection
        .prepare_cached(&format!(
            "SELECT {HEAD} FROM tasks {HEAD_JOINS} WHERE tasks.number = ?1"
        ))?
        .query_row(params![task], head_of)
}

/// Reads where tasks stand; those that are not there are left out.
pub(super) fn heads(
    connection: &Connection,
    tasks: &[(Scope, TaskId)],
) -> Result<Vec<(TaskId, Head)>, Failure> {
    let mut heads = Vec::with_capacity(tasks.len());
    for (scope, id) in tasks {
        if let Some(number) = number(connection, scope, id)? {
            heads.push((id.clone(), head(connection, number)?));
        }
    }
    Ok(heads)
}

/// Which task to load.
pub(super) enum Which<'a> {
    /// By id, if it belongs to the scope.
    Of(&'a Scope, &'a TaskId),
    /// By number.
    Number(i64),
}

/// Reads a task with its head.
///
/// Row and tail may be read at different times: a log only grows, and what is newer than the row
/// is left out.
pub(super) fn load(
    connection: &Connection,
    which: &Which<'_>,
) -> Result<Option<StoredTask>, Failure> {
    let condition = match which {
        Which::Of(..) => "tasks.id = ?1 AND workspace = ?2 AND agent = ?3 AND caller = ?4",
        Which::Number(_) => "tasks.number = ?1",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {HEAD}, workspace, agent, caller, tasks.number, seq, snapshots.body,
           EXISTS (SELECT 1 FROM push_configs WHERE push_configs.task = tasks.number)
         FROM tasks JOIN scopes ON scopes.number = tasks.scope {HEAD_JOINS}
         LEFT JOIN snapshots ON snapshots.task = tasks.number WHERE {condition}"
    ))?;
    let mut rows = match which {
        Which::Of(scope, id) => statement.query(params![
            id.as_str(),
            scope.workspace.as_str(),
            scope.agent.as_str(),
            scope.caller.as_str()
        ])?,
        Which::Number(number) => statement.query(params![number])?,
    };
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (head, scope, number) = (head_of(row)?, scope(row, 7)?, row.get(10)?);
    let snapshot = Snapshot::of(row, 11)?;
    let has_webhooks = row.get(13)?;
    Ok(Some(StoredTask {
        scope,
        task: snapshot.fold_tail(connection, number, head.last)?,
        head,
        has_webhooks,
    }))
}

/// A task as of a position, or nothing as of the beginning.
pub(super) struct Snapshot {
    seq: u64,
    task: Option<Task>,
}

impl Snapshot {
    /// From two columns that may be NULL: position and body.
    pub(super) fn of(row: &Row<'_>, column: usize) -> Result<Self, Failure> {
        let seq: Option<i64> = row.get(column)?;
        let body = row.get_ref(column + 1)?;
        Ok(match seq {
            Some(seq) => Self {
                seq: seq as u64,
                task: Some(decode(body.as_str().map_err(rusqlite::Error::from)?)?),
            },
            None => Self::of_nothing(),
        })
    }

    /// Before the first event.
    pub(super) fn of_nothing() -> Self {
        Self { seq: 0, task: None }
    }

    /// The task as of `last`; reads no log if the snapshot is of then.
    pub(super) fn fold_tail(
        self,
        connection: &Connection,
        task: i64,
        last: u64,
    ) -> Result<std::sync::Arc<Task>, Failure> {
        if self.seq == last && self.task.is_some() {
            return Ok(fold(self.task, [])?);
        }
        let count = last.saturating_sub(self.seq) as usize;
        let tail = events(connection, task, self.seq, count)?;
        if tail.len() != count {
            return Err(StoreError::Corrupt("a log has a gap".to_owned()).into());
        }
        Ok(fold(self.task, tail.iter().map(Event::response))?)
    }
}

/// Reads the number of a task, if it belongs to the scope.
pub(super) fn number(
    connection: &Connection,
    scope: &Scope,
    task: &TaskId,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT tasks.number FROM tasks JOIN scopes ON scopes.number = tasks.scope
             WHERE tasks.id = ?1 AND workspace = ?2 AND agent = ?3 AND caller = ?4",
        )?
        .query_row(
            params![
                task.as_str(),
                scope.workspace.as_str(),
                scope.agent.as_str(),
                scope.caller.as_str()
            ],
            |row| row.get(0),
        )
        .optional()
}

/// Reads what accompanied the messages after a position.
pub(super) fn requests(
    connection: &Connection,
    task: i64,
    after: u64,
) -> Result<Vec<(u64, Arc<str>)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM requests WHERE task = ?1 AND position > ?2 ORDER BY position",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let read = statement.query_map(params![task, after], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
    })?;
    Ok(read.collect::<Result<_, _>>()?)
}

/// Reads at most `limit` events after a position.
pub(super) fn events(
    connection: &Connection,
    task: i64,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, Failure> {
    // The run that holds the first wanted position may begin before it.
    let (begin, end) = (slot(task, 0)?, slot(task, u64::from(u32::MAX))?);
    let wanted = slot(task, after.saturating_add(1).min(u64::from(u32::MAX)))?;
    let mut statement = connection.prepare_cached(
        "SELECT slot, format, payload FROM log
         WHERE slot >= coalesce((SELECT max(slot) FROM log WHERE slot > ?1 AND slot <= ?2), ?2)
           AND slot <= ?3
         ORDER BY slot",
    )?;
    let mut rows = statement.query(params![begin, wanted, end])?;
    let mut events = Vec::new();
    while events.len() < limit {
        let Some(row) = rows.next()? else { break };
        let first = position(row.get(0)?);
        if row.get::<_, i64>(1)? != FORMAT {
            return Err(StoreError::Corrupt("events of an unknown format".to_owned()).into());
        }
        let payload = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let run: Vec<StreamResponse> = decode(payload)?;
        let run = (first..)
            .zip(run)
            .filter(|(position, _)| *position > after)
            .map(|(position, response)| Event::new(Some(position), response))
            .take(limit - events.len());
        events.extend(run);
    }
    Ok(events)
}

/// Reads JSON text that we have written.
pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::Corrupt(format!("stored text does not read: {:?}", error.classify()))
    })
}

/// Reads a state by its number.
pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<TaskState> {
    let number: i64 = row.get(column)?;
    TaskState::from_number(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}

/// Reads a scope from three columns.
pub(super) fn scope(row: &Row<'_>, column: usize) -> rusqlite::Result<Scope> {
    let text = |at: usize| row.get::<_, String>(column + at);
    Ok(Scope {
        workspace: text(0)?.into(),
        agent: text(1)?.into(),
        caller: text(2)?.into(),
    })
}
