//! Agents far away, used like agents at hand.

mod agent;
mod connection;
mod exchange;
mod state;

pub use agent::{RemoteAgent, RemoteError, RemoteSettings, Waiting};
