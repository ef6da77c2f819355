//! What SQLite says, in words for the engine: no query and no path leaves this module.

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a statement, or what it was for, did not work out.
#[derive(Debug)]
pub(super) enum Failure {
    /// SQLite could not; the transaction is to be rolled back.
    Sql(rusqlite::Error),
    /// It was refused before anything was written.
    Refused(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Sql(error) => translate(&error),
            Failure::Refused(error) => error,
        }
    }
}

/// The error as a caller sees it.
pub(super) fn translate(error: &rusqlite::Error) -> StoreError {
    let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => unavailable("no space left"),
        Some(ErrorCode::SystemIoFailure) => unavailable("the disk does not work"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => unavailable("busy"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => unavailable("read-only"),
        Some(ErrorCode::CannotOpen) => unavailable("the database cannot be opened"),
        Some(ErrorCode::OutOfMemory) => unavailable("out of memory"),
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Corrupt("the database is damaged".to_owned())
        }
        Some(ErrorCode::NotADatabase) => {
            StoreError::Corrupt("the file is not a database".to_owned())
        }
        Some(_) => unavailable("the database refused"),
        None => StoreError::Corrupt("a stored value is not what it should be".to_owned()),
    }
}

/// Whether the fault lies with one write, so that the others of its batch may do without it.
pub(super) fn is_of_one_write(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
        )
    )
}
