//! The engine: what all tasks of a process share.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use nuncio_protocol::{A2aError, AgentId, Clock, ErrorKind, Ids, SpanSink, Timestamp};
use nuncio_store::{Claim, Lease, Store, StoreError};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cell::Hub;
use crate::delivery::Outbound;
use crate::draft::Drafts;
use crate::sealing::Sealer;
use crate::{Agent, HostedAgent, Settings};

/// What the engine takes from its surroundings.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Fresh identifiers.
    pub ids: Arc<dyn Ids>,
    /// Authenticates page tokens and seals the secrets of webhooks; the same on every replica and
    /// after a restart.
    pub token_key: [u8; 32],
}

/// The agents of an engine, by their names; does not keep the engine alive.
#[derive(Clone, Debug)]
pub struct Directory(Weak<Core>);

impl Directory {
    /// The agent that has a name at the moment.
    pub fn agent(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
        self.0.upgrade()?.agents.read().get(id).cloned()
    }
}

/// Runs agents and keeps their tasks.
///
/// Cheap to clone; all clones are one engine. Runs are spawned on the runtime of whoever sends.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) environment: Environment,
    pub(crate) settings: Settings,
    pub(crate) hub: Arc<Hub>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) agents: RwLock<HashMap<AgentId, Arc<dyn Agent>>>,
    /// The way to webhooks, if somebody delivers to them.
    pub(crate) outbound: OnceLock<Arc<Outbound>>,
    /// Where spans go, if somebody wants them.
    pub(crate) spans: OnceLock<Arc<dyn SpanSink>>,
    /// Seals the secrets of webhooks.
    pub(crate) sealer: Sealer,
    /// Names this start of this process in leases.
    pub(crate) owner: Arc<str>,
    /// Whether other processes may write to the store.
    pub(crate) shared: bool,
    /// Runs that have lost their task to another process.
    pub(crate) fenced: AtomicU64,
    draining: AtomicBool,
    /// Streams end.
    pub(crate) closing: CancellationToken,
    /// Runs stop where they are, to be recovered later.
    pub(crate) stopping: CancellationToken,
    pub(crate) runs: TaskTracker,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("owner", &self.owner)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine on a store.
    pub fn new(store: Arc<dyn Store>, environment: Environment, settings: Settings) -> Self {
        let owner = environment.ids.next().into();
        let sealer = Sealer::new(&environment.token_key);
        let hub = Hub::new(settings.ring_events);
        let core = Core {
            shared: store.changes().is_some(),
            fenced: AtomicU64::new(0),
            store,
            environment,
            settings,
            hub,
            drafts: Arc::default(),
            agents: RwLock::default(),
            outbound: OnceLock::new(),
            spans: OnceLock::new(),
            sealer,
            owner,
            draining: AtomicBool::new(false),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
            runs: TaskTracker::new(),
        };
        Self {
            core: Arc::new(core),
        }
    }

    /// Puts an agent on; the service answers for its tasks. An agent of the same id is replaced.
    pub fn host(&self, agent: Arc<dyn Agent>) -> Arc<HostedAgent> {
        let id = agent.info().id.clone();
        self.core.agents.write().insert(id, Arc::clone(&agent));
        Arc::new(HostedAgent {
            core: Arc::clone(&self.core),
            agent,
        })
    }

    /// The agent of this name, if it is on.
    pub fn hosted(&self, id: &AgentId) -> Option<Arc<HostedAgent>> {
        let agent = self.core.agents.read().get(id).cloned()?;
        Some(Arc::new(HostedAgent {
            core: Arc::clone(&self.core),
            agent,
        }))
    }

    /// Tells of every step of a run that has ended, and of every call of a webhook; once, before the
    /// first run.
    #[must_use]
    pub fn with_spans(self, sink: Arc<dyn SpanSink>) -> Self {
        let _ = self.core.spans.set(sink);
        self
    }

    /// Where agents find others.
    pub fn directory(&self) -> Directory {
        Directory(Arc::downgrade(&self.core))
    }

    /// Forgets an agent: nothing is handed to it any more, and its runs are not taken up again.
    /// Those under way go on.
    pub fn dismiss(&self, id: &AgentId) {
        self.core.agents.write().remove(id);
    }

    /// Takes up runs that an earlier process left: resumes what can be, ends the rest as FAILED.
    /// On a store that other processes share, only those whose lease is over.
    ///
    /// To be called once all agents are hosted; requests may be served meanwhile. Whoever asks for
    /// such a task before it is taken up sees it as it was left, and then what becomes of it.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or written.
    pub async fn recover(&self) -> Result<usize, StoreError> {
        let claim = if self.core.shared {
            self.core.expired()
        } else {
            Claim::AllOthers
        };
        self.core.recover(claim).await
    }

    /// Until `shutdown` fires: renews leases, takes up expired runs, and follows what other
    /// processes write to the same store.
    pub async fn maintain(&self, shutdown: CancellationToken) {
        tokio::join!(self.hold(&shutdown), self.core.follow_others(&shutdown));
    }

    async fn hold(&self, shutdown: &CancellationToken) {
        let period = self.core.settings.lease / 3;
        let mut strays = HashSet::new();
        let mut ticks = tokio::time::interval(period.max(Duration::from_millis(10)));
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if let Err(error) = self.core.store.renew(self.core.lease()).await {
                tracing::warn!(%error, "leases are not renewed");
                continue;
            }
            if let Err(error) = self.core.recover(self.core.expired()).await {
                tracing::warn!(%error, "expired runs are not taken up");
            }
            if let Err(error) = self.core.let_strays_go(&mut strays).await {
                tracing::warn!(%error, "runs that nobody began are not looked for");
            }
        }
    }

    /// Whether new work is taken and the store answers.
    ///
    /// # Errors
    /// The store's error; [`StoreError::Closed`] while draining.
    pub async fn ready(&self) -> Result<(), StoreError> {
        if self.core.is_draining() {
            return Err(StoreError::Closed);
        }
        self.core.store.ping().await
    }

    /// Takes no new work from now on; reading goes on.
    pub fn start_draining(&self) {
        self.core.draining.store(true, Ordering::Release);
    }

    /// Ends everything: [`Engine::stop_runs`], then closes the store.
    ///
    /// # Errors
    /// [`StoreError`] if the leases cannot be given up.
    pub async fn drain(&self, limit: Duration) -> Result<(), StoreError> {
        self.stop_runs(limit).await?;
        self.core.store.close().await
    }

    /// Takes no new work and gives runs `limit` to finish; what then still runs is left for another
    /// process to take up, and streams end so that their clients come back.
    ///
    /// # Errors
    /// [`StoreError`] if the leases cannot be given up.
    pub async fn stop_runs(&self, limit: Duration) -> Result<(), StoreError> {
        self.start_draining();
        self.core.runs.close();
        if tokio::time::timeout(limit, self.core.runs.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                runs = self.core.runs.len(),
                "runs are cut off and will be taken up again"
            );
            self.core.stopping.cancel();
            self.core.runs.wait().await;
        }
        self.core.closing.cancel();
        self.core.store.release_all(&self.core.owner).await
    }

    /// How many runs have found that another process has taken their task over, since the start.
    ///
    /// Each of them has been stopped, and nothing that it tried to write since was written.
    pub fn fenced_runs(&self) -> u64 {
        self.core.fenced.load(Ordering::Relaxed)
    }

    /// How many runs there are at the moment.
    pub fn running(&self) -> usize {
        self.core.runs.len()
    }
}

impl Core {
    pub(crate) fn now(&self) -> Timestamp {
        self.environment.clock.now()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// A lease of this process from now on.
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            owner: Arc::clone(&self.owner),
            term: self.settings.lease,
        }
    }
}

/// What the caller learns of a fault of the store; the rest goes to the log.
pub(crate) fn store_error(error: &StoreError) -> A2aError {
    tracing::error!(%error, "the store failed");
    match error {
        StoreError::Unavailable(_) | StoreError::Closed => A2aError::new(
            ErrorKind::Unavailable,
            "the store is unavailable, try again later",
        ),
        _ => A2aError::internal(),
    }
}
