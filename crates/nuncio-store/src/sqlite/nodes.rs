//! Call trees of tasks.

use nuncio_protocol::TaskId;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::batch::{Batch, Write};
use super::failure::Failure;
use super::store::SqliteStore;
use crate::nodes::{MAX_NODES, check_nodes};
use crate::{NodeRow, Nodes, Scope, StoreFuture};

impl Nodes for SqliteStore {
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(async move {
            check_nodes(&nodes)?;
            self.writer.run(RecordNodes { scope, task, nodes }).await
        })
    }

    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>> {
        let (scope, task) = (scope.clone(), task.clone());
        Box::pin(
            self.readers
                .run(move |connection| read(connection, &scope, &task)),
        )
    }
}

fn read(connection: &Connection, scope: &Scope, task: &TaskId) -> Result<Vec<NodeRow>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT nodes.id, nodes.body FROM tasks
         JOIN scopes ON scopes.number = tasks.scope
         JOIN nodes ON nodes.task = tasks.number
         WHERE tasks.id = ?1 AND workspace = ?2 AND agent = ?3 AND caller = ?4
         ORDER BY nodes.number",
    )?;
    let values = params![
        task.as_str(),
        scope.workspace.as_str(),
        scope.agent.as_str(),
        scope.caller.as_str(),
    ];
    let rows = statement.query_map(values, |row| {
        Ok(NodeRow {
            id: row.get(0)?,
            json: row.get(1)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Writes nodes; what it is given has been checked.
struct RecordNodes {
    scope: Scope,
    task: TaskId,
    nodes: Vec<NodeRow>,
}

impl Write for RecordNodes {
    type Reply = bool;

    fn apply(&self, batch: &mut Batch<'_>) -> Result<bool, Failure> {
        let Some(scope) = batch.scope(&self.scope)? else {
            return Ok(false);
        };
        let connection = batch.connection;
        let task: Option<i64> = connection
            .prepare_cached("SELECT number FROM tasks WHERE id = ?1 AND scope = ?2")?
            .query_row(params![self.task.as_str(), scope], |row| row.get(0))
            .optional()?;
        let Some(task) = task else {
            return Ok(false);
        };
        let mut replace =
            connection.prepare_cached("UPDATE nodes SET body = ?3 WHERE task = ?1 AND id = ?2")?;
        let mut insert = connection.prepare_cached(
            "INSERT INTO nodes (task, id, body)
             SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM nodes WHERE task = ?1) < ?4",
        )?;
        for NodeRow { id, json } in &self.nodes {
            if replace.execute(params![task, id, json])? == 0 {
                insert.execute(params![task, id, json, MAX_NODES as i64])?;
            }
        }
        Ok(true)
    }
}
