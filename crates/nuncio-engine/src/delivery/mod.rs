//! Delivering events to webhooks: at least once, in order per webhook, off the path of the events.
//!
//! The log of a task with a cursor per webhook is the outbox. Commits of tasks that have webhooks
//! are noted ([`Wakes`]), and the [`Deliverer`] looks what is due; what an earlier process has left
//! is found in the store. A webhook has one call at a time, and the next event waits until the
//! last one is taken or given up. The cursor moves after the answer and never before. How the calls
//! have gone is kept with the webhook, so that schedule and 72 hours outlive the process; with
//! several processes at one store, one at a time delivers to a webhook ([`claim`]).

mod backoff;
mod call;
mod claim;
mod record;
mod reseal;
mod schedule;
mod settle;
mod signing;
mod test_call;
mod trace;
mod turn;
mod wakes;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use nuncio_egress::Egress;
use nuncio_protocol::TaskId;
use nuncio_store::PushConfigRow;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use call::credentials;
pub use signing::WebhookSigning;
pub use test_call::TestCall;
pub(crate) use wakes::{TaskKey, Wakes, WebhookKey};

use crate::Engine;
use crate::engine::Core;
use call::Health;
use record::Recorder;
use schedule::{Schedule, Turn};
use turn::{TurnEnd, host_of};

/// How webhooks are called; every limit has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeliverySettings {
    /// How long one call may take, from the start to the end of the answer; 15 seconds.
    pub call_timeout: Duration,
    /// The waits between the calls for one event, the last one for all further calls; from 5
    /// seconds to 20 hours. Each is up to a fifth shorter or longer.
    pub retry_delays: Vec<Duration>,
    /// How long an event is tried before it is given up; 72 hours.
    ///
    /// Counted from the first failure, over restarts; what is given up is a dead letter.
    pub give_up_after: Duration,
    /// How long a webhook may take nothing at all before it is disabled; 5 days.
    pub disable_after: Duration,
    /// Calls going on at once; 64.
    pub max_calls: usize,
    /// Calls going on at once to one host and port; 8.
    pub max_calls_per_host: usize,
    /// Calls to a host that fail in a row, whoever they are for, before it gets one at a time; 5.
    pub break_after: u32,
    /// How long calls stay in the log; 7 days.
    pub keep_calls_for: Duration,
    /// How many calls of one webhook stay in the log; 1,000.
    pub keep_calls: usize,
    /// With what calls are signed; nothing.
    pub signing: WebhookSigning,
    /// How long calls going on may take to end when the delivery stops; 2 seconds.
    ///
    /// What is cut off is delivered again by the next process.
    pub stop_grace: Duration,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        const DELAYS: [u64; 9] = [
            5,
            30,
            5 * 60,
            30 * 60,
            2 * 3_600,
            5 * 3_600,
            10 * 3_600,
            14 * 3_600,
            20 * 3_600,
        ];
        Self {
            call_timeout: Duration::from_secs(15),
            retry_delays: DELAYS.map(Duration::from_secs).into(),
            give_up_after: Duration::from_secs(72 * 3_600),
            disable_after: Duration::from_secs(5 * 86_400),
            max_calls: 64,
            max_calls_per_host: 8,
            break_after: 5,
            keep_calls_for: Duration::from_secs(7 * 86_400),
            keep_calls: 1_000,
            signing: WebhookSigning::default(),
            stop_grace: Duration::from_secs(2),
        }
    }
}

/// Tasks whose webhooks are looked up at the same time.
const LOOK_UPS: usize = 16;

/// Tasks of the backlog read at a time.
const PAGE: usize = 200;

/// Webhooks in line at most; the others stay in the backlog until there is room.
const MAX_LINES: usize = 50_000;

/// How long to leave a store alone that does not answer.
const STORE_PAUSE: Duration = Duration::from_secs(2);

/// Calls webhooks, while [`run`](Self::run) goes on.
#[derive(Debug)]
pub struct Deliverer {
    courier: Arc<Courier>,
}

/// What every delivery needs.
#[derive(Debug)]
pub(crate) struct Courier {
    core: Arc<Core>,
    outbound: Arc<Outbound>,
    recorder: Recorder,
}

