//! The door itself.

use std::error::Error;
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::resolve::{GuardedResolver, ResolveError};
use crate::{
    EgressError, EgressPolicy, EgressRequest, EgressResponse, Limit, Refusal, Resolve, Rule,
    SystemResolver, target, wire,
};

/// The guarded HTTP client. Cloning shares its connections.
#[derive(Debug, Clone)]
pub struct Egress {
    policy: Arc<EgressPolicy>,
    resolver: GuardedResolver,
    any: Clients,
    /// Made when first needed: few speak gRPC, and making it reads the system's certificates.
    http2: Arc<OnceLock<Result<Clients, EgressError>>>,
}

/// The clients for one way to speak HTTP.
#[derive(Debug, Clone)]
struct Clients {
    direct: reqwest::Client,
    proxied: Option<reqwest::Client>,
}

/// Which HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaking {
    /// What the server prefers; HTTP/1.1 without TLS.
    Any,
    /// HTTP/2 from the first byte.
    Http2,
}

impl Egress {
    /// A client under a policy, with the system's resolver.
    ///
    /// # Errors
    /// [`EgressError::Setup`] if TLS or a certificate of the policy cannot be used.
    pub fn new(policy: EgressPolicy) -> Result<Self, EgressError> {
        Self::with_resolver(policy, Arc::new(SystemResolver))
    }

    /// A client under a policy, with a resolver of the caller's.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_resolver(
        policy: EgressPolicy,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, EgressError> {
        install_crypto_provider();
        let resolver = GuardedResolver {
            inner: resolver,
            allow: Some(policy.allow.clone().into()),
        };
        Ok(Self {
            any: Clients::new(&policy, &resolver, Speaking::Any)?,
            http2: Arc::default(),
            policy: Arc::new(policy),
            resolver,
        })
    }

    /// A client with the same rules and resolver, but another time for connections.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_connect_timeout(&self, connect_timeout: Duration) -> Result<Self, EgressError> {
        if self.policy.connect_timeout == connect_timeout {
            return Ok(self.clone());
        }
        let policy = EgressPolicy {
            connect_timeout,
            ..EgressPolicy::clone(&self.policy)
        };
        Self::with_resolver(policy, Arc::clone(&self.resolver.inner))
    }

    /// The rules.
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }

    /// Reads a URL and judges what needs no name resolution: what is certainly bad is refused.
    ///
    /// # Errors
    /// [`Refusal`] with the rule.
    pub fn check_url(&self, url: &str) -> Result<Url, Refusal> {
        let url = Url::parse(url).map_err(|_| Refusal {
            rule: Rule::NotAUrl,
        })?;
        target::judge(&url, &self.policy)?;
        Ok(url)
    }

    /// Judges a URL and everything its name resolves to now, without connecting.
    ///
    /// Only a foretaste: [`Self::send`] judges again what it dials.
    ///
    /// # Errors
    /// [`EgressError::Refused`] or [`EgressError::Resolve`].
    pub async fn check(&self, url: &Url) -> Result<(), EgressError> {
        target::judge(url, &self.policy)?;
        let Some(name) = url.domain() else {
            return Ok(());
        };
        match self.resolver.addresses(name).await {
            Ok(_) => Ok(()),
            Err(ResolveError::Refused(refusal)) => Err(refusal.into()),
            Err(ResolveError::NotFound) => Err(EgressError::Resolve { origin: shown(url) }),
        }
    }

    /// Sends a request and gives the answer once its head is there, whatever its status.
    ///
    /// Dropping the future gives the request up; whether it arrived is then unknown.
    ///
    /// # Errors
    /// [`EgressError`]; [`EgressError::is_connect`] tells that nothing was sent.
    pub async fn send(&self, request: EgressRequest) -> Result<EgressResponse, EgressError> {
        target::judge(&request.url, &self.policy)?;
        wire::request(&request);
        let started = Instant::now();
        let limits = request.timeouts;
        let origin = shown(&request.url);
        let (client, proxy) = self.route(&request)?;
        let total = limits.total.map(|after| (started + after, after));
        let first = limits
            .first_byte
            .map(|after| (started + after, Limit::FirstByte, after));
        let whole = total.map(|(at, after)| (at, Limit::Total, after));
        let nearest = [first, whole].into_iter().flatten().min_by_key(|l| l.0);
        let answer = client.execute(request.into_reqwest());
        let answer = match within(nearest, answer).await {
            Ok(answer) => answer,
            Err((limit, after)) => {
                return Err(EgressError::Timeout {
                    origin,
                    limit,
                    after,
                });
            }
        };
        let inner = answer.map_err(|error| self.explain(&error, origin.clone(), proxy.clone()))?;
        let inner = http::Response::from(inner);
        wire::head(&inner, started.elapsed());
        Ok(EgressResponse {
            wire: wire::Body::of(inner.headers()),
            inner,
            trailers: None,
            origin,
            proxy,
            idle: limits.idle,
            total,
            max_bytes: self.policy.max_response_bytes,
        })
    }

    /// A client for a library that makes its own requests to the place of this URL, such as one for
    /// model providers.
    ///
    /// It has the policy's rules for names, certificates, proxy, redirects and the time of a
    /// connection. What [`Self::send`] does besides (literal addresses in URLs, limits of time and
    /// size) is only done here for the given URL: whoever takes the client sends to no other host.
    ///
    /// # Errors
    /// [`EgressError::Refused`] if the policy forbids the place.
    pub fn client_for(&self, base: &Url) -> Result<reqwest::Client, EgressError> {
        target::judge(base, &self.policy)?;
        let (client, _) = self.route(&EgressRequest::get(base.clone()))?;
        Ok(client.clone())
    }

    /// The client for a request, and the proxy it goes through.
    fn route(
        &self,
        request: &EgressRequest,
    ) -> Result<(&reqwest::Client, Option<String>), EgressError> {
        let clients = if request.http2_only {
            let made = self
                .http2
                .get_or_init(|| Clients::new(&self.policy, &self.resolver, Speaking::Http2));
            made.as_ref().map_err(Clone::clone)?
        } else {
            &self.any
        };
        Ok(match (&clients.proxied, &self.policy.proxy) {
            (Some(client), Some(proxy)) if !proxy.is_bypassed(&request.url) => {
                (client, Some(proxy.shown()))
            }
            _ => (&clients.direct, None),
        })
    }

    fn explain(
        &self,
        error: &reqwest::Error,
        origin: String,
        proxy: Option<String>,
    ) -> EgressError {
        if let Some(resolve) = cause::<ResolveError>(error) {
            return match resolve {
                ResolveError::Refused(refusal) => (*refusal).into(),
                ResolveError::NotFound if proxy.is_some() => EgressError::Connect {
                    origin,
                    proxy,
                    reason: "the proxy's host name cannot be resolved".to_owned(),
                },
                ResolveError::NotFound => EgressError::Resolve { origin },
            };
        }
        if error.is_connect() && error.is_timeout() {
            return EgressError::Timeout {
                origin,
                limit: Limit::Connect,
                after: self.policy.connect_timeout,
            };
        }
        let reason = innermost(error);
        if error.is_connect() {
            return EgressError::Connect {
                origin,
                proxy,
                reason,
            };
        }
        if error.is_builder() {
            return EgressError::Setup(reason);
        }
        EgressError::Broken {
            origin,
            proxy,
            reason,
        }
    }
}

