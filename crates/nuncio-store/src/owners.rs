//! Whose the tasks and conversations of agents elsewhere are that are kept there and not here.

use nuncio_protocol::{ContextId, TaskId, Timestamp};

use crate::sessions::check_name;
use crate::{Scope, StoreError, StoreFuture};

/// A task or a conversation of an agent elsewhere, by the id that it has there; 1 to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnedId {
    /// A task.
    Task(TaskId),
    /// A conversation.
    Context(ContextId),
}

impl OwnedId {
    /// The id itself.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Task(id) => id.as_str(),
            Self::Context(id) => id.as_str(),
        }
    }

    /// Its kind as a number, as it is stored.
    pub(crate) fn kind(&self) -> i32 {
        match self {
            Self::Task(_) => TASK,
            Self::Context(_) => CONTEXT,
        }
    }

    /// What a kind and an id are together.
    pub(crate) fn of(kind: i32, id: &str) -> Self {
        match kind {
            TASK => Self::Task(id.into()),
            _ => Self::Context(id.into()),
        }
    }
}

/// The numbers of kinds in databases.
pub(crate) const TASK: i32 = 0;
const CONTEXT: i32 = 1;

/// What agents elsewhere, whose tasks are not kept here, need of a database. Part of
/// [`crate::Store`].
///
/// An agent elsewhere knows one client, whoever calls here. So an id belongs to one caller among
/// all callers of the agent, those of other workspaces included.
pub trait Owners {
    /// Makes ids the caller's own, in one commit; `false`, and nothing is written, if one of them is
    /// somebody else's. Those that are the caller's already begin anew to grow old.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] for an id above its limit, [`StoreError::Corrupt`] for an empty
    /// one; nothing is written then.
    fn take<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
        at: Timestamp,
    ) -> StoreFuture<'a, bool>;

    /// Those of some ids that are the caller's, in no order, and when each was taken last.
    fn owned<'a>(
        &'a self,
        scope: &'a Scope,
        ids: &'a [OwnedId],
    ) -> StoreFuture<'a, Vec<(OwnedId, Timestamp)>>;

    /// How many tasks are the caller's.
    fn owned_tasks<'a>(&'a self, scope: &'a Scope) -> StoreFuture<'a, u64>;

    /// Forgets ids of all scopes that have not been taken since a time, the oldest first, `limit` at
    /// most; gives their number, 0 at the end.
    fn prune_owned(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64>;
}

/// Checks what is to be taken, and leaves each id once, in order: whoever locks several does it in
/// the same order as everybody.
///
/// # Errors
/// As [`Owners::take`].
pub(crate) fn to_take(ids: &[OwnedId]) -> Result<Vec<OwnedId>, StoreError> {
    for id in ids {
        check_name("an id of an agent elsewhere", id.as_str())?;
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
