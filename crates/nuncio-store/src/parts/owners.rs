//! Who owns what elsewhere has no parts: it is the other store's alone.

use nuncio_protocol::Timestamp;

use super::LargeParts;
use crate::{OwnedId, Owners, Scope, StoreFuture};

impl Owners for LargeParts {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        self.inner.take(scope, ids, at)
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        self.inner.owned(scope, ids)
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        self.inner.owned_tasks(scope)
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.inner.prune_owned(before, limit)
    }
}
