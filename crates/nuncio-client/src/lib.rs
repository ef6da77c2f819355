//! Calling A2A agents.
//!
//! [`discover`] finds an agent's card, [`ClientBuilder`] chooses one of its interfaces, and the
//! [`Client`] implements `AgentService` over it, so that a remote agent is used like a local one.
//! [`Client::stream`] and [`Client::follow`] survive lost connections; a [`Conversation`] keeps
//! track of context, open task and pending question. Addresses are judged by `nuncio-egress`;
//! this crate reads no environment, prints nothing and stores nothing.

mod address;
mod builder;
mod call_tree;
pub mod card;
mod choose;
mod client;
mod conversation;
mod credentials;
mod exchange;
mod failure;
mod follow;
mod headers;
mod reading;
mod reply;
mod resume;
mod retry;
mod sender;
mod service;
pub mod sse;
mod task_diff;
mod text;
mod timeouts;

pub use builder::{ClientBuilder, ConnectError};
pub use card::{
    CardCache, Discovered, DiscoveryError, SignatureError, SignaturePolicy, Try, TryOutcome,
    discover,
};
pub use client::Client;
pub use conversation::{Conversation, ConversationState, RestoreError};
pub use credentials::{ApiKeyPlace, Credentials, HeaderError, check_header};
pub use failure::{Cause, cause, task_id};
pub use headers::retry_after;
pub use reply::Reply;
pub use retry::{Backoff, FollowPolicy, RetryPolicy};
pub use text::{TextChange, TextView, task_text};
pub use timeouts::Timeouts;
