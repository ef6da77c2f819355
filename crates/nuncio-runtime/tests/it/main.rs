//! The agents on a real engine, kept in memory, with time that does not pass by itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod echo;
mod network;
mod remote;
mod script;
mod support;
