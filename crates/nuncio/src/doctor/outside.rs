//! A server and its agents as callers meet them.

use std::time::{Duration, Instant};

use http::StatusCode;
use nuncio_client::discover;
use nuncio_egress::{Egress, EgressRequest};
use nuncio_protocol::signing::KeySet;
use serde_json::Value;
use url::Url;

use super::report::{Check, Report};
use super::{card, interfaces, limits};
use crate::client::Groundwork;
use crate::config::Config;

/// Going to see agents.
pub(super) struct Visit<'a> {
    pub(super) ground: &'a Groundwork,
    /// Those that should have signed the cards.
    pub(super) keys: &'a KeySet,
    /// The address under which the configuration says that callers reach the server.
    pub(super) public: Option<&'a str>,
}

/// What came of asking for the health.
pub(super) struct Pulse {
    pub(super) status: StatusCode,
    pub(super) is_nuncio: bool,
    pub(super) latency: Duration,
}

impl<'a> Visit<'a> {
    pub(super) fn new(ground: &'a Groundwork, keys: &'a KeySet, public: Option<&'a str>) -> Self {
        Self {
            ground,
            keys,
            public,
        }
    }

    /// Where the server can be visited: at its public address, or else where it listens.
    pub(super) async fn entrance(
        &self,
        report: &mut Report,
        running: Option<&str>,
    ) -> Option<String> {
        let what = "public address";
        let Some(public) = self.public else {
            let Some(base) = running else {
                report.add(idle());
                return None;
            };
            self.health(report, base).await;
            return Some(base.to_owned());
        };
        let why = match pulse(&self.ground.egress, public, "livez").await {
            Ok(pulse) if pulse.is_nuncio => {
                self.health(report, public).await;
                return Some(public.to_owned());
            }
            // A proxy may keep the pulse to itself; the card decides.
            Ok(pulse) if running.is_some() || !pulse.status.is_server_error() => {
                let message = format!("{public} does not tell: HTTP status {}", pulse.status);
                let check = Check::warning("/livez", message);
                report.add(check.hint("let the proxy in front pass /livez and /readyz"));
                return Some(public.to_owned());
            }
            Ok(pulse) => format!("HTTP status {}", pulse.status),
            Err(why) => why,
        };
        let Some(base) = running else {
            report.add(idle());
            return None;
        };
        let message = format!("the server does not answer at {public}: {why}");
        report.add(Check::error(what, message).hint(
            "set server.public_url to the address that callers use, or mend the proxy in front",
        ));
        Some(base.to_owned())
    }

    /// The pulse of a server and whether it takes work.
    async fn health(&self, report: &mut Report, base: &str) {
        for path in ["livez", "readyz"] {
            let what = format!("/{path}");
            let check = match pulse(&self.ground.egress, base, path).await {
                Ok(pulse) if pulse.status.is_success() => {
                    Check::ok(what, "good").took(pulse.latency)
                }
                Ok(pulse) if pulse.is_nuncio => Check::error(what, "the server takes no work")
                    .hint("its log says why; it may be stopping"),
                Ok(pulse) => Check::error(what, format!("HTTP status {}", pulse.status))
                    .hint("let the proxy in front pass this path"),
                Err(why) => {
                    report.add(Check::error(what, why).hint(unreached(base)));
                    return;
                }
            };
            report.add(check);
        }
    }

    /// The same for the server of an agent, if it is one that tells.
    pub(super) async fn health_beside(&self, report: &mut Report, agent: &str) {
        let Some(url) = reachable(agent) else { return };
        let origin = url.origin().ascii_serialization();
        let pulse = pulse(&self.ground.egress, &origin, "livez").await;
        if pulse.is_ok_and(|pulse| pulse.is_nuncio) {
            self.health(report, &origin).await;
        }
    }

    /// The card at an address and every interface in it.
    pub(super) async fn agent(&self, report: &mut Report, address: &str) {
        let started = Instant::now();
        let found = match discover(&self.ground.egress, address).await {
            Ok(found) => found,
            Err(error) => {
                let what = format!("card of {address}");
                report.add(
                    Check::error(what, error.to_string())
                        .hint("see whether the agent runs there, and whether its certificate is trusted if it is https"),
                );
                return;
            }
        };
        let took = started.elapsed();
        let all = card::examine(self, report, address, &found, took).await;
        interfaces::examine(self, report, &found, &all).await;
    }
}

/// What to do about a server that runs and cannot be reached.
fn unreached(base: &str) -> &'static str {
    if base.starts_with("https:") {
        "callers must trust the certificate's authority, and its name must be that of the address: set server.public_url"
    } else {
        "see whether a firewall or a proxy is in between"
    }
}

fn idle() -> Check {
    Check::warning(
        "server",
        "it does not run here: cards and interfaces are not looked at",
    )
    .hint("start it and run this again, or name its address with --url")
}

/// An address as people write it, if it is one.
fn reachable(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok().filter(Url::has_host);
    url.or_else(|| Url::parse(&format!("http://{address}")).ok())
}

/// Where the agents of a configuration are: the default one at the server's own address.
pub(super) fn agents(config: &Config, base: &str) -> Vec<String> {
    let ids: Vec<String> = config.agents().into_iter().map(|agent| agent.id).collect();
    let default = config.server.default_agent.as_ref().or(ids.first());
    let others = ids.iter().filter(|id| Some(*id) != default);
    let others = others.map(|id| format!("{base}/agents/{id}"));
    std::iter::once(base.to_owned()).chain(others).collect()
}

/// Asks for the health; an error says why there was no answer.
pub(super) async fn pulse(egress: &Egress, base: &str, path: &str) -> Result<Pulse, String> {
    let url = Url::parse(&format!("{base}/{path}")).map_err(|error| error.to_string())?;
    let started = Instant::now();
    let response = egress
        .send(EgressRequest::get(url).timeouts(limits()))
        .await;
    let response = response.map_err(|error| error.to_string())?;
    let (status, latency) = (response.status(), started.elapsed());
    let body = response.bytes_up_to(1_024).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let word = match status {
        StatusCode::OK => "ok",
        _ => "unavailable",
    };
    Ok(Pulse {
        status,
        is_nuncio: body["status"] == word,
        latency,
    })
}
