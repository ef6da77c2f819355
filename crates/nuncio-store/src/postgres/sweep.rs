//! Removing what has expired, in small parts.
//!
//! There is no index of ended tasks by time: it would be one more write for each task. Numbers
//! follow the order of creation, so whoever goes along them meets the old ones first.

use std::collections::HashSet;

use nuncio_protocol::{TaskId, TaskState, json};

use super::link::Links;
use super::read;
use super::rows::{column, number, original, scope, state};
use crate::upkeep::{Candidate, LOOKED_AT, choose};
use crate::{Scope, StoreError, Sweep, SweepKind, Swept};

/// All tasks after a number.
const ALL: &str = "
    SELECT t.number, t.created_ms, t.status_ms, t.state, t.last, false
    FROM nuncio.tasks t WHERE t.number > $1 ORDER BY t.number LIMIT $2";

/// Those that have a log, from log to log: what is compacted has none, and is not met again.
const WITH_LOG: &str = "
    WITH RECURSIVE logs AS (
        (SELECT l.task FROM nuncio.log l WHERE l.task > $1 ORDER BY l.task LIMIT 1)
        UNION ALL
        SELECT (SELECT l.task FROM nuncio.log l WHERE l.task > logs.task ORDER BY l.task LIMIT 1)
        FROM logs WHERE logs.task IS NOT NULL
    )
    SELECT t.number, t.created_ms, t.status_ms, t.state, t.last,
        EXISTS (SELECT FROM nuncio.push_configs p WHERE p.task = t.number AND p.cursor < t.last)
    FROM (SELECT task FROM logs WHERE task IS NOT NULL LIMIT $2) few
    JOIN nuncio.tasks t ON t.number = few.task ORDER BY t.number";

/// Does a part of a sweep. Several processes may: one skips what another is removing.
pub(super) async fn part(
    readers: &Links,
    writers: &Links,
    sweep: &Sweep,
) -> Result<Swept, StoreError> {
    let (candidates, outboxes) = candidates(readers, sweep).await?;
    let found = choose(&candidates, sweep, |task| {
        Ok::<_, StoreError>(outboxes.contains(&task))
    })?;
    let tasks = match (found.tasks.is_empty(), sweep.kind) {
        (true, _) => Vec::new(),
        (false, SweepKind::Expire) => expire(writers, sweep, &found.tasks).await?,
        (false, SweepKind::Compact) => compact(readers, writers, sweep, &found.tasks).await?,
    };
    let next = found.next;
    Ok(Swept { tasks, next })
}

async fn candidates(
    links: &Links,
    sweep: &Sweep,
) -> Result<(Vec<Candidate>, HashSet<i64>), StoreError> {
    let after = sweep.from.map_or(0, |mark| mark.0 as i64);
    let sql = match sweep.kind {
        SweepKind::Expire => ALL,
        SweepKind::Compact => WITH_LOG,
    };
    let rows = links.read(sql, &[&after, &(LOOKED_AT as i64)]).await?;
    let (mut candidates, mut outboxes) = (Vec::with_capacity(rows.len()), HashSet::new());
    for row in &rows {
        let candidate = Candidate {
            number: column(row, 0)?,
            created_ms: column(row, 1)?,
            status_ms: column(row, 2)?,
            state: state(row, 3)?,
            last: number(row, 4)?,
        };
        if column(row, 5)? {
            outboxes.insert(candidate.number);
        }
        candidates.push(candidate);
    }
    Ok((candidates, outboxes))
}

async fn expire(
    links: &Links,
    sweep: &Sweep,
    tasks: &[i64],
) -> Result<Vec<(Scope, TaskId)>, StoreError> {
    let sql = "SELECT workspace, agent, caller, id FROM nuncio.expire_1($1, $2, $3)";
    let rows = links
        .write(sql, &[&tasks, &ended(), &sweep.before.unix_ms()])
        .await?;
    rows.iter().map(named).collect()
}

async fn compact(
    readers: &Links,
    writers: &Links,
    sweep: &Sweep,
    tasks: &[i64],
) -> Result<Vec<(Scope, TaskId)>, StoreError> {
    let older = "SELECT t.number FROM nuncio.tasks t
        LEFT JOIN nuncio.snapshots n ON n.task = t.number AND n.seq = t.last
        WHERE t.number = ANY ($1) AND n.task IS NULL";
    let rows = readers.read(older, &[&tasks]).await?;
    let without: Vec<i64> = rows
        .iter()
        .map(|row| column(row, 0))
        .collect::<Result<_, _>>()?;
    let (mut given, mut seqs, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for task in without {
        // One at a time, for it has to be known which is which.
        for stored in read::load_numbered(readers, &[task]).await? {
            given.push(task);
            seqs.push(stored.head.last as i64);
            bodies.push(json::encode(&*stored.task));
        }
    }
    let sql = "SELECT workspace, agent, caller, id
        FROM nuncio.compact_1($1, $2, $3, $4, $5, $6)";
    let before = sweep.before.unix_ms();
    let rows = writers
        .write(sql, &[&tasks, &ended(), &before, &given, &seqs, &bodies])
        .await?;
    rows.iter().map(named).collect()
}

/// The states of tasks that have ended.
fn ended() -> Vec<i32> {
    let ended = TaskState::ALL.iter().filter(|state| state.is_terminal());
    ended.map(|state| state.number()).collect()
}

fn named(row: &tokio_postgres::Row) -> Result<(Scope, TaskId), StoreError> {
    Ok((scope(row, 0)?, original(column(row, 3)?).into()))
}