impl Clients {
    fn new(
        policy: &EgressPolicy,
        guarded: &GuardedResolver,
        speaking: Speaking,
    ) -> Result<Self, EgressError> {
        let unguarded = || GuardedResolver {
            inner: Arc::clone(&guarded.inner),
            allow: None,
        };
        let proxied = policy
            .proxy
            .as_ref()
            .map(|proxy| build(policy, unguarded(), Some(&proxy.url), speaking))
            .transpose()?;
        Ok(Self {
            direct: build(policy, guarded.clone(), None, speaking)?,
            proxied,
        })
    }
}

/// A moment, the limit that is hit then, and its value.
pub(crate) type Nearest = Option<(Instant, Limit, Duration)>;

/// Waits for some work as long as the nearest limit allows.
pub(crate) async fn within<T>(
    nearest: Nearest,
    work: impl Future<Output = T>,
) -> Result<T, (Limit, Duration)> {
    match nearest {
        None => Ok(work.await),
        Some((at, limit, after)) => tokio::time::timeout_at(at, work)
            .await
            .map_err(|_| (limit, after)),
    }
}

/// Every TLS user of the process takes the same provider; one installed earlier stays.
fn install_crypto_provider() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means that somebody was first, which is as good.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
}

/// How often a connection with open calls is asked whether it is alive: servers of gRPC hang up on
/// whoever asks more often than every five minutes (GRPC-07).
const KEEP_ALIVE: Duration = Duration::from_secs(310);

fn build(
    policy: &EgressPolicy,
    resolver: GuardedResolver,
    proxy: Option<&Url>,
    speaking: Speaking,
) -> Result<reqwest::Client, EgressError> {
    let setup = |error: reqwest::Error| EgressError::Setup(innermost(&error));
    let mut builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .https_only(policy.https_only)
        .connect_timeout(policy.connect_timeout)
        .tls_danger_accept_invalid_certs(policy.accept_any_certificate)
        .user_agent(&policy.user_agent)
        .dns_resolver(Arc::new(resolver));
    if speaking == Speaking::Http2 {
        builder = builder
            .http2_prior_knowledge()
            .http2_keep_alive_interval(KEEP_ALIVE);
    }
    if let Some(url) = proxy {
        builder = builder.proxy(reqwest::Proxy::all(url.clone()).map_err(setup)?);
    }
    let mut roots = Vec::new();
    for pem in &policy.extra_roots_pem {
        roots.extend(reqwest::Certificate::from_pem_bundle(pem.as_bytes()).map_err(setup)?);
    }
    if !roots.is_empty() {
        builder = builder.tls_certs_merge(roots);
    }
    builder.build().map_err(setup)
}

/// Scheme, host and port as asked for.
fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The last cause in words: what the network said, without the URL.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}
