//! The server as a function from request to reply; listeners are `listen`'s business.

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
use http::header::CACHE_CONTROL;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body::Body;
use nuncio_protocol::{A2aError, Binding, Call, Clock, ErrorKind, Ids, OperationKind, SpanSink};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::Admitted;
use crate::card::{CARD_PATH, CardContext};
use crate::dispatch::no_such_agent;
use crate::failure::Failure;
use crate::listen::Connections;
use crate::oxygent::PlainRoute;
use crate::place::{Face, Place, Who};
use crate::reply::{self, JSON, Reply};
use crate::rest::ErrorForm;
use crate::spans::{OperationSpan, Spans};
use crate::standard::MAX_WATCHES;
use crate::switchboard::Directory;
use crate::{Administration, Authenticator, Endpoint, ResponseBody, Settings, Switchboard};
use crate::{address, body, cors, grpc};

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
    ids: Arc<dyn Ids>,
    readiness: Option<ReadinessCheck>,
    administration: Option<Arc<dyn Administration>>,
    spans: Option<Arc<Spans>>,
    watches: Arc<Semaphore>,
    draining: AtomicBool,
    /// Streams end.
    leaving: CancellationToken,
    /// Connections end.
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
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                connections: Connections::new(&settings),
                settings,
                authenticator,
                switchboard,
                clock,
                ids,
                readiness: None,
                administration: None,
                spans: None,
                watches: Arc::new(Semaphore::new(MAX_WATCHES)),
                draining: AtomicBool::new(false),
                leaving: CancellationToken::new(),
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

    /// Sets who answers below `/admin/v1`. Has no effect once the server has been cloned.
    #[must_use]
    pub fn with_administration(mut self, administration: Arc<dyn Administration>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.administration = Some(administration);
        }
        self
    }

    /// Tells of every operation that has been answered. Has no effect once the server has been cloned.
    #[must_use]
    pub fn with_spans(mut self, sink: Arc<dyn SpanSink>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            let clock = Arc::clone(&shared.clock);
            shared.spans = Some(Arc::new(Spans { sink, clock }));
        }
        self
    }

    pub(crate) fn begin_span(
        &self,
        call: &mut Call,
        kind: OperationKind,
        binding: Binding,
    ) -> Option<OperationSpan> {
        let spans = self.shared.spans.as_ref()?;
        Some(OperationSpan::begin(spans, self.ids(), call, kind, binding))
    }

    pub(crate) fn administration(&self) -> Option<&dyn Administration> {
        self.shared.administration.as_deref()
    }

    /// The agents.
    pub fn switchboard(&self) -> &Arc<Switchboard> {
        &self.shared.switchboard
    }

    /// Makes `/readyz` say no while requests are still served, so that new ones go elsewhere.
    pub fn drain(&self) {
        self.shared.draining.store(true, Ordering::Relaxed);
    }

    /// Ends all streams so that their readers resume elsewhere, and refuses new ones until then.
    ///
    /// Other requests are still answered, and each answer of HTTP/1 lets go of its connection, so
    /// that nobody has one in the moment the server is gone.
    pub fn end_streams(&self) {
        self.drain();
        self.shared.leaving.cancel();
    }

    /// [`Server::end_streams`], and lets go of the connections. For those who mount the server;
    /// [`Server::run`] does it by itself when it stops.
    pub fn close(&self) {
        self.end_streams();
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
        let place = if self.shared.settings.grpc && grpc::is_call(&parts) {
            Place::Grpc(parts.uri.path())
        } else {
            Place::of(parts.uri.path())
        };
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
            Place::Grpc(path) => self.grpc(visit, path, upload).await,
            Place::Admin(path) => self
                .administer(visit, path, upload)
                .await
                .unwrap_or_else(|failure| plain(failure, visit)),
            Place::Agents => self.list_agents(visit).unwrap_or_else(|f| plain(f, visit)),
            Place::Keys => self.webhook_keys(visit).unwrap_or_else(|f| plain(f, visit)),
            Place::Agent(who, face) => match face {
                Face::Card { legacy } => self
                    .card(visit, &who, legacy)
                    .unwrap_or_else(|failure| plain(failure, visit)),
                Face::JsonRpc { streaming } => match PlainRoute::of(&visit.parts.method, "") {
                    Some(route) if !streaming && self.takes_plain_calls(&who) => {
                        self.plain_call(visit, who, route, upload).await
                    }
                    _ => self.json_rpc(visit, who, streaming, upload).await,
                },
                Face::Rest(path) => match PlainRoute::of(&visit.parts.method, path) {
                    Some(route) if self.takes_plain_calls(&who) => {
                        self.plain_call(visit, who, route, upload).await
                    }
                    _ => self.rest(visit, who, path, upload).await,
                },
            },
        }
    }

    pub(crate) async fn is_ready(&self) -> bool {
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
        let admitted = self.authenticate(visit)?;
        reads_only(visit)?;
        let public_url = self.public_url(visit);
        let own = admitted.caller.workspace.as_str();
        let directory = self.shared.switchboard.now();
        let agents: Vec<_> = directory
            .agents()
            .filter(|endpoint| endpoint.is_in(own))
            .map(|endpoint| {
                let url = endpoint.url(&public_url, &Who::Default);
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

    /// The public keys need no credential: receivers verify calls with them (PUSH-14).
    fn webhook_keys(&self, visit: &Visit<'_>) -> Result<Reply, Failure> {
        reads_only(visit)?;
        let settings = &self.shared.settings;
        let Some(keys) = &settings.webhook_keys else {
            return Err(A2aError::new(ErrorKind::MethodNotFound, "no such path").into());
        };
        let mut reply = reply::with_body(StatusCode::OK, JSON, keys.to_string());
        let max_age = format!("public, max-age={}", settings.card_max_age.as_secs());
        if let Ok(max_age) = HeaderValue::try_from(max_age) {
            reply.headers_mut().insert(CACHE_CONTROL, max_age);
        }
        reply::open_to_every_origin(&mut reply);
        Ok(reply)
    }

    /// Cards need no credential: whoever knows the address may read it (AUTH-05).
    fn card(&self, visit: &Visit<'_>, who: &Who<'_>, legacy: bool) -> Result<Reply, Failure> {
        reads_only(visit)?;
        let endpoint = self.endpoint_at(who).ok_or_else(no_such_agent)?;
        let versions = endpoint.card_versions(visit.parts);
        let card = self.with_card_context(visit, who, &endpoint, |context| {
            endpoint.served_card(context, &versions)
        });
        let asked = &visit.parts.headers;
        Ok(card.reply(&self.shared.settings, asked, legacy))
    }

    /// The agent of an address, whoever asks.
    pub(crate) fn endpoint_at(&self, who: &Who<'_>) -> Option<Arc<Endpoint>> {
        let directory = self.shared.switchboard.now();
        match who {
            Who::Default => directory.default_agent(),
            Who::Named(agent) => directory.get(&(&**agent).into()),
            Who::InWorkspace {
                workspace, agent, ..
            } => directory
                .get(&(&**agent).into())
                .filter(|_| self.knows_workspace(&directory, workspace))
                .filter(|endpoint| endpoint.is_in(workspace)),
        }
    }

    /// Whether some caller or agent belongs to a workspace.
    fn knows_workspace(&self, directory: &Directory, workspace: &str) -> bool {
        self.shared.authenticator.knows_workspace(workspace)
            || directory
                .agents()
                .any(|endpoint| endpoint.workspaces.iter().any(|w| w.as_str() == workspace))
    }

    pub(crate) fn authenticate(&self, visit: &Visit<'_>) -> Result<Admitted, Failure> {
        let now = || self.shared.clock.now();
        self.shared
            .authenticator
            .authenticate(visit.parts, visit.client, now)
    }

    pub(crate) fn public_url(&self, visit: &Visit<'_>) -> String {
        address::public_url(&self.shared.settings, visit.parts, visit.peer)
    }

    /// Completes a card for readers who came by this address.
    pub(crate) fn with_card_context<T>(
        &self,
        visit: &Visit<'_>,
        who: &Who<'_>,
        endpoint: &Endpoint,
        complete: impl FnOnce(CardContext<'_>) -> T,
    ) -> T {
        let public_url = self.public_url(visit);
        let grpc = address::grpc(&self.shared.settings, &public_url);
        let directory = self.shared.switchboard.now();
        let default = directory.default_agent();
        complete(CardContext {
            public_url: &public_url,
            who,
            is_default: default.is_some_and(|default| default.id == endpoint.id),
            grpc: grpc.as_deref(),
            authenticator: &self.shared.authenticator,
            key: self.shared.settings.card_key.as_deref(),
            now: self.shared.clock.now(),
        })
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

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.shared.ids
    }

    pub(crate) fn watches(&self) -> &Arc<Semaphore> {
        &self.shared.watches
    }

    pub(crate) fn leaving(&self) -> &CancellationToken {
        &self.shared.leaving
    }

    /// Whether a stream may begin: none does in a server that is about to end it.
    pub(crate) fn check_stream(&self, kind: OperationKind) -> Result<(), A2aError> {
        if !(kind.streams() && self.shared.leaving.is_cancelled()) {
            return Ok(());
        }
        let message = "the server is stopping, try again";
        Err(A2aError::new(ErrorKind::Unavailable, message))
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

/// An error outside of the bindings, in the form of HTTP+JSON.
fn plain(failure: Failure, visit: &Visit<'_>) -> Reply {
    failure.rest(&ErrorForm::plain(&visit.parts.headers))
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
