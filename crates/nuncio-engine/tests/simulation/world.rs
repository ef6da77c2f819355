//! Three processes, one database, and what befalls them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_engine::{Engine, Environment, HostedAgent, Settings};
use nuncio_protocol::Ids;
use nuncio_store::{MemoryStore, Store};
use nuncio_testkit::FixedClock;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::agent::Stepper;
use crate::chance::Chance;
use crate::wire::{Claimed, Claims, Way, Wire};

/// Processes at a time.
const PROCESSES: u64 = 3;

/// The agents: one that may run again after a crash, one that may not.
pub(crate) const AGENTS: [&str; 2] = ["again", "once"];

#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    database: MemoryStore,
    ids: Arc<Counted>,
    clock: Arc<FixedClock>,
    processes: Mutex<Vec<Process>>,
    claims: Claims,
    chance: Chance,
}

/// Ids that are the same in every life of a seed.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self) -> String {
        format!("id-{:05}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

struct Process {
    wire: Arc<Wire>,
    agents: Vec<Arc<HostedAgent>>,
    ended: CancellationToken,
}

impl World {
    pub(crate) fn new(chance: Chance) -> Self {
        let world = Self(Arc::new(Inner {
            database: MemoryStore::default(),
            ids: Arc::default(),
            clock: Arc::default(),
            processes: Mutex::default(),
            claims: Claims::default(),
            chance,
        }));
        let processes = (0..PROCESSES).map(|_| world.start()).collect();
        *world.0.processes.lock() = processes;
        world
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.0.chance
    }

    /// The database itself.
    pub(crate) fn database(&self) -> &dyn Store {
        &self.0.database
    }

    /// What has been taken over.
    pub(crate) fn claims(&self) -> Vec<Claimed> {
        self.0.claims.lock().clone()
    }

    /// An agent as some process serves it.
    pub(crate) fn agent(&self, which: usize) -> Arc<HostedAgent> {
        let process = self.0.chance.below(PROCESSES) as usize;
        Arc::clone(&self.0.processes.lock()[process].agents[which])
    }

    fn start(&self) -> Process {
        let inner = &self.0;
        let database = Arc::new(inner.database.replica());
        let wire = Wire::new(database, inner.chance.clone(), Arc::clone(&inner.claims));
        let environment = Environment {
            clock: Arc::clone(&inner.clock) as _,
            ids: Arc::clone(&inner.ids) as _,
            token_key: [7; 32],
        };
        let engine = Engine::new(Arc::clone(&wire) as _, environment, Settings::default());
        let host = |id: &&str| engine.host(Arc::new(Stepper::new(id, *id == "again")));
        let agents = AGENTS.iter().map(host).collect();
        let ended = CancellationToken::new();
        let (stop, engine) = (ended.clone(), engine.clone());
        tokio::spawn(async move { engine.maintain(stop).await });
        Process {
            wire,
            agents,
            ended,
        }
    }

    /// Lets things happen for a time; afterwards every process can reach the database.
    pub(crate) async fn trouble(&self, time: Duration) {
        let end = Instant::now() + time;
        let chance = &self.0.chance;
        while Instant::now() < end {
            sleep(Duration::from_millis(200 + chance.below(3_000))).await;
            let at = chance.below(PROCESSES) as usize;
            match chance.below(4) {
                0 => self.crash(at),
                1 => self.hinder(at, Way::Cut),
                2 => self.hinder(at, Way::Frozen),
                _ => self
                    .0
                    .clock
                    .advance(chance.below(7_200_000) as i64 - 3_600_000),
            }
        }
        for process in self.0.processes.lock().iter() {
            process.wire.set(Way::Open);
        }
    }

    /// Ends a process where it stands, and starts another.
    fn crash(&self, at: usize) {
        let fresh = self.start();
        let old = std::mem::replace(&mut self.0.processes.lock()[at], fresh);
        old.wire.set(Way::Gone);
        old.ended.cancel();
    }

    /// Makes the way to the database impassable for up to twice a lease.
    fn hinder(&self, at: usize, way: Way) {
        let wire = Arc::clone(&self.0.processes.lock()[at].wire);
        wire.set(way);
        let time = Duration::from_millis(self.0.chance.below(30_000));
        tokio::spawn(async move {
            sleep(time).await;
            wire.set(Way::Open);
        });
    }
}
