//! The server as a function from request to reply; listeners are `listen`'s business.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body::Body;
use nuncio_protocol::{Clock, StatusProfile};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Admitted;
use crate::card::{CARD_PATH, CardContext};
use crate::dispatch::no_such_agent;
use crate::failure::Failure;
use crate::listen::Connections;
use crate::place::{Face, Place, Who};
use crate::reply::{self, JSON, Reply};
use crate::{Authenticator, Endpoint, ResponseBody, Settings, Switchboard};
use crate::{address, body, content, cors};

/// Says whether requests can be served: the store is reachable, for instance.
pub type ReadinessCheck = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// An A2A server: agents at their addresses, in the JSON-RPC and HTTP+JSON bindings.
///
/// Cheap to clone. Serve it with [`Server::run`], or mount it in another program: it is a
/// `tower_service::Service`. Mounted below a path it needs [`Settings::public_url`].
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    authenticator: Authenticator,
    switchboard: Arc<Switchboard>,
    clock: Arc<dyn Clock>,
    readiness: Option<ReadinessCheck>,
    draining: AtomicBool,
    closing: CancellationToken,
    connections: Connections,
}

/// One request as far as its head tells.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    pub(crate) parts: &'a Parts,
    /// The other end of the connection.
    pub(crate) peer: Option<IpAddr>,
    /// The caller's address: the peer's, or what trusted proxies say.
    pub(crate) client: Option<IpAddr>,
}

