//! The configuration, and whether this machine can do what it says.

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;

use ipnet::IpNet;
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::signing::KeySet;
use url::{Host, Url};

use super::report::{Check, Report};
use super::{files, outside};
use crate::config::{self, Config, Loaded, Sources, network};
use crate::serve;
use crate::surroundings::Surroundings;

/// What is known of a server from its configuration.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) config: Config,
    /// Those that sign its cards.
    pub(super) keys: KeySet,
    /// Where it answers on this machine.
    pub(super) running: Option<String>,
}

/// Looks at all that can be known here; `None` if the configuration is not good.
pub(super) async fn examine(
    report: &mut Report,
    file: Option<&Path>,
    around: &Surroundings,
) -> Option<Local> {
    let config = configuration(report, file, around)?.config;
    exposure(report, &config);
    files::examine(report, &config);
    credentials(report, &config);
    let keys = card_key(report, &config);
    webhooks(report, &config);
    let running = listener(report, &config).await;
    Some(Local {
        config,
        keys,
        running,
    })
}

fn configuration(
    report: &mut Report,
    file: Option<&Path>,
    around: &Surroundings,
) -> Option<Loaded> {
    let what = "configuration";
    let load = |insecure| {
        config::load(Sources {
            file: file.map(Path::to_owned),
            environment: around.environment.clone(),
            flags: Vec::new(),
            insecure,
        })
    };
    // Who is open to the network on purpose says so to `serve`, and is only warned here.
    let loaded = load(true).map_err(|refusals| {
        for refusal in refusals.0 {
            let key = match refusal.key.as_str() {
                "" => String::new(),
                key => format!("{key}: "),
            };
            let message = format!("{}: {key}{}", refusal.origin, refusal.message);
            report.add(Check::error(what, message).hint(refusal.hint));
        }
    });
    let loaded = loaded.ok()?;
    let shown = file.map_or("what is said without a file".to_owned(), |file| {
        file.display().to_string()
    });
    let agents: Vec<String> = loaded.config.agents().into_iter().map(|a| a.id).collect();
    let message = format!("{shown} is good; agents: {}", agents.join(", "));
    report.add(Check::ok(what, message));
    if let Err(refusals) = load(false) {
        for refusal in refusals.0 {
            let message = format!("{}; `serve` refuses that", refusal.message);
            report.add(Check::warning("exposure", message).hint(refusal.hint));
        }
    } else {
        for warning in &loaded.warnings {
            report.add(Check::warning(what, warning));
        }
    }
    Some(loaded)
}

/// Who may call, and under which address, as far as the values tell (BR-098, BR-146).
fn exposure(report: &mut Report, config: &Config) {
    let what = "exposure";
    let Some(url) = &config.server.public_url else {
        return;
    };
    let Ok(url) = Url::parse(url) else { return };
    let local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let nowhere = match url.host() {
        Some(Host::Ipv4(address)) => address.is_unspecified(),
        Some(Host::Ipv6(address)) => address.is_unspecified(),
        _ => false,
    };
    let loopback = config.server.address().is_none_or(|a| a.ip().is_loopback());
    if nowhere {
        let check = Check::error(
            what,
            format!("server.public_url is {url}: nobody can call it"),
        );
        report.add(check.hint("name the address that callers use"));
    } else if local && !loopback {
        let message = format!("server.public_url is {url}: others are sent to their own machine");
        report.add(Check::warning(what, message).hint("name the address that callers use"));
    } else if !local && loopback && config.auth.takes_anonymous() {
        let message = format!("who reaches {url} needs no key, unless a proxy asks for one");
        report.add(
            Check::warning(what, message).hint("add [[auth.keys]]; `nuncio keys create` makes one"),
        );
    }
}

