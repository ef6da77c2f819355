//! Whose the tasks and conversations of agents elsewhere are.

use std::collections::{BTreeSet, HashMap};

use nuncio_protocol::{AgentId, Timestamp};

use super::store::{MemoryStore, at_once};
use crate::owners::to_take;
use crate::{OwnedId, Owners, Scope, StoreError, StoreFuture};

/// An id of an agent.
type Key = (AgentId, OwnedId);

/// All that is known of who owns what.
#[derive(Debug, Default)]
pub(super) struct Owned {
    by_id: HashMap<Key, (Scope, i64)>,
    /// The one that was taken first comes first.
    by_time: BTreeSet<(i64, Key)>,
    tasks: HashMap<Scope, u64>,
    max: usize,
}

impl Owned {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    fn take(&mut self, scope: &Scope, ids: Vec<OwnedId>, at_ms: i64) -> bool {
        let keys: Vec<Key> = ids
            .into_iter()
            .map(|id| (scope.agent.clone(), id))
            .collect();
        let of_others = |key| self.by_id.get(key).is_some_and(|(owner, _)| owner != scope);
        if keys.iter().any(of_others) {
            return false;
        }
        for key in keys {
            let before = self.forget(&key).unwrap_or(at_ms);
            self.keep(key, scope, at_ms.max(before));
        }
        self.keep_to_the_bound();
        true
    }

    fn keep(&mut self, key: Key, scope: &Scope, at_ms: i64) {
        if let OwnedId::Task(_) = key.1 {
            *self.tasks.entry(scope.clone()).or_default() += 1;
        }
        self.by_time.insert((at_ms, key.clone()));
        self.by_id.insert(key, (scope.clone(), at_ms));
    }

    /// Gives when it was taken last.
    fn forget(&mut self, key: &Key) -> Option<i64> {
        let (scope, at_ms) = self.by_id.remove(key)?;
        self.by_time.remove(&(at_ms, key.clone()));
        if let (OwnedId::Task(_), Some(tasks)) = (&key.1, self.tasks.get_mut(&scope)) {
            *tasks -= 1;
            if *tasks == 0 {
                self.tasks.remove(&scope);
            }
        }
        Some(at_ms)
    }

    /// Forgets the oldest beyond the bound.
    fn keep_to_the_bound(&mut self) {
        while self.by_id.len() > self.max.max(2) {
            let Some((_, oldest)) = self.by_time.first().cloned() else {
                return;
            };
            self.forget(&oldest);
        }
    }

    fn owned(&self, scope: &Scope, ids: &[OwnedId]) -> Vec<(OwnedId, Timestamp)> {
        let owned = ids.iter().filter_map(|id| {
            let (owner, at_ms) = self.by_id.get(&(scope.agent.clone(), id.clone()))?;
            (owner == scope).then(|| (id.clone(), Timestamp::from_unix_ms(*at_ms)))
        });
        owned.collect()
    }

    fn prune(&mut self, before_ms: i64, limit: usize) -> u64 {
        let old = self.by_time.iter().take_while(|(at, _)| *at < before_ms);
        let old: Vec<Key> = old.take(limit).map(|(_, key)| key.clone()).collect();
        for key in &old {
            self.forget(key);
        }
        old.len() as u64
    }
}

impl MemoryStore {
    fn take_now(&self, scope: &Scope, ids: &[OwnedId], at: Timestamp) -> Result<bool, StoreError> {
        let ids = to_take(ids)?;
        Ok(self.write()?.owned.take(scope, ids, at.unix_ms()))
    }
}

impl Owners for MemoryStore {
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool> {
        at_once(self.take_now(scope, ids, at))
    }

    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>> {
        at_once(self.read().map(|contents| contents.owned.owned(scope, ids)))
    }

    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64> {
        at_once(self.read().map(|contents| {
            let tasks = contents.owned.tasks.get(scope);
            tasks.copied().unwrap_or_default()
        }))
    }

    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64> {
        at_once(
            self.write()
                .map(|mut contents| contents.owned.prune(before.unix_ms(), limit)),
        )
    }
}
