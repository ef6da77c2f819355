//! Looking whether a database is sound, and in which shape: `nuncio db check`, `nuncio upgrade check`.

use nuncio_protocol::{Event, Timestamp};
use tokio_postgres::Client;

use super::connection::Connector;
use super::failure::Failure;
use super::rows::{column, number, original};
use super::schema::{self, KNOWN, RETENTION};
use super::transfer::{ID, whole, whole_columns, whole_from};
use crate::fold::fold;
use crate::{CheckReport, SchemaReport, StoreError, WholeTask};

/// Tasks read at once; each may be large.
const PAGE: i64 = 50;

/// What has a task, a session or a scope to which it belongs, and the version that made it.
const REFERENCES: &[(&str, usize, &str, &str)] = &[
    ("log", 1, "task", "tasks"),
    ("snapshots", 1, "task", "tasks"),
    ("checkpoints", 1, "task", "tasks"),
    ("requests", 1, "task", "tasks"),
    ("keys", 1, "task", "tasks"),
    ("push_configs", 1, "task", "tasks"),
    ("push_states", 4, "task", "tasks"),
    ("push_letters", 4, "task", "tasks"),
    ("push_calls", 4, "task", "tasks"),
    ("nodes", 5, "task", "tasks"),
    ("session_entries", 5, "session", "sessions"),
    ("session_states", 5, "session", "sessions"),
    ("caller_states", 5, "scope", "scopes"),
    ("sessions", 5, "scope", "scopes"),
    ("owned", 6, "scope", "scopes"),
    ("tasks", 1, "scope", "scopes"),
];

/// Totals that differ from what there is.
const TOTALS: &str = "
    WITH counted AS (
        SELECT scope, state, sum(count) AS count FROM nuncio.totals
        GROUP BY scope, state HAVING sum(count) <> 0
    ), there AS (
        SELECT scope, state, count(*)::numeric AS count FROM nuncio.tasks GROUP BY scope, state
    )
    SELECT count(*) FROM (
        (SELECT * FROM counted EXCEPT SELECT * FROM there)
        UNION ALL
        (SELECT * FROM there EXCEPT SELECT * FROM counted)) wrong";

/// Sessions whose entries are not all positions up to the last one.
const GAPS: &str = "
    SELECT count(*) FROM (
        SELECT FROM nuncio.sessions n
        LEFT JOIN nuncio.session_entries e ON e.session = n.number
        GROUP BY n.number
        HAVING coalesce(max(e.position), 0) <> n.last
            OR count(e.position) <> coalesce(max(e.position) - min(e.position) + 1, 0)) gaps";

/// Looks in which shape the schema is.
pub(super) async fn examine(connector: &Connector) -> Result<SchemaReport, StoreError> {
    let connection = connector.open().await?;
    let client = connection.client();
    let found = schema::version(client).await?;
    let unfinished = match found {
        0 => 0,
        _ => {
            let sql = "SELECT count(*) FROM nuncio.tasks WHERE state IN (1, 2) AND state <> 3";
            count(client, sql).await?
        }
    };
    Ok(SchemaReport {
        found,
        known: KNOWN,
        unfinished,
    })
}

/// Checks what is in the schema, as of one moment.
pub(super) async fn check(connector: &Connector) -> Result<CheckReport, StoreError> {
    let connection = connector.open().await?;
    let client = connection.client();
    let version = schema::recognise(client).await?;
    if version == 0 {
        return Err(StoreError::Refused(
            "there is no schema nuncio in the database yet".to_owned(),
        ));
    }
    // A connection that ends lets the moment go. Whole tables are what has to be read here.
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
        SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on;
        SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on";
    client.batch_execute(begin).await.map_err(failed)?;
    let mut report = CheckReport::default();
    for (table, since, column, of) in REFERENCES {
        if version < *since {
            continue;
        }
        let sql = format!(
            "SELECT count(*) FROM nuncio.{table} x
             WHERE NOT EXISTS (SELECT FROM nuncio.{of} t WHERE t.number = x.{column})"
        );
        let strays = count(client, &sql).await?;
        if strays > 0 {
            report.note(format!("{strays} rows of {table} lead nowhere"));
        }
    }
    let wrong = count(client, TOTALS).await?;
    if wrong > 0 {
        report.note(format!("{wrong} totals do not add up"));
    }
    if version >= schema::SESSIONS {
        let gaps = count(client, GAPS).await?;
        if gaps > 0 {
            report.note(format!("{gaps} sessions have gaps"));
        }
    }
    check_tasks(client, version, &mut report).await?;
    Ok(report)
}

async fn check_tasks(
    client: &Client,
    version: usize,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let forgotten = match version < RETENTION {
        true => "0::bigint",
        false => "t.forgotten",
    };
    let sql = format!(
        "SELECT {} FROM {} WHERE t.id > $1 ORDER BY t.id LIMIT {PAGE}",
        whole_columns(forgotten),
        whole_from()
    );
    // Page by page along an index.
    let led = "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;
        SET LOCAL enable_mergejoin = off";
    client.batch_execute(led).await.map_err(failed)?;
    let page = client.prepare(&sql).await.map_err(failed)?;
    let mut after = String::new();
    loop {
        let rows = client.query(&page, &[&after]).await.map_err(failed)?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = column::<&str>(last, ID)?.to_owned();
        for row in &rows {
            report.tasks += 1;
            let (last, forgotten) = (number(row, 0)?, number(row, ID + 3)?);
            let runs: Vec<i64> = column(row, ID + 4)?;
            report.events += last.saturating_sub(forgotten);
            let checked = whole(row)
                .map_err(|error| error.to_string())
                .and_then(|whole| check_task(&whole, forgotten, &runs));
            if let Err(problem) = checked {
                let id = original(column(row, ID)?);
                report.note(format!("task {id}: {problem}"));
            }
        }
    }
}

/// `runs` are the first positions of what is there of the log.
fn check_task(whole: &WholeTask, forgotten: u64, runs: &[i64]) -> Result<(), String> {
    let state = whole.task.status.state;
    if whole.head.state != state {
        return Err("the row has another state than the log".to_owned());
    }
    let Some(log) = &whole.log else {
        let whole_log = forgotten == whole.head.last && runs.is_empty();
        return match whole_log && state.is_terminal() {
            true => Ok(()),
            false => Err("its log is compacted, but not as that of an ended task".to_owned()),
        };
    };
    let folded = fold(None, log.iter().map(Event::response));
    if folded.map_err(|error| error.to_string())? != whole.task {
        return Err("snapshot and tail are not the fold of the log".to_owned());
    }
    let told = whole.task.status.timestamp.map(Timestamp::unix_ms);
    if told > Some(whole.status_time.unix_ms()) {
        return Err("the row has an older status than the log".to_owned());
    }
    Ok(())
}

async fn count(client: &Client, sql: &str) -> Result<u64, StoreError> {
    let row = client.query_one(sql, &[]).await.map_err(failed)?;
    number(&row, 0)
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    Failure::Sql(error).told("examining the database")
}
