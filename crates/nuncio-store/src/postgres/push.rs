//! Webhooks and how far they have come.

use nuncio_protocol::{PushConfigId, TaskId, Version, json};

use super::link::Links;
use super::read::of_task;
use super::rows::{FORMAT, OF_SCOPE, column, decode, number, original, scope, scope_texts, stored};
use crate::{PushConfigRow, Scope, StoreError, Webhook};

/// A webhook as it is stored: id and body.
pub(super) fn encode(task: &TaskId, webhook: &Webhook) -> (String, String) {
    let mut config = webhook.config.clone();
    config.task_id = Some(task.clone());
    let id = config.id.clone().unwrap_or_default();
    (stored(id.as_str()).into_owned(), json::encode(&config))
}

/// A webhook from its body and its version.
pub(super) fn webhook(body: &str, version: &str) -> Result<Webhook, StoreError> {
    Ok(Webhook {
        config: decode(body)?,
        version: Version::parse(version)
            .map_err(|unknown| StoreError::Corrupt(format!("a webhook: {unknown}")))?,
    })
}

/// Stores a webhook; `false` if there is no such task. Until that is done nobody removes the task.
pub(super) async fn put(
    links: &Links,
    scope: &Scope,
    webhook: &Webhook,
) -> Result<bool, StoreError> {
    let Some(task) = &webhook.config.task_id else {
        return Ok(false);
    };
    let sql = format!(
        "INSERT INTO nuncio.push_configs (task, id, cursor, format, body, version)
         SELECT t.number, $5, t.last, $6, $7, $8
         FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope WHERE {OF_SCOPE}
         FOR KEY SHARE OF t
         ON CONFLICT (task, id) DO UPDATE
         SET format = excluded.format, body = excluded.body, version = excluded.version
         RETURNING task"
    );
    let (id, body) = encode(task, webhook);
    let [workspace, agent, caller] = scope_texts(scope);
    let rows = links
        .write(
            &sql,
            &[
                &stored(task.as_str()),
                &workspace,
                &agent,
                &caller,
                &id,
                &FORMAT,
                &body,
                &webhook.version.as_str(),
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Reads the webhooks of a task by id.
pub(super) async fn configs(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
) -> Result<Option<Vec<PushConfigRow>>, StoreError> {
    let sql = format!(
        "SELECT p.body, p.cursor, p.version
         FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
         LEFT JOIN nuncio.push_configs p ON p.task = t.number
         WHERE {OF_SCOPE} ORDER BY p.id"
    );
    let rows = of_task!(links, &sql, scope, task)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut configs = Vec::with_capacity(rows.len());
    for row in &rows {
        let Some(body) = column::<Option<&str>>(row, 0)? else {
            break;
        };
        configs.push(PushConfigRow {
            webhook: webhook(body, column(row, 2)?)?,
            cursor: number(row, 1)?,
        });
    }
    Ok(Some(configs))
}

/// Deletes a webhook; `false` if there is no such task.
pub(super) async fn delete(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
    config: &PushConfigId,
) -> Result<bool, StoreError> {
    let sql = format!(
        "WITH one AS (
             SELECT t.number FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
             WHERE {OF_SCOPE}
         ), gone AS (
             DELETE FROM nuncio.push_configs WHERE task = (SELECT number FROM one) AND id = $5
         )
         SELECT number FROM one"
    );
    let [workspace, agent, caller] = scope_texts(scope);
    let (task, config) = (stored(task.as_str()), stored(config.as_str()));
    let rows = links
        .write(&sql, &[&task, &workspace, &agent, &caller, &config])
        .await?;
    Ok(!rows.is_empty())
}

/// Notes how far a webhook has come.
pub(super) async fn advance(
    links: &Links,
    task: &TaskId,
    config: &PushConfigId,
    cursor: u64,
) -> Result<(), StoreError> {
    let sql = "UPDATE nuncio.push_configs SET cursor = $3
        WHERE task = (SELECT number FROM nuncio.tasks WHERE id = $1) AND id = $2 AND cursor < $3";
    let cursor = i64::try_from(cursor).unwrap_or(i64::MAX);
    let (task, config) = (stored(task.as_str()), stored(config.as_str()));
    links.write(sql, &[&task, &config, &cursor]).await?;
    Ok(())
}

/// Tasks with a webhook that is behind, `$1` at most, after `$2`: those that may have something to get
/// in their logs, and those with dead letters to be delivered again.
pub(super) const BACKLOG: &str = "SELECT s.workspace, s.agent, s.caller, t.id FROM (
        (SELECT DISTINCT p.task FROM nuncio.push_configs p
         JOIN nuncio.tasks x ON x.number = p.task
         LEFT JOIN nuncio.push_states n ON n.task = p.task AND n.id = p.id
         WHERE NOT p.done AND p.cursor < x.last AND n.disabled IS NULL
           AND p.task > coalesce((SELECT number FROM nuncio.tasks WHERE id = $2), 0)
         ORDER BY p.task LIMIT $1)
        UNION
        (SELECT DISTINCT l.task FROM nuncio.push_letters l
         LEFT JOIN nuncio.push_states n ON n.task = l.task AND n.id = l.id
         WHERE l.requested AND n.disabled IS NULL
           AND l.task > coalesce((SELECT number FROM nuncio.tasks WHERE id = $2), 0)
         ORDER BY l.task LIMIT $1)
        ORDER BY 1 LIMIT $1
    ) behind
    JOIN nuncio.tasks t ON t.number = behind.task
    JOIN nuncio.scopes s ON s.number = t.scope ORDER BY behind.task";

/// Reads which tasks have a webhook that is behind.
pub(super) async fn backlog(
    links: &Links,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<(Scope, TaskId)>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let after = after.map(|task| stored(task.as_str()));
    let rows = links.read(BACKLOG, &[&limit, &after]).await?;
    let named = |row| Ok((scope(row, 0)?, original(column(row, 3)?).into()));
    rows.iter().map(named).collect()
}
