//! Tasks that go to another store, or come from one.

use nuncio_protocol::{Event, TaskId, Timestamp, json};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::push::{self, insert_webhook};
use super::read::{self, Which};
use crate::input::check_import;
use crate::payload::payload;
use crate::{Idempotency, Imported, StoreError, WholeTask};

/// Events in one row of an imported log, so that reading a part of it does not read all.
const ROW: usize = 256;

/// Reads tasks in the order of their numbers, whole.
pub(super) fn export(
    connection: &Connection,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<WholeTask>, Failure> {
    // What belongs together is read as of one moment.
    let moment = connection.unchecked_transaction()?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let numbers = moment
        .prepare_cached(
            "SELECT number FROM tasks
             WHERE number > ifnull((SELECT number FROM tasks WHERE id = ?1), 0)
             ORDER BY number LIMIT ?2",
        )?
        .query_map(params![after.map(TaskId::as_str), limit], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<i64>>>()?;
    let tasks = numbers.into_iter().map(|number| whole(&moment, number));
    tasks.filter_map(Result::transpose).collect()
}

/// Reads one task with all that belongs to it.
fn whole(connection: &Connection, number: i64) -> Result<Option<WholeTask>, Failure> {
    let Some(mut stored) = read::load(connection, &Which::Number(number))? else {
        return Ok(None);
    };
    let (context, status_ms, forgotten): (String, i64, i64) = connection
        .prepare_cached("SELECT context, status_ms, forgotten FROM tasks WHERE number = ?1")?
        .query_row(params![number], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    stored.head.owner = None;
    let log = match forgotten {
        0 => Some(read::events(connection, number, 0, usize::MAX)?),
        _ => None,
    };
    let webhooks = push::configs(connection, &stored.scope, &stored.task.id)?;
    Ok(Some(WholeTask {
        context: context.into(),
        status_time: Timestamp::from_unix_ms(status_ms),
        log,
        requests: read::requests(connection, number, 0)?,
        keys: keys(connection, number)?,
        webhooks: webhooks.unwrap_or_default(),
        scope: stored.scope,
        task: stored.task,
        head: stored.head,
    }))
}

fn keys(connection: &Connection, task: i64) -> rusqlite::Result<Vec<Idempotency>> {
    let mut statement = connection
        .prepare_cached("SELECT key, request_hash FROM keys WHERE task = ?1 ORDER BY key")?;
    let keys = statement.query_map(params![task], |row| {
        Ok(Idempotency {
            key: row.get(0)?,
            request_hash: row.get(1)?,
        })
    })?;
    keys.collect()
}

/// A checked and encoded [`WholeTask`].
pub(super) struct Import {
    whole: WholeTask,
    rows: Vec<(u64, usize, String)>,
    snapshot: String,
}

impl Import {
    /// # Errors
    /// [`StoreError::Corrupt`] for a task that its log does not make.
    pub(super) fn new(whole: WholeTask) -> Result<Self, StoreError> {
        check_import(&whole)?;
        let log: &[Event] = whole.log.as_deref().unwrap_or_default();
        let firsts = (1..).step_by(ROW);
        let rows = firsts.zip(log.chunks(ROW));
        Ok(Self {
            rows: rows
                .map(|(first, events)| (first, events.len(), payload(events)))
                .collect(),
            snapshot: json::encode(&*whole.task),
            whole,
        })
    }

    fn insert_task(&self, connection: &Connection, scope: i64) -> rusqlite::Result<i64> {
        let WholeTask {
            head, task, log, ..
        } = &self.whole;
        let status_ms = self.whole.status_time.unix_ms();
        let forgotten = if log.is_some() { 0 } else { head.last };
        connection
            .prepare_cached(
                "INSERT INTO tasks (id, scope, context, state, status_ms, last, epoch, turn,
                                    attempt, created_ms, forgotten)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                task.id.as_str(),
                scope,
                self.whole.context.as_str(),
                head.state.number(),
                status_ms,
                head.last as i64,
                head.epoch as i64,
                head.turn as i64,
                head.attempt as i64,
                status_ms,
                forgotten as i64,
            ])?;
        Ok(connection.last_insert_rowid())
    }
}

impl Write for Import {
    type Reply = Imported;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<Imported, Failure> {
        let WholeTask {
            scope, head, task, ..
        } = &self.whole;
        let there: Option<i64> = batch
            .connection
            .prepare_cached("SELECT number FROM tasks WHERE id = ?1")?
            .query_row(params![task.id.as_str()], |row| row.get(0))
            .optional()?;
        if let Some(number) = there {
            let there = whole(batch.connection, number)?;
            let same = there.is_some_and(|there| there.tells_the_same(&self.whole));
            return Ok(if same {
                Imported::Same
            } else {
                Imported::Different
            });
        }
        let scope = batch.scope_or_new(scope)?;
        for key in &self.whole.keys {
            if let Some((task, _)) = batch.key_use(scope, Some(key))? {
                let (key, task) = (key.key.clone(), task.into());
                return Ok(Imported::KeyInUse { key, task });
            }
        }
        let number = self.insert_task(batch.connection, scope)?;
        for (first, count, payload) in &self.rows {
            batch.log(number, *first, *count, payload)?;
        }
        if head.state.is_terminal() || head.state.is_interrupted() {
            batch.keep_snapshot(number, head.last, &self.snapshot)?;
        }
        if let Some(checkpoint) = &head.checkpoint {
            batch.keep_checkpoint(number, checkpoint)?;
        }
        for (position, request) in &self.whole.requests {
            batch.keep_request(number, *position, request)?;
        }
        for key in &self.whole.keys {
            batch.note_key(scope, number, Some(key))?;
        }
        for row in &self.whole.webhooks {
            let cursor = row.cursor as i64;
            insert_webhook(batch.connection, number, &task.id, &row.webhook, cursor)?;
        }
        batch.count(scope, head.state, 1);
        Ok(Imported::New)
    }
}
