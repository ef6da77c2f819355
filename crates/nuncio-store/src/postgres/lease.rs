//! Who runs a task: claiming, prolonging, giving up. All times are of the database's clock.

use std::time::Duration;

use nuncio_protocol::TaskId;

use super::link::Links;
use super::rows::{column, number, original, scope, stored};
use crate::{Claim, HeldRun, Lease, StoreError};

/// Ten years: who leases for longer leases for good.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// The term of a lease as it is counted.
pub(super) fn term_ms(lease: &Lease) -> i64 {
    counted(lease.term)
}

/// A term as it is counted.
pub(super) fn counted(term: Duration) -> i64 {
    term.min(LONGEST).as_millis() as i64
}

/// A claimed run.
pub(super) struct Claimed {
    pub(super) task: i64,
    pub(super) id: TaskId,
    pub(super) epoch: u64,
}

/// Claims runs; one that somebody is just writing to, or claiming, is left for another time.
///
/// Owners that have not been heard of for a day leave no row behind.
pub(super) async fn claim(
    links: &Links,
    lease: &Lease,
    claim: &Claim,
    limit: usize,
) -> Result<Vec<Claimed>, StoreError> {
    let sql = "WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
        found AS (
            SELECT t.number FROM nuncio.tasks t
            WHERE t.state IN (1, 2) AND t.state <> 3
              AND (t.lease_owner IS NULL
                   OR t.lease_owner <> $1
                      AND ($3 OR t.lease_until <= (SELECT now FROM clock)
                           AND NOT EXISTS (SELECT FROM nuncio.owners o
                                WHERE o.owner = t.lease_owner
                                  AND o.until > (SELECT now FROM clock))))
              AND ($5::text[] IS NULL OR EXISTS (SELECT FROM nuncio.scopes s
                   WHERE s.number = t.scope AND s.agent = ANY ($5)))
            LIMIT $4 FOR UPDATE SKIP LOCKED
        ), gone AS (
            DELETE FROM nuncio.owners WHERE owner IN (
                SELECT owner FROM nuncio.owners
                WHERE until < (SELECT now FROM clock) - interval '1 day'
                FOR UPDATE SKIP LOCKED)
        )
        UPDATE nuncio.tasks t SET epoch = t.epoch + 1, attempt = t.attempt + 1,
            lease_owner = $1,
            lease_until = (SELECT now FROM clock) + $2::bigint * interval '1 millisecond'
        FROM found WHERE t.number = found.number
        RETURNING t.number, t.id, t.epoch";
    let all = *claim == Claim::AllOthers;
    let agents = claim.agents().map(|agents| {
        let names = agents.iter().map(|agent| stored(agent.as_str()));
        names.collect::<Vec<_>>()
    });
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = links
        .write(
            sql,
            &[&&*lease.owner, &term_ms(lease), &all, &limit, &agents],
        )
        .await?;
    let claimed = |row| {
        Ok(Claimed {
            task: column(row, 0)?,
            id: original(column(row, 1)?).into(),
            epoch: number(row, 2)?,
        })
    };
    rows.iter().map(claimed).collect()
}

/// Prolongs all leases of an owner.
pub(super) async fn renew(links: &Links, lease: &Lease) -> Result<(), StoreError> {
    let sql = "INSERT INTO nuncio.owners (owner, until)
        VALUES ($1, clock_timestamp() + $2::bigint * interval '1 millisecond')
        ON CONFLICT (owner) DO UPDATE SET until = greatest(owners.until, excluded.until)";
    links.write(sql, &[&&*lease.owner, &term_ms(lease)]).await?;
    Ok(())
}

/// Reads the runs that an owner holds.
pub(super) async fn held(links: &Links, owner: &str) -> Result<Vec<HeldRun>, StoreError> {
    let sql = "SELECT s.workspace, s.agent, s.caller, t.id, t.epoch
        FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
        WHERE t.state IN (1, 2) AND t.state <> 3 AND t.lease_owner = $1";
    let rows = links.read(sql, &[&owner]).await?;
    let held = |row| {
        Ok(HeldRun {
            scope: scope(row, 0)?,
            task: original(column(row, 3)?).into(),
            epoch: number(row, 4)?,
        })
    };
    rows.iter().map(held).collect()
}

/// Gives up all leases of an owner.
pub(super) async fn release_all(links: &Links, owner: &str) -> Result<(), StoreError> {
    let sql = "WITH mine AS (
            SELECT number FROM nuncio.tasks
            WHERE state IN (1, 2) AND state <> 3 AND lease_owner = $1
            ORDER BY id FOR UPDATE
        ), gone AS (DELETE FROM nuncio.owners WHERE owner = $1)
        UPDATE nuncio.tasks t SET lease_owner = NULL, lease_until = NULL
        FROM mine WHERE t.number = mine.number";
    links.write(sql, &[&owner]).await?;
    Ok(())
}

/// Looks whether writing works.
pub(super) async fn beat(links: &Links) -> Result<(), StoreError> {
    let sql = "UPDATE nuncio.pulse SET beats = beats + 1 WHERE number = 1";
    links.write(sql, &[]).await?;
    Ok(())
}
