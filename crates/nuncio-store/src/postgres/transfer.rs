//! Tasks that go to another store, or come from one.

use std::sync::Arc;

use nuncio_protocol::{Event, StreamResponse, Task, TaskId, Timestamp, Version, json};
use tokio_postgres::Row;

use super::link::Links;
use super::push;
use super::rows::{self, HEAD, TASK, TASK_JOINS, column, decode, original, scope_texts, stored};
use crate::input::check_import;
use crate::payload::payload;
use crate::{Idempotency, Imported, PushConfigRow, StoreError, Webhook, WholeTask};

/// Events in one row of an imported log, so that reading a part of it does not read all.
const ROW: usize = 256;

/// The columns of [`whole`], of a task `t` in [`whole_from`]; `forgotten` is a column or a number.
pub(super) fn whole_columns(forgotten: &str) -> String {
    format!(
        "{HEAD}, s.workspace, s.agent, s.caller, {TASK}, t.id, t.context, t.status_ms, {forgotten},
         ARRAY(SELECT l.first FROM nuncio.log l WHERE l.task = t.number ORDER BY l.first),
         ARRAY(SELECT l.count FROM nuncio.log l WHERE l.task = t.number ORDER BY l.first),
         ARRAY(SELECT l.payload FROM nuncio.log l WHERE l.task = t.number ORDER BY l.first),
         ARRAY(SELECT k.key FROM nuncio.keys k WHERE k.task = t.number ORDER BY k.key),
         ARRAY(SELECT k.request_hash FROM nuncio.keys k WHERE k.task = t.number ORDER BY k.key),
         ARRAY(SELECT p.body FROM nuncio.push_configs p WHERE p.task = t.number ORDER BY p.id),
         ARRAY(SELECT p.cursor FROM nuncio.push_configs p WHERE p.task = t.number ORDER BY p.id),
         ARRAY(SELECT p.version FROM nuncio.push_configs p WHERE p.task = t.number ORDER BY p.id),
         ARRAY(SELECT r.position FROM nuncio.requests r WHERE r.task = t.number
               ORDER BY r.position),
         ARRAY(SELECT r.body FROM nuncio.requests r WHERE r.task = t.number ORDER BY r.position)"
    )
}

/// Where [`whole_columns`] come from.
pub(super) fn whole_from() -> String {
    format!(
        "nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
         LEFT JOIN nuncio.checkpoints c ON c.task = t.number {TASK_JOINS}"
    )
}

/// The column of [`whole_columns`] that has the id.
pub(super) const ID: usize = 14;

