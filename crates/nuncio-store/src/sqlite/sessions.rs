//! [`SqliteStore`] as [`Sessions`].

use std::sync::Arc;

use nuncio_protocol::Timestamp;

use super::session_read::{entries, states};
use super::session_write::{AppendSession, CompactSession, DeleteSession, PruneSessions};
use super::store::SqliteStore;
use crate::sessions::{check_json, checked};
use crate::{
    SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState, Sessions, StoreFuture,
};

impl Sessions for SqliteStore {
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        let key = key.clone();
        Box::pin(
            self.readers
                .run(move |connection| entries(connection, &key, Some(after), limit)),
        )
    }

    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>> {
        let key = key.clone();
        Box::pin(
            self.readers
                .run(move |connection| entries(connection, &key, None, limit)),
        )
    }

    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended> {
        Box::pin(async move { self.writer.run(AppendSession(checked(append)?)).await })
    }

    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool> {
        let key = key.clone();
        Box::pin(async move {
            check_json("a summary of a session", &summary)?;
            let compact = CompactSession {
                key,
                through,
                summary,
            };
            self.writer.run(compact).await
        })
    }

    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool> {
        Box::pin(self.writer.run(DeleteSession(key.clone())))
    }

    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>> {
        let key = key.clone();
        Box::pin(self.readers.run(move |connection| states(connection, &key)))
    }

    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.writer.run(PruneSessions { before, limit }))
    }
}
