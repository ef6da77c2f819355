//! What an agent keeps of a conversation beyond its tasks: entries in order, and named state.

mod error;
mod state;

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_protocol::{Clock, TaskId, Timestamp};
use nuncio_store::{
    Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, StateChange, Store, StoreError,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::RunCx;

pub use self::error::SessionError;
use self::state::{RUN, stored_change};

/// Entries that [`SessionError::Moved`] tells at most.
const MAX_MOVED: u64 = 1_000;

/// An entry of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its position: 1, 2, 3 … without gaps. A summary stands at the last position that it
    /// replaces.
    pub position: u64,
    /// The task whose run has written it.
    pub task: TaskId,
    /// When it was written.
    pub at: Timestamp,
    /// The entry, as the agent gave it.
    pub value: Value,
}

/// What the sessions of a run are made of.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// State of the run, which no store keeps.
    run: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Sessions {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            run: Arc::default(),
        }
    }
}

/// A run's handle on the conversation of its caller with its agent, in its context.
///
/// All tasks of the context share the conversation; nobody else sees it. It outlives them and the
/// process, until `retention.sessions` is over. The handle remembers up to where it has seen the
/// conversation: nothing at first, all that it has read and written later. Entries are written only
/// if nothing else has come after that, else it is told what ([`SessionError::Moved`]); two handles
/// of one run are two writers.
///
/// State has names. A prefix says who shares it: `caller:` all conversations of the caller with the
/// agent, `agent:` all callers of the agent in the workspace (nothing that is one caller's belongs
/// there), `run:` the run, in memory only; without one it is of the conversation and goes with it.
/// Of each there are at most 1,000 in the store.
#[derive(Debug)]
pub struct Session {
    sessions: Sessions,
    key: SessionKey,
    task: TaskId,
    /// The last position that has been seen.
    seen: u64,
}

impl RunCx {
    /// A handle on the conversation, which has seen nothing of it yet.
    pub fn session(&self) -> Session {
        let caller = self.caller();
        let scope = Scope {
            workspace: caller.workspace.clone(),
            agent: self.agent().clone(),
            caller: caller.id.clone(),
        };
        Session {
            sessions: self.inner.sessions.clone(),
            key: SessionKey {
                scope,
                context: self.context().clone(),
            },
            task: self.task().clone(),
            seen: 0,
        }
    }
}

impl Session {
    /// Reads the newest entries, oldest first, and has seen all of the conversation then.
    ///
    /// `limit` counts entries, and is at least 1.
    ///
    /// # Errors
    /// [`SessionError::Store`].
    pub async fn load(&mut self, limit: usize) -> Result<Vec<Entry>, SessionError> {
        let store = &self.sessions.store;
        let stored = store.session_tail(&self.key, limit.max(1)).await?;
        self.see(stored)
    }

    /// Adds entries, all or none.
    ///
    /// # Errors
    /// [`SessionError`]; nothing was written then, unless the store says otherwise.
    pub async fn append(&mut self, entries: Vec<Value>) -> Result<(), SessionError> {
        self.commit(entries, Vec::new()).await
    }

    /// Adds entries and changes state in one commit, all or nothing; a state without a value is
    /// removed, and of two changes of one name the last counts.
    ///
    /// State of the caller or the agent may have been changed in another conversation meanwhile: the
    /// last one to write it counts.
    ///
    /// # Errors
    /// As [`Session::append`].
    pub async fn commit(
        &mut self,
        entries: Vec<Value>,
        changes: Vec<(String, Option<Value>)>,
    ) -> Result<(), SessionError> {
        let (of_run, stored): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|(name, _)| name.starts_with(RUN));
        if let Some((name, _)) = of_run.iter().find(|(name, _)| name == RUN) {
            return Err(SessionError::Nameless(name.clone()));
        }
        let state: Vec<_> = stored
            .into_iter()
            .map(stored_change)
            .collect::<Result<_, _>>()?;
        if !entries.is_empty() || !state.is_empty() {
            self.write(entries, state).await?;
        }
        let mut run = self.sessions.run.lock();
        for (name, value) in of_run {
            match value {
                Some(value) => run.insert(name, value),
                None => run.remove(&name),
            };
        }
        Ok(())
    }

    async fn write(
        &mut self,
        entries: Vec<Value>,
        state: Vec<StateChange>,
    ) -> Result<(), SessionError> {
        let append = self.append_of(&entries, state);
        match self.sessions.store.append_session(append).await? {
            SessionAppended::Done { last } => self.seen = last,
            SessionAppended::Conflict { last } => {
                return Err(SessionError::Moved(self.catch_up(last).await?));
            }
        }
        Ok(())
    }

    fn append_of(&self, entries: &[Value], state: Vec<StateChange>) -> SessionAppend {
        SessionAppend {
            key: self.key.clone(),
            after: self.seen,
            task: self.task.clone(),
            at: self.sessions.clock.now(),
            entries: entries.iter().map(text).collect(),
            state,
        }
    }

    /// Reads what has come since, of a session that ends at `last`.
    async fn catch_up(&mut self, last: u64) -> Result<Vec<Entry>, SessionError> {
        if last < self.seen {
            // It is another one, begun after this one was deleted.
            self.seen = 0;
        }
        let after = self.seen.max(last.saturating_sub(MAX_MOVED));
        let store = &self.sessions.store;
        let came = store.session(&self.key, after, MAX_MOVED as usize).await?;
        self.see(came)
    }

    /// Puts a summary in the place of all entries up to a position; later ones stay.
    ///
    /// # Errors
    /// [`SessionError::NoEntry`] if there is no entry at that position, or a summary has taken its
    /// place; else as [`Session::append`].
    pub async fn compact(&mut self, through: u64, summary: &Value) -> Result<(), SessionError> {
        let store = &self.sessions.store;
        match store
            .compact_session(&self.key, through, text(summary))
            .await?
        {
            true => Ok(()),
            false => Err(SessionError::NoEntry(through)),
        }
    }

    /// Takes note of entries that have been read to the end.
    fn see(&mut self, stored: Vec<SessionEntry>) -> Result<Vec<Entry>, SessionError> {
        let entries: Vec<_> = stored.into_iter().map(entry).collect::<Result<_, _>>()?;
        self.seen = entries.last().map_or(0, |entry| entry.position);
        Ok(entries)
    }
}

fn entry(stored: SessionEntry) -> Result<Entry, SessionError> {
    Ok(Entry {
        position: stored.position,
        task: stored.task,
        at: stored.at,
        value: value(&stored.json)?,
    })
}

fn text(value: &Value) -> Arc<str> {
    value.to_string().into()
}

fn value(json: &str) -> Result<Value, StoreError> {
    let unreadable = |_| StoreError::Corrupt("what an agent has kept does not read".to_owned());
    serde_json::from_str(json).map_err(unreadable)
}
