//! How a client comes about.

use std::sync::atomic::AtomicUsize;

use nuncio_egress::{Egress, EgressError};
use nuncio_protocol::signing::KeySet;
use nuncio_protocol::{AgentCard, Binding, Version, json};
use url::Url;

use crate::card::{
    self, CardCache, DiscoveryError, SignatureCheck, SignatureError, SignaturePolicy,
};
use crate::choose::{self, Wishes};
use crate::client::{Inner, Route};
use crate::credentials::{Attachment, Credentials, HeaderError, Keyring};
use crate::{Client, FollowPolicy, RetryPolicy, Timeouts, address, sse};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No card was found.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// The card is not signed as [`ClientBuilder::card_signatures`] asks.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The card has no interface that this client can use.
    #[error("the agent offers no interface that can be used here; it offers: {}", list(.offered))]
    NoInterface {
        /// What it offers.
        offered: Vec<String>,
    },
    /// Credentials or headers were given without the address they are for.
    #[error("credentials and headers for a card at hand need the address they are for")]
    UnboundCredentials,
    /// A header or a credential that cannot be sent.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// An address the credentials are for cannot be read.
    #[error("\"{0}\" is not an http or https URL")]
    NotAUrl(String),
    /// The HTTP client cannot be set up as asked.
    #[error(transparent)]
    Egress(#[from] EgressError),
}

fn list(offered: &[String]) -> String {
    if offered.is_empty() {
        "none at all".to_owned()
    } else {
        offered.join(", ")
    }
}

/// Settings of a client to be.
#[derive(Debug, Clone)]
pub struct ClientBuilder {
    egress: Egress,
    wishes: Wishes,
    found_at: Option<Url>,
    attachments: Vec<(Option<String>, Result<Attachment, HeaderError>)>,
    timeouts: Timeouts,
    extensions: Vec<String>,
    forward_to: Option<String>,
    retry: RetryPolicy,
    follow: FollowPolicy,
    cache: Option<CardCache>,
    signatures: SignatureCheck,
    max_response_bytes: u64,
    max_event_bytes: usize,
}

impl ClientBuilder {
    /// A client that goes out through `egress`, with default settings.
    pub fn new(egress: Egress) -> Self {
        Self {
            egress,
            wishes: Wishes::default(),
            found_at: None,
            attachments: Vec::new(),
            timeouts: Timeouts::default(),
            extensions: Vec::new(),
            forward_to: None,
            retry: RetryPolicy::default(),
            follow: FollowPolicy::default(),
            cache: None,
            signatures: SignatureCheck::default(),
            max_response_bytes: 32 << 20,
            max_event_bytes: sse::MAX_EVENT_BYTES,
        }
    }