/// The way to webhooks.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) egress: Egress,
    pub(crate) settings: DeliverySettings,
}

/// What a spawned piece of work came to.
enum Finished {
    Turn(Box<Turn>, TurnEnd),
    Found(Vec<(WebhookKey, Arc<str>)>, bool),
    Backlog(Vec<TaskKey>),
}

/// How far the backlog has been read.
enum Backlog {
    After(Option<TaskId>),
    Reading,
    Read,
}

impl Engine {
    /// Turns webhooks on: from now on they may be registered with agents that
    /// [offer it](crate::AgentInfo::push_notifications), and what is returned calls them.
    ///
    /// `egress` decides which addresses may be called. To be called once per engine.
    pub fn deliverer(&self, egress: Egress, settings: DeliverySettings) -> Deliverer {
        let outbound = Arc::new(Outbound { egress, settings });
        let _ = self.core.outbound.set(Arc::clone(&outbound));
        let courier = Courier {
            core: Arc::clone(&self.core),
            outbound,
            recorder: Recorder::default(),
        };
        Deliverer {
            courier: Arc::new(courier),
        }
    }
}

impl Deliverer {
    /// Delivers until `shutdown` fires; begins with what an earlier process has left.
    ///
    /// Needs the store until it returns. Dropping it is safe: what was under way is then delivered
    /// again by the next process.
    pub async fn run(self, shutdown: CancellationToken) {
        let wakes = Arc::clone(&self.courier.core.hub.wakes);
        wakes.listen(true);
        let settings = &self.courier.outbound.settings;
        let (per_host, break_after) = (settings.max_calls_per_host, settings.break_after);
        let delivery = Delivery {
            schedule: Schedule::new(settings.max_calls, per_host, break_after),
            courier: Arc::clone(&self.courier),
            work: JoinSet::new(),
            look_ups: 0,
            backlog: Backlog::After(None),
            look_again: None,
            stopping: CancellationToken::new(),
        };
        let ended = CancellationToken::new();
        let delivered = async {
            delivery.run(&shutdown).await;
            wakes.listen(false);
            ended.cancel();
        };
        let sealed = async {
            tokio::select! {
                () = ended.cancelled() => {}
                () = self.courier.seal_plain_secrets() => {}
            }
        };
        tokio::join!(delivered, sealed, self.courier.keep_records(&ended));
    }
}

struct Delivery {
    courier: Arc<Courier>,
    schedule: Schedule,
    work: JoinSet<Finished>,
    look_ups: usize,
    backlog: Backlog,
    /// When to look for what other processes have left, if there may be others.
    look_again: Option<Instant>,
    stopping: CancellationToken,
}

