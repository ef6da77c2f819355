//! A new task.

use nuncio_protocol::{Timestamp, json};
use rusqlite::params;

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::push::insert_webhook;
use crate::input::check_new;
use crate::payload::payload;
use crate::{Created, NewTask, StoreError};

/// A checked and encoded [`NewTask`].
pub(super) struct Create {
    new: NewTask,
    payload: String,
    snapshot: Option<String>,
}

impl Create {
    /// # Errors
    /// [`StoreError::Corrupt`] for what breaks the rules of [`NewTask`].
    pub(super) fn new(new: NewTask) -> Result<Self, StoreError> {
        check_new(&new)?;
        Ok(Self {
            payload: payload(&new.events),
            snapshot: new.snapshot.then(|| json::encode(new.task.as_ref())),
            new,
        })
    }
}

impl Write for Create {
    type Reply = Created;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<Created, Failure> {
        let new = &self.new;
        let scope = batch.scope_or_new(&new.scope)?;
        if let Some((task, same_request)) = batch.key_use(scope, new.idempotency.as_ref())? {
            let task = task.into();
            return Ok(Created::Existing { task, same_request });
        }
        let status = &new.task.status;
        let (owner, until) = match &new.lease {
            Some(lease) => (Some(&*lease.owner), Some(batch.until(lease))),
            None => (None, None),
        };
        let written = batch
            .connection
            .prepare_cached(
                "INSERT INTO tasks (id, scope, context, state, status_ms, last, epoch, turn, attempt,
                                    lease_owner, lease_until_ms, created_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, 1, ?8, ?9, ?5)
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                new.task.id.as_str(),
                scope,
                new.context.as_str(),
                status.state.number(),
                status.timestamp.map(Timestamp::unix_ms),
                new.events.len() as i64,
                i64::from(new.lease.is_some()),
                owner,
                until,
            ])?;
        if written == 0 {
            return Err(StoreError::Corrupt("a task of that id exists".to_owned()).into());
        }
        let task = batch.connection.last_insert_rowid();
        batch.log(task, 1, new.events.len(), &self.payload)?;
        if let Some(snapshot) = &self.snapshot {
            batch.keep_snapshot(task, new.events.len() as u64, snapshot)?;
        }
        if let Some(checkpoint) = &new.checkpoint {
            batch.keep_checkpoint(task, checkpoint)?;
        }
        if let Some(request) = &new.request {
            batch.keep_request(task, 1, request)?;
        }
        batch.note_key(scope, task, new.idempotency.as_ref())?;
        if let Some(webhook) = &new.push_config {
            insert_webhook(batch.connection, task, &new.task.id, webhook, 0)?;
        }
        batch.count(scope, status.state, 1);
        Ok(Created::New)
    }
}