/// Reads tasks in the order of their ids, whole.
///
/// Not in that of their numbers: the task at which the page before ended may have expired since.
pub(super) async fn export(
    links: &Links,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<WholeTask>, StoreError> {
    let sql = format!(
        "SELECT {} FROM {} WHERE t.id > $1 ORDER BY t.id LIMIT $2",
        whole_columns("t.forgotten"),
        whole_from()
    );
    let after = after.map(|task| stored(task.as_str())).unwrap_or_default();
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links.read(&sql, &[&after, &limit]).await?;
    rows.iter().map(whole).collect()
}

/// A task from the columns of [`whole_columns`].
///
/// # Errors
/// [`StoreError::Corrupt`] for text that does not read, and for gaps.
pub(super) fn whole(row: &Row) -> Result<WholeTask, StoreError> {
    let mut head = rows::head(row, 0)?;
    head.owner = None;
    let task = rows::task(row, 10, head.last)?;
    let log = match column::<i64>(row, ID + 3)? {
        0 => Some(log(row, head.last)?),
        _ => None,
    };
    Ok(WholeTask {
        scope: rows::scope(row, 7)?,
        context: original(column(row, ID + 1)?).into(),
        status_time: Timestamp::from_unix_ms(column(row, ID + 2)?),
        requests: requests(row)?,
        keys: keys(row)?,
        webhooks: webhooks(row)?,
        log,
        head,
        task,
    })
}

/// The events of all runs, which have to follow each other from 1 to `last`.
fn log(row: &Row, last: u64) -> Result<Vec<Event>, StoreError> {
    let corrupt = |what: String| Err(StoreError::Corrupt(what));
    let firsts: Vec<i64> = column(row, ID + 4)?;
    let counts: Vec<i32> = column(row, ID + 5)?;
    let payloads: Vec<&str> = column(row, ID + 6)?;
    let mut events: Vec<Event> = Vec::new();
    for ((first, count), payload) in firsts.into_iter().zip(counts).zip(payloads) {
        let at = events.len() as i64;
        if first != at + 1 {
            return corrupt(format!("its log goes from {at} to {first}"));
        }
        let run: Vec<StreamResponse> = decode(payload)?;
        if run.len() as i64 != i64::from(count) {
            return corrupt(format!("the events at {first} are not {count}"));
        }
        events.extend(
            (first as u64..)
                .zip(run)
                .map(|(position, response)| Event::new(Some(position), response)),
        );
    }
    if events.len() as u64 != last {
        let ends = events.len();
        return corrupt(format!("the log ends at {ends}, the row says {last}"));
    }
    Ok(events)
}

fn requests(row: &Row) -> Result<Vec<(u64, Arc<str>)>, StoreError> {
    let positions: Vec<i64> = column(row, ID + 12)?;
    let bodies: Vec<&str> = column(row, ID + 13)?;
    let positions = positions.into_iter().map(|position| position as u64);
    Ok(positions.zip(bodies.into_iter().map(Arc::from)).collect())
}

fn keys(row: &Row) -> Result<Vec<Idempotency>, StoreError> {
    let keys: Vec<&str> = column(row, ID + 7)?;
    let hashes: Vec<&[u8]> = column(row, ID + 8)?;
    let key = |(key, hash): (&str, &[u8])| {
        let size = |_| StoreError::Corrupt("a hash of another size".to_owned());
        Ok(Idempotency {
            key: original(key),
            request_hash: hash.try_into().map_err(size)?,
        })
    };
    keys.into_iter().zip(hashes).map(key).collect()
}

fn webhooks(row: &Row) -> Result<Vec<PushConfigRow>, StoreError> {
    let bodies: Vec<&str> = column(row, ID + 9)?;
    let cursors: Vec<i64> = column(row, ID + 10)?;
    let versions: Vec<&str> = column(row, ID + 11)?;
    let webhook = |((body, cursor), version): ((&str, i64), &str)| {
        let unknown = |unknown| StoreError::Corrupt(format!("a webhook: {unknown}"));
        Ok(PushConfigRow {
            webhook: Webhook {
                config: decode(body)?,
                version: Version::parse(version).map_err(unknown)?,
            },
            cursor: cursor as u64,
        })
    };
    let rows = bodies.into_iter().zip(cursors).zip(versions);
    rows.map(webhook).collect()
}

/// Stores a task of another store.
///
/// # Errors
/// [`StoreError::Corrupt`] for a task that its log does not make.
pub(super) async fn import(
    writers: &Links,
    readers: &Links,
    new: WholeTask,
) -> Result<Imported, StoreError> {
    check_import(&new)?;
    let rows = call(writers, &new).await?;
    let strange = || StoreError::Corrupt("the database judged otherwise than we do".to_owned());
    let row = rows.first().ok_or_else(strange)?;
    match column::<i32>(row, 0)? {
        0 => Ok(Imported::New),
        1 => {
            let there = find(readers, &new.task.id).await?;
            let same = there.is_some_and(|there| there.tells_the_same(&new));
            Ok(if same {
                Imported::Same
            } else {
                Imported::Different
            })
        }
        _ => Ok(Imported::KeyInUse {
            key: original(column(row, 1)?),
            task: original(column::<Option<&str>>(row, 2)?.unwrap_or_default()).into(),
        }),
    }
}

async fn find(links: &Links, task: &TaskId) -> Result<Option<WholeTask>, StoreError> {
    let sql = format!(
        "SELECT {} FROM {} WHERE t.id = $1",
        whole_columns("t.forgotten"),
        whole_from()
    );
    let rows = links.read(&sql, &[&stored(task.as_str())]).await?;
    rows.first().map(whole).transpose()
}

/// Calls the function that stores a task, which is one commit.
async fn call(links: &Links, new: &WholeTask) -> Result<Vec<Row>, StoreError> {
    let sql = "SELECT outcome, used_key, used_by FROM nuncio.import_1($1, $2, $3, $4, $5, $6, $7,
        $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)";
    let WholeTask {
        scope, head, task, ..
    } = new;
    let [workspace, agent, caller] = scope_texts(scope);
    let number = |count: u64| count as i64;
    let (last, epoch) = (number(head.last), number(head.epoch));
    let (turn, attempt) = (number(head.turn), number(head.attempt));
    let forgotten = if new.log.is_some() { 0 } else { last };
    let log = new.log.as_deref().unwrap_or_default();
    let firsts: Vec<i64> = (1..).step_by(ROW).take(log.len().div_ceil(ROW)).collect();
    let counts: Vec<i32> = log.chunks(ROW).map(|run| run.len() as i32).collect();
    let payloads: Vec<String> = log.chunks(ROW).map(payload).collect();
    let kept = head.state.is_terminal() || head.state.is_interrupted();
    let snapshot = kept.then(|| json::encode::<Task>(task));
    let (positions, requests): (Vec<i64>, Vec<&str>) = new
        .requests
        .iter()
        .map(|(position, request)| (number(*position), &**request))
        .unzip();
    let keys: Vec<_> = new.keys.iter().map(|key| stored(&key.key)).collect();
    let hashes: Vec<&[u8]> = new.keys.iter().map(|key| &key.request_hash[..]).collect();
    let hooks = new.webhooks.iter();
    let (hooks, bodies): (Vec<String>, Vec<String>) = hooks
        .map(|row| push::encode(&task.id, &row.webhook))
        .unzip();
    let rows = new.webhooks.iter();
    let cursors: Vec<i64> = rows.map(|row| number(row.cursor)).collect();
    let rows = new.webhooks.iter();
    let versions: Vec<&str> = rows.map(|row| row.webhook.version.as_str()).collect();
    links
        .write(
            sql,
            &[
                &workspace,
                &agent,
                &caller,
                &stored(task.id.as_str()),
                &stored(new.context.as_str()),
                &head.state.number(),
                &new.status_time.unix_ms(),
                &last,
                &epoch,
                &turn,
                &attempt,
                &forgotten,
                &firsts,
                &counts,
                &payloads,
                &snapshot,
                &head.checkpoint.as_deref(),
                &positions,
                &requests,
                &keys,
                &hashes,
                &hooks,
                &cursors,
                &bodies,
                &versions,
            ],
        )
        .await
}
