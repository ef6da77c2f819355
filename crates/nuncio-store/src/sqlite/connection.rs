//! Opening the file: permissions, lock, settings.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::Failure;
use super::schema;
use crate::StoreError;

/// Older ones can corrupt a write-ahead log (the fix is of 3.51.3).
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a statement waits for another process that has the file: a check or a backup.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// When it is on disk. The only setting that keeps the store's promise.
    #[default]
    Full,
    /// When the system has it: a power cut loses the newest commits. For tests and benches.
    Normal,
}

/// How a [`super::SqliteStore`] works.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// When a commit counts as done.
    pub synchronous: Synchronous,
    /// How many connections read at the same time; at least 1.
    pub readers: usize,
    /// How many writes share a commit at most.
    pub max_batch: usize,
    /// How many calls may wait for the writer, and for the readers, before callers wait to queue.
    pub max_waiting: usize,
    /// After how many pages (4 KiB) the write-ahead log is carried over into the file.
    pub checkpoint_pages: u32,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            readers: 4,
            max_batch: 512,
            max_waiting: 4_096,
            checkpoint_pages: 4_000,
        }
    }
}

/// The sign beside the database that this process has it; gone when dropped.
#[derive(Debug)]
pub(super) struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Takes the lock, making folder and file of the database as private ones if they are new.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            private_folder(folder).map_err(|error| cannot(folder, &error))?;
        }
        let file = private_file(&beside(path, ".lock")).map_err(|error| cannot(path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Refused(format!(
                    "{}: the database is in use by another process",
                    file_name(path)
                )));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(path, &error)),
        }
        private_file(path).map_err(|error| cannot(path, &error))?;
        Ok(Self { _file: file })
    }
}

/// The last part of a path: all of it that a message may show.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn cannot(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {}", file_name(path), error.kind()))
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// SQLite gives the files beside the database the permissions of the database.
pub(super) fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens the connection that writes, bringing the database to the newest shape.
///
/// # Errors
/// [`StoreError::Refused`] for what is not ours or too new, else as SQLite fails.
pub(super) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::Refused(format!(
            "SQLite {} is too old: 3.51.3 is the oldest that is safe",
            rusqlite::version()
        )));
    }
    let mut connection = open(path)?;
    schema::recognise(&connection, path)?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    set_up(&connection, synchronous).map_err(Failure::from)?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

/// Opens a connection that only reads.
///
/// # Errors
/// As SQLite fails.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    // Read-write for the sake of the shared memory of the log; query_only forbids the rest.
    let connection = open(path)?;
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -8192;")
        .map_err(Failure::from)?;
    Ok(connection)
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(Failure::from)?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(Failure::from)?;
    connection.set_prepared_statement_cache_capacity(128);
    // Without it, each execution with another parameter prepares the statement anew, to see
    // whether a partial index has come into question.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(Failure::from)?;
    Ok(connection)
}

/// Settings of the writer.
///
/// Foreign keys stay off: there is one writer, which inserts what it has just looked up, and
/// `check` looks for strays. Memory mapping stays off: a failing disk would end the process by a
/// signal instead of an error. The writer carries the log over itself, between two batches.
fn set_up(connection: &Connection, synchronous: &str) -> rusqlite::Result<()> {
    // Counts for a new file only.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA foreign_keys = OFF;
         PRAGMA trusted_schema = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -8192;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA wal_autocheckpoint = 0;"
    ))
}
