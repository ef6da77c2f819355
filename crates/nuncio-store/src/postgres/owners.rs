//! [`PostgresStore`] as [`Owners`].

use nuncio_protocol::Timestamp;
use tokio_postgres::Row;

use super::link::Links;
use super::rows::{column, number, original, scope_texts, stored};
use super::settle::said;
use super::store::PostgresStore;
use crate::owners::{TASK, to_take};
use crate::{OwnedId, Owners, Scope, StoreError, StoreFuture};

impl Owners for PostgresStore {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move { take(&self.side, scope, &to_take(ids)?, at).await })
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        Box::pin(owned(&self.readers, scope, ids))
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        Box::pin(owned_tasks(&self.readers, scope))
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(prune(&self.side, before, limit))
    }
}

async fn take(
    links: &Links,
    scope: &Scope,
    ids: &[OwnedId],
    at: Timestamp,
) -> Result<bool, StoreError> {
    let [workspace, agent, caller] = scope_texts(scope);
    let kinds: Vec<i32> = ids.iter().map(OwnedId::kind).collect();
    let texts: Vec<_> = ids.iter().map(|id| stored(id.as_str())).collect();
    let sql = "SELECT nuncio.owned_take_1($1, $2, $3, $4, $5, $6)";
    let rows = links
        .write(
            sql,
            &[&workspace, &agent, &caller, &kinds, &texts, &at.unix_ms()],
        )
        .await?;
    said(&rows)
}

/// Those of the ids `$4` and `$5` that are the caller's of `$1` to `$3`.
pub(super) const OWNED: &str = "
    SELECT o.kind, o.id, o.at_ms
    FROM unnest($4::int[], $5::text[]) AS u (kind, id)
    JOIN nuncio.owned o ON o.agent = $2 AND o.kind = u.kind AND o.id = u.id
    JOIN nuncio.scopes s ON s.number = o.scope
    WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3";

async fn owned(
    links: &Links,
    scope: &Scope,
    ids: &[OwnedId],
) -> Result<Vec<(OwnedId, Timestamp)>, StoreError> {
    let [workspace, agent, caller] = scope_texts(scope);
    let kinds: Vec<i32> = ids.iter().map(OwnedId::kind).collect();
    let texts: Vec<_> = ids.iter().map(|id| stored(id.as_str())).collect();
    let rows = links
        .read(OWNED, &[&workspace, &agent, &caller, &kinds, &texts])
        .await?;
    let owned = |row: &Row| {
        let id = OwnedId::of(column(row, 0)?, &original(column(row, 1)?));
        Ok((id, Timestamp::from_unix_ms(column(row, 2)?)))
    };
    rows.iter().map(owned).collect()
}

async fn owned_tasks(links: &Links, scope: &Scope) -> Result<u64, StoreError> {
    let [workspace, agent, caller] = scope_texts(scope);
    let sql = "SELECT count(*) FROM nuncio.scopes s
        JOIN nuncio.owned o ON o.scope = s.number AND o.kind = $4
        WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3";
    let rows = links
        .read(sql, &[&workspace, &agent, &caller, &TASK])
        .await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}

/// What somebody is just taking again is left for another time.
async fn prune(links: &Links, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = "WITH old AS (
            SELECT agent, kind, id FROM nuncio.owned WHERE at_ms < $1
            ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM nuncio.owned o USING old
            WHERE o.agent = old.agent AND o.kind = old.kind AND o.id = old.id
            RETURNING 1
        )
        SELECT count(*) FROM gone";
    let rows = links.write(sql, &[&before.unix_ms(), &limit]).await?;
    rows.first().map_or(Ok(0), |row| number(row, 0))
}
