//! When a request goes through a proxy.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// An HTTP proxy and the hosts that are called without it.
///
/// The machine itself is always called directly. Behind a proxy it is the proxy that resolves
/// names: literal addresses are still judged here, names only by the proxy.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProxyPolicy {
    /// The proxy's address.
    pub url: Url,
    /// Host names (with their subdomains), addresses and networks called directly; `*` for all.
    pub no_proxy: Vec<String>,
}

impl ProxyPolicy {
    /// A proxy for everything but the machine itself.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            no_proxy: Vec::new(),
        }
    }

    /// The same proxy with a list as in `NO_PROXY`: separated by commas.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        let entries = list.split(',').map(str::trim).filter(|e| !e.is_empty());
        self.no_proxy.extend(entries.map(str::to_owned));
        self
    }

    /// The proxy for error messages: without credentials.
    pub(crate) fn shown(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) fn is_bypassed(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                name == "localhost"
                    || name.ends_with(".localhost")
                    || self.no_proxy.iter().any(|entry| covers_name(entry, name))
            }
            Some(Host::Ipv4(address)) => self.bypasses_address(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => self.bypasses_address(IpAddr::V6(address)),
            None => false,
        }
    }

    fn bypasses_address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback()
            || address.is_unspecified()
            || self.no_proxy.iter().any(|entry| {
                entry == "*"
                    || entry.parse::<IpAddr>().is_ok_and(|a| a == address)
                    || entry.parse::<IpNet>().is_ok_and(|n| n.contains(&address))
            })
    }
}

fn covers_name(entry: &str, name: &str) -> bool {
    let entry = entry.trim_start_matches("*.").trim_start_matches('.');
    let entry = entry.to_ascii_lowercase();
    entry == "*"
        || name == entry
        || name
            .strip_suffix(entry.as_str())
            .is_some_and(|rest| !entry.is_empty() && rest.ends_with('.'))
}
