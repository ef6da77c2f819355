//! Agents we can run without code of their own.
//!
//! [`EchoAgent`] gives back the text it gets. [`ScriptAgent`] plays typed rules: a deterministic
//! stand-in for tests and demonstrations. A [`ModelAgent`] lets a language model speak and call tools.
//! [`ProcessAgent`] is a program in any language, [`HttpAgent`] a service behind HTTP,
//! [`RemoteAgent`] an agent that speaks A2A somewhere else, [`FlowAgent`] is made of other agents.
//! All are plain [`nuncio_engine::Agent`]s.

mod echo;
mod flow;
mod foreign;
mod http;
pub mod layer;
pub mod mcp;
pub mod model;
mod model_agent;
pub mod openapi;
pub mod overrides;
mod parts;
mod process;
mod remote;
mod script;
pub mod tool;

pub use echo::EchoAgent;
pub use flow::{
    Choice, Edge, Emit, FindAgent, FlowAgent, Graph, Join, Parallel, Plan, Rounds, Route, Sequence,
};
pub use http::{HeaderFault, HttpAgent, HttpSettings, header_name, secret_header};
pub use model_agent::{Budgets, BuildError, ModelAgent, ModelAgentBuilder, Prices};
pub use process::{ProcessAgent, ProcessMode, ProcessSettings};
pub use remote::{PassThrough, RemoteAgent, RemoteError, RemoteSettings, Waiting};
pub use script::{
    Artifact, Content, Fault, Pause, PauseReason, Repeat, Rule, ScriptAgent, Step, When, check,
};
