//! Looking whether a database is sound: `nuncio db check`.

use std::path::Path;

use nuncio_protocol::Timestamp;
use rusqlite::Connection;

use super::batch::slot;
use super::connection::{file_name, open_reader};
use super::failure::Failure;
use super::read::{self, Snapshot, Which};
use super::schema;
use crate::parts::{has_parts, parts_of, wrong_parts};
use crate::{CheckReport, StoreError, StoredTask};

/// Rows that point to what is not there, by table and the version that made it.
const STRAYS: &[(&str, usize, &str)] = &[
    (
        "log",
        1,
        "SELECT count(*) FROM log WHERE slot >> 32 NOT IN (SELECT number FROM tasks)",
    ),
    (
        "snapshots",
        1,
        "SELECT count(*) FROM snapshots WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "checkpoints",
        1,
        "SELECT count(*) FROM checkpoints WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "requests",
        3,
        "SELECT count(*) FROM requests WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "keys",
        1,
        "SELECT count(*) FROM keys WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "push_configs",
        1,
        "SELECT count(*) FROM push_configs WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "push_states",
        5,
        "SELECT count(*) FROM push_states
         WHERE (task, id) NOT IN (SELECT task, id FROM push_configs)",
    ),
    (
        "push_letters",
        5,
        "SELECT count(*) FROM push_letters
         WHERE (task, id) NOT IN (SELECT task, id FROM push_configs)",
    ),
    (
        "push_calls",
        5,
        "SELECT count(*) FROM push_calls
         WHERE (task, id) NOT IN (SELECT task, id FROM push_configs)",
    ),
    (
        "nodes",
        6,
        "SELECT count(*) FROM nodes WHERE task NOT IN (SELECT number FROM tasks)",
    ),
    (
        "sessions",
        6,
        "SELECT count(*) FROM sessions WHERE scope NOT IN (SELECT number FROM scopes)",
    ),
    (
        "session_entries",
        6,
        "SELECT count(*) FROM session_entries
         WHERE slot >> 32 NOT IN (SELECT number FROM sessions)",
    ),
    (
        "session_states",
        6,
        "SELECT count(*) FROM session_states
         WHERE session NOT IN (SELECT number FROM sessions)",
    ),
    (
        "caller_states",
        6,
        "SELECT count(*) FROM caller_states WHERE scope NOT IN (SELECT number FROM scopes)",
    ),
    (
        "owned",
        7,
        "SELECT count(*) FROM owned WHERE scope NOT IN (SELECT number FROM scopes)",
    ),
    (
        "tasks",
        1,
        "SELECT count(*) FROM tasks WHERE scope NOT IN (SELECT number FROM scopes)",
    ),
];

/// Totals that differ from what there is.
const TOTALS: &str = "
    SELECT count(*) FROM (
        SELECT scope, state, count FROM totals WHERE count <> 0
        EXCEPT SELECT scope, state, count(*) FROM tasks GROUP BY scope, state
        UNION ALL
        SELECT scope, state, count(*) FROM tasks GROUP BY scope, state
        EXCEPT SELECT scope, state, count FROM totals WHERE count <> 0)";

/// Sessions whose entries are not all positions up to the last one.
const GAPS: &str = "
    SELECT count(*) FROM (
        SELECT 1 FROM sessions LEFT JOIN session_entries
            ON slot > sessions.number << 32 AND slot <= (sessions.number << 32) + 4294967295
        GROUP BY sessions.number
        HAVING ifnull(max(slot) - (sessions.number << 32), 0) <> sessions.last
            OR count(slot) <> ifnull(max(slot) - min(slot) + 1, 0))";

/// Checks a database: SQLite's own check, gapless logs and sessions, snapshots that are the fold of their
/// logs, references that lead somewhere, totals that add up, and large parts that are what was stored,
/// if they are in the folder beside it.
///
/// Reads one moment of it; may run beside the process that serves it. Blocks, for as long as
/// reading all of it takes.
///
/// # Errors
/// [`StoreError`] if it cannot be read at all; what is wrong with a readable one is in the report.
pub fn check(path: impl AsRef<Path>) -> Result<CheckReport, StoreError> {
    let path = path.as_ref();
    check_with(path, &parts_of(path))
}

/// As [`check`], with the large parts in this folder.
pub(super) fn check_with(path: &Path, parts: &Path) -> Result<CheckReport, StoreError> {
    if !path.exists() {
        let name = file_name(path);
        return Err(StoreError::Refused(format!(
            "{name}: there is no such file"
        )));
    }
    let connection = open_reader(path)?;
    schema::recognise(&connection, path)?;
    let version = schema::version(&connection)?;
    Ok(report(&connection, version, parts)?)
}

