//! The addresses of agents, as cards and people write them, in the form that HTTP knows.

use std::net::IpAddr;

use nuncio_protocol::{AgentInterface, Binding};
use url::{Host, Url};

/// The address of an interface; `None` if it cannot be used.
///
/// `base` is where the card came from, for addresses that are given relative to it; `plaintext`
/// says whether gRPC without a scheme goes without TLS, instead of [`is_local`].
pub(crate) fn of_interface(
    interface: &AgentInterface,
    binding: Binding,
    base: Option<&Url>,
    plaintext: Option<bool>,
) -> Option<Url> {
    if binding == Binding::Grpc {
        let url = grpc(&interface.url, plaintext)?;
        // A host that gave its card over TLS has TLS on this port too, even if it is this machine.
        let host_has_tls =
            base.is_some_and(|base| base.scheme() == "https" && base.host() == url.host());
        return match plaintext {
            None if host_has_tls => grpc(&interface.url, Some(false)),
            _ => Some(url),
        };
    }
    let url = Url::parse(&interface.url)
        .ok()
        .or_else(|| base?.join(&interface.url).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    match base {
        Some(base) if is_everywhere(&url) => at(base, &url),
        _ => Some(url),
    }
}

/// Whether an address is the one that servers listen on and nobody can call (BR-162).
fn is_everywhere(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_unspecified(),
        _ => false,
    }
}

/// The same path where the card came from.
fn at(base: &Url, url: &Url) -> Option<Url> {
    let mut moved = base.clone();
    moved.set_path(url.path());
    moved.set_query(url.query());
    moved.set_fragment(None);
    Some(moved)
}

/// Reads the address of gRPC: `host:port`, or with a scheme (CARD-07).
///
/// `https` and `grpcs` mean TLS, `http` and `grpc` none; `dns` says nothing about it.
pub(crate) fn grpc(text: &str, plaintext: Option<bool>) -> Option<Url> {
    let text = text.trim();
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => match text.split_once(':') {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("dns") => ("dns".to_owned(), rest),
            _ => (String::new(), text),
        },
    };
    let with = |scheme: &str, rest: &str| Url::parse(&format!("{scheme}://{rest}")).ok();
    match scheme.as_str() {
        "https" | "grpcs" => with("https", rest),
        "http" | "grpc" => with("http", rest),
        "dns" if text.contains("://") => {
            // What stands before the name is the server to ask for it: ours knows better.
            let (_, name) = rest.split_once('/')?;
            without_scheme(name, plaintext)
        }
        "" | "dns" => without_scheme(rest, plaintext),
        _ => None,
    }
}

fn without_scheme(rest: &str, plaintext: Option<bool>) -> Option<Url> {
    let plain = Url::parse(&format!("http://{rest}")).ok()?;
    if plaintext.unwrap_or_else(|| is_local(&plain)) {
        Some(plain)
    } else {
        Url::parse(&format!("https://{rest}")).ok()
    }
}

/// Whether an address is this machine, so that nobody can listen on the way.
pub(crate) fn is_local(url: &Url) -> bool {
    let is_local = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => is_local(address.into()),
        Some(Host::Ipv6(address)) => is_local(address.into()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BR-098, BR-162: an address to listen on is none to call; the card's own is.
    #[test]
    fn addresses_to_listen_on_lead_to_where_the_card_was() {
        let base = Url::parse("https://agents.example/a/.well-known/agent-card.json").unwrap();
        for (told, used) in [
            ("http://[::]:8081/rpc", "https://agents.example/rpc"),
            ("http://0.0.0.0:8081", "https://agents.example/"),
            ("http://127.0.0.1:8081/rpc", "http://127.0.0.1:8081/rpc"),
            ("rpc", "https://agents.example/a/.well-known/rpc"),
        ] {
            let interface = AgentInterface::new(told, Binding::JsonRpc);
            let url = of_interface(&interface, Binding::JsonRpc, Some(&base), None);
            assert_eq!(url.unwrap().as_str(), used);
            let alone = of_interface(&interface, Binding::JsonRpc, None, None);
            assert_eq!(
                alone.map(String::from),
                Url::parse(told).ok().map(String::from)
            );
        }
    }

    #[test]
    fn a_host_with_tls_has_it_for_grpc_too() {
        let interface = AgentInterface::new("127.0.0.1:1", Binding::Grpc);
        let of = |base: &str, plaintext| {
            let base = Url::parse(base).unwrap();
            let url = of_interface(&interface, Binding::Grpc, Some(&base), plaintext);
            url.unwrap().scheme().to_owned()
        };
        assert_eq!(of("https://127.0.0.1:1/card.json", None), "https");
        assert_eq!(of("http://127.0.0.1:1/card.json", None), "http");
        assert_eq!(of("https://agents.example/card.json", None), "http");
        assert_eq!(of("https://127.0.0.1:1/card.json", Some(true)), "http");
    }

    /// CARD-07.
    #[test]
    fn grpc_addresses_have_a_scheme_or_none() {
        let of = |text| grpc(text, None).map(|url| url.to_string());
        for (text, url) in [
            ("agents.example:443", "https://agents.example/"),
            ("agents.example:50051", "https://agents.example:50051/"),
            ("agents.example", "https://agents.example/"),
            ("10.0.0.1:50051", "https://10.0.0.1:50051/"),
            ("localhost:50051", "http://localhost:50051/"),
            ("127.0.0.1:1", "http://127.0.0.1:1/"),
            ("[::1]:1", "http://[::1]:1/"),
            ("HTTP://agents.example:1", "http://agents.example:1/"),
            ("grpc://agents.example:1", "http://agents.example:1/"),
            ("https://localhost:1", "https://localhost:1/"),
            ("grpcs://localhost:1", "https://localhost:1/"),
            ("dns:agents.example:1", "https://agents.example:1/"),
            ("dns:///localhost:1", "http://localhost:1/"),
            (
                "dns://8.8.8.8/agents.example:1",
                "https://agents.example:1/",
            ),
        ] {
            assert_eq!(of(text).as_deref(), Some(url), "{text}");
        }
        for text in ["", "unix:///tmp/x", "ftp://h/", "dns://h", "a b"] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn the_caller_decides_what_no_scheme_means() {
        let of = |text, plaintext| grpc(text, Some(plaintext)).map(|url| url.to_string());
        assert_eq!(of("h:1", true).as_deref(), Some("http://h:1/"));
        assert_eq!(
            of("localhost:1", false).as_deref(),
            Some("https://localhost:1/")
        );
        assert_eq!(of("https://h:1", true).as_deref(), Some("https://h:1/"));
    }
}
