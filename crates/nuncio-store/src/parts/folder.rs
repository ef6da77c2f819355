//! The folder of parts beside a database of SQLite, as its checks and copies see it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nuncio_protocol::{Task, TaskId};

use super::place::{Folder, make_private};
use super::reference::{Reference, hex, referred};
use crate::Scope;

/// The folder beside a database.
pub(crate) fn parts_of(database: &Path) -> PathBuf {
    let mut name: OsString = database.as_os_str().to_owned();
    name.push(".parts");
    name.into()
}

/// Whether a task, as it is stored, refers to parts.
pub(crate) fn has_parts(task: &Task) -> bool {
    !referred(task).0.is_empty()
}

/// What is wrong with the parts to which a task refers.
pub(crate) fn wrong_parts(parts: &Path, scope: &Scope, task: &Task) -> Vec<String> {
    let wrong = |reference: Reference| {
        let path = file_of(parts, scope, &task.id, &reference);
        match fs::read(path) {
            Ok(bytes) if Reference::of(&bytes) == reference => None,
            Ok(_) => Some("a large part is not what was stored".to_owned()),
            Err(error) => Some(format!("a large part: {}", error.kind())),
        }
    };
    referred(task).0.into_iter().filter_map(wrong).collect()
}

fn file_of(parts: &Path, scope: &Scope, task: &TaskId, reference: &Reference) -> PathBuf {
    let folder = Folder::of(scope, task);
    parts
        .join(folder.path().as_ref())
        .join(hex(&reference.digest))
}

/// Copies what is not there yet, each file on disk before it has its name.
pub(crate) fn copy_parts(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    make_private(to)?;
    for entry in entries {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_parts(&source, &target)?;
        } else if !is_draft(&source) && !target.exists() {
            copy_file(&source, &target)?;
        }
    }
    File::open(to)?.sync_all()
}

/// A file in the making has a `#` in its name.
fn is_draft(path: &Path) -> bool {
    path.to_string_lossy().contains('#')
}

fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut draft: OsString = target.as_os_str().to_owned();
    draft.push("#");
    match fs::copy(source, &draft) {
        // Its task has expired meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        copied => copied?,
    };
    File::open(&draft)?.sync_all()?;
    fs::rename(&draft, target)
}
