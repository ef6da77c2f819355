//! The agents on a real engine, kept in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod chain;
mod echo;
mod flow;
mod http;
mod layers;
mod mcp;
mod model_agent;
mod network;
mod openapi;
mod passed;
#[cfg(unix)]
mod process;
mod provider;
mod remote;
mod scale;
mod script;
mod service;
mod slow_remote;
mod support;
