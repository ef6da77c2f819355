//! `nuncio upgrade check`: what serving with this program would do to a configuration and a database.

use std::cmp::Ordering;
use std::path::Path;

use nuncio_store::{PostgresStore, SchemaReport};

use super::report::{Check, Report};
use crate::arguments::UpgradeCheckArguments;
use crate::client::{Printer, block_on};
use crate::config::{self, Config, Sources};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// Looks and says; what would keep the server from starting is exit code 1. Changes nothing.
pub(crate) fn upgrade_check(arguments: &UpgradeCheckArguments, around: &Surroundings) -> Outcome {
    let mut report = Report::default();
    let version = env!("CARGO_PKG_VERSION");
    report.add(Check::ok("program", format!("nuncio {version}")));
    if let Some(config) = configuration(&mut report, arguments.config.as_deref(), around) {
        database(&mut report, &config);
    }
    report.print(Printer::new(
        arguments.output.unwrap_or_default(),
        false,
        false,
    ))?;
    if report.has_errors() {
        Err(Failure::Shown)
    } else {
        Ok(())
    }
}

/// Keys that this program does not know, or no longer, are refused at the start.
fn configuration(
    report: &mut Report,
    file: Option<&Path>,
    around: &Surroundings,
) -> Option<Config> {
    let what = "configuration";
    let sources = Sources {
        file: file.map(Path::to_owned),
        environment: around.environment.clone(),
        flags: Vec::new(),
        // Whether it may be open to the network is said to `serve`.
        insecure: true,
    };
    match config::load(sources) {
        Ok(loaded) => {
            let shown = file.map_or("the default".to_owned(), |file| file.display().to_string());
            report.add(Check::ok(what, format!("{shown} would be accepted")));
            Some(loaded.config)
        }
        Err(refusals) => {
            for refusal in refusals.0 {
                let message = match refusal.key.as_str() {
                    "" => format!("{}: {}", refusal.origin, refusal.message),
                    key => format!("{}: {key}: {}", refusal.origin, refusal.message),
                };
                report.add(Check::error(what, message).hint(refusal.hint));
            }
            None
        }
    }
}

fn database(report: &mut Report, config: &Config) {
    let what = "database";
    let url = config.store_url();
    if url == "memory:" {
        let message = "tasks are kept in memory: a restart forgets them";
        return report.add(Check::ok(what, message));
    }
    if nuncio_store::is_shared(&url) {
        return shared(report, &url);
    }
    let path = Path::new(url.strip_prefix("sqlite:").unwrap_or(&url));
    if !path.exists() {
        let message = format!("{} is not there: a start would make it", path.display());
        return report.add(Check::ok(what, message));
    }
    let found = match nuncio_store::examine(path) {
        Ok(found) => found,
        Err(error) => return report.add(Check::error(what, error.to_string())),
    };
    shape(
        report,
        &path.display().to_string(),
        &found,
        "`nuncio db backup`",
    );
}

/// Replicas of the version before go on beside the one that carries the schema over.
fn shared(report: &mut Report, url: &str) {
    let shown = nuncio_store::shown_url(url);
    let examined = block_on(async { Ok(PostgresStore::examine(url).await) });
    let message = match examined {
        Ok(Ok(found)) if found.found == 0 => {
            let message = format!("{shown} has no schema nuncio: a start would make it");
            return report.add(Check::ok("database", message));
        }
        Ok(Ok(found)) => return shape(report, &shown, &found, "pg_dump"),
        Ok(Err(error)) => format!("{shown}: {error}"),
        Err(_) => format!("{shown}: there is no runtime to ask it with"),
    };
    report.add(Check::error("database", message));
}

fn shape(report: &mut Report, shown: &str, found: &SchemaReport, copying: &str) {
    let what = "database";
    let (is, known) = (found.found, found.known);
    let shape = format!("{shown} has version {is}, this program knows {known}");
    report.add(match is.cmp(&known) {
        Ordering::Greater => {
            let hint = "use the program that has served it, or a newer one";
            Check::error(what, format!("{shape}: a start would refuse it")).hint(hint)
        }
        Ordering::Equal => Check::ok(what, format!("{shape}: nothing to carry over")),
        Ordering::Less => {
            let message = format!("{shape}: a start would carry it over, and there is no way back");
            Check::warning(what, message).hint(format!("make a copy first: {copying}"))
        }
    });
    if found.unfinished > 0 {
        let message = format!("{} runs would be taken up or ended", found.unfinished);
        report.add(Check::ok("tasks", message));
    }
}
