//! [`PostgresStore`] as [`Sessions`].

use std::borrow::Cow;
use std::sync::Arc;

use nuncio_protocol::Timestamp;
use tokio_postgres::Row;

use super::link::Links;
use super::rows::{column, number, original, scope_texts, stored};
use super::settle::said;
use super::store::PostgresStore;
use crate::sessions::{MAX_PRUNED, MAX_STATES, check_json, checked};
use crate::{
    SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState, Sessions, StateScope,
    StoreError, StoreFuture,
};

impl Sessions for PostgresStore {
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        Box::pin(entries(&self.readers, key, Some(after), limit))
    }

    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        Box::pin(entries(&self.readers, key, None, limit))
    }

    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended> {
        Box::pin(async move { self::append(&self.side, &checked(append)?).await })
    }

    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_json("a summary of a session", &summary)?;
            compact(&self.side, key, through, &summary).await
        })
    }

    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        Box::pin(delete(&self.side, key))
    }

    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>> {
        Box::pin(states(&self.readers, key))
    }

    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(prune(&self.side, before, limit))
    }
}

/// The texts of a session's key as they are stored.
fn key_texts(key: &SessionKey) -> [Cow<'_, str>; 4] {
    let [workspace, agent, caller] = scope_texts(&key.scope);
    [workspace, agent, caller, stored(key.context.as_str())]
}

/// The statement that reads entries after `$5` of the session of `$1` to `$4`, in this direction, `$6`
/// at most.
pub(super) fn entries_query(direction: &str) -> String {
    format!(
        "SELECT e.position, e.task, e.at_ms, e.body FROM nuncio.session_entries e
         WHERE e.session = (
             SELECT n.number FROM nuncio.scopes s JOIN nuncio.sessions n ON n.scope = s.number
             WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3 AND n.context = $4)
           AND e.position > $5
         ORDER BY e.position {direction} LIMIT $6"
    )
}

/// Reads the entries after a position, or the newest ones; oldest first.
async fn entries(
    links: &Links,
    key: &SessionKey,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<SessionEntry>, StoreError> {
    let sql = entries_query(if after.is_some() { "" } else { "DESC" });
    let [workspace, agent, caller, context] = key_texts(key);
    let after_position = counter(after.unwrap_or(0));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links
        .read(
            &sql,
            &[
                &workspace,
                &agent,
                &caller,
                &context,
                &after_position,
                &limit,
            ],
        )
        .await?;
    let mut entries = rows.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    if after.is_none() {
        entries.reverse();
    }
    Ok(entries)
}

fn entry(row: &Row) -> Result<SessionEntry, StoreError> {
    Ok(SessionEntry {
        position: number(row, 0)?,
        task: original(column(row, 1)?).into(),
        at: Timestamp::from_unix_ms(column(row, 2)?),
        json: original(column(row, 3)?).into(),
    })
}

async fn append(links: &Links, append: &SessionAppend) -> Result<SessionAppended, StoreError> {
    let [workspace, agent, caller, context] = key_texts(&append.key);
    let entries: Vec<_> = append.entries.iter().map(|json| stored(json)).collect();
    let changes = append.state.iter();
    let shared_by: Vec<i32> = changes.clone().map(|change| index(change.scope)).collect();
    let names: Vec<_> = changes.clone().map(|change| stored(&change.name)).collect();
    let values: Vec<_> = changes
        .map(|change| change.value.as_deref().map(stored))
        .collect();
    let sql = "SELECT done, at_last
        FROM nuncio.session_append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let rows = links
        .write(
            sql,
            &[
                &workspace,
                &agent,
                &caller,
                &context,
                &counter(append.after),
                &stored(append.task.as_str()),
                &append.at.unix_ms(),
                &entries,
                &shared_by,
                &names,
                &values,
                &(MAX_STATES as i64),
            ],
        )
        .await?;
    let told = rows.first();
    let last = told.map_or(Ok(0), |row| number(row, 1))?;
    Ok(match told.map_or(Ok(false), |row| column(row, 0))? {
        true => SessionAppended::Done { last },
        false => SessionAppended::Conflict { last },
    })
}

async fn compact(
    links: &Links,
    key: &SessionKey,
    through: u64,
    summary: &str,
) -> Result<bool, StoreError> {
    let [workspace, agent, caller, context] = key_texts(key);
    let sql = "SELECT nuncio.session_compact_1($1, $2, $3, $4, $5, $6)";
    let rows = links
        .write(
            sql,
            &[
                &workspace,
                &agent,
                &caller,
                &context,
                &counter(through),
                &stored(summary),
            ],
        )
        .await?;
    said(&rows)
}

async fn delete(links: &Links, key: &SessionKey) -> Result<bool, StoreError> {
    let [workspace, agent, caller, context] = key_texts(key);
    let sql = "SELECT nuncio.session_delete_1($1, $2, $3, $4)";
    let rows = links
        .write(sql, &[&workspace, &agent, &caller, &context])
        .await?;
    said(&rows)
}

/// All states that a session shares, by scope and name.
const STATES: &str = "
    SELECT 0, x.name, x.body FROM nuncio.scopes s
    JOIN nuncio.sessions n ON n.scope = s.number
    JOIN nuncio.session_states x ON x.session = n.number
    WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3 AND n.context = $4
    UNION ALL
    SELECT 1, x.name, x.body FROM nuncio.scopes s
    JOIN nuncio.caller_states x ON x.scope = s.number
    WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3
    UNION ALL
    SELECT 2, x.name, x.body FROM nuncio.agent_states x WHERE x.workspace = $1 AND x.agent = $2
    ORDER BY 1, 2";

async fn states(links: &Links, key: &SessionKey) -> Result<Vec<SessionState>, StoreError> {
    let [workspace, agent, caller, context] = key_texts(key);
    let rows = links
        .read(STATES, &[&workspace, &agent, &caller, &context])
        .await?;
    let state = |row: &Row| {
        let scope = match column::<i32>(row, 0)? {
            0 => StateScope::Context,
            1 => StateScope::Caller,
            _ => StateScope::Agent,
        };
        Ok(SessionState {
            scope,
            name: original(column(row, 1)?).into(),
            value: original(column(row, 2)?).into(),
        })
    };
    rows.iter().map(state).collect()
}

async fn prune(links: &Links, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = "SELECT nuncio.sessions_prune_1($1, $2, $3)";
    let rows = links
        .write(sql, &[&before.unix_ms(), &limit, &MAX_PRUNED])
        .await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// Who shares a state, as the function that writes it has it.
fn index(scope: StateScope) -> i32 {
    match scope {
        StateScope::Context => 0,
        StateScope::Caller => 1,
        StateScope::Agent => 2,
    }
}

fn counter(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
