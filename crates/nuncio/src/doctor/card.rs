//! The card: where it is found, in which versions, what it says and who signed it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::ACCEPT;
use http::{HeaderName, HeaderValue};
use nuncio_client::Discovered;
use nuncio_egress::EgressRequest;
use nuncio_engine::SystemClock;
use nuncio_protocol::signing::{Verdict, verify};
use nuncio_protocol::{AgentCard, AgentInterface, Clock as _, Version};
use url::Url;

use super::limits;
use super::outside::Visit;
use super::report::{Check, Report};
use crate::client::{Severity, lint};

/// The names of a card below its agent's address, the current one first.
const NAMES: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
const MAX_CARD_BYTES: u64 = 1 << 20;

/// Looks at the card; gives every interface that any form of it names.
pub(super) async fn examine(
    visit: &Visit<'_>,
    report: &mut Report,
    address: &str,
    found: &Discovered,
    took: Duration,
) -> Vec<AgentInterface> {
    let what = format!("card {}", found.url);
    if found
        .warnings
        .iter()
        .any(|w| w.contains("found at the origin"))
    {
        let message = format!("it is at the origin, not below {address}");
        report.add(
            Check::warning(&what, message).hint("some clients look below the agent's address only"),
        );
    }
    let mut forms = Forms {
        visit,
        interfaces: found.card.supported_interfaces.clone(),
        texts: BTreeMap::new(),
        problems: Vec::new(),
    };
    for (place, older) in places(&found.url) {
        forms.fetch(&place, older).await;
    }
    if forms.problems.is_empty() {
        let message = format!(
            "\"{}\" is found under each name, in each version",
            found.card.name
        );
        report.add(Check::ok(&what, message).took(took));
    }
    for problem in std::mem::take(&mut forms.problems) {
        report.add(problem);
    }
    rules(report, &what, found);
    signature(visit, report, &what, &found.raw);
    forms.interfaces
}

/// The addresses of the card, and whether each is by the older name.
fn places(url: &Url) -> Vec<(Url, bool)> {
    let folder = NAMES.iter().find_map(|name| url.path().strip_suffix(name));
    let Some(folder) = folder else {
        return vec![(url.clone(), false)];
    };
    let place = |name: &&str| {
        let mut place = url.clone();
        place.set_path(&format!("{folder}{name}"));
        (place, *name == NAMES[1])
    };
    NAMES.iter().map(place).collect()
}

/// What comes of asking for the card in each way.
struct Forms<'a> {
    visit: &'a Visit<'a>,
    interfaces: Vec<AgentInterface>,
    /// By the version that was named.
    texts: BTreeMap<Option<Version>, String>,
    problems: Vec<Check>,
}

impl Forms<'_> {
    /// Asks as clients of each version do, and as those that name none.
    async fn fetch(&mut self, place: &Url, older: bool) {
        let asked = Version::ALL.iter().map(|version| Some(*version));
        let (mut failed, mut why) = (Vec::new(), String::new());
        let mut differs = false;
        for version in asked.chain([None]) {
            match self.ask(place, version).await {
                Ok((card, text)) => {
                    self.note(card.supported_interfaces);
                    let first = self.texts.entry(version).or_insert_with(|| text.clone());
                    differs |= *first != text;
                }
                Err(reason) => {
                    failed.push(version.map_or("none", Version::as_str));
                    why = reason;
                }
            }
        }
        let what = format!("card {place}");
        if differs {
            let check = Check::warning(&what, "it is not the same under both names");
            self.problems.push(check.hint("serve one card under both"));
        }
        if failed.is_empty() {
            return;
        }
        let message = format!("{why}; asked with A2A-Version: {}", failed.join(", "));
        self.problems.push(if older {
            Check::warning(what, message).hint("clients of protocol 0.2 look for this name")
        } else if failed == [Version::V0_3.as_str()] {
            Check::warning(what, message).hint("clients of protocol 0.3 get no card")
        } else {
            Check::error(what, message)
                .hint("serve the card to everybody, whatever version they name")
        });
    }

    async fn ask(
        &self,
        place: &Url,
        version: Option<Version>,
    ) -> Result<(AgentCard, String), String> {
        let accept = HeaderValue::from_static("application/json, application/a2a+json");
        let mut request = EgressRequest::get(place.clone())
            .header(ACCEPT, accept)
            .timeouts(limits());
        if let Some(version) = version {
            let name = HeaderName::from_static("a2a-version");
            request = request.header(name, HeaderValue::from_static(version.as_str()));
        }
        let response = self.visit.ground.egress.send(request).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("HTTP status {}", response.status()));
        }
        let kind = response
            .header("content-type")
            .unwrap_or_default()
            .to_owned();
        let body = response.bytes_up_to(MAX_CARD_BYTES).await;
        let body = body.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&body).into_owned();
        match nuncio_client::card::read(&text) {
            Ok((card, _)) => Ok((card, text)),
            Err(why) => Err(format!("the answer, {kind}, is no card: {why}")),
        }
    }

    fn note(&mut self, interfaces: Vec<AgentInterface>) {
        for interface in interfaces {
            if !self.interfaces.contains(&interface) {
                self.interfaces.push(interface);
            }
        }
    }
}

fn rules(report: &mut Report, what: &str, found: &Discovered) {
    let findings = lint(&found.raw, Some(&found.url));
    if findings.is_empty() {
        report.add(Check::ok(what, "it keeps the rules of `card lint`"));
    }
    for finding in findings {
        report.add(match finding.severity {
            Severity::Error => Check::error(what, finding.line()),
            Severity::Warning => Check::warning(what, finding.line()),
        });
    }
}

fn signature(visit: &Visit<'_>, report: &mut Report, what: &str, raw: &str) {
    let verdict = verify(raw, visit.keys, SystemClock.now());
    let asked = !visit.keys.is_empty();
    report.add_if(match verdict {
        Verdict::Valid { kid, uncovered, .. } if uncovered.is_empty() => {
            Some(Check::ok(what, format!("it is signed by {kid}")))
        }
        Verdict::Valid { kid, uncovered, .. } => {
            let message = format!("the signature of {kid} leaves out {}", uncovered.join(", "));
            Some(Check::warning(what, message).hint("anybody may have added them"))
        }
        Verdict::Unsigned if asked => Some(
            Check::error(what, "it is not signed").hint("set server.card_key, or leave --keys out"),
        ),
        Verdict::Unsigned => None,
        _ if !asked => Some(Check::ok(what, "it is signed; --keys would verify that")),
        verdict => Some(
            Check::error(what, format!("its signature is {verdict}"))
                .hint("give the key that signs it; a proxy must not change the card"),
        ),
    });
}
