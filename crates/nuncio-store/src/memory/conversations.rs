//! What agents keep: sessions, and the state that they share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nuncio_protocol::{AgentId, WorkspaceId};

use crate::sessions::{MAX_STATES, TOO_MANY_STATES};
use crate::{
    Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState, StateChange,
    StateScope, StoreError,
};

/// States by name.
type States = BTreeMap<Arc<str>, Arc<str>>;

/// One session.
#[derive(Debug, Default)]
struct Conversation {
    last: u64,
    /// When something was written last.
    at_ms: i64,
    entries: Vec<SessionEntry>,
    states: States,
}

/// All sessions of a store.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    by_key: HashMap<SessionKey, Conversation>,
    /// The one that was written to first comes first.
    by_time: BTreeSet<(i64, SessionKey)>,
    of_callers: HashMap<Scope, States>,
    of_agents: HashMap<(WorkspaceId, AgentId), States>,
    max: usize,
}

impl Conversations {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// The entries after a position.
    pub(super) fn after(&self, key: &SessionKey, after: u64, limit: usize) -> Vec<SessionEntry> {
        let entries = self.entries(key);
        let from = entries.partition_point(|entry| entry.position <= after);
        entries[from..].iter().take(limit).cloned().collect()
    }

    /// The newest entries.
    pub(super) fn tail(&self, key: &SessionKey, limit: usize) -> Vec<SessionEntry> {
        let entries = self.entries(key);
        entries[entries.len().saturating_sub(limit)..].to_vec()
    }

    fn entries(&self, key: &SessionKey) -> &[SessionEntry] {
        self.by_key
            .get(key)
            .map_or(&[], |session| session.entries.as_slice())
    }

    /// Writes what has been checked, if nobody was quicker and there is room.
    pub(super) fn append(&mut self, append: SessionAppend) -> Result<SessionAppended, StoreError> {
        let last = self.by_key.get(&append.key).map_or(0, |known| known.last);
        if last != append.after {
            return Ok(SessionAppended::Conflict { last });
        }
        let scopes = [StateScope::Context, StateScope::Caller, StateScope::Agent];
        if scopes
            .iter()
            .any(|scope| self.is_overfilled(*scope, &append))
        {
            return Err(TOO_MANY_STATES);
        }
        self.touch(&append.key, append.at.unix_ms());
        for change in append.state {
            self.change(&append.key, change);
        }
        let session = self.by_key.entry(append.key.clone()).or_default();
        for json in append.entries {
            session.last += 1;
            session.entries.push(SessionEntry {
                position: session.last,
                task: append.task.clone(),
                at: append.at,
                json,
            });
        }
        let last = session.last;
        self.keep_to_the_bound(&append.key);
        Ok(SessionAppended::Done { last })
    }

    /// Whether more states than there may be would share a scope.
    fn is_overfilled(&self, scope: StateScope, append: &SessionAppend) -> bool {
        let known = self.states_of(scope, &append.key);
        let mut names: BTreeSet<_> = known.into_iter().flat_map(BTreeMap::keys).collect();
        let mut sets = false;
        for change in append.state.iter().filter(|change| change.scope == scope) {
            sets |= change.value.is_some();
            match change.value {
                Some(_) => names.insert(&change.name),
                None => names.remove(&change.name),
            };
        }
        sets && names.len() > MAX_STATES
    }

    fn states_of(&self, scope: StateScope, key: &SessionKey) -> Option<&States> {
        match scope {
            StateScope::Context => self.by_key.get(key).map(|session| &session.states),
            StateScope::Caller => self.of_callers.get(&key.scope),
            StateScope::Agent => self.of_agents.get(&agent_of(key)),
        }
    }

    /// Notes when a session was written to; never goes back.
    fn touch(&mut self, key: &SessionKey, at_ms: i64) {
        let session = self.by_key.entry(key.clone()).or_default();
        self.by_time.remove(&(session.at_ms, key.clone()));
        session.at_ms = session.at_ms.max(at_ms);
        self.by_time.insert((session.at_ms, key.clone()));
    }

    fn change(&mut self, key: &SessionKey, change: StateChange) {
        let states = match change.scope {
            StateScope::Context => &mut self.by_key.entry(key.clone()).or_default().states,
            StateScope::Caller => self.of_callers.entry(key.scope.clone()).or_default(),
            StateScope::Agent => self.of_agents.entry(agent_of(key)).or_default(),
        };
        match change.value {
            Some(value) => states.insert(change.name, value),
            None => states.remove(&change.name),
        };
    }

    /// Forgets the oldest sessions beyond the bound, but not the one that is being written to.
    fn keep_to_the_bound(&mut self, current: &SessionKey) {
        while self.by_key.len() > self.max.max(1) {
            let mut oldest = self.by_time.iter().map(|(_, key)| key);
            let Some(oldest) = oldest.find(|key| *key != current).cloned() else {
                return;
            };
            self.delete(&oldest);
        }
    }

    /// Puts a summary in the place of all entries up to a position; `false` if there is none at it.
    pub(super) fn compact(&mut self, key: &SessionKey, through: u64, summary: Arc<str>) -> bool {
        let Some(session) = self.by_key.get_mut(key) else {
            return false;
        };
        let place = session
            .entries
            .binary_search_by_key(&through, |entry| entry.position);
        let Ok(place) = place else {
            return false;
        };
        session.entries[place].json = summary;
        session.entries.drain(..place);
        true
    }

    /// Deletes a session with its state.
    pub(super) fn delete(&mut self, key: &SessionKey) -> bool {
        let Some(session) = self.by_key.remove(key) else {
            return false;
        };
        self.by_time.remove(&(session.at_ms, key.clone()))
    }

    /// All states that a session shares.
    pub(super) fn states(&self, key: &SessionKey) -> Vec<SessionState> {
        let shared = [StateScope::Context, StateScope::Caller, StateScope::Agent];
        let named = shared.into_iter().flat_map(|scope| {
            let states = self.states_of(scope, key).into_iter().flatten();
            states.map(move |(name, value)| SessionState {
                scope,
                name: Arc::clone(name),
                value: Arc::clone(value),
            })
        });
        named.collect()
    }

    /// Deletes sessions that have not been written to since a time.
    pub(super) fn prune(&mut self, before_ms: i64, limit: usize) -> u64 {
        let old = self.by_time.iter().take_while(|(at, _)| *at < before_ms);
        let old: Vec<SessionKey> = old.take(limit).map(|(_, key)| key.clone()).collect();
        for key in &old {
            self.delete(key);
        }
        old.len() as u64
    }
}

fn agent_of(key: &SessionKey) -> (WorkspaceId, AgentId) {
    (key.scope.workspace.clone(), key.scope.agent.clone())
}
