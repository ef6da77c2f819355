//! Agents we can run without code of their own.
//!
//! [`EchoAgent`] gives back the text it gets. [`ScriptAgent`] plays typed rules: a deterministic
//! stand-in for tests and demonstrations. Both are plain [`nuncio_engine::Agent`]s: no clock, no
//! file and no socket.

mod echo;
mod remote;
mod script;

pub use echo::EchoAgent;
pub use remote::{RemoteAgent, RemoteError, RemoteSettings, Waiting};
pub use script::{
    Artifact, Content, Fault, Pause, PauseReason, Repeat, Rule, ScriptAgent, Step, When, check,
};
