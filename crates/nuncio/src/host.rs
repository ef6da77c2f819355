//! Serving agents that are Rust code.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nuncio_engine::{Agent, Engine};
use nuncio_server::Server;
use toml::Value;

use crate::config::{self, Config, Sources};
use crate::configuration::refused;
use crate::outcome::Failure;
use crate::serve::{self, Begun};
use crate::surroundings::Surroundings;
use crate::{logging, signals};

/// Serves an agent at `http://127.0.0.1:8080` until Ctrl-C or SIGTERM; [`Host`] can do more.
///
/// Blocks, and must not be called from within an async runtime.
///
/// # Errors
/// [`HostError`].
pub fn serve(agent: impl Agent + 'static) -> Result<(), HostError> {
    Host::new().agent(agent).serve()
}

/// Why agents could not be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HostError(String);

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        Self(failure.in_words())
    }
}

/// A server of agents that are Rust code, with everything that `nuncio serve` has: durable tasks,
/// all versions and bindings, webhooks, limits, credentials.
///
/// It is set up as `nuncio serve` is: by `NUNCIO__…` variables and, over those, by
/// [`set`](Self::set) with the names of the configuration file. Without any, tasks are in
/// `nuncio-data/nuncio.db` and the address is `127.0.0.1:8080`; any other address needs credentials.
#[derive(Default)]
#[must_use = "a host serves nothing until it is told to"]
pub struct Host {
    agents: Vec<Arc<dyn Agent>>,
    settings: BTreeMap<&'static str, Value>,
    file: Option<std::path::PathBuf>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.agents.iter().map(|agent| &agent.info().id);
        f.debug_struct("Host")
            .field("agents", &ids.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Host {
    /// A server without agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more agent; the first is the default one.
    pub fn agent(mut self, agent: impl Agent + 'static) -> Self {
        self.agents.push(Arc::new(agent));
        self
    }

    /// Reads a configuration file too; its agents are served beside those given here.
    pub fn configuration(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Sets what the configuration file calls so, such as `server.public_url`. `nuncio config schema`
    /// prints all names.
    pub fn set(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.settings.insert(name, value.into());
        self
    }

    /// Listens here: an address and a port, 0 for a free one.
    pub fn listen(self, address: impl Into<String>) -> Self {
        self.set("server.listen", address.into())
    }

    /// Keeps tasks here: `sqlite:PATH`, `postgres://…`, or `memory:` for trying out.
    pub fn store(self, url: impl Into<String>) -> Self {
        self.set("store.url", url.into())
    }

    /// Serves until Ctrl-C or SIGTERM, as `nuncio serve` does: what runs then gets its time.
    ///
    /// Blocks, and must not be called from within an async runtime. Says on stdout where the agents
    /// are, and logs to stderr.
    ///
    /// # Errors
    /// [`HostError`] if the settings are wrong, or the address or the store cannot be had.
    pub fn serve(self) -> Result<(), HostError> {
        let (config, around) = self.loaded()?;
        logging::start(&config.log);
        Ok(serve::blocking(&config, &around, self.agents)?)
    }

    /// Makes a service for another program to mount; it listens to nothing.
    ///
    /// `public_url` is where the service will be found, path included: it stands in the cards.
    ///
    /// # Errors
    /// As [`Self::serve`].
    pub async fn mount(self, public_url: impl Into<String>) -> Result<Mounted, HostError> {
        let public_url = public_url.into();
        let host = self.set("server.public_url", public_url.as_str());
        let (config, around) = host.loaded()?;
        let begun = serve::assembled(&config, &around, &public_url, host.agents).await?;
        Ok(Mounted { begun, config })
    }

    fn loaded(&self) -> Result<(Config, Surroundings), HostError> {
        let around = Surroundings::of_process();
        let flags = self.settings.iter();
        let sources = Sources {
            file: self.file.clone(),
            environment: around.environment.clone(),
            flags: flags
                .map(|(name, value)| (*name, *name, value.clone()))
                .collect(),
            insecure: false,
        };
        let loaded = config::load(sources).map_err(refused)?;
        Ok((loaded.config, around))
    }
}

/// Agents within another program; see [`Host::mount`].
///
/// [`Self::service`] answers requests. Whoever mounts it has no listener of ours before it: the
/// limits on connections and heads are theirs.
#[must_use = "the agents are gone when this is dropped"]
pub struct Mounted {
    begun: Begun,
    config: Config,
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").finish_non_exhaustive()
    }
}

impl Mounted {
    /// A `tower` service of HTTP requests, which is cheap to clone.
    pub fn service(&self) -> Server {
        self.begun.parts.server.clone()
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.begun.parts.engine
    }

    /// Ends in order: streams close, runs get their time (`server.drain_seconds`), the rest is left
    /// to be taken up by the next start.
    ///
    /// # Errors
    /// [`HostError`] if the store cannot be closed.
    pub async fn stop(self) -> Result<(), HostError> {
        Ok(serve::dismantle(self.begun, &self.config).await?)
    }
}

/// Waits for Ctrl-C or SIGTERM, for those who [mount](Host::mount) agents.
///
/// # Errors
/// [`HostError`] if signals cannot be listened to.
pub async fn shutdown_signal() -> Result<(), HostError> {
    let signals = signals::Signals::listen();
    let mut signals = signals.map_err(|error| HostError(format!("failed to listen: {error}")))?;
    signals.next().await;
    Ok(())
}
