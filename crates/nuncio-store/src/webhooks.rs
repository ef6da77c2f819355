//! How deliveries to webhooks stand: state, claims, dead letters, log of calls.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{PushConfigId, TaskId, Timestamp};

use crate::{Scope, StoreFuture, Webhook};

/// A webhook's name: unique over all scopes, since a task's is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WebhookId {
    /// Its task.
    pub task: TaskId,
    /// Its id within the task.
    pub config: PushConfigId,
}

/// How the calls of a webhook have gone since the last one that was taken.
///
/// The default says that there is nothing to say. Durations are what a process has measured; times
/// are of the wall, for people and for the next process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryState {
    /// Calls that failed for the events that wait now.
    pub attempts: u32,
    /// How many of them were refused for good.
    pub refusals: u32,
    /// The newest position that waited when the first of them failed.
    pub upto: u64,
    /// How long they had failed at the last call.
    pub failing_for: Duration,
    /// How long nothing at all had been taken at the last call.
    pub down_for: Duration,
    /// When the first call failed since one was taken.
    pub failing_since: Option<Timestamp>,
    /// When the last call was made.
    pub last_call: Option<Timestamp>,
    /// When the next one is planned.
    pub next_call: Option<Timestamp>,
    /// Why no call is made any more; `None` if calls are made.
    pub disabled: Option<Disabled>,
}

/// Why no call of a webhook is made any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disabled {
    /// The receiver said that it is gone (410).
    Gone,
    /// Nothing was taken for days.
    Failing,
}

impl Disabled {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Gone, Self::Failing]
            .into_iter()
            .find(|reason| reason.as_str() == name)
    }
}

/// An event that was given up for a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its position in the task's log.
    pub position: u64,
    /// When it was given up.
    pub given_up: Timestamp,
    /// How many calls were made for it.
    pub attempts: u32,
    /// What the last one came to, in coarse words.
    pub cause: String,
    /// Whether it is to be delivered again.
    pub requested: bool,
}

/// A webhook and how its delivery stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Whose it is.
    pub scope: Scope,
    /// The webhook, as it is stored.
    pub webhook: Webhook,
    /// The newest position delivered or given up.
    pub cursor: u64,
    /// The newest position of the task.
    pub last: u64,
    /// How its calls have gone.
    pub state: DeliveryState,
    /// How many dead letters it has.
    pub dead: u64,
    /// How many of them are to be delivered again.
    pub requested: u64,
}

impl Delivery {
    /// The webhook's name.
    pub fn id(&self) -> WebhookId {
        let config = &self.webhook.config;
        WebhookId {
            task: config.task_id.clone().unwrap_or_default(),
            config: config.id.clone().unwrap_or_default(),
        }
    }
}

/// Which webhooks to list; conditions combine with "and".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Of this task.
    pub task: Option<TaskId>,
    /// Only those that fail, are disabled, or have dead letters.
    pub in_trouble: bool,
}

/// What a call came to, to be noted in one commit.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Which webhook.
    pub webhook: WebhookId,
    /// Who has claimed it, if claims are made: else nothing is written.
    pub owner: Option<Arc<str>>,
    /// The newest position that is done with; never goes backwards.
    pub cursor: u64,
    /// How its calls have gone.
    pub state: DeliveryState,
    /// What becomes of a dead letter.
    pub letter: LetterChange,
}

/// What a [`Settlement`] does to the dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LetterChange {
    /// Nothing.
    Keep,
    /// Puts one there, in place of the one of the same position.
    Put(DeadLetter),
    /// Removes the one of this position: it has been taken.
    Remove(u64),
}

/// Which dead letters to deliver again; conditions combine with "and".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redelivery {
    /// Those of this webhook, which is enabled again if it was disabled.
    pub webhook: Option<WebhookId>,
    /// The one of this position.
    pub position: Option<u64>,
    /// Those given up at this time or later.
    pub since: Option<Timestamp>,
}

/// One call of a webhook, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Which webhook.
    pub webhook: WebhookId,
    /// The first position that it told.
    pub first: u64,
    /// The last one: another than the first only where whole tasks are told.
    pub last: u64,
    /// The `webhook-id` that went along.
    pub message_id: String,
    /// The number of the attempt for this event, from 1.
    pub attempt: u32,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// What it came to.
    pub outcome: CallOutcome,
}

