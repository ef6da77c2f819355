//! Name resolution, judged before anything is dialled.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ipnet::IpNet;

use crate::{Refusal, address};

/// The addresses of a name, some time later.
pub type Resolving = BoxFuture<'static, io::Result<Vec<IpAddr>>>;

/// Turns a host name into addresses. The system's resolver, or one of a test.
pub trait Resolve: Send + Sync + std::fmt::Debug {
    /// Every address of the name.
    fn resolve(&self, host: &str) -> Resolving;
}

/// The resolver of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Resolves a name and judges every answer: one bad address refuses the whole name.
#[derive(Debug, Clone)]
pub(crate) struct GuardedResolver {
    pub(crate) inner: Arc<dyn Resolve>,
    /// `None` judges nothing: for the proxy's own name, which the operator has chosen.
    pub(crate) allow: Option<Arc<[IpNet]>>,
}

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("no address")]
    NotFound,
}

impl GuardedResolver {
    pub(crate) async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let found = self.inner.resolve(host).await;
        let found = found.map_err(|_| ResolveError::NotFound)?;
        if found.is_empty() {
            return Err(ResolveError::NotFound);
        }
        if let Some(allow) = &self.allow {
            for address in &found {
                address::judge(*address, allow).map_err(|rule| Refusal { rule })?;
            }
        }
        Ok(found)
    }
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let this = self.clone();
        Box::pin(async move {
            let found = this.addresses(name.as_str()).await?;
            let dialled = found.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(dialled) as reqwest::dns::Addrs)
        })
    }
}
