//! The call tree of a task: what its runs have called, one node each.

use std::sync::Arc;

use nuncio_protocol::TaskId;

use crate::sessions::{check_json, check_name};
use crate::{Scope, StoreError, StoreFuture};

/// A node of a task's call tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its id, unique within the task; 1 to 256 bytes.
    pub id: Arc<str>,
    /// What is known of it: a JSON text of 1 MiB at most that the store does not read.
    pub json: Arc<str>,
}

/// What call trees need of a database. Part of [`crate::Store`].
pub trait Nodes {
    /// Writes nodes of a task in one commit, each in the place of the one of the same id; `false`
    /// if there is no such task.
    ///
    /// A task keeps its first 2,000 nodes: of later ones nothing is kept, but those that are there
    /// can still be replaced. They go with their task.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a text above its limit, [`StoreError::Corrupt`] for an empty
    /// id; nothing is written then.
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool>;

    /// Reads the nodes of a task in the order in which they were first written; empty if there is
    /// no such task.
    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>>;
}

/// How many nodes a task keeps.
pub(crate) const MAX_NODES: usize = 2_000;

/// # Errors
/// As [`Nodes::record_nodes`].
pub(crate) fn check_nodes(nodes: &[NodeRow]) -> Result<(), StoreError> {
    for node in nodes {
        check_name("the id of a node", &node.id)?;
        check_json("a node", &node.json)?;
    }
    Ok(())
}
