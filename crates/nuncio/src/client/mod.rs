//! `nuncio` as a client of agents, after the a2a-cli specification (SPEC 0.2).
//!
//! A command goes through four rooms: `options` and `settings` say what is wanted and where each
//! setting comes from, `session` finds the card and connects, `send`, `task` and `card` ask and
//! `follow`, and `printer` writes: `text` for people, the protocol's own JSON for programs.
//! Nothing is remembered from one run to the next.

mod card;
mod card_diff;
mod card_lint;
mod card_sign;
mod card_verify;
mod credentials;
mod debug;
mod dotenv;
mod duration;
mod escape;
mod failure;
mod follow;
mod found;
mod groundwork;
mod hints;
mod options;
mod parts;
mod printer;
mod rerun;
mod send;
mod session;
mod settings;
mod show;
mod state;
mod task;
mod text;
mod trace;
mod validate;

use std::ffi::OsString;

use crate::surroundings::Surroundings;

pub(crate) use card::card_get;
pub(crate) use card_diff::card_diff;
pub(crate) use card_lint::{Severity, card_lint, lint};
pub(crate) use card_sign::card_sign;
pub(crate) use card_verify::{card_verify, read_keys};
pub(crate) use credentials::Attachments;
pub(crate) use duration::parse as parse_duration;
pub(crate) use escape::{escape, escape_json};
pub(crate) use found::make_absolute;
pub(crate) use groundwork::Groundwork;
pub(crate) use options::{ClientOptions, FollowOptions, OutputFormat, ServerOptions, said};
pub(crate) use parts::PartFlags;
pub(crate) use printer::Printer;
pub(crate) use send::send;
pub(crate) use show::config_show;
pub(crate) use state::StateName;
pub(crate) use task::task;
pub(crate) use text::Text;

/// Whether a failure is to be told as JSON, judged before the arguments are known to be good.
pub(crate) fn wants_json(arguments: &[OsString], surroundings: &Surroundings) -> bool {
    let texts: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .collect();
    let said = texts
        .iter()
        .enumerate()
        .rev()
        .find_map(|(index, text)| match *text {
            "-o" | "--output" => texts.get(index + 1).copied(),
            _ => text
                .strip_prefix("--output=")
                .or_else(|| text.strip_prefix("-o")),
        });
    let format = said.map(|said| said.trim_start_matches('=').to_owned());
    format
        .or_else(|| settings::configured_output(&texts, surroundings))
        .as_deref()
        == Some("json")
}

/// Runs a future of the client on a small runtime of its own.
pub(crate) fn block_on<T>(
    future: impl Future<Output = crate::outcome::Outcome<T>>,
) -> crate::outcome::Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        crate::outcome::Failure::internal(format!("failed to start the runtime: {error}"))
    })?;
    let result = runtime.block_on(future);
    // A look-up of a name may still be blocked; nobody waits for it.
    runtime.shutdown_background();
    result
}