impl Delivery {
    async fn run(mut self, shutdown: &CancellationToken) {
        let wakes = Arc::clone(&self.courier.core.hub.wakes);
        loop {
            self.begin_work();
            let timers = [self.schedule.next_timer(), self.look_again];
            let timer = timers.into_iter().flatten().min();
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = wakes.noted.notified() => {}
                Some(finished) = self.work.join_next() => match finished {
                    Ok(finished) => self.take_in(finished),
                    Err(error) => tracing::error!(%error, "delivering to webhooks failed"),
                },
                () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
                    self.ring();
                }
            }
        }
        self.stop().await;
    }

    /// Takes up what has waited long enough.
    fn ring(&mut self) {
        let now = Instant::now();
        self.schedule.ring(now);
        if self.look_again.is_some_and(|at| at <= now) {
            self.look_again = None;
            self.backlog = Backlog::After(None);
        }
    }

    /// Begins whatever may begin.
    fn begin_work(&mut self) {
        let wakes = Arc::clone(&self.courier.core.hub.wakes);
        // The store knows it all; it is asked again when there is room.
        let overflows = self.schedule.len() >= MAX_LINES && wakes.forget();
        if wakes.is_to_look_again() || overflows {
            self.backlog = Backlog::After(None);
        }
        while self.look_ups < LOOK_UPS
            && let Some((task, changed)) = wakes.take()
        {
            self.look_up(task, changed);
        }
        if self.look_ups < LOOK_UPS && self.schedule.len() < MAX_LINES / 2 {
            self.read_backlog();
        }
        while let Some(turn) = self.schedule.next() {
            self.take_turn(turn);
        }
    }

    fn look_up(&mut self, task: TaskKey, changed: bool) {
        self.look_ups += 1;
        let courier = Arc::clone(&self.courier);
        self.work.spawn(async move {
            let rows = courier.webhooks(&task).await;
            let found = rows.into_iter().filter_map(|row| {
                let host = host_of(&row.webhook);
                Some(((task.clone(), row.webhook.config.id?), host))
            });
            Finished::Found(found.collect(), changed)
        });
    }

    fn read_backlog(&mut self) {
        let Backlog::After(after) = &mut self.backlog else {
            return;
        };
        let after = after.take();
        self.backlog = Backlog::Reading;
        self.look_ups += 1;
        let courier = Arc::clone(&self.courier);
        self.work
            .spawn(async move { Finished::Backlog(courier.backlog(after.as_ref()).await) });
    }

    fn take_turn(&mut self, mut turn: Turn) {
        let (courier, stopping) = (Arc::clone(&self.courier), self.stopping.clone());
        self.work.spawn(async move {
            let wakes = &courier.core.hub.wakes;
            wakes.begin(&turn.key);
            let taken = courier.turn(&turn.key, &turn.host, &mut turn.progress, &stopping);
            let end = AssertUnwindSafe(taken).catch_unwind().await;
            wakes.end(&turn.key);
            let (end, health) = end.unwrap_or_else(|_panic| {
                tracing::error!(task.id = %turn.key.0.1, webhook.id = %turn.key.1, "a delivery panicked");
                (TurnEnd::after(Duration::from_secs(60)), Health::Unknown)
            });
            turn.health = health;
            Finished::Turn(Box::new(turn), end)
        });
    }

    fn take_in(&mut self, finished: Finished) {
        match finished {
            Finished::Turn(turn, end) => self.schedule.finish(*turn, end),
            Finished::Found(found, changed) => {
                self.look_ups -= 1;
                for (webhook, host) in found {
                    self.schedule.add(webhook, host, changed);
                }
            }
            Finished::Backlog(tasks) => {
                self.look_ups -= 1;
                // Else it has been asked for anew meanwhile.
                if let Backlog::Reading = self.backlog {
                    self.backlog = match tasks.last() {
                        Some((_, last)) if tasks.len() == PAGE => {
                            Backlog::After(Some(last.clone()))
                        }
                        _ => Backlog::Read,
                    };
                    if let Backlog::Read = self.backlog
                        && self.courier.core.shared
                    {
                        self.look_again = Some(Instant::now() + self.courier.claim_term());
                    }
                }
                for (scope, task) in tasks {
                    self.courier.core.hub.wakes.wake(&scope, &task);
                }
            }
        }
    }

    /// Lets calls going on come to their end, for a while.
    async fn stop(mut self) {
        self.stopping.cancel();
        let grace = self.courier.outbound.settings.stop_grace;
        let ended = async { while self.work.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::info!("calls of webhooks are cut off and will be made again");
        }
        self.work.shutdown().await;
        self.courier.give_up_all().await;
    }
}

impl Courier {
    /// The webhooks of a task that have not had all its events, once the store tells.
    async fn webhooks(&self, (scope, task): &TaskKey) -> Vec<PushConfigRow> {
        loop {
            match self.core.store.push_configs(scope, task).await {
                Ok(rows) => return rows.unwrap_or_default(),
                Err(error) => self.wait_for_store(&error).await,
            }
        }
    }

    async fn backlog(&self, after: Option<&TaskId>) -> Vec<TaskKey> {
        loop {
            match self.core.store.push_backlog(after, PAGE).await {
                Ok(tasks) => return tasks,
                Err(error) => self.wait_for_store(&error).await,
            }
        }
    }

    async fn wait_for_store(&self, error: &nuncio_store::StoreError) {
        tracing::warn!(%error, "webhooks wait for the store");
        sleep(STORE_PAUSE).await;
    }
}
