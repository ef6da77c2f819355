//! Agents we can run without code of their own.
//!
//! [`EchoAgent`] gives back the text it gets. [`ScriptAgent`] plays typed rules: a deterministic
//! stand-in for tests and demonstrations. Both are plain [`nuncio_engine::Agent`]s: no clock, no
//! file and no socket. [`ProcessAgent`] is a program in any language, [`HttpAgent`] a service behind
//! HTTP, [`FlowAgent`] is made of other agents.

mod echo;
mod flow;
mod foreign;
mod http;
mod process;
mod remote;
mod script;

pub use echo::EchoAgent;
pub use flow::{
    Choice, Edge, Emit, FindAgent, FlowAgent, Graph, Join, Parallel, Plan, Rounds, Route, Sequence,
};
pub use http::{HeaderFault, HttpAgent, HttpSettings, header_name, secret_header};
pub use process::{ProcessAgent, ProcessMode, ProcessSettings};
pub use remote::{RemoteAgent, RemoteError, RemoteSettings, Waiting};
pub use script::{
    Artifact, Content, Fault, Pause, PauseReason, Repeat, Rule, ScriptAgent, Step, When, check,
};