fn report(connection: &Connection, version: usize, parts: &Path) -> Result<CheckReport, Failure> {
    let moment = connection.unchecked_transaction()?;
    let mut report = CheckReport::default();
    let mut statement = moment.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            report.note(line);
        }
    }
    for (table, since, query) in STRAYS {
        if version < *since {
            continue;
        }
        let strays: i64 = moment.query_row(query, [], |row| row.get(0))?;
        if strays > 0 {
            report.note(format!("{strays} rows of {table} lead nowhere"));
        }
    }
    let wrong: i64 = moment.query_row(TOTALS, [], |row| row.get(0))?;
    if wrong > 0 {
        report.note(format!("{wrong} totals do not add up"));
    }
    if version >= schema::SESSIONS {
        let gaps: i64 = moment.query_row(GAPS, [], |row| row.get(0))?;
        if gaps > 0 {
            report.note(format!("{gaps} sessions have gaps"));
        }
    }
    // One of an older version is checked as it is, before it is carried over.
    let forgotten = match version < schema::RETENTION {
        true => "0",
        false => "forgotten",
    };
    let tasks = format!("SELECT number, id, last, status_ms, {forgotten} FROM tasks");
    let mut statement = moment.prepare(&tasks)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, id): (i64, String) = (row.get(0)?, row.get(1)?);
        let (last, status_ms): (i64, i64) = (row.get(2)?, row.get(3)?);
        report.tasks += 1;
        let forgotten: i64 = row.get(4)?;
        report.events += (last - forgotten) as u64;
        let checked = match forgotten {
            0 => check_task(&moment, number, last as u64, status_ms),
            _ => check_compacted(&moment, number, last as u64, forgotten as u64),
        };
        match checked {
            Ok(stored) if !parts.is_dir() => {
                report.parts_elsewhere += u64::from(has_parts(&stored.task));
            }
            Ok(stored) => {
                for problem in wrong_parts(parts, &stored.scope, &stored.task) {
                    report.note(format!("task {id}: {problem}"));
                }
            }
            Err(problem) => report.note(format!("task {id}: {problem}")),
        }
    }
    Ok(report)
}

fn check_task(
    connection: &Connection,
    number: i64,
    last: u64,
    status_ms: i64,
) -> Result<StoredTask, String> {
    let say = |failure: Failure| StoreError::from(failure).to_string();
    let last_in_log = check_runs(connection, number).map_err(say)??;
    if last_in_log != last {
        return Err(format!(
            "the log ends at {last_in_log}, the row says {last}"
        ));
    }
    let empty = Snapshot::of_nothing();
    let folded = empty.fold_tail(connection, number, last).map_err(say)?;
    let stored = read::load(connection, &Which::Number(number)).map_err(say)?;
    let Some(stored) = stored else {
        return Err("it has no scope".to_owned());
    };
    if stored.task != folded {
        return Err("snapshot and tail are not the fold of the log".to_owned());
    }
    if stored.head.state != folded.status.state {
        return Err("the row has another state than the log".to_owned());
    }
    if folded.status.timestamp.map(Timestamp::unix_ms) > Some(status_ms) {
        return Err("the row has an older status than the log".to_owned());
    }
    Ok(stored)
}

/// Of a compacted log nothing is left but the task at its end.
fn check_compacted(
    connection: &Connection,
    number: i64,
    last: u64,
    forgotten: u64,
) -> Result<StoredTask, String> {
    let say = |failure: Failure| StoreError::from(failure).to_string();
    let stored = read::load(connection, &Which::Number(number)).map_err(say)?;
    let stored = stored.ok_or("it has no scope")?;
    let left = read::events(connection, number, 0, 1).map_err(say)?;
    let state = stored.task.status.state;
    if forgotten != last || !left.is_empty() || !state.is_terminal() {
        return Err("its log is compacted, but not as that of an ended task".to_owned());
    }
    if stored.head.state != state {
        return Err("the row has another state than the snapshot".to_owned());
    }
    Ok(stored)
}

/// Goes along the runs of a log and gives the last position.
fn check_runs(connection: &Connection, number: i64) -> Result<Result<u64, String>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT slot - ?1, count, json_array_length(payload) FROM log
         WHERE slot >= ?1 AND slot <= ?2 ORDER BY slot",
    )?;
    let ends = [slot(number, 0)?, slot(number, u64::from(u32::MAX))?];
    let mut rows = statement.query(ends)?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
        if first as u64 != last + 1 {
            return Ok(Err(format!("its log goes from {last} to {first}")));
        }
        if count != row.get::<_, i64>(2)? {
            return Ok(Err(format!("the events at {first} are not {count}")));
        }
        last += count as u64;
    }
    Ok(Ok(last))
}
