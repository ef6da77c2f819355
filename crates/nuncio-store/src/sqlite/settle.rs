//! Deliveries to webhooks: noting what calls came to.

use std::collections::BTreeSet;
use std::time::Duration;

use nuncio_protocol::Timestamp;
use rusqlite::{Connection, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::webhooks::task_of;
use crate::webhooks::MAX_LETTERS;
use crate::{
    CallRecord, DeadLetter, DeliveryState, LetterChange, Redelivery, Settlement, WebhookId,
};

/// Notes what a call came to.
pub(super) struct Settle(pub(super) Settlement);

impl Write for Settle {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let Settlement {
            webhook,
            cursor,
            state,
            letter,
            ..
        } = &self.0;
        let connection = batch.connection;
        let Some(task) = task_of(connection, webhook)? else {
            return Ok(());
        };
        let id = webhook.config.as_str();
        connection
            .prepare_cached(
                "UPDATE push_configs SET cursor = ?3 WHERE task = ?1 AND id = ?2 AND cursor < ?3",
            )?
            .execute(params![task, id, *cursor as i64])?;
        put_state(connection, task, id, state)?;
        match letter {
            LetterChange::Keep => {}
            LetterChange::Put(letter) => put_letter(connection, task, id, letter)?,
            LetterChange::Remove(position) => {
                connection
                    .prepare_cached(
                        "DELETE FROM push_letters WHERE task = ?1 AND id = ?2 AND position = ?3",
                    )?
                    .execute(params![task, id, *position as i64])?;
            }
        }
        Ok(())
    }
}

/// Keeps a state, or no row if there is nothing to say.
fn put_state(
    connection: &Connection,
    task: i64,
    id: &str,
    state: &DeliveryState,
) -> rusqlite::Result<()> {
    if *state == DeliveryState::default() {
        return forget_state(connection, task, id);
    }
    let time = |time: Option<Timestamp>| time.map(Timestamp::unix_ms);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO push_states (task, id, attempts, refusals, upto,
                 failing_for_ms, down_for_ms, failing_since_ms, last_call_ms, next_call_ms, disabled)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            task,
            id,
            state.attempts,
            state.refusals,
            state.upto as i64,
            milliseconds(state.failing_for),
            milliseconds(state.down_for),
            time(state.failing_since),
            time(state.last_call),
            time(state.next_call),
            state.disabled.map(|reason| reason.as_str()),
        ])?;
    Ok(())
}

/// Forgets how the calls of a webhook have gone.
pub(super) fn forget_state(connection: &Connection, task: i64, id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM push_states WHERE task = ?1 AND id = ?2")?
        .execute(params![task, id])?;
    Ok(())
}

fn put_letter(
    connection: &Connection,
    task: i64,
    id: &str,
    letter: &DeadLetter,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO push_letters
                 (task, id, position, given_up_ms, attempts, cause, requested)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            task,
            id,
            letter.position as i64,
            letter.given_up.unix_ms(),
            letter.attempts,
            letter.cause,
            i64::from(letter.requested),
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM push_letters WHERE task = ?1 AND id = ?2 AND position <=
                 (SELECT position FROM push_letters WHERE task = ?1 AND id = ?2
                  ORDER BY position DESC LIMIT 1 OFFSET ?3)",
        )?
        .execute(params![task, id, MAX_LETTERS as i64])?;
    Ok(())
}

/// Forgets everything that is known of a webhook besides itself.
pub(super) fn forget(connection: &Connection, task: i64, id: &str) -> rusqlite::Result<()> {
    forget_state(connection, task, id)?;
    for query in [
        "DELETE FROM push_letters WHERE task = ?1 AND id = ?2",
        "DELETE FROM push_calls WHERE task = ?1 AND id = ?2",
    ] {
        connection
            .prepare_cached(query)?
            .execute(params![task, id])?;
    }
    Ok(())
}

/// Marks dead letters to be delivered again.
pub(super) struct Redeliver(pub(super) Redelivery);

impl Write for Redeliver {
    type Reply = u64;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<u64, Failure> {
        let Redelivery {
            webhook,
            position,
            since,
        } = &self.0;
        let connection = batch.connection;
        let position = position.map(|position| position as i64);
        let since = since.map_or(i64::MIN, Timestamp::unix_ms);
        let Some(webhook) = webhook else {
            let marked = connection
                .prepare_cached(
                    "UPDATE push_letters SET requested = 1
                     WHERE given_up_ms >= ?1 AND (?2 IS NULL OR position = ?2)",
                )?
                .execute(params![since, position])?;
            return Ok(marked as u64);
        };
        let Some(task) = task_of(connection, webhook)? else {
            return Ok(0);
        };
        let id = webhook.config.as_str();
        let marked = connection
            .prepare_cached(
                "UPDATE push_letters SET requested = 1
                 WHERE task = ?3 AND id = ?4 AND given_up_ms >= ?1
                   AND (?2 IS NULL OR position = ?2)",
            )?
            .execute(params![since, position, task, id])?;
        forget_state(connection, task, id)?;
        Ok(marked as u64)
    }
}

/// Writes calls to the log.
pub(super) struct Record {
    pub(super) calls: Vec<CallRecord>,
    pub(super) keep: usize,
}

impl Write for Record {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let connection = batch.connection;
        let mut insert = connection.prepare_cached(
            "INSERT INTO push_calls
                 (task, id, first, last, message_id, attempt, at_ms, took_ms, outcome)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let mut touched = BTreeSet::new();
        for call in &self.calls {
            let WebhookId { config, .. } = &call.webhook;
            let Some(task) = task_of(connection, &call.webhook)? else {
                continue;
            };
            insert.execute(params![
                task,
                config.as_str(),
                call.first as i64,
                call.last as i64,
                call.message_id,
                call.attempt,
                call.at.unix_ms(),
                milliseconds(call.took),
                call.outcome.word(),
            ])?;
            touched.insert((task, config.as_str()));
        }
        let mut shorten = connection.prepare_cached(
            "DELETE FROM push_calls WHERE task = ?1 AND id = ?2 AND number <=
                 (SELECT number FROM push_calls WHERE task = ?1 AND id = ?2
                  ORDER BY number DESC LIMIT 1 OFFSET ?3)",
        )?;
        for (task, id) in touched {
            shorten.execute(params![task, id, self.keep as i64])?;
        }
        Ok(())
    }
}

/// Drops old calls from the log.
pub(super) struct Prune {
    pub(super) before: Timestamp,
    pub(super) limit: usize,
}

impl Write for Prune {
    type Reply = u64;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<u64, Failure> {
        let dropped = batch
            .connection
            .prepare_cached(
                "DELETE FROM push_calls WHERE number IN
                     (SELECT number FROM push_calls WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
            )?
            .execute(params![self.before.unix_ms(), self.limit as i64])?;
        Ok(dropped as u64)
    }
}

fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
