//! Webhooks and how far they have come.

use nuncio_protocol::{PushConfigId, TaskId, Version, json};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::read::decode;
use super::schema::FORMAT;
use super::settle::{forget, forget_state};
use crate::{PushConfigRow, Scope, StoreError, Webhook};

/// Stores a webhook.
pub(super) struct PutConfig {
    pub(super) scope: Scope,
    pub(super) webhook: Webhook,
}

impl Write for PutConfig {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let Some(id) = &self.webhook.config.task_id else {
            return Ok(false);
        };
        let Some((task, last)) = task_and_last(batch.connection, &self.scope, id)? else {
            return Ok(false);
        };
        overwrite_what_goes(batch.connection, true)?;
        let put = insert_webhook(batch.connection, task, id, &self.webhook, last);
        overwrite_what_goes(batch.connection, false)?;
        put?;
        Ok(true)
    }
}

/// Deletes a webhook.
pub(super) struct DeleteConfig {
    pub(super) scope: Scope,
    pub(super) task: TaskId,
    pub(super) config: PushConfigId,
}

impl Write for DeleteConfig {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let found = task_and_last(batch.connection, &self.scope, &self.task)?;
        let Some((task, _)) = found else {
            return Ok(false);
        };
        let connection = batch.connection;
        overwrite_what_goes(connection, true)?;
        let deleted = connection
            .prepare_cached("DELETE FROM push_configs WHERE task = ?1 AND id = ?2")?
            .execute(params![task, self.config.as_str()]);
        overwrite_what_goes(connection, false)?;
        deleted?;
        forget(connection, task, self.config.as_str())?;
        Ok(true)
    }
}

/// Notes how far a webhook has come.
pub(super) struct AdvanceCursor {
    pub(super) task: TaskId,
    pub(super) config: PushConfigId,
    pub(super) cursor: u64,
}

impl Write for AdvanceCursor {
    type Reply = ();

    fn apply(&self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        batch
            .connection
            .prepare_cached(
                "UPDATE push_configs SET cursor = ?3
                 WHERE task = (SELECT number FROM tasks WHERE id = ?1) AND id = ?2 AND cursor < ?3",
            )?
            .execute(params![
                self.task.as_str(),
                self.config.as_str(),
                self.cursor as i64
            ])?;
        Ok(())
    }
}

/// Sets whether deleted content is overwritten in the file, as secrets are to be.
fn overwrite_what_goes(connection: &Connection, overwrite: bool) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "secure_delete", overwrite, |_| Ok(()))
}

/// Puts a webhook on a task; one of the same id keeps its place in the log, and begins anew
/// otherwise.
pub(super) fn insert_webhook(
    connection: &Connection,
    task: i64,
    task_id: &TaskId,
    webhook: &Webhook,
    cursor: i64,
) -> rusqlite::Result<()> {
    let mut config = webhook.config.clone();
    config.task_id = Some(task_id.clone());
    let id = config.id.clone().unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO push_configs (task, id, cursor, format, body, version)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (task, id) DO UPDATE
             SET format = excluded.format, body = excluded.body, version = excluded.version",
        )?
        .execute(params![
            task,
            id.as_str(),
            cursor,
            FORMAT,
            json::encode(&config),
            webhook.version.as_str(),
        ])?;
    forget_state(connection, task, id.as_str())
}

/// Reads the webhooks of a task by id.
pub(super) fn configs(
    connection: &Connection,
    scope: &Scope,
    task: &TaskId,
) -> Result<Option<Vec<PushConfigRow>>, Failure> {
    let Some((task, _)) = task_and_last(connection, scope, task)? else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(
        "SELECT body, cursor, version FROM push_configs WHERE task = ?1 ORDER BY id",
    )?;
    let mut rows = statement.query(params![task])?;
    let mut configs = Vec::new();
    while let Some(row) = rows.next()? {
        let version = row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?;
        let webhook = Webhook {
            config: decode(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?,
            version: Version::parse(version)
                .map_err(|unknown| StoreError::Corrupt(format!("a webhook: {unknown}")))?,
        };
        configs.push(PushConfigRow {
            webhook,
            cursor: row.get::<_, i64>(1)? as u64,
        });
    }
    Ok(Some(configs))
}

/// Reads which tasks have a webhook that is behind.
pub(super) fn backlog(
    connection: &Connection,
    after: Option<&TaskId>,
    limit: usize,
) -> Result<Vec<(Scope, TaskId)>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT workspace, agent, caller, tasks.id FROM push_configs
         JOIN tasks ON tasks.number = push_configs.task
         JOIN scopes ON scopes.number = tasks.scope
         LEFT JOIN push_states ON push_states.task = push_configs.task
                              AND push_states.id = push_configs.id
         WHERE push_configs.task > ifnull((SELECT number FROM tasks WHERE id = ?2), 0)
           AND push_states.disabled IS NULL
           AND (push_configs.cursor < tasks.last
                OR EXISTS (SELECT 1 FROM push_letters AS l
                           WHERE l.task = push_configs.task AND l.id = push_configs.id
                             AND l.requested = 1))
         GROUP BY push_configs.task ORDER BY push_configs.task LIMIT ?1",
    )?;
    let behind = statement.query_map(params![limit, after.map(TaskId::as_str)], |row| {
        Ok((super::read::scope(row, 0)?, row.get::<_, String>(3)?.into()))
    })?;
    Ok(behind.collect::<rusqlite::Result<_>>()?)
}

fn task_and_last(
    connection: &Connection,
    scope: &Scope,
    task: &TaskId,
) -> rusqlite::Result<Option<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT tasks.number, tasks.last FROM tasks
             JOIN scopes ON scopes.number = tasks.scope
             WHERE tasks.id = ?1 AND workspace = ?2 AND agent = ?3 AND caller = ?4",
        )?
        .query_row(
            params![
                task.as_str(),
                scope.workspace.as_str(),
                scope.agent.as_str(),
                scope.caller.as_str()
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()
}
