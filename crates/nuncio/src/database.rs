//! `nuncio db check|migrate|backup|restore`: looking after a database.

use std::path::{Path, PathBuf};

use nuncio_store::{CheckReport, PostgresStore, StoreError};
use serde_json::{Value, json};

use crate::arguments::{DbBackupArguments, DbCommand, DbPathArguments, DbRestoreArguments};
use crate::client::{OutputFormat, Printer, Text, block_on};
use crate::outcome::{Failure, Outcome};

/// Runs one of the commands.
pub(crate) fn run(command: &DbCommand) -> Outcome {
    match command {
        DbCommand::Check(arguments) => check(arguments),
        DbCommand::Migrate(arguments) => migrate(arguments),
        DbCommand::Backup(arguments) => backup(arguments),
        DbCommand::Restore(arguments) => restore(arguments),
    }
}

/// What `nuncio db` looks after.
enum Database {
    File(PathBuf),
    /// The URL of a database of PostgreSQL.
    Shared(String),
}

impl Database {
    /// What a path or a URL means: a file, which may be in a data folder, or a database elsewhere.
    fn named(path: &Path) -> Self {
        let text = path.to_string_lossy();
        match nuncio_store::is_shared(&text) {
            true => Self::Shared(text.into_owned()),
            false => Self::File(file(path)),
        }
    }

    /// A file.
    ///
    /// # Errors
    /// For the address of a database that looks after itself.
    fn file(path: &Path) -> Outcome<PathBuf> {
        match Self::named(path) {
            Self::File(file) => Ok(file),
            Self::Shared(_) => {
                let message = "PostgreSQL has its own tools for this: pg_dump, pg_restore, and for \
                               copies that follow the original pg_basebackup";
                let hint = "`nuncio task export` writes tasks in a form that every store takes";
                Err(Failure::usage(message).hint(hint))
            }
        }
    }

    /// As it may be shown.
    fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Shared(url) => nuncio_store::shown_url(url),
        }
    }

    fn check(&self) -> Outcome<CheckReport> {
        let failed = |error| failed("check", &self.shown(), &error);
        match self {
            Self::File(path) => nuncio_store::check(path).map_err(failed),
            Self::Shared(url) => {
                block_on(async { PostgresStore::check(url).await.map_err(failed) })
            }
        }
    }

    /// Gives the version before and the one now.
    fn migrate(&self) -> Outcome<(usize, usize)> {
        let failed = |error| failed("migrate", &self.shown(), &error);
        match self {
            Self::File(path) => {
                let before = nuncio_store::migrate(path).map_err(failed)?;
                let now = nuncio_store::examine(path).map_err(failed)?;
                Ok((before, now.found))
            }
            Self::Shared(url) => block_on(async {
                let before = PostgresStore::migrate(url).await.map_err(failed)?;
                let now = PostgresStore::examine(url).await.map_err(failed)?;
                Ok((before, now.found))
            }),
        }
    }
}

/// Checks a database and says what is in it; a broken one is a failure.
fn check(arguments: &DbPathArguments) -> Outcome {
    let database = Database::named(&arguments.path);
    let shown = database.shown();
    let report = database.check()?;
    let state = if report.is_sound() {
        "intact"
    } else {
        "damaged"
    };
    let mut result = contents(&shown, &report);
    result["state"] = json!(state);
    result["problems"] = json!(report.problems);
    tell(arguments.output, &result, |text| {
        describe(text, &shown, &report);
        match report.is_sound() {
            true => text.field("State", state),
            false => report
                .problems
                .iter()
                .for_each(|problem| text.field("Problem", problem)),
        }
    })?;
    if report.is_sound() {
        return Ok(());
    }
    if arguments.output == Some(OutputFormat::Json) {
        return Err(Failure::Shown);
    }
    let count = report.problems.len();
    let message = format!("the database {shown} is damaged: {count} problems");
    let restore = match database {
        Database::File(_) => "`nuncio db restore`",
        Database::Shared(_) => "PostgreSQL's own tools",
    };
    let hint = format!("stop the server, keep a copy, and restore a backup with {restore}");
    Err(Failure::internal(message).hint(hint))
}

fn migrate(arguments: &DbPathArguments) -> Outcome {
    let database = Database::named(&arguments.path);
    let shown = database.shown();
    let (before, now) = database.migrate()?;
    let result = json!({ "database": shown, "versionBefore": before, "version": now });
    tell(arguments.output, &result, |text| {
        text.field("Database", &shown);
        text.field("Version before", &before.to_string());
        text.field("Version", &now.to_string());
    })
}

fn backup(arguments: &DbBackupArguments) -> Outcome {
    let path = Database::file(&arguments.path)?;
    let (shown, copy) = (
        path.display().to_string(),
        arguments.backup.display().to_string(),
    );
    let size = nuncio_store::backup(&path, &arguments.backup)
        .map_err(|error| failed("back up", &shown, &error))?;
    let result = json!({ "database": shown, "backup": copy, "bytes": size });
    tell(arguments.output, &result, |text| {
        text.field("Database", &shown);
        text.field("Backup", &copy);
        text.field("Bytes", &size.to_string());
    })
}

fn restore(arguments: &DbRestoreArguments) -> Outcome {
    let backup = Database::file(&arguments.backup)?;
    let path = Database::file(&arguments.path)?;
    let shown = path.display().to_string();
    let report = nuncio_store::restore(&backup, &path, arguments.force).map_err(|error| {
        let failure = failed("restore", &shown, &error);
        match &error {
            StoreError::Refused(why) if why.ends_with("a database already") => {
                failure.rather("--force replaces it; `nuncio db backup` keeps a copy first")
            }
            _ => failure,
        }
    })?;
    let result = contents(&shown, &report);
    tell(arguments.output, &result, |text| {
        describe(text, &shown, &report);
    })
}

/// The file that a path means: itself, or the database in a data folder, which may be yet to make.
fn file(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let file = text.strip_prefix("sqlite:").map_or(path, Path::new);
    let folder = file.is_dir() || !file.exists() && file.extension().is_none();
    match folder {
        true => file.join("nuncio.db"),
        false => file.to_owned(),
    }
}

fn failed(doing: &str, shown: &str, error: &StoreError) -> Failure {
    let failure = Failure::internal(format!("failed to {doing} {shown}: {error}"));
    match error {
        StoreError::Refused(why) if why.ends_with("in use by another process") => {
            failure.hint("stop the server that has it open")
        }
        _ => failure,
    }
}

fn contents(shown: &str, report: &CheckReport) -> Value {
    json!({
        "database": shown,
        "tasks": report.tasks,
        "events": report.events,
        "partsElsewhere": report.parts_elsewhere,
    })
}

fn describe(text: &mut Text, shown: &str, report: &CheckReport) {
    text.field("Database", shown);
    text.field("Tasks", &report.tasks.to_string());
    text.field("Events", &report.events.to_string());
    if report.parts_elsewhere > 0 {
        let text_of = format!("not looked at, for {} tasks", report.parts_elsewhere);
        text.field("Parts elsewhere", &text_of);
    }
}

fn tell(output: Option<OutputFormat>, result: &Value, write: impl FnOnce(&mut Text)) -> Outcome {
    let printer = Printer::new(output.unwrap_or_default(), false, false);
    if printer.is_json() {
        return printer.json(result);
    }
    let mut text = Text::new(false);
    write(&mut text);
    printer.text(text)
}