/// The address a request came from, for those who mount the server: put it into the request's
/// extensions. Without it nobody is throttled and no forwarding header is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("settings", &self.shared.settings)
            .field("agents", &self.shared.switchboard.ids())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server of the agents on a switchboard, which may change at any time.
    pub fn new(
        settings: Settings,
        authenticator: Authenticator,
        switchboard: Arc<Switchboard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                connections: Connections::new(&settings),
                settings,
                authenticator,
                switchboard,
                clock,
                readiness: None,
                draining: AtomicBool::new(false),
                closing: CancellationToken::new(),
            }),
        }
    }

    /// Sets what `/readyz` asks. Has no effect once the server has been cloned.
    #[must_use]
    pub fn with_readiness(mut self, check: ReadinessCheck) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.readiness = Some(check);
        }
        self
    }

    /// The agents.
    pub fn switchboard(&self) -> &Arc<Switchboard> {
        &self.shared.switchboard
    }

    /// Makes `/readyz` say no while requests are still served, so that new ones go elsewhere.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Ends all streams so that their readers resume elsewhere, and refuses new ones. For those
    /// who mount the server; [`Server::run`] does it by itself when it stops.
    pub fn close(&self) {
        self.drain();
        self.shared.closing.cancel();
    }

    /// Answers one request that came from `peer`.
    ///
    /// Dropping the future gives up the answer, not the task.
    pub async fn handle<B>(&self, request: Request<B>, peer: Option<IpAddr>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let place = Place::of(parts.uri.path());
        let origins = &self.shared.settings.cors_origins;
        let mut upload = Some(body);
        let mut reply = match cors::options(&parts, origins, place.is_card()) {
            Some(reply) => reply,
            None => {
                let visit = Visit {
                    client: address::client_ip(&self.shared.settings, &parts.headers, peer),
                    parts: &parts,
                    peer,
                };
                self.route(&visit, place, &mut upload).await
            }
        };
        if let Some(unread) = upload {
            body::discard(unread);
        }
        cors::open(&parts, origins, &mut reply);
        if parts.method == Method::HEAD {
            reply::head_only(&mut reply);
        }
        reply
    }

    async fn route<B>(&self, visit: &Visit<'_>, place: Place<'_>, upload: &mut Option<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        match place {
            Place::Live => health(true),
            Place::Ready => health(self.is_ready().await),
            Place::Agents => self.list_agents(visit).unwrap_or_else(|f| plain(f, visit)),
            Place::Agent(who, face) => {
                let endpoint = self.find(&who);
                match face {
                    Face::Card { legacy } => self
                        .card(visit, endpoint, legacy)
                        .unwrap_or_else(|failure| plain(failure, visit)),
                    Face::JsonRpc => self.json_rpc(visit, endpoint, upload).await,
                    Face::Rest(path) => self.rest(visit, endpoint, path, upload).await,
                }
            }
        }
    }

    fn find(&self, who: &Who<'_>) -> Option<Arc<Endpoint>> {
        let directory = self.shared.switchboard.now();
        match who {
            Who::Default => directory.default_agent(),
            Who::Named(name) => directory.get(&Cow::as_ref(name).into()),
        }
    }

    async fn is_ready(&self) -> bool {
        if self.shared.draining.load(Ordering::Relaxed) {
            return false;
        }
        match &self.shared.readiness {
            None => true,
            Some(check) => check().await,
        }
    }

    /// Every agent with its name and where its card is (BR-105).
    fn list_agents(&self, visit: &Visit<'_>) -> Result<Reply, Failure> {
        self.authenticate(visit)?;
        reads_only(visit)?;
        let public_url = self.public_url(visit);
        let directory = self.shared.switchboard.now();
        let agents: Vec<_> = directory
            .agents()
            .map(|endpoint| {
                let url = endpoint.url(&public_url);
                json!({
                    "id": endpoint.id,
                    "name": endpoint.card.name,
                    "description": endpoint.card.description,
                    "url": url,
                    "cardUrl": format!("{url}{CARD_PATH}"),
                })
            })
            .collect();
        let body = json!({ "agents": agents }).to_string();
        Ok(reply::with_body(StatusCode::OK, JSON, body))
    }

    fn card(
        &self,
        visit: &Visit<'_>,
        endpoint: Option<Arc<Endpoint>>,
        legacy: bool,
    ) -> Result<Reply, Failure> {
        reads_only(visit)?;
        let endpoint = endpoint.ok_or_else(no_such_agent)?;
        let public_url = self.public_url(visit);
        let card = endpoint.served_card(self.card_context(&public_url));
        let asked = &visit.parts.headers;
        Ok(card.reply(&self.shared.settings, asked, legacy))
    }

    pub(crate) fn authenticate(&self, visit: &Visit<'_>) -> Result<Admitted, Failure> {
        let now = || self.shared.clock.now();
        let headers = &visit.parts.headers;
        self.shared
            .authenticator
            .authenticate(headers, visit.client, now)
    }

    pub(crate) fn public_url(&self, visit: &Visit<'_>) -> String {
        address::public_url(&self.shared.settings, visit.parts, visit.peer)
    }

    pub(crate) fn card_context<'a>(&'a self, public_url: &'a str) -> CardContext<'a> {
        CardContext {
            public_url,
            authenticator: &self.shared.authenticator,
            now: self.shared.clock.now(),
        }
    }

    /// When a stream of this caller has to end (AUTH-10).
    pub(crate) fn expiry(&self, admitted: &Admitted) -> Option<Instant> {
        let left = admitted.expires?.unix_ms() - self.shared.clock.now().unix_ms();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default());
        Instant::now().checked_add(left)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.shared.closing
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.shared.connections
    }
}

fn reads_only(visit: &Visit<'_>) -> Result<(), Failure> {
    match visit.parts.method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(Failure::method_not_allowed(&["GET", "HEAD"])),
    }
}

/// An error outside of both bindings, in the form of HTTP+JSON.
fn plain(failure: Failure, visit: &Visit<'_>) -> Reply {
    let content_type = content::reply_type(&visit.parts.headers);
    failure.rest(StatusProfile::default(), content_type)
}

fn health(good: bool) -> Reply {
    let (status, word) = match good {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    reply::with_body(status, JSON, json!({ "status": word }).to_string())
}

impl<B> tower_service::Service<Request<B>> for Server
where
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = http::Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        let peer = request.extensions().get::<PeerAddress>();
        let peer = peer.map(|address| address.0.ip());
        Box::pin(async move { Ok(server.handle(request, peer).await) })
    }
}
