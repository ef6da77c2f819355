//! Why a session could not be read or written.

use nuncio_store::StoreError;

use super::Entry;
use crate::AgentError;

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
