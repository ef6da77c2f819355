//! `nuncio task export|import`: tasks from one store into another, of whatever kind.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use nuncio_protocol::json;
use nuncio_store::{Imported, Store, StoreError};
use serde::Serialize;

use crate::arguments::{TaskExportArguments, TaskImportArguments};
use crate::client::{Printer, Text, block_on};
use crate::outcome::{Failure, Outcome, warn};
use crate::serve::secrets;

use line::{FORMAT, Footer, Header, TaskLine};

/// Tasks read at once; each may be large.
const PAGE: usize = 20;

/// Writes all tasks of a store.
pub(crate) fn export(arguments: &TaskExportArguments) -> Outcome {
    let written = block_on(async {
        let store = open(&arguments.store, true).await?;
        let secrets = match arguments.with_secrets {
            true => Some(sealing_key(&arguments.store, &*store).await?),
            false => None,
        };
        let count = match &arguments.out {
            Some(path) => {
                let file = make(path).map_err(|error| unwritten(path, &error))?;
                let mut file = BufWriter::new(file);
                let count = write_all(&*store, secrets.as_ref(), &mut file).await?;
                let synced = file.into_inner().map_err(io::IntoInnerError::into_error);
                let synced = synced.and_then(|file| file.sync_all());
                synced.map_err(|error| unwritten(path, &error))?;
                count
            }
            None => {
                let mut out = BufWriter::new(io::stdout());
                write_all(&*store, secrets.as_ref(), &mut out).await?
            }
        };
        store
            .close()
            .await
            .map_err(|error| failed("close the store", &error))?;
        Ok(count)
    })?;
    Ok(warn(&format!("exported {written} tasks\n"))?)
}

/// The key with which the server of a store has sealed the secrets of webhooks: in the store, if
/// several servers share it, else in the folder of its file.
async fn sealing_key(named: &str, store: &dyn Store) -> Outcome<[u8; 32]> {
    let shared = store.shared_secret(secrets::fresh_key()?).await;
    if let Some(key) = shared.map_err(|error| failed("read the secret of the store", &error))? {
        return Ok(key);
    }
    let path = Path::new(named.strip_prefix("sqlite:").unwrap_or(named));
    let folder = match path.is_dir() {
        true => Some(path),
        false => path.parent(),
    };
    secrets::known_token_key(folder.unwrap_or(Path::new("")))
}

async fn write_all(
    store: &dyn Store,
    secrets: Option<&[u8; 32]>,
    out: &mut impl Write,
) -> Outcome<u64> {
    let header = Header {
        nuncio_tasks: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
    };
    write_line(out, &header)?;
    let (mut count, mut after) = (0, None);
    loop {
        let page = store.export(after.as_ref(), PAGE).await;
        let page = page.map_err(|error| failed("read the tasks", &error))?;
        let Some(last) = page.last() else { break };
        after = Some(last.task.id.clone());
        for whole in page {
            let line = TaskLine::of(whole, secrets).map_err(|error| {
                Failure::internal(format!("failed to export with secrets: {error}"))
                    .hint("token.key in the data folder has to be that of the server")
            })?;
            write_line(out, &line)?;
            count += 1;
        }
    }
    write_line(
        out,
        &Footer {
            end_of_tasks: count,
        },
    )?;
    out.flush()?;
    Ok(count)
}

fn write_line<T: Serialize>(out: &mut impl Write, line: &T) -> Outcome {
    let text = json::encode(line) + "\n";
    Ok(out.write_all(text.as_bytes())?)
}

/// What became of the lines.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    imported: u64,
    already_there: u64,
    refused: u64,
}

/// Stores what an export has written. What is there already stays; what is there and differs is
/// told, and makes the command a failure once all other tasks are stored.
pub(crate) fn import(arguments: &TaskImportArguments) -> Outcome {
    let shown = arguments.file.display().to_string();
    let input: Box<dyn BufRead> = if arguments.file == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&arguments.file).map_err(|error| unread(&shown, &error))?;
        Box::new(BufReader::new(file))
    };
    let mut lines = Lines {
        input,
        shown,
        number: 0,
    };
    lines.header()?;
    let (counts, ended) = block_on(async {
        let store = open(&arguments.store, false).await?;
        let mut counts = Counts::default();
        let ended = take_all(&*store, &mut lines, &mut counts).await;
        store
            .close()
            .await
            .map_err(|error| failed("close the store", &error))?;
        Ok((counts, ended))
    })?;
    tell(arguments, &counts)?;
    ended?;
    if counts.refused > 0 {
        return Err(Failure::Shown);
    }
    Ok(())
}

