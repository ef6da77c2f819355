//! Finding the card of an agent from an address that people pass around (BR-101).

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use nuncio_egress::{Egress, EgressError, EgressRequest, EgressResponse};
use nuncio_protocol::signing::Verdict;
use nuncio_protocol::{AgentCard, Version};
use url::Url;

use super::cache::{Cached, CardCache};
use super::places::{parse, places};
use super::tries::{DiscoveryError, Try, TryOutcome, leads_on};
use crate::credentials::Keyring;

const MAX_CARD_BYTES: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(15);

/// A card and where it was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Discovered {
    /// The card, as far as it can be read.
    pub card: AgentCard,
    /// Where it was found.
    pub url: Url,
    /// The text as it came, for checking signatures.
    pub raw: String,
    /// What is odd about the card or the place where it was found.
    pub warnings: Vec<String>,
    /// What its signatures are worth; `None` until somebody asks ([`Discovered::verify`]).
    pub signature: Option<Verdict>,
}

/// Finds the card of the agent at `url`.
///
/// Asks the address itself if its path ends in `.json`; otherwise the well-known path below it,
/// the one at its origin, then the older name in both places. A place that has no card (404, 405,
/// a redirect, HTML, JSON that is no card) leads to the next one; one that has it but does not
/// give it (401, 403, 429, 5xx) ends the search, so that no other agent's card is taken instead.
/// An address without scheme is `http` for the local machine and `https` otherwise. Each try takes
/// at most 15 s and 1 MiB.
///
/// # Errors
/// [`DiscoveryError`] with every try.
pub async fn discover(egress: &Egress, url: &str) -> Result<Discovered, DiscoveryError> {
    discover_with(egress, url, &Keyring::default(), None).await
}

pub(crate) async fn discover_with(
    egress: &Egress,
    asked: &str,
    keyring: &Keyring,
    cache: Option<&CardCache>,
) -> Result<Discovered, DiscoveryError> {
    let search = Search {
        egress,
        asked,
        keyring,
        cache,
    };
    match cache.and_then(|cache| cache.get(asked)) {
        Some(Cached::Fresh(found)) => return Ok(found),
        Some(Cached::Stale { found, etag }) => {
            if let Some(found) = search.revalidate(found, etag.as_deref()).await {
                return Ok(found);
            }
        }
        None => {}
    }
    search.run().await
}

struct Search<'a> {
    egress: &'a Egress,
    asked: &'a str,
    keyring: &'a Keyring,
    cache: Option<&'a CardCache>,
}

impl Search<'_> {
    async fn run(&self) -> Result<Discovered, DiscoveryError> {
        let mut tries = Vec::new();
        let asked = parse(self.asked);
        for url in asked.iter().flat_map(places) {
            match self.ask(&url).await {
                Ok(found) => return Ok(found),
                Err(outcome) => {
                    let go_on = leads_on(&outcome);
                    tries.push(Try { url, outcome });
                    if !go_on {
                        break;
                    }
                }
            }
        }
        Err(DiscoveryError {
            asked: self.asked.to_owned(),
            tries,
        })
    }

    async fn ask(&self, url: &Url) -> Result<Discovered, TryOutcome> {
        let mut response = self.get(url, None, false).await?;
        let asks_who = matches!(response.status().as_u16(), 401 | 403);
        let with_credentials = asks_who && self.keyring.covers(url);
        if with_credentials {
            response = self.get(url, None, true).await?;
        }
        let cache = self.cache.filter(|_| !with_credentials);
        self.take(url, response, cache).await
    }

    async fn take(
        &self,
        url: &Url,
        response: EgressResponse,
        cache: Option<&CardCache>,
    ) -> Result<Discovered, TryOutcome> {
        if response.status() != StatusCode::OK {
            return Err(TryOutcome::Status(response.status()));
        }
        let headers: HeaderMap = response.headers().clone();
        let html = response
            .header("content-type")
            .is_some_and(|kind| kind.to_ascii_lowercase().contains("html"));
        if html {
            return Err(TryOutcome::NotACard("an HTML page".to_owned()));
        }
        let body = match response.bytes_up_to(MAX_CARD_BYTES).await {
            Ok(body) => body,
            Err(error @ EgressError::TooLarge { .. }) => {
                return Err(TryOutcome::NotACard(error.to_string()));
            }
            Err(error) => return Err(TryOutcome::Failed(error)),
        };
        let raw = String::from_utf8(body.into())
            .map_err(|_| TryOutcome::NotACard("not UTF-8 text".to_owned()))?;
        let (card, mut warnings) = super::read(&raw).map_err(TryOutcome::NotACard)?;
        warnings.extend(self.warning_about(url));
        let found = Discovered {
            card,
            url: url.clone(),
            raw,
            warnings,
            signature: None,
        };
        if let Some(cache) = cache {
            cache.put(self.asked, &found, &headers);
        }
        Ok(found)
    }

    fn warning_about(&self, url: &Url) -> Option<String> {
        let asked = parse(self.asked)?;
        let below = asked.path().trim_end_matches('/');
        let elsewhere = asked.path() != url.path() && !url.path().starts_with(below);
        elsewhere.then(|| format!("the card was found at the origin, not below {below}"))
    }

    async fn revalidate(&self, found: Discovered, etag: Option<&str>) -> Option<Discovered> {
        let response = self.get(&found.url, etag, false).await.ok()?;
        if response.status() == StatusCode::NOT_MODIFIED {
            self.cache?.put(self.asked, &found, response.headers());
            return Some(found);
        }
        self.take(&found.url, response, self.cache).await.ok()
    }

    async fn get(
        &self,
        url: &Url,
        etag: Option<&str>,
        with_credentials: bool,
    ) -> Result<EgressResponse, TryOutcome> {
        let version = HeaderValue::from_static(Version::V1_0.as_str());
        let accept = HeaderValue::from_static("application/json, application/a2a+json");
        let mut request = EgressRequest::get(url.clone())
            .header(crate::headers::A2A_VERSION, version)
            .header(header::ACCEPT, accept)
            .timeouts(nuncio_egress::Timeouts::total(TIMEOUT));
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if with_credentials {
            request = self.keyring.attach(request);
        }
        self.egress.send(request).await.map_err(TryOutcome::Failed)
    }
}
