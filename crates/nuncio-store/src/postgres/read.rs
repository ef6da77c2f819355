//! Reading tasks: each by one statement, so that row, snapshot and tail are of one moment.

use std::sync::Arc;

use nuncio_protocol::{Event, StreamResponse, TaskId};

use super::link::Links;
use super::rows::{
    self, FORMAT, HEAD, OF_SCOPE, TASK, TASK_JOINS, column, number, scope_texts, stored,
};
use crate::{Head, Scope, StoreError, StoredTask};

/// Runs a statement whose first four parameters are id and scope.
macro_rules! of_task {
    ($links:expr, $sql:expr, $scope:expr, $task:expr $(, $more:expr)*) => {{
        let [workspace, agent, caller] = $crate::postgres::rows::scope_texts($scope);
        let id = $crate::postgres::rows::stored($task.as_str());
        $links
            .read($sql, &[&id, &workspace, &agent, &caller $(, $more)*])
            .await
    }};
}

/// Reads what a key was used for.
pub(super) async fn find_key(
    links: &Links,
    scope: &Scope,
    key: &str,
) -> Result<Option<(TaskId, [u8; 32])>, StoreError> {
    let sql = "SELECT t.id, k.request_hash FROM nuncio.scopes s
        JOIN nuncio.keys k ON k.scope = s.number AND k.key = $4
        JOIN nuncio.tasks t ON t.number = k.task
        WHERE s.workspace = $1 AND s.agent = $2 AND s.caller = $3";
    let [workspace, agent, caller] = scope_texts(scope);
    let rows = links
        .read(sql, &[&workspace, &agent, &caller, &stored(key)])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let hash: &[u8] = column(row, 1)?;
    let hash = hash
        .try_into()
        .map_err(|_| StoreError::Corrupt("a hash of another size".to_owned()))?;
    Ok(Some((id(row, 0)?, hash)))
}

fn id(row: &tokio_postgres::Row, at: usize) -> Result<TaskId, StoreError> {
    Ok(rows::original(column(row, at)?).into())
}

fn load_sql(condition: &str) -> String {
    format!(
        "SELECT {HEAD}, s.workspace, s.agent, s.caller, {TASK},
           EXISTS (SELECT FROM nuncio.push_configs p WHERE p.task = t.number)
         FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
         LEFT JOIN nuncio.checkpoints c ON c.task = t.number {TASK_JOINS}
         WHERE {condition}"
    )
}

fn loaded(row: &tokio_postgres::Row) -> Result<StoredTask, StoreError> {
    let head = rows::head(row, 0)?;
    Ok(StoredTask {
        scope: rows::scope(row, 7)?,
        task: rows::task(row, 10, head.last)?,
        head,
        has_webhooks: column(row, 14)?,
    })
}

/// Reads a task with its head.
pub(super) async fn load(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
) -> Result<Option<StoredTask>, StoreError> {
    let rows = of_task!(links, &load_sql(OF_SCOPE), scope, task)?;
    rows.first().map(loaded).transpose()
}

/// Reads tasks by their numbers.
pub(super) async fn load_numbered(
    links: &Links,
    numbers: &[i64],
) -> Result<Vec<StoredTask>, StoreError> {
    let sql = load_sql("t.number = ANY ($1)");
    let rows = links.read(&sql, &[&numbers]).await?;
    rows.iter().map(loaded).collect()
}

/// Reads at most `limit` events after a position.
pub(super) async fn events(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let Ok(wanted) = i64::try_from(after.saturating_add(1)) else {
        return Ok(Vec::new());
    };
    if limit == 0 {
        return Ok(Vec::new());
    }
    // The run that holds the first wanted position may begin before it, or end before it too.
    let sql = format!(
        "WITH one AS MATERIALIZED (
             SELECT t.number FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
             WHERE {OF_SCOPE}
         )
         SELECT l.first, l.format, l.payload FROM nuncio.log l
         WHERE l.task = (SELECT number FROM one)
           AND l.first >= coalesce((SELECT max(f.first) FROM nuncio.log f
                WHERE f.task = (SELECT number FROM one) AND f.first <= $5), 0)
         ORDER BY l.first LIMIT $6"
    );
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let rows = of_task!(links, &sql, scope, task, &wanted, &most)?;
    let mut events = Vec::new();
    for row in &rows {
        let first = rows::number(row, 0)?;
        if column::<i16>(row, 1)? != FORMAT {
            return Err(StoreError::Corrupt(
                "events of an unknown format".to_owned(),
            ));
        }
        let run: Vec<StreamResponse> = rows::decode(column(row, 2)?)?;
        let run = (first..)
            .zip(run)
            .filter(|(position, _)| *position > after)
            .map(|(position, response)| Event::new(Some(position), response))
            .take(limit - events.len());
        events.extend(run);
        if events.len() == limit {
            break;
        }
    }
    Ok(events)
}

/// Reads what accompanied the messages after a position.
pub(super) async fn requests(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
    after: u64,
) -> Result<Vec<(u64, Arc<str>)>, StoreError> {
    let sql = format!(
        "SELECT r.position, r.body
         FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
         JOIN nuncio.requests r ON r.task = t.number
         WHERE {OF_SCOPE} AND r.position > $5 ORDER BY r.position"
    );
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = of_task!(links, &sql, scope, task, &after)?;
    let request = |row| Ok((number(row, 0)?, column::<&str>(row, 1)?.into()));
    rows.iter().map(request).collect()
}

/// Reads where tasks stand.
pub(super) async fn heads(
    links: &Links,
    tasks: &[(Scope, TaskId)],
) -> Result<Vec<(TaskId, Head)>, StoreError> {
    let sql = format!(
        "SELECT {HEAD}, t.id
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
              AS asked (id, workspace, agent, caller)
         JOIN nuncio.scopes s ON s.workspace = asked.workspace AND s.agent = asked.agent
              AND s.caller = asked.caller
         JOIN nuncio.tasks t ON t.id = asked.id AND t.scope = s.number
         LEFT JOIN nuncio.checkpoints c ON c.task = t.number"
    );
    let mut columns: [Vec<_>; 4] = Default::default();
    for (scope, task) in tasks {
        let [workspace, agent, caller] = scope_texts(scope);
        for (column, text) in
            columns
                .iter_mut()
                .zip([stored(task.as_str()), workspace, agent, caller])
        {
            column.push(text);
        }
    }
    let [ids, workspaces, agents, callers] = &columns;
    let rows = links
        .read(&sql, &[ids, workspaces, agents, callers])
        .await?;
    let stands = |row| Ok((id(row, 7)?, rows::head(row, 0)?));
    rows.iter().map(stands).collect()
}

pub(super) use of_task;
