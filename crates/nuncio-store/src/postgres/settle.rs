//! Deliveries to webhooks: claiming them, and noting what calls came to.

use std::borrow::Cow;
use std::time::Duration;

use nuncio_protocol::Timestamp;

use super::lease::counted;
use super::link::Links;
use super::rows::{column, number, stored};
use super::write::open_states;
use crate::webhooks::MAX_LETTERS;
use crate::{
    CallRecord, DeadLetter, DeliveryState, LetterChange, Redelivery, Settlement, StoreError,
    WebhookId,
};

/// The ids of a webhook as they are stored.
pub(super) fn ids(webhook: &WebhookId) -> (Cow<'_, str>, Cow<'_, str>) {
    (
        stored(webhook.task.as_str()),
        stored(webhook.config.as_str()),
    )
}

/// Claims a webhook, or prolongs the claim.
pub(super) async fn claim(
    links: &Links,
    webhook: &WebhookId,
    owner: &str,
    term: Duration,
) -> Result<bool, StoreError> {
    let (task, id) = ids(webhook);
    let sql = "SELECT nuncio.push_claim_1($1, $2, $3, $4)";
    let rows = links
        .write(sql, &[&task, &id, &owner, &counted(term)])
        .await?;
    said(&rows)
}

/// Gives up one claim of an owner, or all.
pub(super) async fn release(
    links: &Links,
    webhook: Option<&WebhookId>,
    owner: &str,
) -> Result<(), StoreError> {
    let Some(webhook) = webhook else {
        let sql = "DELETE FROM nuncio.push_claims WHERE owner = $1";
        return links.write(sql, &[&owner]).await.map(drop);
    };
    let (task, id) = ids(webhook);
    let sql = "DELETE FROM nuncio.push_claims WHERE task = $1 AND id = $2 AND owner = $3";
    links.write(sql, &[&task, &id, &owner]).await.map(drop)
}

/// Notes what a call came to; `false` if the claim is lost.
pub(super) async fn settle(links: &Links, settlement: Settlement) -> Result<bool, StoreError> {
    let Settlement {
        webhook,
        owner,
        cursor,
        state,
        letter,
    } = &settlement;
    let (task, id) = ids(webhook);
    let state = (*state != DeliveryState::default()).then_some(state);
    let (position, letter) = match letter {
        LetterChange::Keep => (None, None),
        LetterChange::Put(letter) => (Some(counter(letter.position)), Some(letter)),
        LetterChange::Remove(position) => (Some(counter(*position)), None),
    };
    let span = |span: fn(&DeliveryState) -> Duration| state.map(|state| milliseconds(span(state)));
    let time = |time: fn(&DeliveryState) -> Option<Timestamp>| {
        state.and_then(time).map(Timestamp::unix_ms)
    };
    let of_letter = |value: fn(&DeadLetter) -> i64| letter.map(value);
    let sql = "SELECT nuncio.push_settle_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
        $14, $15, $16, $17, $18, $19, $20)";
    let rows = links
        .write(
            sql,
            &[
                &task,
                &id,
                &owner.as_deref(),
                &counter(*cursor),
                &state.map(|state| i64::from(state.attempts)),
                &state.map(|state| i64::from(state.refusals)),
                &state.map(|state| counter(state.upto)),
                &span(|state| state.failing_for),
                &span(|state| state.down_for),
                &time(|state| state.failing_since),
                &time(|state| state.last_call),
                &time(|state| state.next_call),
                &state
                    .and_then(|state| state.disabled)
                    .map(|why| why.as_str()),
                &position,
                &of_letter(|letter| letter.given_up.unix_ms()),
                &of_letter(|letter| i64::from(letter.attempts)),
                &letter.map(|letter| letter.cause.as_str()),
                &letter.map(|letter| letter.requested),
                &(MAX_LETTERS as i64),
                &open_states(),
            ],
        )
        .await?;
    said(&rows)
}

/// Marks dead letters to be delivered again, and gives their number.
pub(super) async fn redeliver(links: &Links, which: &Redelivery) -> Result<u64, StoreError> {
    let Redelivery {
        webhook,
        position,
        since,
    } = which;
    let (position, since) = (position.map(counter), since.map(Timestamp::unix_ms));
    let rows = match webhook {
        Some(webhook) => {
            let (task, id) = ids(webhook);
            let sql = "SELECT nuncio.push_redeliver_1($1, $2, $3, $4)";
            links.write(sql, &[&task, &id, &position, &since]).await?
        }
        None => {
            let sql = "WITH found AS (
                    SELECT task, id, position FROM nuncio.push_letters
                    WHERE ($1::bigint IS NULL OR position = $1)
                      AND ($2::bigint IS NULL OR given_up_ms >= $2)
                    ORDER BY task, id, position FOR UPDATE
                ), marked AS (
                    UPDATE nuncio.push_letters l SET requested = true FROM found
                    WHERE l.task = found.task AND l.id = found.id AND l.position = found.position
                    RETURNING 1
                )
                SELECT count(*) FROM marked";
            links.write(sql, &[&position, &since]).await?
        }
    };
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// Writes calls to the log.
pub(super) async fn record(
    links: &Links,
    calls: Vec<CallRecord>,
    keep: usize,
) -> Result<(), StoreError> {
    let texts = |text: fn(&CallRecord) -> &str| -> Vec<Cow<'_, str>> {
        calls.iter().map(|call| stored(text(call))).collect()
    };
    let numbers =
        |number: fn(&CallRecord) -> i64| -> Vec<i64> { calls.iter().map(number).collect() };
    let outcomes: Vec<String> = calls.iter().map(|call| call.outcome.word()).collect();
    let sql = "SELECT nuncio.push_record_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    links
        .write(
            sql,
            &[
                &texts(|call| call.webhook.task.as_str()),
                &texts(|call| call.webhook.config.as_str()),
                &numbers(|call| counter(call.first)),
                &numbers(|call| counter(call.last)),
                &texts(|call| call.message_id.as_str()),
                &numbers(|call| i64::from(call.attempt)),
                &numbers(|call| call.at.unix_ms()),
                &numbers(|call| milliseconds(call.took)),
                &outcomes,
                &i64::try_from(keep).unwrap_or(i64::MAX),
            ],
        )
        .await
        .map(drop)
}

/// Drops old calls from the log, and claims that ended long ago, whose process has died.
pub(super) async fn prune(
    links: &Links,
    before: Timestamp,
    limit: usize,
) -> Result<u64, StoreError> {
    let sql = "WITH over AS (
            DELETE FROM nuncio.push_claims WHERE (task, id) IN (
                SELECT task, id FROM nuncio.push_claims
                WHERE until < clock_timestamp() - interval '1 day' FOR UPDATE SKIP LOCKED)
        ), dropped AS (
            DELETE FROM nuncio.push_calls WHERE number IN (
                SELECT number FROM nuncio.push_calls WHERE at_ms < $1
                ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
            RETURNING 1
        )
        SELECT count(*) FROM dropped";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links.write(sql, &[&before.unix_ms(), &limit]).await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// What a function says that answers with yes or no.
pub(super) fn said(rows: &[tokio_postgres::Row]) -> Result<bool, StoreError> {
    rows.first().map_or(Ok(false), |row| column(row, 0))
}

fn counter(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn milliseconds(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
