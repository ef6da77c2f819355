//! Why nothing came of a request, as the person who asked for it may read it.

use std::time::Duration;

/// A rule of the policy that a URL or an address breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// It cannot be read as a URL with a host.
    NotAUrl,
    /// Only http and https are spoken.
    Scheme,
    /// Only https is allowed here.
    HttpsOnly,
    /// A user name or password stands in the URL.
    UserInformation,
    /// The port is not one of the allowed ones.
    Port,
    /// The name means this machine itself.
    LocalName,
    /// The address is this machine itself.
    Loopback,
    /// The address is unspecified or of "this network".
    Unspecified,
    /// The address is of a private network.
    Private,
    /// The address is of a carrier's shared network.
    Shared,
    /// The address is link-local, where cloud metadata lives.
    LinkLocal,
    /// The address is a multicast group.
    Multicast,
    /// The address is of a mechanism that carries IPv4 inside IPv6.
    Transition,
    /// The address is reserved for documentation, measurements or the future.
    Reserved,
}

impl Rule {
    /// The rule as the end of a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAUrl => "it is not an absolute URL with a host",
            Self::Scheme => "only http and https are allowed",
            Self::HttpsOnly => "only https is allowed",
            Self::UserInformation => "it must not contain a user name or password",
            Self::Port => "its port is not allowed",
            Self::LocalName => "its host name means the local machine",
            Self::Loopback => "its host is a loopback address",
            Self::Unspecified => "its host is an unspecified address",
            Self::Private => "its host is in a private network",
            Self::Shared => "its host is in a shared carrier network",
            Self::LinkLocal => "its host is a link-local address",
            Self::Multicast => "its host is a multicast address",
            Self::Transition => "its host is an IPv4 address inside an IPv6 one",
            Self::Reserved => "its host is in a reserved network",
        }
    }
}

/// A request that was not made because a rule forbids it.
///
/// Names the rule and never an address that a name resolved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the URL is refused: {}", rule.as_str())]
pub struct Refusal {
    /// The rule.
    pub rule: Rule,
}

/// Which time limit was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// From the start until the connection stands, name resolution and TLS included.
    Connect,
    /// From the start until the head of the answer.
    FirstByte,
    /// Between two pieces of the answer; keep-alives count as pieces.
    Idle,
    /// From the start to the end of the answer.
    Total,
}

impl Limit {
    /// The name in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstByte => "first-byte",
            Self::Idle => "idle",
            Self::Total => "total",
        }
    }
}

/// Why a request brought no answer.
///
/// `origin` is scheme, host and port as asked for; what the name resolved to is never told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// A rule of the policy forbids it. Nothing was sent.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name has no address. Nothing was sent.
    #[error("the host name of {origin} cannot be resolved")]
    Resolve {
        /// Where to.
        origin: String,
    },
    /// No connection came about. Nothing was sent.
    #[error("failed to connect to {origin}{}: {reason}", via(.proxy.as_deref()))]
    Connect {
        /// Where to.
        origin: String,
        /// The proxy on the way, if one was used.
        proxy: Option<String>,
        /// What the network said.
        reason: String,
    },
    /// A time limit was hit.
    #[error("no answer from {origin} in time: the {} limit of {after:?} was hit", limit.as_str())]
    Timeout {
        /// Where to.
        origin: String,
        /// The limit.
        limit: Limit,
        /// Its value.
        after: Duration,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection to {origin}{} broke: {reason}", via(.proxy.as_deref()))]
    Broken {
        /// Where to.
        origin: String,
        /// The proxy on the way, if one was used.
        proxy: Option<String>,
        /// What happened.
        reason: String,
    },
    /// The answer is larger than allowed.
    #[error("the answer of {origin} is larger than {max_bytes} bytes")]
    TooLarge {
        /// Where to.
        origin: String,
        /// The limit.
        max_bytes: u64,
    },
    /// The client itself could not be built, or the request is malformed.
    #[error("the HTTP client cannot do this: {0}")]
    Setup(String),
}

fn via(proxy: Option<&str>) -> String {
    proxy.map_or_else(
        || " directly".to_owned(),
        |proxy| format!(" through the proxy {proxy}"),
    )
}

impl EgressError {
    /// Whether no connection came about, so that another address may be tried.
    pub fn is_connect(&self) -> bool {
        matches!(
            self,
            Self::Resolve { .. }
                | Self::Connect { .. }
                | Self::Timeout {
                    limit: Limit::Connect,
                    ..
                }
        )
    }

    /// The time limit that was hit, if one was.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Timeout { limit, .. } => Some(*limit),
            _ => None,
        }
    }
}