/// TLS, authorities and the keys of token issuers: readable, and fitting each other.
fn credentials(report: &mut Report, config: &Config) {
    if let Some(tls) = &config.server.tls {
        report.add(match serve::tls(tls) {
            Ok(_) => Check::ok("TLS", "certificate and key fit"),
            Err(failure) => Check::failure("TLS", failure),
        });
        report.add_if(files::exposed("TLS", &tls.key));
    }
    let auth = &config.auth;
    report.add(match serve::authenticator(config) {
        Err(failure) => Check::failure("auth", failure),
        Ok(_) if auth.takes_anonymous() => {
            Check::ok("auth", "calls without a credential are taken")
        }
        Ok(_) => {
            let tokens = if auth.tokens.is_some() {
                ", tokens"
            } else {
                ""
            };
            let (keys, certificates) = (auth.keys.len(), auth.certificates.len());
            let message = format!("{keys} keys, {certificates} certificates{tokens}");
            Check::ok("auth", message)
        }
    });
}

fn card_key(report: &mut Report, config: &Config) -> KeySet {
    let mut keys = KeySet::new();
    let Some(path) = &config.server.card_key else {
        return keys;
    };
    match serve::card_key(path) {
        Ok(key) => {
            let message = format!("{} signs as {}", path.display(), key.kid());
            report.add(Check::ok("card key", message));
            if let Ok(public) = KeySet::parse(&key.public_jwk().to_string()) {
                keys = public;
            }
        }
        Err(failure) => report.add(Check::failure("card key", failure)),
    }
    report.add_if(files::exposed("card key", path));
    keys
}

/// Networks that webhooks may reach though callers choose the addresses.
fn webhooks(report: &mut Report, config: &Config) {
    let what = "webhooks";
    let webhooks = &config.webhooks;
    if !webhooks.enabled {
        report.add(Check::ok(what, "switched off"));
        return;
    }
    let allowed: Vec<IpNet> = webhooks
        .allow_networks
        .iter()
        .filter_map(|net| network(net))
        .collect();
    // This machine, and where clouds keep the credentials of their machines.
    let delicate = [
        ("this machine", IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ("this machine", IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)),
        (
            "cloud metadata",
            IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
        ),
    ];
    let mut harmless = true;
    for net in &allowed {
        if let Some((place, _)) = delicate.iter().find(|(_, ip)| net.contains(ip)) {
            let message =
                format!("webhooks.allow_networks has {net}: callers can have {place} called");
            report.add(
                Check::warning(what, message)
                    .hint("allow only networks of those who are told of tasks"),
            );
            harmless = false;
        }
    }
    if harmless {
        let named: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let beside = match named.as_slice() {
            [] => String::new(),
            named => format!(" and {}", named.join(", ")),
        };
        report.add(Check::ok(
            what,
            format!("public addresses{beside} can be called"),
        ));
    }
}

/// Whether the address is free, or who has it; gives where a nuncio answers.
async fn listener(report: &mut Report, config: &Config) -> Option<String> {
    let what = "listen";
    let address = config.server.address()?;
    if address.port() == 0 {
        report.add(Check::ok(what, "any free port is taken"));
        return None;
    }
    let Err(error) = TcpListener::bind(address) else {
        let message = format!("{address} is free: no server runs there");
        report.add(Check::ok(what, message));
        return None;
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        let check = Check::error(what, format!("failed to listen on {address}: {error}"));
        report.add(
            check.hint(
                "an address of this machine and a port that this user may have: server.listen",
            ),
        );
        return None;
    }
    let base = serve::base_url(address, config.server.tls.is_some());
    let mut policy = EgressPolicy::open();
    // The certificate is for the public name; nothing but the pulse is asked.
    policy.accept_any_certificate = true;
    let pulse = match Egress::new(policy) {
        Ok(egress) => outside::pulse(&egress, &base, "livez").await,
        Err(error) => Err(error.to_string()),
    };
    match pulse {
        Ok(pulse) if pulse.is_nuncio => {
            report.add(Check::ok(what, format!("a nuncio answers at {base}")).took(pulse.latency));
            Some(base)
        }
        Ok(_) | Err(_) => {
            let message = format!("another program has {address}");
            report.add(
                Check::error(what, message).hint("end it, or choose another port: server.listen"),
            );
            None
        }
    }
}
