//! What happens to a task: runs, leases, streams, cancel, recovery, webhooks.
//!
//! A task is an ordered log of events. A run of an [`Agent`] appends to it through its [`RunCx`];
//! everybody else (a waiting send, a stream) is a reader with a cursor. An event reaches a reader
//! only after its commit, and the run goes on whoever leaves. [`Engine::host`] gives an agent its
//! [`nuncio_protocol::AgentService`]; there is no binding and no protocol version here. Webhooks are
//! called by what [`Engine::deliverer`] gives.

mod agent;
mod agent_fn;
mod cell;
mod chain;
mod context;
mod delivery;
mod draft;
mod end;
mod engine;
mod follow;
mod holder;
mod hosted;
mod list;
mod outbox;
mod passing;
mod place;
mod push;
mod reader;
mod recovery;
mod request;
mod rerun;
mod run;
mod sealing;
mod send;
mod session;
mod settings;
mod span;
mod sweep;
mod system;
mod webhooks;

pub use agent::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, PauseReason, RunFuture};
pub use agent_fn::{Answer, FnAgent, agent_fn};
pub use chain::CALL_CHAIN;
pub use context::{EmitError, RunCx};
pub use delivery::{Deliverer, DeliverySettings, TestCall, WebhookSigning};
pub use engine::{Directory, Engine, Environment};
pub use hosted::HostedAgent;
pub use passing::Passing;
pub use place::{Gathered, Listener};
pub use rerun::{RERUN, Replay};
pub use sealing::{TextSealer, Unopened, open_webhook_secrets};
pub use session::{Entry, Session, SessionError};
pub use settings::Settings;
pub use span::{Node, Span, SpanKind};
pub use sweep::Retention;
pub use system::{RandomIds, SystemClock};
pub use webhooks::Webhooks;
