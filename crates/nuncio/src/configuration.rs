//! `nuncio config check|dump|schema`: looking at a server's configuration without serving.

use std::path::PathBuf;

use crate::arguments::{ConfigCheckArguments, ConfigDumpArguments};
use crate::config::{self, Config, Loaded, Refusals, Sources};
use crate::outcome::{Failure, Outcome, print, warn};
use crate::surroundings::Surroundings;

/// Says whether a file would be accepted; warnings go to stderr.
pub(crate) fn check(arguments: &ConfigCheckArguments, surroundings: &Surroundings) -> Outcome {
    let loaded = load(Some(&arguments.file), arguments.insecure, surroundings)?;
    let agents: Vec<String> = loaded
        .config
        .agents()
        .into_iter()
        .map(|agent| agent.id)
        .collect();
    let file = arguments.file.display();
    Ok(print(&format!(
        "{file}: good; agents: {}\n",
        agents.join(", ")
    ))?)
}

/// Prints what would be in force.
pub(crate) fn dump(arguments: &ConfigDumpArguments, surroundings: &Surroundings) -> Outcome {
    let loaded = load(arguments.config.as_ref(), arguments.insecure, surroundings)?;
    Ok(print(&config::dump(&loaded))?)
}

/// Prints the JSON Schema.
pub(crate) fn schema() -> Outcome {
    Ok(print(&(Config::schema() + "\n"))?)
}

fn load(file: Option<&PathBuf>, insecure: bool, around: &Surroundings) -> Outcome<Loaded> {
    let sources = Sources {
        file: file.cloned(),
        environment: around.environment.clone(),
        flags: Vec::new(),
        insecure,
    };
    let loaded = config::load(sources).map_err(refused)?;
    for warning in &loaded.warnings {
        warn(&format!("warning: {warning}\n"))?;
    }
    Ok(loaded)
}

/// A configuration that is not accepted, as a failure of the command.
pub(crate) fn refused(refusals: Refusals) -> Failure {
    let count = refusals.0.len();
    let things = if count == 1 {
        "1 mistake".to_owned()
    } else {
        format!("{count} mistakes")
    };
    Failure::usage(format!(
        "the configuration is refused, {things}:\n{refusals}"
    ))
    .hint("`nuncio config schema` prints what a configuration may say")
}
