//! Deliveries to webhooks: reading how they stand.

use std::time::Duration;

use nuncio_protocol::{TaskId, Timestamp, Version};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::Failure;
use super::read::{decode, scope};
use crate::{
    CallOutcome, CallRecord, DeadLetter, Delivery, DeliveryFilter, DeliveryState, Disabled,
    StoreError, Webhook, WebhookId,
};

/// A webhook with all there is to say of it, up to the conditions.
const DELIVERY: &str = "
    SELECT workspace, agent, caller, push_configs.body, push_configs.version, push_configs.cursor,
           tasks.last, attempts, refusals, upto, failing_for_ms, down_for_ms, failing_since_ms,
           last_call_ms, next_call_ms, disabled,
           (SELECT count(*) FROM push_letters AS l
            WHERE l.task = push_configs.task AND l.id = push_configs.id),
           (SELECT count(*) FROM push_letters AS l
            WHERE l.task = push_configs.task AND l.id = push_configs.id AND l.requested = 1)
    FROM push_configs
    JOIN tasks ON tasks.number = push_configs.task
    JOIN scopes ON scopes.number = tasks.scope
    LEFT JOIN push_states ON push_states.task = push_configs.task
                         AND push_states.id = push_configs.id ";

/// Reads one webhook.
pub(super) fn one(
    connection: &Connection,
    webhook: &WebhookId,
) -> Result<Option<Delivery>, Failure> {
    let query = format!("{DELIVERY} WHERE tasks.id = ?1 AND push_configs.id = ?2");
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query(params![webhook.task.as_str(), webhook.config.as_str()])?;
    match rows.next()? {
        Some(row) => Ok(Some(delivery(row)?)),
        None => Ok(None),
    }
}

/// Reads a page of webhooks, by task and id.
pub(super) fn page(
    connection: &Connection,
    filter: &DeliveryFilter,
    after: Option<&WebhookId>,
    limit: usize,
) -> Result<Vec<Delivery>, Failure> {
    let trouble = if filter.in_trouble {
        "AND (push_states.task IS NOT NULL
              OR EXISTS (SELECT 1 FROM push_letters AS l
                         WHERE l.task = push_configs.task AND l.id = push_configs.id))"
    } else {
        ""
    };
    let query = format!(
        "{DELIVERY}
         WHERE (push_configs.task, push_configs.id)
               > (ifnull((SELECT number FROM tasks WHERE id = ?1), 0), ?2)
           AND (?3 IS NULL OR tasks.id = ?3) {trouble}
         ORDER BY push_configs.task, push_configs.id LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query(params![
        after.map(|after| after.task.as_str()),
        after.map_or("", |after| after.config.as_str()),
        filter.task.as_ref().map(TaskId::as_str),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        page.push(delivery(row)?);
    }
    Ok(page)
}

fn delivery(row: &Row<'_>) -> Result<Delivery, Failure> {
    let body: String = row.get(3)?;
    let version: String = row.get(4)?;
    let webhook = Webhook {
        config: decode(&body)?,
        version: Version::parse(&version)
            .map_err(|unknown| StoreError::Corrupt(format!("a webhook: {unknown}")))?,
    };
    Ok(Delivery {
        scope: scope(row, 0)?,
        webhook,
        cursor: row.get::<_, i64>(5)? as u64,
        last: row.get::<_, i64>(6)? as u64,
        state: state(row, 7)?,
        dead: row.get::<_, i64>(16)? as u64,
        requested: row.get::<_, i64>(17)? as u64,
    })
}

/// The nine columns of a state, or nothing.
fn state(row: &Row<'_>, at: usize) -> Result<DeliveryState, Failure> {
    let Some(attempts) = row.get::<_, Option<u32>>(at)? else {
        return Ok(DeliveryState::default());
    };
    let time = |at: usize| -> rusqlite::Result<Option<Timestamp>> {
        let time: Option<i64> = row.get(at)?;
        Ok(time.map(Timestamp::from_unix_ms))
    };
    let span = |at: usize| -> rusqlite::Result<Duration> {
        Ok(Duration::from_millis(row.get::<_, i64>(at)? as u64))
    };
    let disabled: Option<String> = row.get(at + 8)?;
    let disabled = disabled.map(|name| {
        Disabled::from_name(&name)
            .ok_or_else(|| StoreError::Corrupt(format!("a webhook is disabled by \"{name}\"")))
    });
    Ok(DeliveryState {
        attempts,
        refusals: row.get(at + 1)?,
        upto: row.get::<_, i64>(at + 2)? as u64,
        failing_for: span(at + 3)?,
        down_for: span(at + 4)?,
        failing_since: time(at + 5)?,
        last_call: time(at + 6)?,
        next_call: time(at + 7)?,
        disabled: disabled.transpose()?,
    })
}

/// Reads dead letters by position.
pub(super) fn letters(
    connection: &Connection,
    webhook: &WebhookId,
    requested: bool,
    limit: usize,
) -> Result<Vec<DeadLetter>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT position, given_up_ms, attempts, cause, requested FROM push_letters
         WHERE task = (SELECT number FROM tasks WHERE id = ?1) AND id = ?2 AND requested >= ?3
         ORDER BY position LIMIT ?4",
    )?;
    let values = params![
        webhook.task.as_str(),
        webhook.config.as_str(),
        i64::from(requested),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ];
    let letters = statement.query_map(values, |row| {
        Ok(DeadLetter {
            position: row.get::<_, i64>(0)? as u64,
            given_up: Timestamp::from_unix_ms(row.get(1)?),
            attempts: row.get(2)?,
            cause: row.get(3)?,
            requested: row.get::<_, i64>(4)? == 1,
        })
    })?;
    Ok(letters.collect::<rusqlite::Result<_>>()?)
}

/// Reads the newest calls.
pub(super) fn calls(
    connection: &Connection,
    webhook: &WebhookId,
    limit: usize,
) -> Result<Vec<CallRecord>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, message_id, attempt, at_ms, took_ms, outcome FROM push_calls
         WHERE task = (SELECT number FROM tasks WHERE id = ?1) AND id = ?2
         ORDER BY number DESC LIMIT ?3",
    )?;
    let values = params![
        webhook.task.as_str(),
        webhook.config.as_str(),
        i64::try_from(limit).unwrap_or(i64::MAX),
    ];
    let mut rows = statement.query(values)?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let outcome: String = row.get(6)?;
        calls.push(CallRecord {
            webhook: webhook.clone(),
            first: row.get::<_, i64>(0)? as u64,
            last: row.get::<_, i64>(1)? as u64,
            message_id: row.get(2)?,
            attempt: row.get(3)?,
            at: Timestamp::from_unix_ms(row.get(4)?),
            took: Duration::from_millis(row.get::<_, i64>(5)? as u64),
            outcome: CallOutcome::from_word(&outcome)
                .ok_or_else(|| StoreError::Corrupt(format!("a call came to \"{outcome}\"")))?,
        });
    }
    Ok(calls)
}

/// The number of a webhook's task, if the webhook is there.
pub(super) fn task_of(
    connection: &Connection,
    webhook: &WebhookId,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT push_configs.task FROM push_configs
             JOIN tasks ON tasks.number = push_configs.task
             WHERE tasks.id = ?1 AND push_configs.id = ?2",
        )?
        .query_row(
            params![webhook.task.as_str(), webhook.config.as_str()],
            |row| row.get(0),
        )
        .optional()
}
