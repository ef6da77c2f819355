//! Deliveries to webhooks: reading how they stand.

use std::time::Duration;

use nuncio_protocol::Timestamp;
use tokio_postgres::Row;

use super::link::Links;
use super::push::webhook;
use super::rows::{column, number, original, scope, stored};
use super::settle::ids;
use crate::{
    CallOutcome, CallRecord, DeadLetter, Delivery, DeliveryFilter, DeliveryState, Disabled,
    StoreError, WebhookId,
};

/// A webhook with all there is to say of it.
const DELIVERY: &str = "SELECT s.workspace, s.agent, s.caller, p.body, p.version, p.cursor, t.last,
    n.attempts, n.refusals, n.upto, n.failing_for_ms, n.down_for_ms,
    n.failing_since_ms, n.last_call_ms, n.next_call_ms, n.disabled,
    (SELECT count(*) FROM nuncio.push_letters l WHERE l.task = p.task AND l.id = p.id),
    (SELECT count(*) FROM nuncio.push_letters l
     WHERE l.task = p.task AND l.id = p.id AND l.requested)";

/// Where it stands.
const JOINS: &str = "JOIN nuncio.tasks t ON t.number = p.task
    JOIN nuncio.scopes s ON s.number = t.scope
    LEFT JOIN nuncio.push_states n ON n.task = p.task AND n.id = p.id";

/// Reads one webhook.
pub(super) async fn one(
    links: &Links,
    webhook: &WebhookId,
) -> Result<Option<Delivery>, StoreError> {
    let sql =
        format!("{DELIVERY} FROM nuncio.push_configs p {JOINS} WHERE t.id = $1 AND p.id = $2");
    let (task, id) = ids(webhook);
    let rows = links.read(&sql, &[&task, &id]).await?;
    rows.first().map(delivery).transpose()
}

/// Reads a page of webhooks, by task and id.
pub(super) async fn page(
    links: &Links,
    filter: &DeliveryFilter,
    after: Option<&WebhookId>,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = page_query(filter);
    let (after_task, after_id) = after.map(ids).unzip();
    let task = filter.task.as_ref().map(|task| stored(task.as_str()));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after_id = after_id.unwrap_or_default();
    let rows = links
        .read(&sql, &[&after_task, &after_id, &task, &limit])
        .await?;
    rows.iter().map(delivery).collect()
}

/// The statement of a page; `$1` and `$2` are the last webhook of the page before, `$3` is the task of
/// the filter, `$4` the limit.
pub(super) fn page_query(filter: &DeliveryFilter) -> String {
    let trouble = match filter.in_trouble {
        true => {
            "JOIN (SELECT task, id FROM nuncio.push_states
                   UNION SELECT task, id FROM nuncio.push_letters) trouble
             ON trouble.task = p.task AND trouble.id = p.id"
        }
        false => "",
    };
    let of_task = match filter.task {
        Some(_) => "p.task = (SELECT number FROM nuncio.tasks WHERE id = $3)",
        None => "$3::text IS NULL",
    };
    format!(
        "{DELIVERY} FROM nuncio.push_configs p {trouble} {JOINS}
         WHERE {of_task} AND (p.task, p.id)
               > (coalesce((SELECT number FROM nuncio.tasks WHERE id = $1), 0), $2)
         ORDER BY p.task, p.id LIMIT $4"
    )
}

fn delivery(row: &Row) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        scope: scope(row, 0)?,
        webhook: webhook(column(row, 3)?, column(row, 4)?)?,
        cursor: number(row, 5)?,
        last: number(row, 6)?,
        state: state(row, 7)?,
        dead: number(row, 16)?,
        requested: number(row, 17)?,
    })
}

/// The nine columns of a state, or nothing.
fn state(row: &Row, at: usize) -> Result<DeliveryState, StoreError> {
    if column::<Option<i64>>(row, at)?.is_none() {
        return Ok(DeliveryState::default());
    }
    let time = |at: usize| {
        let time: Option<i64> = column(row, at)?;
        Ok::<_, StoreError>(time.map(Timestamp::from_unix_ms))
    };
    let span = |at: usize| number(row, at).map(Duration::from_millis);
    let disabled = column::<Option<&str>>(row, at + 8)?.map(|name| {
        Disabled::from_name(name)
            .ok_or_else(|| StoreError::Corrupt(format!("a webhook is disabled by \"{name}\"")))
    });
    Ok(DeliveryState {
        attempts: count(row, at)?,
        refusals: count(row, at + 1)?,
        upto: number(row, at + 2)?,
        failing_for: span(at + 3)?,
        down_for: span(at + 4)?,
        failing_since: time(at + 5)?,
        last_call: time(at + 6)?,
        next_call: time(at + 7)?,
        disabled: disabled.transpose()?,
    })
}

/// Reads dead letters by position.
pub(super) async fn letters(
    links: &Links,
    webhook: &WebhookId,
    requested: bool,
    limit: usize,
) -> Result<Vec<DeadLetter>, StoreError> {
    let sql = "SELECT position, given_up_ms, attempts, cause, requested FROM nuncio.push_letters
        WHERE task = (SELECT number FROM nuncio.tasks WHERE id = $1) AND id = $2
          AND (requested OR NOT $3)
        ORDER BY position LIMIT $4";
    let (task, id) = ids(webhook);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links.read(sql, &[&task, &id, &requested, &limit]).await?;
    let letter = |row: &Row| {
        Ok(DeadLetter {
            position: number(row, 0)?,
            given_up: Timestamp::from_unix_ms(column(row, 1)?),
            attempts: count(row, 2)?,
            cause: column(row, 3)?,
            requested: column(row, 4)?,
        })
    };
    rows.iter().map(letter).collect()
}

/// Reads the newest calls.
pub(super) async fn calls(
    links: &Links,
    webhook: &WebhookId,
    limit: usize,
) -> Result<Vec<CallRecord>, StoreError> {
    let sql = "SELECT first, last, message_id, attempt, at_ms, took_ms, outcome
        FROM nuncio.push_calls
        WHERE task = (SELECT number FROM nuncio.tasks WHERE id = $1) AND id = $2
        ORDER BY number DESC LIMIT $3";
    let (task, id) = ids(webhook);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links.read(sql, &[&task, &id, &limit]).await?;
    rows.iter().map(|row| call(row, webhook)).collect()
}

fn call(row: &Row, webhook: &WebhookId) -> Result<CallRecord, StoreError> {
    let outcome: &str = column(row, 6)?;
    Ok(CallRecord {
        webhook: webhook.clone(),
        first: number(row, 0)?,
        last: number(row, 1)?,
        message_id: original(column(row, 2)?),
        attempt: count(row, 3)?,
        at: Timestamp::from_unix_ms(column(row, 4)?),
        took: Duration::from_millis(number(row, 5)?),
        outcome: CallOutcome::from_word(outcome)
            .ok_or_else(|| StoreError::Corrupt(format!("a call came to \"{outcome}\"")))?,
    })
}

/// A column that counts to less than four billion.
fn count(row: &Row, at: usize) -> Result<u32, StoreError> {
    Ok(u32::try_from(number(row, at)?).unwrap_or(u32::MAX))
}
