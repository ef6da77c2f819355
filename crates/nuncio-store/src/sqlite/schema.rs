//! The shape of the database, and how an older one becomes a newer one.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::connection::file_name;
use super::failure::{Failure, translate};
use crate::StoreError;

/// "nunc" in the header of the file.
const APPLICATION_ID: i32 = 0x6e75_6e63;

/// The steps from an empty file to the newest shape; `user_version` counts those taken.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_tasks.sql"),
    include_str!("migrations/0002_webhook_version.sql"),
    include_str!("migrations/0003_requests.sql"),
    include_str!("migrations/0004_retention.sql"),
    include_str!("migrations/0005_deliveries.sql"),
    include_str!("migrations/0006_sessions.sql"),
    include_str!("migrations/0007_owned.sql"),
];

/// The step since which a log may be compacted.
pub(super) const RETENTION: usize = 4;

/// The step since which there are sessions.
pub(super) const SESSIONS: usize = 6;

/// How many steps there are.
pub(super) const KNOWN: usize = MIGRATIONS.len();

/// The format of what is stored as JSON text: A2A 1.0 as `nuncio_protocol` spells it.
pub(super) const FORMAT: i64 = 1;

/// Looks whether the file is empty or one of ours, without changing it.
///
/// # Errors
/// [`StoreError::Refused`] for a file of something else or of a newer version.
pub(super) fn recognise(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    recognise_any(connection, path)?;
    let version = version(connection)?;
    if version > KNOWN {
        return Err(StoreError::Refused(format!(
            "{}: the database has version {version}, this program knows {KNOWN}: use a newer nuncio",
            file_name(path)
        )));
    }
    Ok(())
}

/// Looks whether the file is empty or one of ours, of whatever version.
///
/// # Errors
/// [`StoreError::Refused`] for a file of something else.
pub(super) fn recognise_any(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let refused = |why: String| StoreError::Refused(format!("{}: {why}", file_name(path)));
    let foreign = || refused("this is not a database of nuncio".to_owned());
    let application: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(|error| match translate(&error) {
            StoreError::Corrupt(_) => foreign(),
            other => other,
        })?;
    let version = version(connection)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(Failure::from)?;
    let empty = tables == 0 && version == 0 && application == 0;
    if application != APPLICATION_ID && !empty {
        return Err(foreign());
    }
    Ok(())
}

/// Takes the steps that are still to take, all or none.
///
/// # Errors
/// [`StoreError`] if SQLite cannot.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let taken = version(connection)?;
    if taken == MIGRATIONS.len() {
        return Ok(());
    }
    take_steps(connection, &MIGRATIONS[taken..]).map_err(|error| translate(&error))
}

fn take_steps(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()
}

pub(super) fn version(connection: &Connection) -> Result<usize, StoreError> {
    let version: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(Failure::from)?;
    // A negative one was not written by us: newer than anything.
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}
