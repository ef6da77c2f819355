//! Logging of a server, to stderr.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

use crate::config::{LogConfig, LogFormat};

/// Starts logging for the rest of the process; a second start changes nothing.
pub(crate) fn start(config: &LogConfig) {
    let targets: Targets = config.level.parse().unwrap_or_default();
    let registry = tracing_subscriber::registry().with(targets);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let _ = match config.format {
        LogFormat::Pretty => registry.with(lines.with_ansi(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
}