    /// Uses interfaces of this binding only.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.wishes.binding = Some(binding);
        self
    }

    /// Uses interfaces of these protocol versions only, and never falls back to another (VER-09).
    ///
    /// Otherwise all that are spoken here are acceptable, the newest first. If the agent then
    /// refuses that one as such, or cannot be reached there, the next older one of the card is
    /// used from then on, which is logged at level WARN.
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.wishes.versions = Some(versions.into_iter().collect());
        self
    }

    /// Says how to reach gRPC at an address without a scheme, such as `agents.example:50051`:
    /// without TLS, or with it.
    ///
    /// Otherwise such an address is taken without TLS if it is this machine itself (`localhost` or
    /// a loopback address), and with TLS if not. `http` and `grpc` always mean no TLS, `https` and
    /// `grpcs` always TLS.
    #[must_use]
    pub fn grpc_plaintext(mut self, plaintext: bool) -> Self {
        self.wishes.grpc_plaintext = Some(plaintext);
        self
    }

    /// Proves with these who is calling, at the origin of the address given to [`Self::connect`].
    ///
    /// May be repeated: all of them are sent, but of several for the `Authorization` header the
    /// last one only.
    #[must_use]
    pub fn credentials(self, credentials: Credentials) -> Self {
        self.attach(None, Attachment::credentials(&credentials))
    }

    /// Proves with these who is calling, at the origin of `url` and nowhere else.
    ///
    /// `url` may be an address of gRPC too: its port is part of the origin, so that an agent whose
    /// gRPC has a port of its own needs its credentials for that as well. What is meant for the
    /// query goes as metadata of the same name there.
    ///
    /// May be repeated, for one origin too.
    #[must_use]
    pub fn credentials_for(self, url: impl Into<String>, credentials: Credentials) -> Self {
        self.attach(Some(url.into()), Attachment::credentials(&credentials))
    }

    /// Sends a header with every request to the origin of the address given to [`Self::connect`].
    ///
    /// May be repeated. Like credentials it goes to no other origin and is never shown. What the
    /// client sets itself (`A2A-Version` and the like) and what belongs to HTTP (`Host`) is refused
    /// when the client is made; see [`crate::check_header`].
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.attach(None, Attachment::header(name, value))
    }

    /// As [`Self::header`], for the origin of `url`.
    #[must_use]
    pub fn header_for(self, url: impl Into<String>, name: &str, value: &str) -> Self {
        self.attach(Some(url.into()), Attachment::header(name, value))
    }

    /// What is wrong with an attachment is told when the client is made.
    fn attach(mut self, url: Option<String>, made: Result<Attachment, HeaderError>) -> Self {
        self.attachments.push((url, made));
        self
    }

    /// Sets the time limits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Names the extensions that the caller understands, for every call.
    #[must_use]
    pub fn extensions(mut self, uris: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.extensions = uris.into_iter().map(Into::into).collect();
        self
    }

    /// Sends the headers that a call [forwards](nuncio_protocol::Call::forwarded) to the origin of
    /// `url`, and nowhere else; without this to nobody. Headers and credentials of this client go
    /// before them.
    #[must_use]
    pub fn forward_to(mut self, url: impl Into<String>) -> Self {
        self.forward_to = Some(url.into());
        self
    }

    /// Sets what is tried again within one call.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets how tasks are followed when their stream is lost.
    #[must_use]
    pub fn follow(mut self, follow: FollowPolicy) -> Self {
        self.follow = follow;
        self
    }

    /// Takes cards from this cache, and puts them there.
    #[must_use]
    pub fn cache(mut self, cache: CardCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets which cards are believed, by these keys; all of them without a word about it.
    ///
    /// The card is judged each time a client is made, also one from the cache. A warning is in the
    /// log. A card given to [`Self::build`] is judged as it is written here, so without members
    /// that the protocol does not know; what a signature says about those is lost.
    #[must_use]
    pub fn card_signatures(mut self, policy: SignaturePolicy, keys: KeySet) -> Self {
        self.signatures = SignatureCheck { policy, keys };
        self
    }

    /// Sets how large an answer may be; 32 MiB.
    #[must_use]
    pub fn max_response_bytes(mut self, max_bytes: u64) -> Self {
        self.max_response_bytes = max_bytes;
        self
    }

    /// Sets how large an event of a stream may be; 10 MiB.
    #[must_use]
    pub fn max_event_bytes(mut self, max_bytes: usize) -> Self {
        self.max_event_bytes = max_bytes;
        self
    }

    /// Finds the agent's card and chooses an interface of it; see [`crate::discover`].
    ///
    /// The interface itself is not called yet.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(self, url: &str) -> Result<Client, ConnectError> {
        let keyring = self.keyring(Some(url))?;
        let mut found =
            card::discover_with(&self.egress, url, &keyring, self.cache.as_ref()).await?;
        self.signatures.found(&mut found)?;
        let cached = self.cache.clone().map(|cache| (cache, url.to_owned()));
        self.assemble(found.card, keyring, Some(&found.url), cached)
    }

    /// Says where a card for [`Self::build`] was found, for addresses that mean little without it.
    #[must_use]
    pub fn found_at(mut self, url: Url) -> Self {
        self.found_at = Some(url);
        self
    }

    /// Chooses an interface of a card at hand.
    ///
    /// # Errors
    /// [`ConnectError`]; credentials and headers must have come with their address
    /// ([`Self::credentials_for`], [`Self::header_for`]), since a card is no authority on where secrets go.
    pub fn build(self, card: AgentCard) -> Result<Client, ConnectError> {
        let keyring = self.keyring(None)?;
        self.signatures.at_hand(&json::encode(&card))?;
        let base = self.found_at.clone();
        self.assemble(card, keyring, base.as_ref(), None)
    }

    fn keyring(&self, connecting: Option<&str>) -> Result<Keyring, ConnectError> {
        let mut keyring = Keyring::default();
        for (url, made) in &self.attachments {
            let url = url.as_deref().or(connecting);
            let url = url.ok_or(ConnectError::UnboundCredentials)?;
            let parsed =
                card::parse(url).or_else(|| address::grpc(url, self.wishes.grpc_plaintext));
            let parsed = parsed.ok_or_else(|| ConnectError::NotAUrl(url.to_owned()))?;
            keyring.put(&parsed, made.clone()?);
        }
        Ok(keyring)
    }

    fn assemble(
        self,
        card: AgentCard,
        keyring: Keyring,
        base: Option<&Url>,
        cached: Option<(CardCache, String)>,
    ) -> Result<Client, ConnectError> {
        let choices = choose::choose(&card, &self.wishes, base);
        if choices.is_empty() {
            return Err(ConnectError::NoInterface {
                offered: choose::offered(&card),
            });
        }
        let egress = match self.timeouts.connect {
            Some(connect) => self.egress.with_connect_timeout(connect)?,
            None => self.egress,
        };
        let forward_to = match &self.forward_to {
            None => None,
            Some(url) => {
                let parsed = card::parse(url);
                Some(
                    parsed
                        .ok_or_else(|| ConnectError::NotAUrl(url.clone()))?
                        .origin(),
                )
            }
        };
        let inner = Inner {
            forward_to,
            egress,
            card,
            routes: choices.into_iter().map(Route::from).collect(),
            keyring,
            extensions: self.extensions,
            retry: self.retry,
            max_response_bytes: self.max_response_bytes,
            max_event_bytes: self.max_event_bytes,
            cached,
            current: AtomicUsize::new(0),
        };
        Ok(Client::new(inner, self.timeouts, self.follow))
    }
}
