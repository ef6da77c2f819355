//! A webhook's turn: what it has not had yet, one by one, until something fails.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::dialect::{self, JsonRpcDialect};
use nuncio_protocol::{Event, StreamResponse, Task};
use nuncio_store::{
    CallRecord, DeadLetter, DeliveryState, LetterChange, Settlement, StoreError, Webhook, WebhookId,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::Streak;
use super::call::{Asked, Called, Health, call};
use super::claim::{Claim, HELD};
use super::trace::TaskTrace;
use super::{Courier, WebhookKey};

/// Calls in one turn; then others have theirs.
const CALLS: usize = 16;

/// Events read at a time.
const FETCH: usize = 64;

/// How long to leave a store alone that does not answer.
const STORE_PAUSE: Duration = Duration::from_secs(2);

/// What is known of a webhook between its turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The newest position that is done with, whether the store has taken it yet or not.
    pub(super) done: u64,
    pub(super) streak: Streak,
    /// What the store knows of the streak.
    pub(super) noted: DeliveryState,
}

/// How a turn ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// There is nothing more to deliver, or the webhook is gone or disabled.
    Idle,
    /// There is more.
    More,
    /// The webhook is at this host, not at the one it was taken to be.
    Elsewhere(Arc<str>),
    /// The next call is for this time.
    Later(Instant),
}

impl TurnEnd {
    /// The next call is for after this time.
    pub(super) fn after(wait: Duration) -> Self {
        Self::Later(Instant::now() + wait)
    }
}

/// Whether a turn goes on.
pub(super) type Step = ControlFlow<TurnEnd>;

/// What is next.
#[derive(Debug)]
pub(super) struct Due {
    /// `None` if there is nothing to tell up to `upto`.
    pub(super) event: Option<Event>,
    /// The first position that it stands for.
    pub(super) first: u64,
    /// The position that is done with once it has been told.
    pub(super) upto: u64,
    /// The dead letter that it is, if it is delivered again.
    pub(super) letter: Option<DeadLetter>,
}

/// A task as of a position.
type AsOf = (Arc<Task>, u64);

/// A turn while it goes on.
pub(super) struct Delivering<'a> {
    pub(super) courier: &'a Courier,
    pub(super) key: &'a WebhookKey,
    pub(super) id: WebhookId,
    pub(super) host: &'a str,
    pub(super) progress: &'a mut Progress,
    pub(super) health: Health,
    pub(super) claim: Claim,
    stopping: &'a CancellationToken,
    /// The webhook, and whether its secrets could be opened; `None` if it has to be read.
    webhook: Option<(Webhook, bool)>,
    /// The webhook as it is stored, where other processes may change it.
    stored: Option<Webhook>,
    letters: VecDeque<DeadLetter>,
    /// Whether there are more letters than have been read.
    more_letters: bool,
    queue: VecDeque<Event>,
    task: Option<AsOf>,
    /// The trace that the task belongs to.
    trace: Option<TaskTrace>,
}

impl Courier {
    /// Delivers to one webhook, which nobody else in this process does at the same time.
    pub(super) async fn turn(
        &self,
        key: &WebhookKey,
        host: &str,
        progress: &mut Progress,
        stopping: &CancellationToken,
    ) -> (TurnEnd, Health) {
        let id = WebhookId {
            task: key.0.1.clone(),
            config: key.1.clone(),
        };
        match self.is_due(&id).await {
            Ok(true) => {}
            Ok(false) => return (TurnEnd::Idle, Health::Unknown),
            Err(error) => return (waits_for_store(key, &error), Health::Unknown),
        }
        let claim = match self.claim(&id).await {
            Ok(Some(claim)) => claim,
            Ok(None) => return (TurnEnd::after(HELD), Health::Unknown),
            Err(error) => return (waits_for_store(key, &error), Health::Unknown),
        };
        let mut delivering = Delivering {
            courier: self,
            key,
            id,
            host,
            progress,
            health: Health::Unknown,
            claim,
            stopping,
            webhook: None,
            stored: None,
            letters: VecDeque::new(),
            more_letters: false,
            queue: VecDeque::new(),
            task: None,
            trace: None,
        };
        let end = match delivering.run().await {
            Ok(end) => end,
            Err(error) => waits_for_store(key, &error),
        };
        let Delivering {
            id, claim, health, ..
        } = delivering;
        self.give_up(&id, claim).await;
        (end, health)
    }
}

fn waits_for_store(key: &WebhookKey, error: &StoreError) -> TurnEnd {
    tracing::warn!(task.id = %key.0.1, webhook.id = %key.1, %error, "a webhook waits for the store");
    TurnEnd::after(STORE_PAUSE)
}

