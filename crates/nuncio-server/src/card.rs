//! Cards as they are served: template, addresses and security, with their validators (CARD-*, CACHE-*).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LINK, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use nuncio_protocol::signing::SigningKey;
use nuncio_protocol::{AgentCard, AgentInterface, Binding, Timestamp, Version, dialect};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::auth::Authenticator;
use crate::place::Who;
use crate::reply::{self, JSON, Reply};
use crate::{Endpoint, Settings, parameters};

/// The path of a card below its agent's address.
pub(crate) const CARD_PATH: &str = "/.well-known/agent-card.json";
/// The path that protocol 0.2 gave it.
pub(crate) const LEGACY_CARD_PATH: &str = "/.well-known/agent.json";

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// Hosts under which one agent's card is kept; who asks under more begins anew.
const MAX_CACHED: usize = 64;

/// One agent's served cards.
#[derive(Debug, Default)]
pub(crate) struct CardCache(Mutex<HashMap<CardKey, Arc<ServedCard>>>);

/// The agent's address, whether it is the default one, and the versions a card is for.
type CardKey = (String, bool, Vec<Version>);

/// A card as bytes with its headers.
#[derive(Debug)]
pub(crate) struct ServedCard {
    body: Bytes,
    etag: HeaderValue,
    /// Seconds since 1970.
    modified: u64,
    last_modified: HeaderValue,
    canonical: HeaderValue,
}

/// What a card depends on besides its template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CardContext<'a> {
    /// The server's address, without a trailing slash.
    pub(crate) public_url: &'a str,
    /// How the agent is addressed.
    pub(crate) who: &'a Who<'a>,
    /// Whether it is the one that is also served at the root.
    pub(crate) is_default: bool,
    /// Host and port for gRPC, if that is offered.
    pub(crate) grpc: Option<&'a str>,
    pub(crate) authenticator: &'a Authenticator,
    pub(crate) key: Option<&'a SigningKey>,
    pub(crate) now: Timestamp,
}

impl Endpoint {
    /// The address of this agent, for the bindings over JSON.
    pub(crate) fn url(&self, public_url: &str, who: &Who<'_>) -> String {
        format!("{public_url}{}", who.path(self.id.as_str()))
    }

    /// The versions that a reader of the card understands: the one it names, else all.
    pub(crate) fn card_versions(&self, parts: &Parts) -> Vec<Version> {
        let said = parameters::version(parts).ok().flatten();
        let said = said.and_then(|text| Version::parse(&text).ok());
        match said.filter(|version| self.dialects.contains(version)) {
            Some(version) => vec![version],
            None => self.dialects.clone(),
        }
    }

    /// Fills in where the agent is reached and what is asked of callers.
    pub(crate) fn complete(&self, card: &mut AgentCard, context: CardContext<'_>) {
        card.supported_interfaces = self.interfaces(context);
        context.authenticator.declare(card);
        // Signatures of the template cover other addresses (CACHE-05).
        card.signatures.clear();
        let signed = context.key.map(|key| key.sign_card(card));
        if let Some(Err(error)) = signed {
            tracing::error!(agent.id = %self.id, %error, "the card could not be signed");
        }
    }

    /// Where the agent is reached: newest version first, the bindings of each in their order.
    fn interfaces(&self, context: CardContext<'_>) -> Vec<AgentInterface> {
        let url = self.url(context.public_url, context.who);
        let versions = self.dialects.iter().rev();
        let interfaces = versions.flat_map(|version| {
            let of_binding = |binding: &Binding| match binding {
                Binding::Grpc => self.grpc_interface(context, *version),
                over_json => Some(AgentInterface::new(url.clone(), *over_json)),
            };
            let mut all: Vec<_> = self.bindings.iter().filter_map(of_binding).collect();
            for interface in &mut all {
                interface.protocol_version = version.to_string();
            }
            all
        });
        interfaces.collect()
    }

