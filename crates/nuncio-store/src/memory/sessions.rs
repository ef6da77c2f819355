//! [`MemoryStore`] as [`Sessions`] and [`Nodes`].

use std::sync::Arc;

use nuncio_protocol::{TaskId, Timestamp};

use super::store::{MemoryStore, at_once};
use crate::nodes::check_nodes;
use crate::sessions::{check_json, checked};
use crate::{
    NodeRow, Nodes, Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState,
    Sessions, StoreError, StoreFuture,
};

impl MemoryStore {
    fn append_session_now(&self, append: SessionAppend) -> Result<SessionAppended, StoreError> {
        let append = checked(append)?;
        self.write()?.conversations.append(append)
    }

    fn compact_now(
        &self,
        key: &SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> Result<bool, StoreError> {
        check_json("a summary of a session", &summary)?;
        Ok(self.write()?.conversations.compact(key, through, summary))
    }

    fn record_now(
        &self,
        scope: &Scope,
        task: &TaskId,
        nodes: Vec<NodeRow>,
    ) -> Result<bool, StoreError> {
        check_nodes(&nodes)?;
        let mut contents = self.write()?;
        let Some(entry) = contents.entry_mut(scope, task) else {
            return Ok(false);
        };
        for node in nodes {
            entry.record(node);
        }
        Ok(true)
    }
}

impl Sessions for MemoryStore {
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        at_once(
            self.read()
                .map(|contents| contents.conversations.after(key, after, limit)),
        )
    }

    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        at_once(
            self.read()
                .map(|contents| contents.conversations.tail(key, limit)),
        )
    }

    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended> {
        at_once(self.append_session_now(append))
    }

    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool> {
        at_once(self.compact_now(key, through, summary))
    }

    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        at_once(
            self.write()
                .map(|mut contents| contents.conversations.delete(key)),
        )
    }

    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>> {
        at_once(
            self.read()
                .map(|contents| contents.conversations.states(key)),
        )
    }

    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        at_once(
            self.write()
                .map(|mut contents| contents.conversations.prune(before.unix_ms(), limit)),
        )
    }
}

impl Nodes for MemoryStore {
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool> {
        at_once(self.record_now(scope, task, nodes))
    }

    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>> {
        at_once(self.read().map(|contents| {
            let entry = contents.entry(scope, task);
            entry.map_or_else(Vec::new, |entry| entry.nodes.clone())
        }))
    }
}
