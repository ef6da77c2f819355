//! Who runs a task: claiming, prolonging, giving up.

use std::time::{Duration, Instant};

use nuncio_protocol::AgentId;
use rusqlite::{Connection, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::read::scope;
use crate::{Claim, HeldRun, Lease};

/// The time that leases are counted on: the wall clock as it was when the writer began, and what
/// has passed since. Nobody else counts on it, for nobody else has the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseTime {
    begun_ms: i64,
    begun: Instant,
}

impl LeaseTime {
    /// Begins to count.
    pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Self> {
        let query = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";
        let begun_ms = connection.query_row(query, [], |row| row.get(0))?;
        Ok(Self {
            begun_ms,
            begun: Instant::now(),
        })
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.begun_ms.saturating_add(whole_ms(self.begun.elapsed()))
    }
}

/// A term as it is counted.
pub(super) fn whole_ms(term: Duration) -> i64 {
    i64::try_from(term.as_millis()).unwrap_or(i64::MAX)
}

/// Claims runs.
pub(super) struct ClaimRuns {
    pub(super) claim: Claim,
    pub(super) lease: Lease,
    pub(super) limit: usize,
}

/// A claimed run: the number of the task, and the epoch that is now its newest.
pub(super) struct Claimed {
    pub(super) task: i64,
    pub(super) epoch: u64,
}

/// Runs without a lease, and those of others whose lease and whose owner's last word are over.
const EXPIRED: &str = "
    SELECT tasks.number FROM tasks INDEXED BY tasks_by_state
    JOIN scopes ON scopes.number = tasks.scope
    LEFT JOIN owners ON owners.owner = tasks.lease_owner
    WHERE tasks.state IN (1, 2) AND tasks.state <> 3
      AND (tasks.lease_owner IS NULL
           OR tasks.lease_owner <> ?3 AND tasks.lease_until_ms <= ?1
              AND (owners.until_ms IS NULL OR owners.until_ms <= ?1))
      AND (?4 IS NULL OR scopes.agent IN (SELECT value FROM json_each(?4)))
    LIMIT ?2";

impl Write for ClaimRuns {
    type Reply = Vec<Claimed>;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<Vec<Claimed>, Failure> {
        let over = match self.claim {
            Claim::Expired | Claim::ExpiredOf(_) => batch.now_ms(),
            Claim::AllOthers => i64::MAX,
        };
        let owner = &*self.lease.owner;
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let agents = self.claim.agents().map(|agents| {
            let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
            serde_json::json!(names).to_string()
        });
        let expired = batch
            .connection
            .prepare_cached(EXPIRED)?
            .query_map(params![over, limit, owner, agents], |row| {
                row.get::<_, i64>(0)
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let mut take = batch.connection.prepare_cached(
            "UPDATE tasks SET epoch = epoch + 1, attempt = attempt + 1, lease_owner = ?2, lease_until_ms = ?3
             WHERE number = ?1 RETURNING epoch",
        )?;
        let mut claimed = Vec::with_capacity(expired.len());
        for task in expired {
            let values = params![task, owner, batch.until(&self.lease)];
            let epoch = take.query_row(values, |row| row.get::<_, i64>(0))? as u64;
            claimed.push(Claimed { task, epoch });
        }
        if !claimed.is_empty() {
            // Owners that are gone for good leave no row behind.
            batch
                .connection
                .prepare_cached("DELETE FROM owners WHERE until_ms <= ?1 AND owner <> ?2")?
                .execute(params![over, owner])?;
        }
        Ok(claimed)
    }
}

/// Prolongs all leases of an owner.
pub(super) struct Renew(pub(super) Lease);

impl Write for Renew {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        batch
            .connection
            .prepare_cached(
                "INSERT INTO owners (owner, until_ms) VALUES (?1, ?2)
                 ON CONFLICT (owner) DO UPDATE SET until_ms = max(until_ms, excluded.until_ms)",
            )?
            .execute(params![&*self.0.owner, batch.until(&self.0)])?;
        Ok(())
    }
}

/// Reads the runs that an owner holds.
pub(super) fn held(connection: &Connection, owner: &str) -> Result<Vec<HeldRun>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT workspace, agent, caller, tasks.id, tasks.epoch
         FROM tasks INDEXED BY tasks_by_state JOIN scopes ON scopes.number = tasks.scope
         WHERE tasks.state IN (1, 2) AND tasks.state <> 3 AND tasks.lease_owner = ?1",
    )?;
    let held = statement.query_map(params![owner], |row| {
        Ok(HeldRun {
            scope: scope(row, 0)?,
            task: row.get::<_, String>(3)?.into(),
            epoch: row.get::<_, i64>(4)? as u64,
        })
    })?;
    Ok(held.collect::<rusqlite::Result<_>>()?)
}

/// Gives up all leases of an owner.
pub(super) struct ReleaseAll(pub(super) String);

impl Write for ReleaseAll {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        batch
            .connection
            .prepare_cached(
                "UPDATE tasks INDEXED BY tasks_by_state
                 SET lease_owner = NULL, lease_until_ms = NULL
                 WHERE state IN (1, 2) AND state <> 3 AND lease_owner = ?1",
            )?
            .execute(params![self.0])?;
        batch
            .connection
            .prepare_cached("DELETE FROM owners WHERE owner = ?1")?
            .execute(params![self.0])?;
        Ok(())
    }
}

/// Looks whether writing works.
pub(super) struct Beat;

impl Write for Beat {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        batch
            .connection
            .prepare_cached("UPDATE pulse SET beats = beats + 1 WHERE number = 1")?
            .execute([])?;
        Ok(())
    }
}
