//! Agents in any language: programs that read and write JSON, one object a line.
//!
//! `agent` plays what a program says, `kept` has programs that serve one run after another.
//! `child` starts a program and sees that nothing of it is left; `lines` and `tail` read its
//! output and its errors within limits. The format is that of `foreign`.

mod agent;
mod child;
mod group;
mod kept;
mod lines;
mod settings;
mod tail;

pub use agent::ProcessAgent;
pub use settings::{ProcessMode, ProcessSettings};
