//! [`PostgresStore`] as [`Nodes`].

use nuncio_protocol::TaskId;
use tokio_postgres::Row;

use super::link::Links;
use super::read::of_task;
use super::rows::{OF_SCOPE, column, original, scope_texts, stored};
use super::settle::said;
use super::store::PostgresStore;
use crate::nodes::{MAX_NODES, check_nodes};
use crate::{NodeRow, Nodes, Scope, StoreError, StoreFuture};

impl Nodes for PostgresStore {
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            check_nodes(&nodes)?;
            record(&self.side, scope, task, &nodes).await
        })
    }

    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>> {
        Box::pin(read(&self.readers, scope, task))
    }
}

async fn record(
    links: &Links,
    scope: &Scope,
    task: &TaskId,
    nodes: &[NodeRow],
) -> Result<bool, StoreError> {
    let [workspace, agent, caller] = scope_texts(scope);
    let ids: Vec<_> = nodes.iter().map(|node| stored(&node.id)).collect();
    let bodies: Vec<_> = nodes.iter().map(|node| stored(&node.json)).collect();
    let sql = "SELECT nuncio.nodes_record_1($1, $2, $3, $4, $5, $6, $7)";
    let rows = links
        .write(
            sql,
            &[
                &stored(task.as_str()),
                &workspace,
                &agent,
                &caller,
                &ids,
                &bodies,
                &(MAX_NODES as i64),
            ],
        )
        .await?;
    said(&rows)
}

async fn read(links: &Links, scope: &Scope, task: &TaskId) -> Result<Vec<NodeRow>, StoreError> {
    let sql = format!(
        "SELECT n.id, n.body FROM nuncio.tasks t JOIN nuncio.scopes s ON s.number = t.scope
         JOIN nuncio.nodes n ON n.task = t.number
         WHERE {OF_SCOPE} ORDER BY n.number"
    );
    let rows = of_task!(links, &sql, scope, task)?;
    let node = |row: &Row| {
        Ok(NodeRow {
            id: original(column(row, 0)?).into(),
            json: original(column(row, 1)?).into(),
        })
    };
    rows.iter().map(node).collect()
}
