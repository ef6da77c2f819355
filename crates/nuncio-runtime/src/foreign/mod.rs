//! What agents in other programs are told and what they answer, whatever the way there.
//!
//! One JSON object asks ([`told`]), JSON objects answer ([`Event`]). The format has version 1 and
//! is described in `docs/process-agents.md`. `process` sends it over pipes, `http` over HTTP.

mod event;
mod told;
mod turn;

pub(crate) use event::{Event, EventError};
pub(crate) use told::{CANCEL, told};
pub(crate) use turn::{Stop, Turn};

/// The version of the format.
pub(crate) const VERSION: u32 = 1;
