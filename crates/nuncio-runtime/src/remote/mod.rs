//! Agents far away, used like agents at hand.

mod agent;
mod connection;
mod exchange;
mod passed;
mod state;

pub use agent::{RemoteAgent, RemoteError, RemoteSettings, Waiting};
pub use passed::PassThrough;
