//! Sessions and call trees have no parts: they are the other store's alone.

use std::sync::Arc;

use nuncio_protocol::{TaskId, Timestamp};

use super::LargeParts;
use crate::{
    NodeRow, Nodes, Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState,
    Sessions, StoreFuture,
};

impl Sessions for LargeParts {
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        self.inner.session(key, after, limit)
    }

    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        self.inner.session_tail(key, limit)
    }

    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended> {
        self.inner.append_session(append)
    }

    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool> {
        self.inner.compact_session(key, through, summary)
    }

    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        self.inner.delete_session(key)
    }

    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>> {
        self.inner.state(key)
    }

    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.inner.prune_sessions(before, limit)
    }
}

impl Nodes for LargeParts {
    fn record_nodes<'a>(
        &'a self,
        scope: &'a Scope,
        task: &'a TaskId,
        nodes: Vec<NodeRow>,
    ) -> StoreFuture<'a, bool> {
        self.inner.record_nodes(scope, task, nodes)
    }

    fn nodes<'a>(&'a self, scope: &'a Scope, task: &'a TaskId) -> StoreFuture<'a, Vec<NodeRow>> {
        self.inner.nodes(scope, task)
    }
}
