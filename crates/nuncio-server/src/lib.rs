//! Being called: listeners, bindings, the one door to the agents, authentication, limits, cards.
//!
//! A request takes this way: [`listen`](Server::run) accepts and times it, `place` says which
//! agent and which face of it is meant, `bindings` read the envelope, `dispatch` judges and asks
//! the agent, and `sse` or a plain body carries the answer. Everything behind
//! `nuncio_protocol::AgentService` is somebody else's: this crate holds it as a `dyn` and cannot
//! tell a task engine from a remote agent.
//!
//! ```no_run
//! # use std::{io, sync::Arc};
//! # use nuncio_protocol::{AgentCard, AgentService, Clock, Ids};
//! # use nuncio_server::{ApiKey, Authenticator, Endpoint, Server, Settings, Switchboard, Workers};
//! # use tokio_util::sync::CancellationToken;
//! async fn serve(
//!     agent: Arc<dyn AgentService>,
//!     card: AgentCard,
//!     clock: Arc<dyn Clock>,
//!     ids: Arc<dyn Ids>,
//! ) -> io::Result<()> {
//!     let agents = Arc::new(Switchboard::new());
//!     agents.insert(Endpoint::new("echo", card, agent)).map_err(io::Error::other)?;
//!     agents.set_default(Some("echo".into()));
//!
//!     let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
//!     let key = ApiKey::from_sha256(digest, "alice", "default").map_err(io::Error::other)?;
//!     let mut settings = Settings::default();
//!     settings.public_url = Some("https://agents.example".to_owned());
//!     let server = Server::new(settings, Authenticator::with_keys([key]), agents, clock, ids);
//!
//!     let shutdown = CancellationToken::new(); // cancelled by a signal
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//!     let workers = Workers::start(2)?;
//!     server.run_on_workers(listener, &workers, shutdown).await?;
//!     workers.stop(); // once the agents have ended too
//!     Ok(())
//! }
//! ```

mod address;
mod admin;
mod admission;
mod auth;
mod bindings;
mod body;
mod call_trees;
mod card;
mod content;
mod cors;
mod dispatch;
mod endpoint;
mod events;
mod extensions;
mod failure;
mod files;
mod grpc;
mod io;
mod json_rpc;
mod listen;
mod media;
mod oxygent;
mod parameters;
mod place;
mod reply;
mod rest;
mod server;
mod settings;
mod spans;
mod standard;
mod switchboard;
mod throttle;
mod tls;
mod workers;

pub use admin::{AdminFuture, AdminReply, AdminRequest, Administration};
pub use auth::{
    ApiKey, Authenticator, InvalidDigest, InvalidKeySet, KeyPlace, TokenRules, TokenSource,
};
pub use body::ResponseBody;
pub use call_trees::CallTrees;
pub use endpoint::Endpoint;
pub use files::{File, FileContent, FilePlace, FileStream, Files};
pub use server::{PeerAddress, ReadinessCheck, Server};
pub use settings::{RateLimit, Settings};
pub use switchboard::{InvalidAgentName, Switchboard};
pub use tls::{Tls, TlsError};
pub use workers::Workers;
