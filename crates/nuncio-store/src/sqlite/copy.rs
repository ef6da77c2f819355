//! Copies of a database: made while it is served, and put in its place.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};

use super::check::check_with;
use super::connection::{
    BUSY_TIMEOUT, ProcessLock, SqliteOptions, file_name, open_writer, private_file,
};
use super::failure::Failure;
use super::schema;
use crate::parts::{copy_parts, parts_of};
use crate::{CheckReport, SchemaReport, StoreError};

/// Looks in which shape a database is, without changing it; may run beside the process that
/// serves it.
///
/// # Errors
/// [`StoreError::Refused`] if there is no such file, or it is of something else.
pub fn examine(path: impl AsRef<Path>) -> Result<SchemaReport, StoreError> {
    let path = path.as_ref();
    let connection = open_existing(path)?;
    schema::recognise_any(&connection, path)?;
    let found = schema::version(&connection)?;
    let unfinished = match found {
        0 => 0,
        _ => connection
            .query_row(
                "SELECT count(*) FROM tasks WHERE state IN (1, 2) AND state <> 3",
                [],
                |row| row.get::<_, i64>(0),
            )
            .map_err(Failure::from)? as u64,
    };
    Ok(SchemaReport {
        found,
        known: schema::KNOWN,
        unfinished,
    })
}

/// Brings a database to the newest shape, as opening it does; gives the steps it had taken before.
///
/// # Errors
/// [`StoreError::Refused`] if there is no such file, or it is in use, foreign or of a newer version.
pub fn migrate(path: impl AsRef<Path>) -> Result<usize, StoreError> {
    let path = path.as_ref();
    let before = examine(path)?.found;
    let _lock = ProcessLock::take(path)?;
    drop(open_writer(path, &SqliteOptions::default())?);
    Ok(before)
}

/// Copies a database, as of one moment, into a new file, with the folder of large parts beside it;
/// gives the size of the file in bytes.
///
/// May run beside the process that serves the database, which goes on as before: whatever was
/// answered before the call is in the copy. The copy is compact, private to this user, and on disk
/// when this returns; before that there is nothing under its name. Blocks.
///
/// # Errors
/// [`StoreError::Refused`] if the copy exists already, or the database does not; else as the disk
/// has it.
pub fn backup(path: impl AsRef<Path>, copy: impl AsRef<Path>) -> Result<u64, StoreError> {
    let (path, copy) = (path.as_ref(), copy.as_ref());
    if copy.exists() {
        return Err(refused(copy, "the file exists already"));
    }
    let connection = open_existing(path)?;
    schema::recognise(&connection, path)?;
    // Before, what may expire meanwhile; and afterwards, what has come meanwhile.
    let copy_parts = || {
        let (from, to) = (parts_of(path), parts_of(copy));
        copy_parts(&from, &to).map_err(|error| cannot(&to, &error))
    };
    copy_parts()?;
    let draft = Draft::new(copy)?;
    // Counts for what is written into the copy: a database that was made without shrinks from then on.
    connection
        .pragma_update(None, "auto_vacuum", "INCREMENTAL")
        .map_err(Failure::from)?;
    let name = draft.0.to_str();
    let name = name.ok_or_else(|| refused(copy, "the name is no UTF-8"))?;
    connection
        .execute("VACUUM INTO ?1", params![name])
        .map_err(Failure::from)?;
    drop(connection);
    copy_parts()?;
    draft.put_in_place(copy, false)
}

/// Puts a copy in the place of a database, with the folder of large parts beside it, after both have
/// been checked; gives what is in it.
///
/// A database that is there is kept unless `replace` says otherwise; then it is gone. Until the
/// copy has been found sound nothing is changed.
///
/// # Errors
/// [`StoreError::Refused`] if the copy is foreign, damaged or of a newer version, if there is a
/// database that is not to be replaced, or if a process has it open.
pub fn restore(
    copy: impl AsRef<Path>,
    path: impl AsRef<Path>,
    replace: bool,
) -> Result<CheckReport, StoreError> {
    let (copy, path) = (copy.as_ref(), path.as_ref());
    let connection = open_existing(copy)?;
    schema::recognise(&connection, copy)?;
    drop(connection);
    let there = path.metadata().is_ok_and(|file| file.len() > 0);
    if there && !replace {
        return Err(refused(path, "there is a database already"));
    }
    let _lock = ProcessLock::take(path)?;
    let draft = Draft::new(path)?;
    fs::copy(copy, &draft.0).map_err(|error| cannot(&draft.0, &error))?;
    let report = check_with(&draft.0, &parts_of(copy))?;
    if let Some(problem) = report.problems.first() {
        return Err(refused(copy, &format!("the copy is damaged: {problem}")));
    }
    let parts = parts_of(path);
    copy_parts(&parts_of(copy), &parts).map_err(|error| cannot(&parts, &error))?;
    // The log of the database before belongs to none other.
    for suffix in ["-wal", "-shm"] {
        remove(&beside(path, suffix))?;
    }
    draft.put_in_place(path, true)?;
    Ok(report)
}

/// A file in the making; gone if it does not come to be one.
struct Draft(PathBuf);

impl Draft {
    fn new(path: &Path) -> Result<Self, StoreError> {
        let draft = Self(beside(path, ".new"));
        for suffix in ["", "-wal", "-shm", "-journal"] {
            remove(&beside(&draft.0, suffix))?;
        }
        private_file(&draft.0).map_err(|error| cannot(path, &error))?;
        Ok(draft)
    }

    /// Writes it to disk and gives it its name; gives its size.
    fn put_in_place(self, path: &Path, replace: bool) -> Result<u64, StoreError> {
        let failed = |error: &io::Error| cannot(path, error);
        let file = File::open(&self.0).map_err(|error| failed(&error))?;
        file.sync_all().map_err(|error| failed(&error))?;
        if replace {
            fs::rename(&self.0, path).map_err(|error| failed(&error))?;
        } else {
            // Unlike a rename, it does not replace what has come there meanwhile.
            fs::hard_link(&self.0, path).map_err(|error| failed(&error))?;
        }
        let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
        let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|f| f.sync_all());
        synced.map_err(|error| failed(&error))?;
        let size = file.metadata().map_err(|error| failed(&error))?.len();
        Ok(size)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            // What cannot be removed is told by whoever tries next.
            let _ = remove(&beside(&self.0, suffix));
        }
    }
}

fn open_existing(path: &Path) -> Result<Connection, StoreError> {
    if !path.is_file() {
        return Err(refused(path, "there is no such file"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(Failure::from)?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(Failure::from)?;
    Ok(connection)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot(path, &error)),
        _ => Ok(()),
    }
}

fn refused(path: &Path, why: &str) -> StoreError {
    StoreError::Refused(format!("{}: {why}", file_name(path)))
}

fn cannot(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {}", file_name(path), error.kind()))
}
