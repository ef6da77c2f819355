//! The client: an agent far away, used like one at hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_egress::Egress;
use nuncio_protocol::{
    A2aError, AgentCard, AgentInterface, AgentService as _, Binding, Call, ErrorKind,
    GetExtendedAgentCardRequest, Result, Version,
};

use url::{Origin, Url};

use crate::card::CardCache;
use crate::choose::Choice;
use crate::credentials::Keyring;
use crate::sender::{self, Sender};
use crate::{FollowPolicy, RetryPolicy, Timeouts};

/// One usable interface with its framing.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) interface: AgentInterface,
    pub(crate) binding: Binding,
    pub(crate) version: Version,
    pub(crate) sender: Arc<dyn Sender>,
}

impl From<Choice> for Route {
    fn from(choice: Choice) -> Self {
        Self {
            sender: sender::sender(&choice),
            binding: choice.binding,
            version: choice.version,
            interface: choice.interface,
        }
    }
}

/// What a client is made of; shared by its clones.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) egress: Egress,
    pub(crate) card: AgentCard,
    pub(crate) routes: Vec<Route>,
    pub(crate) keyring: Keyring,
    pub(crate) extensions: Vec<String>,
    /// Where what a call [forwards](nuncio_protocol::Call::forwarded) may go.
    pub(crate) forward_to: Option<Origin>,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_response_bytes: u64,
    pub(crate) max_event_bytes: usize,
    /// Where the card is cached, and under which address.
    pub(crate) cached: Option<(CardCache, String)>,
    pub(crate) current: AtomicUsize,
}

/// A remote agent. Cloning is cheap and shares connections.
///
/// Its methods of `AgentService` make one exchange each (and repeat it where that is harmless, see
/// [`RetryPolicy`]); a stream that ends before its task gives an error as its last item.
/// [`Self::stream`] and [`Self::follow`] go on after a lost connection.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
    timeouts: Timeouts,
    follow: FollowPolicy,
}

impl Client {
    pub(crate) fn new(inner: Inner, timeouts: Timeouts, follow: FollowPolicy) -> Self {
        Self {
            inner: Arc::new(inner),
            timeouts,
            follow,
        }
    }

    /// The agent's card.
    pub fn card(&self) -> &AgentCard {
        &self.inner.card
    }

    /// The interface in use: the best one of the card, or the one that was reached last.
    pub fn interface(&self) -> &AgentInterface {
        &self.routes_from_current().0.interface
    }

    /// The binding of [`Self::interface`].
    pub fn binding(&self) -> Binding {
        self.routes_from_current().0.binding
    }

    /// The protocol version of [`Self::interface`].
    ///
    /// An older one than the card's newest tells that this client fell back to it (VER-09); that is
    /// logged too, and [`crate::ClientBuilder::versions`] forbids it.
    pub fn version(&self) -> Version {
        self.routes_from_current().0.version
    }

    /// The same client with other time limits; the one for connections stays.
    #[must_use]
    pub fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            timeouts: Timeouts {
                connect: self.timeouts.connect,
                ..timeouts
            },
            follow: self.follow,
        }
    }

    /// The same client, which follows tasks in another way.
    #[must_use]
    pub fn with_follow(&self, follow: FollowPolicy) -> Self {
        Self {
            follow,
            ..self.clone()
        }
    }

    /// The time limits.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// The card for authenticated callers; the public one if the agent has no other (OP-XCARD-04).
    ///
    /// # Errors
    /// The agent's error, or one of the way there.
    pub async fn extended_card(&self, call: Call) -> Result<AgentCard> {
        if self.inner.card.capabilities.extended_agent_card != Some(true) {
            return Ok(self.inner.card.clone());
        }
        let request = GetExtendedAgentCardRequest::default();
        self.get_extended_agent_card(call, request).await
    }

    /// Whether the card says that the agent streams.
    pub fn can_stream(&self) -> bool {
        self.inner.card.capabilities.streaming == Some(true)
    }

    pub(crate) fn egress(&self) -> &Egress {
        &self.inner.egress
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.inner.keyring
    }

    pub(crate) fn forwards_to(&self, url: &Url) -> bool {
        self.inner.forward_to.as_ref() == Some(&url.origin())
    }

    pub(crate) fn retry(&self) -> &RetryPolicy {
        &self.inner.retry
    }

    pub(crate) fn follow_policy(&self) -> &FollowPolicy {
        &self.follow
    }

    pub(crate) fn limits(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(crate) fn max_response_bytes(&self) -> u64 {
        self.inner.max_response_bytes
    }

    pub(crate) fn max_event_bytes(&self) -> usize {
        self.inner.max_event_bytes
    }

    fn routes_from_current(&self) -> (&Route, impl Iterator<Item = &Route>) {
        let routes = &self.inner.routes;
        let current = self.inner.current.load(Ordering::Relaxed) % routes.len();
        let (before, from) = routes.split_at(current);
        (&from[0], from[1..].iter().chain(before))
    }

    /// The routes, the one in use first.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &Route> {
        let (first, rest) = self.routes_from_current();
        std::iter::once(first).chain(rest)
    }

    /// Remembers the route that led to the agent; a step down to an older version is told.
    pub(crate) fn keep_to(&self, route: &Route) {
        let found = |known: &Route| Arc::ptr_eq(&known.sender, &route.sender);
        let Some(n) = self.inner.routes.iter().position(found) else {
            return;
        };
        let before = self.inner.current.swap(n, Ordering::Relaxed);
        let before = self.inner.routes.get(before).map(|route| route.version);
        if before.is_some_and(|before| route.version < before) {
            tracing::warn!(
                version = %route.version,
                "falling back to protocol {} at {}",
                route.version,
                route.interface.url
            );
        }
    }

    /// Forgets the cached card: the agent behaves as if it had changed (CACHE-04).
    pub(crate) fn card_is_outdated(&self) {
        if let Some((cache, asked)) = &self.inner.cached {
            cache.forget(asked);
        }
    }

    /// The extensions named in a call: the client's own and the call's, each once (EXT-01).
    pub(crate) fn extensions_of<'a>(&'a self, call: &'a Call) -> Vec<&'a str> {
        let mut named: Vec<&str> = Vec::new();
        for uri in self.inner.extensions.iter().chain(&call.extensions) {
            let uri = uri.trim();
            if !uri.is_empty() && !named.contains(&uri) {
                named.push(uri);
            }
        }
        named
    }

    /// Refuses to start or steer work without an extension that the card requires (EXT-09).
    pub(crate) fn check_extensions(&self, call: &Call) -> Result<()> {
        let named = self.extensions_of(call);
        let declared = &self.inner.card.capabilities.extensions;
        let missing = declared
            .iter()
            .find(|extension| extension.required && !named.contains(&extension.uri.as_str()));
        match missing {
            None => Ok(()),
            Some(extension) => Err(A2aError::new(
                ErrorKind::ExtensionSupportRequired,
                format!("the agent requires the extension {}", extension.uri),
            )),
        }
    }
}