impl Delivering<'_> {
    async fn run(&mut self) -> Result<TurnEnd, StoreError> {
        for _ in 0..CALLS {
            if let ControlFlow::Break(end) = self.step().await? {
                return Ok(end);
            }
        }
        Ok(TurnEnd::More)
    }

    /// Tells one thing, or finds that there is nothing to tell.
    async fn step(&mut self) -> Result<Step, StoreError> {
        if self.courier.core.hub.wakes.has_changed(self.key) {
            self.forget();
        }
        if self.webhook.is_none()
            && let ControlFlow::Break(end) = self.read().await?
        {
            return Ok(Step::Break(end));
        }
        let Some((webhook, opened)) = self.webhook.take() else {
            return Ok(Step::Continue(()));
        };
        let dialect = dialect::json_rpc(webhook.version);
        let Some((due, as_of)) = self.next_due(dialect).await? else {
            return Ok(Step::Break(TurnEnd::Idle));
        };
        let Some(event) = &due.event else {
            self.skip(due).await?;
            (self.webhook, self.task) = (Some((webhook, opened)), Some(as_of));
            return Ok(Step::Continue(()));
        };
        if self.stopping.is_cancelled() {
            return Ok(Step::Break(TurnEnd::More));
        }
        if !self.courier.prolong(&self.id, &mut self.claim).await? {
            return Ok(Step::Break(TurnEnd::after(HELD)));
        }
        // What was read may be out of date by now; nothing is awaited from here to the call.
        if self.has_changed_elsewhere().await? || self.courier.core.hub.wakes.has_changed(self.key)
        {
            self.forget();
            return Ok(Step::Continue(()));
        }
        let called = if opened {
            self.call(&webhook, dialect, event, &due, &as_of.0).await
        } else {
            Called::not_made(self.courier.core.now())
        };
        if called.health != Health::Unknown {
            self.health = called.health;
        }
        let last = as_of.1;
        (self.webhook, self.task) = (Some((webhook, opened)), Some(as_of));
        self.settle(due, called, last).await
    }

    /// Whether another process has replaced, deleted or disabled the webhook since it was read
    /// (OP-PDEL-02).
    async fn has_changed_elsewhere(&self) -> Result<bool, StoreError> {
        let Some(known) = &self.stored else {
            return Ok(false);
        };
        let now = self.courier.core.store.delivery(&self.id).await?;
        Ok(now.is_none_or(|now| now.state.disabled.is_some() || now.webhook != *known))
    }

    /// Forgets what has been read.
    fn forget(&mut self) {
        self.webhook = None;
        self.letters.clear();
        self.queue.clear();
    }

    /// Reads the webhook and how its delivery stands.
    async fn read(&mut self) -> Result<Step, StoreError> {
        let core = &self.courier.core;
        let Some(delivery) = core.store.delivery(&self.id).await? else {
            return Ok(Step::Break(TurnEnd::Idle));
        };
        if delivery.state.disabled.is_some() {
            return Ok(Step::Break(TurnEnd::Idle));
        }
        self.progress.done = self.progress.done.max(delivery.cursor);
        if delivery.state != self.progress.noted {
            // Another process has called, or the webhook begins anew.
            let settings = &self.courier.outbound.settings;
            let (streak, wait) = Streak::resumed(&delivery.state, core.now(), settings);
            self.progress.streak = streak;
            self.progress.noted = delivery.state;
            if !wait.is_zero() {
                return Ok(Step::Break(TurnEnd::after(wait)));
            }
        }
        if self.trace.is_none() {
            let (scope, task) = &self.key.0;
            self.trace = Some(core.task_trace(scope, task).await?);
        }
        let mut webhook = delivery.webhook;
        self.stored = self.claim.owner().map(|_| webhook.clone());
        let at = host_of(&webhook);
        if *at != *self.host {
            return Ok(Step::Break(TurnEnd::Elsewhere(at)));
        }
        self.more_letters = delivery.requested > 0;
        let opened = core.sealer.open(&self.key.0.0, &mut webhook.config);
        if let Err(error) = &opened {
            let ((_, task), id) = self.key;
            tracing::error!(task.id = %task, webhook.id = %id, %error, "a webhook cannot be called");
        }
        self.webhook = Some((webhook, opened.is_ok()));
        Ok(Step::Continue(()))
    }

    /// What is next, with the task at hand; dead letters go first, since they are older.
    async fn next_due(
        &mut self,
        dialect: &dyn JsonRpcDialect,
    ) -> Result<Option<(Due, AsOf)>, StoreError> {
        if self.letters.is_empty() && self.more_letters {
            let store = &self.courier.core.store;
            self.letters = store.dead_letters(&self.id, true, FETCH).await?.into();
            self.more_letters = self.letters.len() == FETCH;
        }
        if let Some(letter) = self.letters.pop_front() {
            return self.due_letter(letter).await;
        }
        if self.queue.is_empty() {
            self.queue = self.events(self.progress.done, FETCH).await?;
        }
        let Some(newest) = self.queue.back().and_then(|event| event.position) else {
            return Ok(None);
        };
        let whole = dialect.notifies_of_whole_tasks();
        let as_of = match self.task.take() {
            Some(as_of) if as_of.1 >= newest && !whole => as_of,
            _ => match self.load_task(newest).await? {
                Some(as_of) => as_of,
                None => return Ok(None),
            },
        };
        let first = self.progress.done + 1;
        let due = due(&mut self.queue, first, whole, as_of.1);
        Ok(Some((due, as_of)))
    }

    async fn due_letter(&mut self, letter: DeadLetter) -> Result<Option<(Due, AsOf)>, StoreError> {
        let position = letter.position;
        let event = self
            .events(position.saturating_sub(1), 1)
            .await?
            .pop_front();
        let Some(as_of) = self.load_task(position).await? else {
            return Ok(None);
        };
        let due = Due {
            // If it is not there any more, the letter goes too.
            event: event.filter(|event| event.position == Some(position)),
            first: position,
            upto: position,
            letter: Some(letter),
        };
        Ok(Some((due, as_of)))
    }

    async fn events(&self, done: u64, limit: usize) -> Result<VecDeque<Event>, StoreError> {
        let ((scope, task), _) = self.key;
        let store = &self.courier.core.store;
        Ok(store.events(scope, task, done, limit).await?.into())
    }

    /// The task with at least the event at a position.
    async fn load_task(&self, position: u64) -> Result<Option<AsOf>, StoreError> {
        let ((scope, task), _) = self.key;
        let core = &self.courier.core;
        let live = core.hub.live(scope, task).map(|cell| cell.snapshot());
        if let Some(as_of) = live.filter(|(_, last)| *last >= position) {
            return Ok(Some(as_of));
        }
        let stored = core.store.load(scope, task).await?;
        Ok(stored.map(|stored| (stored.task, stored.head.last)))
    }

    async fn call(
        &self,
        webhook: &Webhook,
        dialect: &dyn JsonRpcDialect,
        event: &Event,
        due: &Due,
        task: &Task,
    ) -> Called {
        let notification = dialect.encode_notification(event, task);
        let message_id = format!("{}.{}", task.id, due.upto);
        let attempt = match &due.letter {
            Some(letter) => letter.attempts.saturating_add(1),
            None => self.progress.streak.next_attempt(),
        };
        let (outbound, core) = (&self.courier.outbound, &self.courier.core);
        let trace = self.trace.unwrap_or_else(|| TaskTrace::own(&task.id));
        let span = core.push_span(&trace, task, &self.id.config);
        let clock = core.environment.clock.as_ref();
        let asked = Asked {
            message_id: &message_id,
            trace: span.context,
            notification,
        };
        let called = call(outbound, clock, webhook, asked).await;
        core.end_push_span(span, attempt, &called);
        self.courier.recorder.note(CallRecord {
            webhook: self.id.clone(),
            first: due.first,
            last: due.upto,
            message_id,
            attempt,
            at: called.at,
            took: called.took,
            outcome: called.outcome,
        });
        called
    }

    /// Notes that there was nothing to tell.
    async fn skip(&mut self, due: Due) -> Result<(), StoreError> {
        let letter = match due.letter {
            Some(letter) => LetterChange::Remove(letter.position),
            None => {
                self.progress.done = self.progress.done.max(due.upto);
                LetterChange::Keep
            }
        };
        let state = self.progress.noted.clone();
        self.note(state, letter).await.map(|_held| ())
    }

    /// Writes down how the delivery stands; `false` if another process has the webhook now.
    pub(super) async fn note(
        &mut self,
        state: DeliveryState,
        letter: LetterChange,
    ) -> Result<bool, StoreError> {
        let store = &self.courier.core.store;
        let done = self.progress.done;
        let unchanged = state == self.progress.noted && letter == LetterChange::Keep;
        if unchanged && self.claim.owner().is_none() {
            store
                .advance_push_cursor(&self.id.task, &self.id.config, done)
                .await?;
            return Ok(true);
        }
        let settlement = Settlement {
            webhook: self.id.clone(),
            owner: self.claim.owner(),
            cursor: done,
            state: state.clone(),
            letter,
        };
        let held = store.settle_delivery(settlement).await?;
        if held {
            self.progress.noted = state;
        }
        Ok(held)
    }
}

/// Takes what is next out of the queue, `last` being the position of the task at hand.
///
/// Messages of the user are part of the log, not of what is told. Where whole tasks are told, the
/// newest event stands for all.
fn due(queue: &mut VecDeque<Event>, first: u64, whole: bool, last: u64) -> Due {
    let (mut event, mut upto) = (None, 0);
    while let Some(next) = queue.pop_front() {
        upto = next.position.unwrap_or(upto);
        if matches!(next.response(), StreamResponse::Message(_)) {
            continue;
        }
        event = Some(next);
        if !whole {
            break;
        }
    }
    if whole && event.is_some() {
        upto = upto.max(last);
    }
    let first = if whole { first } else { upto };
    Due {
        event,
        first,
        upto,
        letter: None,
    }
}

/// The host and port of a webhook, as far as its URL has one.
pub(super) fn host_of(webhook: &Webhook) -> Arc<str> {
    let url = url::Url::parse(&webhook.config.url);
    url.map_or_else(
        |_| Arc::from(""),
        |url| Arc::from(&url[url::Position::BeforeHost..url::Position::AfterPort]),
    )
}
