//! What agents keep of their conversations: entries in order, and named state beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_protocol::{ContextId, TaskId, Timestamp};

use crate::{Scope, StoreError, StoreFuture};

/// Which session: the conversation of one caller with one agent in one context.
///
/// All tasks of the context share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// Whose it is.
    pub scope: Scope,
    /// The context.
    pub context: ContextId,
}

/// An entry of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    /// Its position: 1, 2, 3 … without gaps. A summary stands at the last position that it
    /// replaces, so that a first entry above 1 is one.
    pub position: u64,
    /// The task that it belongs to.
    pub task: TaskId,
    /// When it was written.
    pub at: Timestamp,
    /// The entry itself: JSON text that the store does not read.
    pub json: Arc<str>,
}

/// Entries and changes of state to be written in one commit, if nobody was quicker.
#[derive(Clone, Debug)]
pub struct SessionAppend {
    /// To which session.
    pub key: SessionKey,
    /// The last position that the writer has seen; 0 if the session is new to it.
    pub after: u64,
    /// The task that the entries belong to.
    pub task: TaskId,
    /// The time of the entries; with it the session begins anew to grow old.
    pub at: Timestamp,
    /// The entries, each a JSON text of 1 MiB at most; may be empty to change state only.
    pub entries: Vec<Arc<str>>,
    /// The changes of state; of two changes of one name the last counts.
    pub state: Vec<StateChange>,
}

/// What became of a [`SessionAppend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAppended {
    /// It is stored.
    Done {
        /// The last position now.
        last: u64,
    },
    /// The session does not end where the writer thought: nothing was written.
    Conflict {
        /// Its last position; 0 if there is no session.
        last: u64,
    },
}

/// Who shares a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateScope {
    /// The session only; goes with it.
    Context,
    /// All sessions of the caller with the agent; stays.
    Caller,
    /// All callers of the agent in the workspace; stays.
    Agent,
}

/// A state that a session shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Who shares it.
    pub scope: StateScope,
    /// Its name, unique within the scope.
    pub name: Arc<str>,
    /// A JSON text that the store does not read.
    pub value: Arc<str>,
}

/// A change of a state; at most 1,000 states share a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// Who shares it.
    pub scope: StateScope,
    /// Its name, unique within the scope; 1 to 256 bytes.
    pub name: Arc<str>,
    /// A JSON text of 1 MiB at most; `None` removes the state.
    pub value: Option<Arc<str>>,
}

/// What sessions need of a database. Part of [`crate::Store`].
pub trait Sessions {
    /// Reads the entries after a position, `limit` at most, oldest first; empty if there is none.
    fn session<'a>(
        &'a self,
        key: &'a SessionKey,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>>;

    /// Reads the newest entries, `limit` at most, oldest first.
    fn session_tail<'a>(
        &'a self,
        key: &'a SessionKey,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionEntry>>;

    /// Adds entries and changes state in one commit, if the session ends at `append.after`.
    ///
    /// A state of the caller or the agent may have been changed in another session meanwhile: the
    /// last one to write it counts.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a text above its limit, [`StoreError::TooMany`] for a state
    /// beyond the limit of its scope, [`StoreError::Corrupt`] for a state without a name; nothing
    /// is written then.
    fn append_session(&self, append: SessionAppend) -> StoreFuture<'_, SessionAppended>;

    /// Puts a summary in the place of all entries up to the position `through`; `false` if there is
    /// no entry at it.
    ///
    /// The summary has that position, and the task and time of the entry that was there. Later
    /// entries stay as they are, and so does the last position.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for a summary above 1 MiB.
    fn compact_session<'a>(
        &'a self,
        key: &'a SessionKey,
        through: u64,
        summary: Arc<str>,
    ) -> StoreFuture<'a, bool>;

    /// Deletes a session with the state of its context; `false` if there is none.
    ///
    /// Whoever writes to it afterwards begins a new one, at position 1.
    fn delete_session<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, bool>;

    /// Reads all states that the session shares, by scope and name.
    fn state<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<SessionState>>;

    /// Deletes sessions of all scopes to which nothing has been written since a time, the oldest
    /// first, `limit` at most and fewer if they are long; gives their number, 0 at the end.
    fn prune_sessions(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64>;
}

/// The largest JSON text of an entry, a state or a node, in bytes.
pub(crate) const MAX_JSON: usize = 1 << 20;

/// The longest name of a state or a node, in bytes.
pub(crate) const MAX_NAME: usize = 256;

/// How many states may share a scope.
pub(crate) const MAX_STATES: usize = 1_000;

/// The refusal of a state beyond [`MAX_STATES`].
pub(crate) const TOO_MANY_STATES: StoreError = StoreError::TooMany {
    what: "states",
    limit: MAX_STATES,
};

/// Entries that one part of pruning removes, if more than one session has them.
pub(crate) const MAX_PRUNED: i64 = 5_000;

/// Checks what is to be added, and leaves one change of each state, in order: whoever locks several
/// does it in the same order as everybody.
///
/// # Errors
/// As [`Sessions::append_session`].
pub(crate) fn checked(mut append: SessionAppend) -> Result<SessionAppend, StoreError> {
    for entry in &append.entries {
        check_json("an entry of a session", entry)?;
    }
    let mut changes = BTreeMap::new();
    for change in append.state {
        check_name("the name of a state", &change.name)?;
        if let Some(value) = &change.value {
            check_json("a state", value)?;
        }
        changes.insert((change.scope, change.name), change.value);
    }
    let in_order = changes.into_iter();
    append.state = in_order
        .map(|((scope, name), value)| StateChange { scope, name, value })
        .collect();
    Ok(append)
}

/// # Errors
/// [`StoreError::TooLarge`].
pub(crate) fn check_json(what: &'static str, json: &str) -> Result<(), StoreError> {
    within(what, json, MAX_JSON)
}

/// # Errors
/// [`StoreError::TooLarge`], and [`StoreError::Corrupt`] for none.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), StoreError> {
    if name.is_empty() {
        return Err(StoreError::Corrupt(format!(
            "refused to write what breaks a rule: {what} is not empty"
        )));
    }
    within(what, name, MAX_NAME)
}

fn within(what: &'static str, text: &str, limit: usize) -> Result<(), StoreError> {
    let bytes = text.len();
    match bytes <= limit {
        true => Ok(()),
        false => Err(StoreError::TooLarge { what, bytes, limit }),
    }
}