    /// gRPC has no paths of its own: the tenant names the agent, if the version has tenants.
    fn grpc_interface(&self, context: CardContext<'_>, version: Version) -> Option<AgentInterface> {
        let mut interface = AgentInterface::new(context.grpc?, Binding::Grpc);
        if !context.is_default {
            if !dialect::grpc(version).has_tenants() {
                return None;
            }
            interface.tenant = Some(match context.who {
                Who::InWorkspace { workspace, .. } => format!("{workspace}/{}", self.id),
                Who::Default | Who::Named(_) => self.id.to_string(),
            });
        }
        Some(interface)
    }

    pub(crate) fn served_card(
        &self,
        context: CardContext<'_>,
        versions: &[Version],
    ) -> Arc<ServedCard> {
        let url = self.url(context.public_url, context.who);
        let key = (url, context.is_default, versions.to_vec());
        if let Some(card) = self.cards.0.lock().get(&key) {
            return Arc::clone(card);
        }
        let fresh = Arc::new(self.render(context, versions));
        let mut cards = self.cards.0.lock();
        if cards.len() >= MAX_CACHED {
            cards.clear();
        }
        cards.insert(key, Arc::clone(&fresh));
        fresh
    }

    fn render(&self, context: CardContext<'_>, versions: &[Version]) -> ServedCard {
        let mut card = self.card.clone();
        self.complete(&mut card, context);
        let body = dialect::encode_card(&card, versions);
        let modified = self.modified.get_or_init(|| context.now).unix_ms() / 1_000;
        let modified = u64::try_from(modified).unwrap_or_default();
        let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(modified));
        let link = format!(
            "<{}{CARD_PATH}>; rel=\"canonical\"",
            self.url(context.public_url, context.who)
        );
        ServedCard {
            etag: entity_tag(body.as_bytes()),
            body: body.into(),
            modified,
            last_modified: header(date),
            canonical: header(link),
        }
    }
}

fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn entity_tag(bytes: &[u8]) -> HeaderValue {
    let digest = Sha256::digest(bytes);
    let hex: String = digest[..16].iter().map(|b| format!("{b:02x}")).collect();
    header(format!("\"{hex}\""))
}

impl ServedCard {
    /// The reply to a request for the card: its bytes, or that they have not changed.
    pub(crate) fn reply(&self, settings: &Settings, asked: &HeaderMap, legacy: bool) -> Reply {
        let mut reply = if self.is_known(asked) {
            reply::empty(StatusCode::NOT_MODIFIED)
        } else {
            reply::with_body(StatusCode::OK, JSON, self.body.clone())
        };
        let max_age = settings.card_max_age.as_secs();
        let headers = reply.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        headers.insert(LAST_MODIFIED, self.last_modified.clone());
        headers.insert(CACHE_CONTROL, header(format!("public, max-age={max_age}")));
        headers.insert(VARY, HeaderValue::from_static("A2A-Version"));
        if legacy {
            // RFC 9745: deprecated since the day protocol 0.3.0 renamed the card, 2025-07-30.
            headers.insert(DEPRECATION, HeaderValue::from_static("@1753833600"));
            headers.insert(LINK, self.canonical.clone());
        }
        reply::open_to_every_origin(&mut reply);
        reply
    }

    /// Whether the caller has it already (CACHE-02, CACHE-03).
    fn is_known(&self, asked: &HeaderMap) -> bool {
        let mut tags = asked.get_all(IF_NONE_MATCH).iter().peekable();
        if tags.peek().is_some() {
            let ours = self.etag.as_bytes();
            return tags.any(|line| {
                line.as_bytes()
                    .split(|b| *b == b',')
                    .map(<[u8]>::trim_ascii)
                    .any(|tag| tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == ours)
            });
        }
        let since = asked.get(IF_MODIFIED_SINCE);
        let since = since.and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok());
        since
            .and_then(|since| since.duration_since(SystemTime::UNIX_EPOCH).ok())
            .is_some_and(|since| self.modified <= since.as_secs())
    }
}
