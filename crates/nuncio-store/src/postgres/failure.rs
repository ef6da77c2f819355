//! What PostgreSQL says, in words for the engine: no query, host or password leaves this module.

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;
use crate::sessions::TOO_MANY_STATES;

/// What `session_append_1` refuses.
const TOO_MANY: &str = "NU001";

/// Why a statement did not work out.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database said so, or was not there.
    Sql(Error),
    /// There was no answer in time; the connection is given up.
    Late,
    /// Known already in the words of the store.
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// What may be done about it.
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Sql(error) => remedy(error),
            Self::Late => Remedy::NewConnection,
            Self::Store(_) => Remedy::None,
        }
    }

    /// Logs the failure, once, and says it in the words of the store.
    pub(super) fn told(self, what: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Late => {
                tracing::warn!("{what} failed: the database does not answer");
                unavailable("the database does not answer")
            }
            Self::Sql(error) => {
                tracing::warn!(error = %reason(&error), "{what} failed");
                translate(&error)
            }
        }
    }
}

/// What may be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The same again may work at once: others were in the way.
    Again,
    /// The fault may lie with one of several writes, so that the others may do without it.
    Alone,
    /// The connection is gone, or of no use any more.
    NewConnection,
    /// Nothing.
    None,
}

fn remedy(error: &Error) -> Remedy {
    let Some(code) = error.code() else {
        return Remedy::NewConnection;
    };
    match code.code().get(..2) {
        // Serialization failures and deadlocks; somebody else was chosen to go on.
        Some("40") => Remedy::Again,
        // Data, constraints, limits, and what a function found wrong.
        Some("22" | "23" | "54" | "P0") => Remedy::Alone,
        // Lost connections, shutdowns. A canceled statement leaves its connection as it was.
        Some("08") => Remedy::NewConnection,
        Some("57") if *code != SqlState::QUERY_CANCELED => Remedy::NewConnection,
        // Another server than before: a standby has come in its place.
        Some("25") => Remedy::NewConnection,
        _ => Remedy::None,
    }
}

/// For the log: the whole chain, which has no password in it.
pub(super) fn reason(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The error as a caller sees it.
pub(super) fn translate(error: &Error) -> StoreError {
    let Some(code) = error.code() else {
        return unavailable("the database cannot be reached");
    };
    if *code == SqlState::QUERY_CANCELED {
        return unavailable("the database took too long");
    }
    if *code == SqlState::DISK_FULL {
        return unavailable("no space left");
    }
    if code.code() == TOO_MANY {
        return TOO_MANY_STATES;
    }
    match code.code().get(..2) {
        Some("28" | "3D") => unavailable("the database does not let us in"),
        Some("25") => unavailable("read-only"),
        Some("53") => unavailable("the database is at its limits"),
        Some("40" | "55") => unavailable("busy"),
        Some("08" | "57") => unavailable("the database cannot be reached"),
        Some("XX") => StoreError::Corrupt("the database is damaged".to_owned()),
        Some("22" | "23" | "54" | "P0") => {
            StoreError::Corrupt("a value that cannot be stored".to_owned())
        }
        _ => unavailable("the database refused"),
    }
}

pub(super) fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}