/// What a call came to, without a word of the receiver's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// An answer with this HTTP status.
    Answered(u16),
    /// The address is one that must not be called.
    Forbidden,
    /// No connection came about.
    Unreachable,
    /// There was no answer in time.
    TimedOut,
    /// The connection broke.
    Broken,
    /// The request could not be written.
    Unsendable,
}

impl CallOutcome {
    const SILENT: [Self; 5] = [
        Self::Forbidden,
        Self::Unreachable,
        Self::TimedOut,
        Self::Broken,
        Self::Unsendable,
    ];

    /// In a word: the status, or why there was none.
    pub fn word(self) -> String {
        match self {
            Self::Answered(status) => status.to_string(),
            Self::Forbidden => "forbidden".to_owned(),
            Self::Unreachable => "unreachable".to_owned(),
            Self::TimedOut => "timed out".to_owned(),
            Self::Broken => "broken".to_owned(),
            Self::Unsendable => "unsendable".to_owned(),
        }
    }

    /// The outcome of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        match word.parse() {
            Ok(status) => Some(Self::Answered(status)),
            Err(_) => Self::SILENT.into_iter().find(|one| one.word() == word),
        }
    }

    /// Whether the event was taken (PUSH-07).
    pub fn is_taken(self) -> bool {
        matches!(self, Self::Answered(200..=299))
    }
}

/// How many dead letters a webhook keeps; the oldest positions go first.
pub(crate) const MAX_LETTERS: usize = 10_000;

/// What deliveries need of a database. Part of [`crate::Store`].
pub trait Deliveries {
    /// A webhook and how its delivery stands; `None` if it is not there.
    fn delivery<'a>(&'a self, webhook: &'a WebhookId) -> StoreFuture<'a, Option<Delivery>>;

    /// Lists webhooks of all scopes, `limit` at most, in an order of the store's own; `after` is
    /// the last one of the page before.
    fn deliveries<'a>(
        &'a self,
        filter: &'a DeliveryFilter,
        after: Option<&'a WebhookId>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<Delivery>>;

    /// Claims a webhook for `owner`, or prolongs its claim; `false` if another one has it.
    ///
    /// The claim ends by itself after `term`, as the store measures time.
    fn claim_delivery<'a>(
        &'a self,
        webhook: &'a WebhookId,
        owner: &'a str,
        term: Duration,
    ) -> StoreFuture<'a, bool>;

    /// Gives up the claim on a webhook, or all claims, of an owner.
    fn release_deliveries<'a>(
        &'a self,
        webhook: Option<&'a WebhookId>,
        owner: &'a str,
    ) -> StoreFuture<'a, ()>;

    /// Notes what a call came to; `false` if the claim is lost, and then nothing is written.
    ///
    /// Of a webhook that is not there nothing is written either.
    fn settle_delivery(&self, settlement: Settlement) -> StoreFuture<'_, bool>;

    /// The dead letters of a webhook by position, `limit` at most; only those to be delivered again
    /// if `requested` says so.
    fn dead_letters<'a>(
        &'a self,
        webhook: &'a WebhookId,
        requested: bool,
        limit: usize,
    ) -> StoreFuture<'a, Vec<DeadLetter>>;

    /// Marks dead letters to be delivered again, and gives their number.
    fn redeliver<'a>(&'a self, which: &'a Redelivery) -> StoreFuture<'a, u64>;

    /// Writes calls to the log, and drops the oldest ones of a webhook beyond `keep`.
    ///
    /// Calls of webhooks that are not there are left out.
    fn record_calls(&self, calls: Vec<CallRecord>, keep: usize) -> StoreFuture<'_, ()>;

    /// The newest calls of a webhook, newest first, `limit` at most.
    fn calls<'a>(
        &'a self,
        webhook: &'a WebhookId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<CallRecord>>;

    /// Drops calls that began before a time from the log, `limit` at most; gives their number.
    fn prune_calls(&self, before: Timestamp, limit: usize) -> StoreFuture<'_, u64>;
}
