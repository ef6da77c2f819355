//! [`Wire`] as [`Owners`].

use nuncio_protocol::Timestamp;
use nuncio_store::{OwnedId, Owners, Scope, StoreFuture};

use crate::wire::Wire;

impl Owners for Wire {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        self.pass(move |store| store.take(scope, ids, at))
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        self.pass(move |store| store.owned(scope, ids))
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        self.pass(move |store| store.owned_tasks(scope))
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        self.pass(move |store| store.prune_owned(before, limit))
    }
}
