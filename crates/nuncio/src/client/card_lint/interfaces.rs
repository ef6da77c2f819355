//! Where and how the agent is reached.

use nuncio_protocol::Binding;
use serde_json::Value;
use url::{Host, Url};

use super::{Findings, text};

impl Findings {
    pub(super) fn interface(&mut self, path: &str, interface: &Value, at: Option<&Url>) {
        let name = text(interface, "protocolBinding");
        let binding = Binding::from_name(name);
        let place = format!("{path}.protocolBinding");
        match binding {
            Some(known) if known.as_str() != name => {
                let wanted = format!("is spelt {known}, not \"{name}\"");
                self.warning("CARD-02", &place, &wanted);
            }
            None if !name.is_empty() && Url::parse(name).is_err() => self.error(
                "CARD-10",
                &place,
                "is neither JSONRPC, GRPC or HTTP+JSON nor the URI of a custom binding",
            ),
            _ => {}
        }
        let version = text(interface, "protocolVersion");
        if !version.is_empty() && !is_major_minor(version) {
            let place = format!("{path}.protocolVersion");
            let wanted = format!("is Major.Minor, such as 1.0, not \"{version}\"");
            self.error("CARD-06", &place, &wanted);
        }
        let place = format!("{path}.url");
        let url = text(interface, "url");
        match binding {
            Some(Binding::Grpc) => self.grpc_address(&place, url, at),
            _ => self.address(&place, url, at),
        }
        if binding == Some(Binding::HttpJson) && url.ends_with('/') {
            self.warning(
                "CARD-07",
                &place,
                "ends with a slash, and paths are put after it",
            );
        }
    }

    /// A `host:port`; with a scheme it is read too (CARD-07).
    fn grpc_address(&mut self, place: &str, address: &str, at: Option<&Url>) {
        if address.contains("://") {
            self.warning("CARD-07", place, "is host:port for gRPC, without a scheme");
            self.address(place, address, at);
            return;
        }
        match Url::parse(&format!("grpc://{address}")) {
            Ok(url) if url.port().is_some() && matches!(url.path(), "" | "/") => {
                self.reachable(place, &url, at);
            }
            _ if address.is_empty() => {}
            _ => self.error("CARD-07", place, "is not host:port, as gRPC wants it"),
        }
    }

    fn address(&mut self, place: &str, address: &str, at: Option<&Url>) {
        // What is no URL at all has been told already.
        let Ok(url) = Url::parse(address) else {
            return;
        };
        let http = matches!(url.scheme(), "http" | "https");
        if !http && !matches!(url.scheme(), "grpc" | "grpcs") {
            let message = format!(
                "has the scheme \"{}\"; http and https are called",
                url.scheme()
            );
            self.warning("CARD-07", place, &message);
        }
        let is_card = url.path().ends_with("/agent-card.json")
            || url.path().ends_with("/.well-known/agent.json")
            || at.is_some_and(|at| *at == url);
        if is_card {
            self.error(
                "BR-100",
                place,
                "is the address of the card, not of the agent",
            );
        }
        self.reachable(place, &url, at);
    }

    fn reachable(&mut self, place: &str, url: &Url, at: Option<&Url>) {
        let is_here = |url: &Url| reach(url) == Reach::Loopback;
        match reach(url) {
            Reach::Nowhere => self.error(
                "BR-098",
                place,
                "is an address to listen on; nobody can call it",
            ),
            Reach::Loopback if !at.is_some_and(is_here) => {
                self.warning(
                    "BR-098",
                    place,
                    "can be called on the agent's own machine only",
                );
            }
            Reach::Elsewhere if url.scheme() == "http" => {
                self.warning(
                    "AUTH-01",
                    place,
                    "is not encrypted: production asks for https",
                );
            }
            _ => {}
        }
    }
}

/// From where an address can be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nowhere,
    Loopback,
    Elsewhere,
}

fn reach(url: &Url) -> Reach {
    // Hosts of other schemes are not read as addresses.
    let host = url.host_str().unwrap_or_default();
    let host = Host::parse(host).unwrap_or_else(|_| Host::Domain(host.to_owned()));
    let (nowhere, loopback) = match host {
        Host::Domain(name) => (false, name == "localhost" || name.ends_with(".localhost")),
        Host::Ipv4(address) => (address.is_unspecified(), address.is_loopback()),
        Host::Ipv6(address) => (address.is_unspecified(), address.is_loopback()),
    };
    match (nowhere, loopback) {
        (true, _) => Reach::Nowhere,
        (_, true) => Reach::Loopback,
        _ => Reach::Elsewhere,
    }
}

fn is_major_minor(version: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    version
        .split_once('.')
        .is_some_and(|(major, minor)| number(major) && number(minor))
}
