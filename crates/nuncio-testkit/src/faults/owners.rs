//! [`FaultyStore`] as [`Owners`].

use nuncio_protocol::Timestamp;
use nuncio_store::{OwnedId, Owners, Scope, StoreFuture};

use super::FaultyStore;

impl Owners for FaultyStore {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        self.write(|| self.inner.take(scope, ids, at))
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        self.read().owned(scope, ids)
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        self.read().owned_tasks(scope)
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.write(|| self.inner.prune_owned(before, limit))
    }
}
