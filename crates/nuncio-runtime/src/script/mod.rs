//! The script agent: typed rules in, a deterministic agent out.
//!
//! The first rule that matches a message is played. A pause with `on_answer` goes on with those
//! steps when the answer comes; without them the answer is matched against the rules like any
//! other message. Where a script stands follows from the task's history, so nothing needs to be
//! kept for it and a restart changes nothing.

mod agent;
mod check;
mod rule;
mod step;

#[cfg(test)]
mod tests;

pub use agent::ScriptAgent;
pub use check::{Fault, check};
pub(crate) use rule::turns;
pub use rule::{Rule, When};
pub use step::{Artifact, Content, Pause, PauseReason, Repeat, Step};
