//! What can be said about a URL without resolving its name.

use std::net::IpAddr;

use url::{Host, Url};

use crate::{EgressPolicy, Refusal, Rule, address};

/// Names that mean the machine itself by convention, whatever a resolver says.
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "localhost.localdomain",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];

/// Judges the form of a URL and a literal address in it.
///
/// The connector asks the resolver for names only, so that literals must be judged here.
pub(crate) fn judge(url: &Url, policy: &EgressPolicy) -> Result<(), Refusal> {
    check(url, policy).map_err(|rule| Refusal { rule })
}

fn check(url: &Url, policy: &EgressPolicy) -> Result<(), Rule> {
    match url.scheme() {
        "https" => {}
        "http" if policy.https_only => return Err(Rule::HttpsOnly),
        "http" => {}
        _ => return Err(Rule::Scheme),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Rule::UserInformation);
    }
    let port = url.port_or_known_default().unwrap_or(0);
    let allowed = policy.allowed_ports.as_ref();
    if port == 0 || allowed.is_some_and(|ports| !ports.contains(&port)) {
        return Err(Rule::Port);
    }
    match url.host() {
        None => Err(Rule::NotAUrl),
        Some(Host::Ipv4(v4)) => address::judge(IpAddr::V4(v4), &policy.allow),
        Some(Host::Ipv6(v6)) => address::judge(IpAddr::V6(v6), &policy.allow),
        Some(Host::Domain(name)) => check_name(name, policy),
    }
}

fn check_name(name: &str, policy: &EgressPolicy) -> Result<(), Rule> {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if name.is_empty() {
        return Err(Rule::NotAUrl);
    }
    // A connector that reads more forms of literals than the URL parser must not get one.
    if let Ok(literal) = name.parse::<IpAddr>() {
        return address::judge(literal, &policy.allow);
    }
    let local = LOCAL_NAMES.contains(&name.as_str()) || name.ends_with(".localhost");
    if local && !policy.allows_loopback() {
        return Err(Rule::LocalName);
    }
    Ok(())
}