async fn take_all(store: &dyn Store, lines: &mut Lines, counts: &mut Counts) -> Outcome {
    let mut read = 0;
    while let Some(text) = lines.next()? {
        if text.starts_with("{\"endOfTasks\"") {
            let footer: Footer = lines.decode(&text)?;
            return match footer.end_of_tasks == read {
                true => Ok(()),
                false => {
                    Err(lines.wrong(&format!("{read} tasks instead of {}", footer.end_of_tasks)))
                }
            };
        }
        let line: TaskLine = lines.decode(&text)?;
        let whole = line.into_whole().map_err(|why| lines.wrong(&why))?;
        let id = whole.task.id.clone();
        read += 1;
        let imported = store.import(whole).await.map_err(|error| match error {
            StoreError::Corrupt(why) => lines.wrong(&format!("task {id}: {why}")),
            other => failed("store the tasks", &other),
        })?;
        let why = match imported {
            Imported::New => {
                counts.imported += 1;
                continue;
            }
            Imported::Same => {
                counts.already_there += 1;
                continue;
            }
            Imported::Different => "another state of it, or another task, is there".to_owned(),
            Imported::KeyInUse { key, task } => {
                format!("its key \"{key}\" leads to task {task} there")
            }
        };
        counts.refused += 1;
        warn(&format!(
            "refused: task {id}: {}\n",
            crate::client::escape(&why)
        ))?;
    }
    let why = "the file ends early; what was read is stored, and importing the whole file later \
               adds the rest";
    Err(lines.wrong(why))
}

fn tell(arguments: &TaskImportArguments, counts: &Counts) -> Outcome {
    let printer = Printer::new(arguments.output.unwrap_or_default(), false, false);
    if printer.is_json() {
        return printer.json(counts);
    }
    let mut text = Text::new(false);
    text.field("Imported", &counts.imported.to_string());
    text.field("Already there", &counts.already_there.to_string());
    text.field("Refused", &counts.refused.to_string());
    printer.text(text)
}

/// A file of lines, with where one is in it.
struct Lines {
    input: Box<dyn BufRead>,
    shown: String,
    number: u64,
}

impl Lines {
    /// Reads the first line.
    ///
    /// # Errors
    /// If it is not what an export begins with, or one of a version to come.
    fn header(&mut self) -> Outcome {
        let hint = "`nuncio task export` writes what can be imported";
        let first = self.next()?.unwrap_or_default();
        let header: Result<Header, _> = serde_json::from_str(&first);
        match header {
            Ok(header) if header.nuncio_tasks == FORMAT => Ok(()),
            Ok(header) => Err(self
                .wrong(&format!(
                    "the form has version {}, this program reads {FORMAT}",
                    header.nuncio_tasks
                ))
                .hint("use a newer nuncio")),
            Err(_) => Err(self.wrong("this is no export of tasks").hint(hint)),
        }
    }

    fn next(&mut self) -> Outcome<Option<String>> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line);
        let read = read.map_err(|error| unread(&self.shown, &error))?;
        self.number += 1;
        Ok((read > 0).then(|| line.trim_end().to_owned()))
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, text: &str) -> Outcome<T> {
        // What a store has written may be nested deeper than a request.
        let mut json = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(&mut json).map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&self, why: &str) -> Failure {
        let Self { shown, number, .. } = self;
        Failure::usage(format!("failed to import {shown}: line {number}: {why}"))
    }
}

/// Opens a store by its URL, its file or its folder; one to read from has to be there.
async fn open(named: &str, there: bool) -> Outcome<Arc<dyn Store>> {
    if named == "memory:" {
        let message = "memory: is gone when the command ends";
        return Err(Failure::usage(message).hint("name a database"));
    }
    if nuncio_store::is_shared(named) {
        let opened = nuncio_store::open(named, Default::default()).await;
        return opened.map_err(|error| failed("open the store", &error));
    }
    let path = named.strip_prefix("sqlite:").unwrap_or(named);
    let url = if Path::new(path).is_dir() {
        format!("sqlite:{}", Path::new(path).join("nuncio.db").display())
    } else {
        named.to_owned()
    };
    let file = url.strip_prefix("sqlite:").unwrap_or(&url);
    if there && !Path::new(file).exists() {
        let message = format!("failed to open {file}: there is no such file");
        return Err(
            Failure::usage(message).hint("name a database, or the data folder that holds one")
        );
    }
    let opened = nuncio_store::open(&url, Default::default()).await;
    opened.map_err(|error| {
        let failure = failed("open the store", &error);
        match &error {
            StoreError::Refused(why) if why.ends_with("in use by another process") => failure.hint(
                "a server has it open: `nuncio db backup` makes a copy meanwhile, which can be exported",
            ),
            _ => failure,
        }
    })
}

/// A new file for this user only.
fn make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn failed(doing: &str, error: &StoreError) -> Failure {
    Failure::internal(format!("failed to {doing}: {error}"))
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::internal(format!("failed to write {}: {error}", path.display()))
}

fn unread(shown: &str, error: &io::Error) -> Failure {
    Failure::internal(format!("failed to read {shown}: {error}"))
}
