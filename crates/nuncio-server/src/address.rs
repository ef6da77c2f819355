//! Under which address a caller reached us, and from which it came (BR-098).

use std::net::IpAddr;

use http::request::Parts;
use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

use crate::Settings;

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// The address of this server as the caller sees it, without a trailing slash.
pub(crate) fn public_url(settings: &Settings, parts: &Parts, peer: Option<IpAddr>) -> String {
    if let Some(url) = &settings.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let seen = Seen::of(parts);
    let told = if is_trusted(settings, peer) {
        Seen::forwarded(&parts.headers)
    } else {
        Seen::default()
    };
    let own = if settings.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let scheme = told.scheme.or(seen.scheme).unwrap_or(own);
    let host = told.host.or(seen.host).unwrap_or("localhost");
    let prefix = told.prefix.unwrap_or_default().trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{scheme}://{host}{slash}{prefix}")
}

/// Host and port for gRPC (CARD-07): those of the server's address, which must have no path then.
pub(crate) fn grpc(settings: &Settings, public_url: &str) -> Option<String> {
    if !settings.grpc {
        return None;
    }
    if let Some(address) = &settings.grpc_address {
        return Some(address.clone());
    }
    let (scheme, host) = public_url.split_once("://")?;
    if host.contains('/') {
        return None;
    }
    let port = match scheme {
        "https" => ":443",
        _ => ":80",
    };
    let numbered = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    Some(if numbered {
        host.to_owned()
    } else {
        format!("{host}{port}")
    })
}

/// The address of the caller: of the last peer that is no trusted proxy.
pub(crate) fn client_ip(
    settings: &Settings,
    headers: &HeaderMap,
    peer: Option<IpAddr>,
) -> Option<IpAddr> {
    if !is_trusted(settings, peer) {
        return peer;
    }
    let mut hops: Vec<IpAddr> = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR) {
        let addresses = line.to_str().unwrap_or_default().split(',');
        hops.extend(addresses.filter_map(|hop| hop.trim().parse::<IpAddr>().ok()));
    }
    let stranger = hops
        .iter()
        .rev()
        .find(|hop| !is_trusted(settings, Some(**hop)));
    stranger.copied().or(peer)
}

fn is_trusted(settings: &Settings, peer: Option<IpAddr>) -> bool {
    let contains = |net: &IpNet, ip: IpAddr| net.contains(&ip);
    peer.map(|ip| ip.to_canonical())
        .is_some_and(|ip| settings.trusted_proxies.iter().any(|net| contains(net, ip)))
}

/// What is known about an address from one source.
#[derive(Default)]
struct Seen<'a> {
    scheme: Option<&'a str>,
    host: Option<&'a str>,
    prefix: Option<&'a str>,
}

impl<'a> Seen<'a> {
    /// From the request itself.
    fn of(parts: &'a Parts) -> Self {
        let host = parts.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        Self {
            scheme: parts.uri.scheme_str().filter(|s| is_scheme(s)),
            host: authority.or(host).filter(|host| is_host(host)),
            prefix: None,
        }
    }

    /// From the headers of a proxy: `Forwarded`, else the older ones, each by itself.
    fn forwarded(headers: &'a HeaderMap) -> Self {
        let first = |name| {
            let value = headers.get(name)?.to_str().ok()?;
            value.split(',').next().map(str::trim)
        };
        let standard = first(FORWARDED).unwrap_or_default();
        let pair = |name: &str| {
            standard.split(';').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                let named = key.trim().eq_ignore_ascii_case(name);
                named.then(|| value.trim().trim_matches('"'))
            })
        };
        Self {
            scheme: pair("proto")
                .or_else(|| first(X_FORWARDED_PROTO))
                .filter(|scheme| is_scheme(scheme)),
            host: pair("host")
                .or_else(|| first(X_FORWARDED_HOST))
                .filter(|host| is_host(host)),
            prefix: first(X_FORWARDED_PREFIX).filter(|prefix| is_prefix(prefix)),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    matches!(text, "http" | "https")
}

fn is_host(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._~:[]".contains(&c);
    !text.is_empty() && text.len() <= 260 && text.bytes().all(fits)
}

fn is_prefix(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-._~/%".contains(&c);
    text.len() <= 260 && text.bytes().all(fits) && !text.contains("//")
}

#[cfg(test)]
mod tests {
    use super::grpc;
    use crate::Settings;

    /// CARD-07.
    #[test]
    fn grpc_has_host_and_port() {
        let settings = Settings::default();
        for (url, address) in [
            ("https://h.example", Some("h.example:443")),
            ("http://h.example", Some("h.example:80")),
            ("http://127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("http://[::1]", Some("[::1]:80")),
            ("http://[::1]:9", Some("[::1]:9")),
            ("https://h.example/agents", None),
        ] {
            assert_eq!(grpc(&settings, url).as_deref(), address, "{url}");
        }
        let mut settings = Settings {
            grpc_address: Some("grpc.example:443".to_owned()),
            ..Settings::default()
        };
        let elsewhere = grpc(&settings, "https://h.example/agents");
        assert_eq!(elsewhere.as_deref(), Some("grpc.example:443"));
        settings.grpc = false;
        assert_eq!(grpc(&settings, "https://h.example"), None);
    }
}
