//! Events added to a task, if nobody was quicker.

use nuncio_protocol::{TaskState, json};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension as _, params, params_from_iter};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::push::insert_webhook;
use super::read::{self, state};
use crate::input::{check_append, check_transition, may_write};
use crate::payload::payload;
use crate::{Append, Appended, Head, LeaseChange, StoreError};

/// A checked and encoded [`Append`].
pub(super) struct AppendEvents {
    append: Append,
    payload: Option<String>,
    snapshot: Option<String>,
}

/// What decides whether an append may be written.
struct Standing {
    task: i64,
    scope: i64,
    status_ms: i64,
    head: Head,
}

impl AppendEvents {
    /// # Errors
    /// [`StoreError::Corrupt`] for what breaks the rules of [`Append`].
    pub(super) fn new(append: Append) -> Result<Self, StoreError> {
        check_append(&append)?;
        Ok(Self {
            payload: (!append.events.is_empty()).then(|| payload(&append.events)),
            snapshot: append.snapshot.as_deref().map(json::encode),
            append,
        })
    }

    fn standing(&self, batch: &mut Batch<'_>) -> Result<Option<Standing>, Failure> {
        let Some(scope) = batch.scope(&self.append.scope)? else {
            return Ok(None);
        };
        let standing = batch
            .connection
            .prepare_cached(
                "SELECT number, status_ms, state, last, epoch, turn, attempt FROM tasks
                 WHERE id = ?1 AND scope = ?2",
            )?
            .query_row(params![self.append.task.as_str(), scope], |row| {
                Ok(Standing {
                    task: row.get(0)?,
                    scope,
                    status_ms: row.get(1)?,
                    head: Head {
                        state: state(row, 2)?,
                        last: row.get::<_, i64>(3)? as u64,
                        epoch: row.get::<_, i64>(4)? as u64,
                        turn: row.get::<_, i64>(5)? as u64,
                        attempt: row.get::<_, i64>(6)? as u64,
                        owner: None,
                        checkpoint: None,
                    },
                })
            })
            .optional()?;
        Ok(standing)
    }

    /// Changes the row of the task; columns that keep their value are left out, and with them
    /// the indexes over them.
    fn update_row(&self, batch: &Batch<'_>, standing: &Standing) -> Result<u64, Failure> {
        let append = &self.append;
        let status_ms = standing.status_ms.max(append.status_time.unix_ms());
        let last = append.after + append.events.len() as u64;
        let mut epoch = standing.head.epoch;
        let mut columns = String::from("UPDATE tasks SET last = ?");
        let mut values = vec![Value::Integer(last as i64)];
        if let Some(turn) = append.turn {
            columns.push_str(", turn = ?, attempt = 1");
            values.push(Value::Integer(turn as i64));
        }
        if append.state != standing.head.state || status_ms != standing.status_ms {
            columns.push_str(", state = ?, status_ms = ?");
            values.push(Value::from(append.state.number()));
            values.push(Value::Integer(status_ms));
        }
        match &append.lease {
            LeaseChange::Keep => {}
            LeaseChange::Release => {
                columns.push_str(", lease_owner = NULL, lease_until_ms = NULL");
            }
            LeaseChange::Take(lease) => {
                epoch += 1;
                columns.push_str(", epoch = ?, lease_owner = ?, lease_until_ms = ?");
                values.push(Value::Integer(epoch as i64));
                values.push(Value::Text(lease.owner.as_ref().to_owned()));
                values.push(Value::Integer(batch.until(lease)));
            }
        }
        columns.push_str(" WHERE number = ?");
        values.push(Value::Integer(standing.task));
        batch
            .connection
            .prepare_cached(&columns)?
            .execute(params_from_iter(values))?;
        Ok(epoch)
    }

    fn count(&self, batch: &mut Batch<'_>, scope: i64, before: TaskState) {
        if before != self.append.state {
            batch.count(scope, before, -1);
            batch.count(scope, self.append.state, 1);
        }
    }
}

impl Write for AppendEvents {
    type Reply = Appended;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<Appended, Failure> {
        let append = &self.append;
        let Some(standing) = self.standing(batch)? else {
            return Ok(Appended::Missing);
        };
        let (task, scope) = (standing.task, standing.scope);
        if let Some((task, same_request)) = batch.key_use(scope, append.idempotency.as_ref())? {
            let task = task.into();
            return Ok(Appended::Existing { task, same_request });
        }
        if !may_write(&standing.head, append) {
            return Ok(Appended::Conflict(read::head(batch.connection, task)?));
        }
        check_transition(&standing.head, append)?;
        if let Some(payload) = &self.payload {
            batch.log(task, append.after + 1, append.events.len(), payload)?;
        }
        if let Some(snapshot) = &self.snapshot {
            let last = append.after + append.events.len() as u64;
            batch.keep_snapshot(task, last, snapshot)?;
        }
        if let Some(checkpoint) = &append.checkpoint {
            batch.keep_checkpoint(task, checkpoint)?;
        }
        if let Some(request) = &append.request {
            batch.keep_request(task, append.after + 1, request)?;
        }
        batch.note_key(scope, task, append.idempotency.as_ref())?;
        if let Some(webhook) = &append.push_config {
            let after = standing.head.last as i64;
            insert_webhook(batch.connection, task, &append.task, webhook, after)?;
        }
        let epoch = self.update_row(batch, &standing)?;
        self.count(batch, scope, standing.head.state);
        Ok(Appended::Done { epoch })
    }
}
