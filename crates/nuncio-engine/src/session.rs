//! What an agent keeps of a conversation beyond its tasks: entries in order, and named state.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_protocol::{Clock, TaskId, Timestamp};
use nuncio_store::{
    Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, StateChange, StateScope,
    Store, StoreError,
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{AgentError, RunCx};

/// Entries that [`SessionError::Moved`] tells at most.
const MAX_MOVED: u64 = 1_000;

/// How often a state is set anew that somebody's entries were in the way of.
const MAX_TRIES: u32 = 100;

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

/// Why a session could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session does not end where this handle thought: nothing was written.
    ///
    /// These entries have come, the newest ones if they are more than 1,000. The handle has seen
    /// them now, so that the same again is written after them. If the session has been deleted,
    /// there may be none. After [`StoreError::Unavailable`] they may be the handle's own.
    #[error("the session has moved on by {} entries", .0.len())]
    Moved(Vec<Entry>),
    /// An entry, a summary or a state has more than 1 MiB of JSON text, or a name more than 256
    /// bytes; nothing was written.
    #[error("{what} has {bytes} bytes, {limit} are allowed")]
    TooLarge {
        /// Which text.
        what: &'static str,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// More than 1,000 states would share a scope; nothing was written.
    #[error("there may be {limit} {what}, and no more")]
    TooMany {
        /// Of what there would be too many.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// A state has no name beside its prefix; nothing was written.
    #[error("the state \"{0}\" has no name")]
    Nameless(String),
    /// There is no entry at the position that a summary was to reach.
    #[error("the session has no entry at position {0}")]
    NoEntry(u64),
    /// The store could not.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::TooLarge { what, bytes, limit } => Self::TooLarge { what, bytes, limit },
            StoreError::TooMany { what, limit } => Self::TooMany { what, limit },
            other => Self::Store(other),
        }
    }
}

impl From<SessionError> for AgentError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Moved(_) => {
                Self::new("the conversation has moved on meanwhile, send the message again")
            }
            SessionError::TooLarge { .. } | SessionError::TooMany { .. } => {
                Self::new(error.to_string())
            }
            other => Self::internal(other),
        }
    }
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

    /// Sets a state, whatever has come to the conversation: the last one to set it counts.
    ///
    /// To have it together with entries, or only as long as nothing has come, [`Session::commit`].
    ///
    /// # Errors
    /// [`SessionError`], but for [`SessionError::Moved`]; nothing was written then, unless the store
    /// says otherwise.
    pub async fn set(&mut self, name: &str, value: Value) -> Result<(), SessionError> {
        self.change(name, Some(value)).await
    }

    /// Removes a state, whatever has come to the conversation.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub async fn remove(&mut self, name: &str) -> Result<(), SessionError> {
        self.change(name, None).await
    }

    async fn change(&mut self, name: &str, value: Option<Value>) -> Result<(), SessionError> {
        let change = (name.to_owned(), value);
        if name.starts_with(RUN) {
            return self.commit(Vec::new(), vec![change]).await;
        }
        let mut append = self.append_of(&[], vec![stored_change(change)?]);
        for _ in 0..MAX_TRIES {
            match self.sessions.store.append_session(append.clone()).await? {
                SessionAppended::Done { .. } => return Ok(()),
                // What has come is still to be seen: only this write goes after it.
                SessionAppended::Conflict { last } => append.after = last,
            }
        }
        let busy = "others write to the conversation all the time".to_owned();
        Err(SessionError::Store(StoreError::Unavailable(busy)))
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

    /// All states that the conversation shares, by their names with prefixes.
    ///
    /// # Errors
    /// [`SessionError::Store`].
    pub async fn state(&self) -> Result<BTreeMap<String, Value>, SessionError> {
        let stored = self.sessions.store.state(&self.key).await?;
        let mut state = self.sessions.run.lock().clone();
        for of in stored {
            let name = format!("{}{}", prefix(of.scope), of.name);
            state.insert(name, value(&of.value)?);
        }
        Ok(state)
    }

    /// One state.
    ///
    /// # Errors
    /// [`SessionError::Store`].
    pub async fn get(&self, name: &str) -> Result<Option<Value>, SessionError> {
        if name.starts_with(RUN) {
            return Ok(self.sessions.run.lock().get(name).cloned());
        }
        Ok(self.state().await?.remove(name))
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

const RUN: &str = "run:";
const CALLER: &str = "caller:";
const AGENT: &str = "agent:";

fn prefix(scope: StateScope) -> &'static str {
    match scope {
        StateScope::Context => "",
        StateScope::Caller => CALLER,
        StateScope::Agent => AGENT,
    }
}

fn stored_change((name, value): (String, Option<Value>)) -> Result<StateChange, SessionError> {
    let (scope, own) = match (name.strip_prefix(CALLER), name.strip_prefix(AGENT)) {
        (Some(own), _) => (StateScope::Caller, own),
        (_, Some(own)) => (StateScope::Agent, own),
        (None, None) => (StateScope::Context, name.as_str()),
    };
    if own.is_empty() {
        return Err(SessionError::Nameless(name));
    }
    Ok(StateChange {
        scope,
        name: own.into(),
        value: value.as_ref().map(text),
    })
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
