//! What the configuration names on this disk: data folder, secrets, database.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::report::{Check, Report};
use crate::config::Config;

/// Reading a larger database takes too long to do it unasked.
const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// Looks at the folder, its secrets and the database.
pub(super) fn examine(report: &mut Report, config: &Config) {
    let url = config.store_url();
    if url == "memory:" {
        let kept = Check::warning("store", "tasks are kept in memory: a restart loses them");
        report.add(kept.hint("leave store.url out to keep them in the data folder"));
    } else if nuncio_store::is_shared(&url) {
        let shown = nuncio_store::shown_url(&url);
        let message = format!("tasks are kept in {shown}, which is not looked at from here");
        report.add(Check::ok("store", message));
        let data = &config.server.data;
        report.add(folder(data));
        secrets(report, data, &data.join("nuncio.db"));
    } else {
        let data = &config.server.data;
        let path = url.strip_prefix("sqlite:").unwrap_or(&url);
        let path = Path::new(path.strip_prefix("//").unwrap_or(path));
        report.add(folder(data));
        secrets(report, data, path);
        report.add(database(path));
    }
}

fn folder(folder: &Path) -> Check {
    let what = "data folder";
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(data) if !data.is_dir() => Check::error(what, format!("{shown} is no folder"))
            .hint("name another one: server.data"),
        Ok(_) => match probe(folder) {
            Ok(()) => match others_may(folder) {
                Some(mode) => Check::warning(what, format!("{shown} is open to others: {mode}"))
                    .hint(format!("chmod 700 {shown}")),
                None => Check::ok(what, format!("{shown} can be written")),
            },
            Err(error) => unwritable(what, folder, &error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => match nearest(folder) {
            Some(parent) => match probe(&parent) {
                Ok(()) => Check::ok(what, format!("{shown} is made at the first start")),
                Err(error) => unwritable(what, &parent, &error),
            },
            None => Check::error(what, format!("{shown} cannot be made")),
        },
        Err(error) => Check::error(what, format!("failed to look at {shown}: {error}")),
    }
}

fn unwritable(what: &str, folder: &Path, error: &io::Error) -> Check {
    let message = format!("failed to write to {}: {error}", folder.display());
    Check::error(what, message)
        .hint("the user who runs the server must own it, or name another one: server.data")
}

/// The innermost folder around a path that is there.
fn nearest(path: &Path) -> Option<PathBuf> {
    let around = path.ancestors().skip(1).map(|folder| match folder {
        empty if empty.as_os_str().is_empty() => PathBuf::from("."),
        folder => folder.to_owned(),
    });
    around.into_iter().find(|folder| folder.exists())
}

/// Writes a file and removes it.
fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".nuncio-doctor-{}", std::process::id()));
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    let written = file.sync_all();
    fs::remove_file(&path)?;
    written
}

/// The server's own secrets, the tasks and the agents that were added.
fn secrets(report: &mut Report, data: &Path, database: &Path) {
    let added = fs::read_dir(data.join("agents")).into_iter().flatten();
    let added = added.filter_map(|entry| Some(entry.ok()?.path()));
    let own = [
        data.join("token.key"),
        database.to_owned(),
        beside(database, "-wal"),
    ];
    for path in own.into_iter().chain(added).filter(|path| path.is_file()) {
        report.add_if(exposed("secrets", &path));
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A warning if others may read a file that is nobody's business.
pub(super) fn exposed(what: &str, path: &Path) -> Option<Check> {
    let mode = others_may(path)?;
    let shown = path.display();
    let warning = Check::warning(what, format!("others may use {shown}: {mode}"));
    Some(warning.hint(format!("chmod 600 {shown}")))
}

/// The mode of a path that is open to others than its owner.
#[cfg(unix)]
fn others_may(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| format!("mode {mode:o}"))
}

#[cfg(not(unix))]
fn others_may(_: &Path) -> Option<String> {
    None
}

fn database(path: &Path) -> Check {
    let what = "store";
    let shown = path.display();
    let size = match fs::metadata(path) {
        Ok(data) => data.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Check::ok(what, format!("{shown} is made at the first start"));
        }
        Err(error) => return Check::error(what, format!("failed to look at {shown}: {error}")),
    };
    let used = match in_use(path) {
        Ok(true) => ", in use by a running server",
        Ok(false) => "",
        Err(error) => return Check::error(what, format!("failed to lock {shown}: {error}")),
    };
    if size > MAX_CHECKED_BYTES {
        let megabytes = size >> 20;
        return Check::ok(what, format!("{shown} is there, {megabytes} MiB{used}"))
            .hint(format!("`nuncio db check {shown}` reads all of it"));
    }
    match nuncio_store::check(path) {
        Ok(checked) if checked.problems.is_empty() => {
            let tasks = checked.tasks;
            Check::ok(what, format!("{shown} is intact, {tasks} tasks{used}"))
        }
        Ok(checked) => {
            let count = checked.problems.len();
            Check::error(what, format!("{shown} is damaged, {count} problems{used}"))
                .hint(format!("`nuncio db check {shown}` lists them"))
        }
        Err(error) => Check::error(what, format!("failed to check {shown}: {error}"))
            .hint("move it away, or name another store: store.url"),
    }
}

/// Whether a server has the database: it holds the lock beside it.
fn in_use(path: &Path) -> io::Result<bool> {
    let file = match File::open(beside(path, ".lock")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
