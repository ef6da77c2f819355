//! `[server]`, `[store]` and `[log]`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use nuncio_protocol::StatusProfile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Listening, addresses, limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// Address and port to listen on; port 0 takes a free one.
    pub(crate) listen: String,
    /// The address under which callers reach this server, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) public_url: Option<String>,
    /// TLS, if no proxy in front does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsConfig>,
    /// Whether gRPC is served, on the same port.
    pub(crate) grpc: bool,
    /// Host and port under which callers reach gRPC, if other than those of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grpc_address: Option<String>,
    /// The folder for the database and the server's own secrets.
    pub(crate) data: PathBuf,
    /// Threads that serve; 0 means one per core.
    pub(crate) workers: usize,
    /// How long the server goes on as before while `/readyz` already says no, so that whoever sends
    /// requests here notices; 0 on loopback and 5 elsewhere if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drain_delay_seconds: Option<u64>,
    /// How long running tasks may go on once the server is told to stop.
    pub(crate) drain_seconds: u64,
    /// Web origins that may call with a browser; `*` means any.
    pub(crate) cors: Vec<String>,
    /// Networks whose forwarding headers are believed.
    pub(crate) trusted_proxies: Vec<String>,
    /// Which text of protocol 1.0 decides the status of errors.
    pub(crate) status_profile: StatusProfileName,
    /// Whether requests that do not name their protocol version are refused.
    pub(crate) strict_version: bool,
    /// The largest request body.
    pub(crate) max_body_bytes: usize,
    /// Connections open at once.
    pub(crate) max_connections: usize,
    /// How long a stream may be silent before a comment is sent; the Python SDK gives up after 5.
    pub(crate) heartbeat_seconds: u64,
    /// How long the head of a request may take to arrive.
    pub(crate) head_seconds: u64,
    /// How long a connection may wait for its next request.
    pub(crate) keep_alive_seconds: u64,
    /// A private key that signs the cards; `nuncio keys create --card FILE` makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) card_key: Option<PathBuf>,
    /// How long a card may be kept by its readers without asking again.
    pub(crate) card_max_age_seconds: u64,
    /// Streams open at once for one caller.
    pub(crate) max_streams_per_caller: usize,
    /// Operations a second that one caller may start in the long run; 0 for any number. Callers
    /// without a credential count by their address.
    pub(crate) requests_per_second: u32,
    /// Operations that one caller may start at once after a pause.
    pub(crate) request_burst: u32,
    /// The agent that is also served at `/`; the first one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default_agent: Option<String>,
    /// Whether administrators may add agents that start programs, or read files and variables of
    /// this machine, while the server runs.
    pub(crate) admin_host_access: bool,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            public_url: None,
            tls: None,
            grpc: true,
            grpc_address: None,
            data: PathBuf::from("nuncio-data"),
            workers: 0,
            drain_delay_seconds: None,
            drain_seconds: 10,
            cors: Vec::new(),
            trusted_proxies: Vec::new(),
            status_profile: StatusProfileName::default(),
            strict_version: false,
            max_body_bytes: 8 << 20,
            max_connections: 20_000,
            heartbeat_seconds: 4,
            head_seconds: 10,
            keep_alive_seconds: 60,
            card_key: None,
            card_max_age_seconds: 300,
            max_streams_per_caller: 100,
            requests_per_second: 0,
            request_burst: 100,
            default_agent: None,
            admin_host_access: false,
        }
    }
}

/// What the listener proves itself with; all PEM files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// The server's certificate and those between it and its authority.
    pub(crate) certificate: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
    /// The authorities of client certificates; clients are asked for one if this is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_authorities: Option<PathBuf>,
}

impl ServerConfig {
    /// The address to listen on, once [`check`](super::check) has found it good.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listen.parse().ok()
    }

    /// How long to wait between saying no to `/readyz` and taking no new work.
    pub(crate) fn drain_delay(&self) -> Duration {
        let on_loopback = self
            .address()
            .is_none_or(|address| address.ip().is_loopback());
        let usual = if on_loopback { 0 } else { 5 };
        Duration::from_secs(self.drain_delay_seconds.unwrap_or(usual))
    }
}

/// A network such as `10.0.0.0/8`, or one address.
pub(crate) fn network(text: &str) -> Option<IpNet> {
    text.parse()
        .ok()
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

/// Which text of protocol 1.0 decides the status of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum StatusProfileName {
    /// The newer table.
    #[default]
    #[serde(rename = "1.0.1")]
    V1_0_1,
    /// The older table, which the conformance kit expects.
    #[serde(rename = "1.0.0")]
    V1_0_0,
}

impl From<StatusProfileName> for StatusProfile {
    fn from(name: StatusProfileName) -> Self {
        match name {
            StatusProfileName::V1_0_1 => Self::V1_0_1,
            StatusProfileName::V1_0_0 => Self::V1_0_0,
        }
    }
}

/// Where tasks are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreConfig {
    /// `sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE`, which several servers may share, or
    /// `memory:`; SQLite in the data folder if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// `nats://…` or `tls://…`: where servers that share PostgreSQL tell each other what they have
    /// written, instead of in PostgreSQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wake_ups: Option<String>,
    /// Where large parts of messages and artifacts are kept: `file:PATH` or `s3://BUCKET/PREFIX`
    /// with `AWS_…` in the environment. If absent, SQLite has them in a folder beside its file, and
    /// PostgreSQL in its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<String>,
    /// Parts of more bytes are large; 0 keeps all of them in rows.
    pub(crate) parts_above_bytes: usize,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            wake_ups: None,
            parts: None,
            parts_above_bytes: 256 << 10,
        }
    }
}

impl super::Config {
    /// The store's address: said, or SQLite in the data folder.
    pub(crate) fn store_url(&self) -> String {
        let default = || format!("sqlite:{}", self.server.data.join("nuncio.db").display());
        self.store.url.clone().unwrap_or_else(default)
    }
}

/// What is logged, to stderr.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace`, or per module: `info,nuncio_engine=debug`.
    pub(crate) level: String,
    /// For people or for programs.
    pub(crate) format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::default(),
        }
    }
}

/// The form of log lines.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}
