//! `nuncio serve`: from a configuration to a running server, and to its orderly end.

mod administrators;
mod admission;
mod agents;
mod announce;
mod assembly;
mod call_trees;
mod files;
mod push;
pub(crate) mod secrets;
mod supervisor;
mod wiring;

pub(crate) use admission::{authenticator, tls};
pub(crate) use announce::base_url;
pub(crate) use assembly::Begun;
pub(crate) use secrets::card_key;

use std::io;
use std::sync::Arc;

use nuncio_engine::Agent;
use toml::Value;

use crate::arguments::ServeArguments;
use crate::config::{self, Config, LogFormat, Sources};
use crate::configuration::refused;
use crate::logging;
use crate::outcome::{Failure, Outcome, warn};
use crate::surroundings::Surroundings;

/// Serves until a signal comes.
pub(crate) fn run(arguments: ServeArguments, around: &Surroundings) -> Outcome {
    let sources = Sources {
        file: arguments.config.clone(),
        environment: around.environment.clone(),
        flags: flags(&arguments),
        insecure: arguments.insecure,
    };
    let loaded = config::load(sources).map_err(refused)?;
    for warning in &loaded.warnings {
        warn(&format!("warning: {warning}\n"))?;
    }
    logging::start(&loaded.config.log);
    blocking(&loaded.config, around, Vec::new())
}

/// Serves the agents of a configuration, and others, on threads of its own until a signal comes.
pub(crate) fn blocking(
    config: &Config,
    around: &Surroundings,
    own: Vec<Arc<dyn Agent>>,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed("start the runtime", &error))?;
    let workers = nuncio_server::Workers::start(worker_count(config))
        .map_err(|error| failed("start the workers", &error))?;
    let served = runtime.block_on(wiring::serve(config, around, &workers, own));
    workers.stop();
    served
}

/// A server that listens to nothing, with its work begun.
pub(crate) async fn assembled(
    config: &Config,
    around: &Surroundings,
    base: &str,
    own: Vec<Arc<dyn Agent>>,
) -> Outcome<Begun> {
    let assembly = assembly::Assembly::of(config, around, base, own).await?;
    Ok(assembly.begin(config))
}

/// Ends what [`assembled`] has begun.
pub(crate) async fn dismantle(begun: Begun, config: &Config) -> Outcome {
    let Begun { parts, background } = begun;
    parts.server.close();
    let limit = std::time::Duration::from_secs(config.server.drain_seconds);
    let stopped = parts.engine.stop_runs(limit).await;
    background.end().await;
    stopped.map_err(wiring::not_closed)?;
    parts.store.close().await.map_err(wiring::not_closed)
}

/// What is said by flags, by the names of the settings.
fn flags(arguments: &ServeArguments) -> Vec<(&'static str, &'static str, Value)> {
    let text = |value: &Option<String>| value.clone().map(Value::String);
    let data = arguments
        .data
        .as_ref()
        .map(|path| Value::String(path.display().to_string()));
    let format = arguments.log_format.map(|format| match format {
        LogFormat::Pretty => Value::String("pretty".to_owned()),
        LogFormat::Json => Value::String("json".to_owned()),
    });
    let all = [
        ("server.listen", "--listen", text(&arguments.listen)),
        ("server.data", "--data", data),
        (
            "server.public_url",
            "--public-url",
            text(&arguments.public_url),
        ),
        ("store.url", "--store", text(&arguments.store)),
        ("log.level", "--log-level", text(&arguments.log_level)),
        ("log.format", "--log-format", format),
    ];
    all.into_iter()
        .filter_map(|(key, flag, value)| Some((key, flag, value?)))
        .collect()
}

fn worker_count(config: &Config) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if config.server.workers == 0 {
        cores()
    } else {
        config.server.workers
    }
}

pub(crate) fn failed(doing: &str, error: &io::Error) -> Failure {
    Failure::internal(format!("failed to {doing}: {error}"))
}
