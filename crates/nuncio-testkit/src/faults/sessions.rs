//! [`FaultyStore`] as [`Sessions`] and [`Nodes`].

use std::sync::Arc;

use nuncio_protocol::{TaskId, Timestamp};
use nuncio_store::{
    NodeRow, Nodes, Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState,
    Sessions, StoreFuture,
};

use super::FaultyStore;

impl Sessions for FaultyStore {
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        self.read().session(key, after, limit)
    }

    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        self.read().session_tail(key, limit)
    }

    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended> {
        self.write(|| self.inner.append_session(append))
    }

    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.compact_session(key, through, summary))
    }

    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.delete_session(key))
    }

    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>> {
        self.read().state(key)
    }

    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.write(|| self.inner.prune_sessions(before, limit))
    }
}

impl Nodes for FaultyStore {
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.record_nodes(scope, task, nodes))
    }

    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>> {
        self.read().nodes(scope, task)
    }
}
