//! What may be reached, and how long a connection may take.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::ProxyPolicy;

/// The rules an [`crate::Egress`] is built from.
///
/// The default reaches public addresses only, over http and https, on any port, without a proxy.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EgressPolicy {
    /// Special networks that may be reached all the same.
    pub allow: Vec<IpNet>,
    /// Whether plain http is refused.
    pub https_only: bool,
    /// The only ports allowed; `None` allows any.
    pub allowed_ports: Option<Vec<u16>>,
    /// How long a connection may take, name resolution and TLS included; 5 s.
    pub connect_timeout: Duration,
    /// How many bytes of an answer [`crate::EgressResponse::bytes`] takes at most; 10 MiB.
    pub max_response_bytes: u64,
    /// The proxy, if one is to be used; the environment is not looked at.
    pub proxy: Option<ProxyPolicy>,
    /// Further root certificates in PEM, beside the system's.
    pub extra_roots_pem: Vec<String>,
    /// Whether TLS certificates are taken unseen: expired, of another host, signed by nobody. Off.
    ///
    /// **Dangerous.** With it, anybody on the way can read and change everything, credentials
    /// included. Only for development, and only by the word of the person who runs the program:
    /// neither a card nor an agent has a say in it. Which addresses may be dialled stays the same.
    pub accept_any_certificate: bool,
    /// What requests say they come from.
    pub user_agent: String,
}

impl Default for EgressPolicy {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            https_only: false,
            allowed_ports: None,
            connect_timeout: Duration::from_secs(5),
            max_response_bytes: 10 << 20,
            proxy: None,
            extra_roots_pem: Vec::new(),
            accept_any_certificate: false,
            user_agent: concat!("nuncio/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl EgressPolicy {
    /// The policy for a person at a command line, who calls localhost and the office network.
    ///
    /// Allows loopback, private and shared networks; link-local (cloud metadata), multicast and
    /// reserved ones stay refused.
    pub fn open() -> Self {
        const V4: &[([u8; 4], u8)] = &[
            ([0, 0, 0, 0], 32),
            ([10, 0, 0, 0], 8),
            ([100, 64, 0, 0], 10),
            ([127, 0, 0, 0], 8),
            ([172, 16, 0, 0], 12),
            ([192, 168, 0, 0], 16),
        ];
        const V6: &[(u16, u16, u8)] = &[(0, 0, 128), (0, 1, 128), (0xfc00, 0, 7)];
        let v4 = V4
            .iter()
            .map(|(net, bits)| IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(*net), *bits)));
        let v6 = V6.iter().map(|(first, last, bits)| {
            let net = Ipv6Addr::new(*first, 0, 0, 0, 0, 0, 0, *last);
            IpNet::V6(Ipv6Net::new_assert(net, *bits))
        });
        Self {
            allow: v4.chain(v6).collect(),
            ..Self::default()
        }
    }

    /// The same policy with one more network allowed.
    #[must_use]
    pub fn allowing(mut self, net: IpNet) -> Self {
        self.allow.push(net);
        self
    }

    /// Whether names of the local machine may be resolved at all.
    pub(crate) fn allows_loopback(&self) -> bool {
        [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ]
        .iter()
        .any(|address| self.allow.iter().any(|net| net.contains(address)))
    }
}
