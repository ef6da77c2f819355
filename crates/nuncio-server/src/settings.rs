//! What can be set about a server, with the defaults of a careful operator.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use nuncio_protocol::signing::SigningKey;
use serde_json::Value;

use crate::Tls;

/// Settings of a [`crate::Server`]; the defaults are safe to run with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The address under which callers reach this server, without a trailing slash. If absent it
    /// is taken from each request: forwarding headers of trusted peers, else the host asked for.
    pub public_url: Option<String>,
    /// TLS for [`crate::Server::run`]; none, for those behind a proxy.
    pub tls: Option<Tls>,
    /// Whether gRPC is served, on the same port; yes.
    pub grpc: bool,
    /// Host and port under which callers reach gRPC, if other than those of the address. An address
    /// with a path has no gRPC without this.
    pub grpc_address: Option<String>,
    /// Peers whose forwarding headers are believed; none.
    pub trusted_proxies: Vec<IpNet>,
    /// Web origins that may call with a browser; `*` means any. None. Cards are open to all.
    pub cors_origins: Vec<String>,
    /// Signs every card that is served; none.
    pub card_key: Option<Arc<SigningKey>>,
    /// The public keys that sign calls of webhooks, as a JWKS, served to everybody; none.
    pub webhook_keys: Option<Value>,
    /// How long a card, or the keys, may be kept without asking again; 5 minutes.
    pub card_max_age: Duration,
    /// Bytes of a request body; 8 MiB.
    pub max_body_bytes: usize,
    /// Bytes of the head of an HTTP/1 request; 64 KiB.
    pub max_head_bytes: usize,
    /// Header lines of a request; 100.
    pub max_headers: usize,
    /// Connections open at once; more wait to be accepted. 20,000.
    pub max_connections: usize,
    /// How long the head of a request may take to arrive; 10 s.
    pub head_timeout: Duration,
    /// How long a request body may pause; 15 s.
    pub body_idle_timeout: Duration,
    /// How long a connection may wait for its next request; 60 s.
    pub keep_alive: Duration,
    /// How long a peer may refuse to take what is sent; 30 s.
    pub write_timeout: Duration,
    /// How long requests in flight may go on once the server stops; 10 s.
    pub drain_timeout: Duration,
    /// How long a stream stays silent before a comment is sent; 15 s.
    pub heartbeat: Duration,
    /// Streams open at once for one caller; 100. Anonymous callers of one address count as one.
    pub max_streams_per_caller: usize,
    /// Sends waiting for their task at once for one caller; 1,000.
    pub max_blocking_sends_per_caller: usize,
    /// Operations per second of one caller; not limited.
    pub rate_limit: Option<RateLimit>,
}

/// How many operations a caller may start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// In the long run, per second.
    pub per_second: f64,
    /// At once, after a pause.
    pub burst: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            public_url: None,
            tls: None,
            grpc: true,
            grpc_address: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            card_key: None,
            webhook_keys: None,
            card_max_age: Duration::from_secs(300),
            max_body_bytes: 8 << 20,
            max_head_bytes: 64 << 10,
            max_headers: 100,
            max_connections: 20_000,
            head_timeout: Duration::from_secs(10),
            body_idle_timeout: Duration::from_secs(15),
            keep_alive: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(15),
            max_streams_per_caller: 100,
            max_blocking_sends_per_caller: 1_000,
            rate_limit: None,
        }
    }
}
