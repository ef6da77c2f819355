//! Looking after what is stored: what has expired is removed, and tasks move from store to store.

use std::sync::Arc;

use nuncio_protocol::{ContextId, Event, Task, TaskId, TaskState, Timestamp};

use crate::{Head, Idempotency, PushConfigRow, Scope};

/// What becomes of tasks that ended long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepKind {
    /// They are removed, with logs, keys and webhooks.
    Expire,
    /// Their logs are: the snapshot stays. Tasks with a webhook that is behind are left out, for
    /// the log is its outbox.
    Compact,
}

/// How far a sweep has come; only the store that gave it can read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepMark(pub(crate) u64);

/// A part of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What to do.
    pub kind: SweepKind,
    /// To ended tasks whose last status is older than this.
    pub before: Timestamp,
    /// Where the part before ended; `None` begins anew.
    pub from: Option<SweepMark>,
    /// To how many tasks at most; fewer if their logs are long, but at least to one.
    pub limit: usize,
}

/// What a part of a sweep has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// To which tasks.
    pub tasks: Vec<(Scope, TaskId)>,
    /// Where the next part begins; `None` at the end.
    pub next: Option<SweepMark>,
}

/// A task with all that belongs to it, as one store gives it to another.
#[derive(Clone, Debug)]
pub struct WholeTask {
    /// Whose it is.
    pub scope: Scope,
    /// The conversation.
    pub context: ContextId,
    /// The task as of `head.last`.
    pub task: Arc<Task>,
    /// Where it stands; without a lease, for nobody runs it where it goes.
    pub head: Head,
    /// The time of its state, as lists have it.
    pub status_time: Timestamp,
    /// All events; `None` if the log has been compacted.
    pub log: Option<Vec<Event>>,
    /// What accompanied its messages, by their positions; goes with the log.
    pub requests: Vec<(u64, Arc<str>)>,
    /// The keys that lead to it.
    pub keys: Vec<Idempotency>,
    /// Its webhooks.
    pub webhooks: Vec<PushConfigRow>,
}

/// What became of a [`WholeTask`] that a store was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is stored.
    New,
    /// It was there already, the same.
    Same,
    /// Another task, or another state of this one, has the id; nothing was written.
    Different,
    /// A key that leads to it leads to another task here; nothing was written.
    KeyInUse {
        /// The key.
        key: String,
        /// The task that it leads to.
        task: TaskId,
    },
}

impl WholeTask {
    /// Whether it tells the same of the task; keys and webhooks may differ, and where one log has
    /// been compacted the tasks decide.
    pub(crate) fn tells_the_same(&self, other: &Self) -> bool {
        let logs_agree = match (&self.log, &other.log) {
            (Some(log), Some(other)) => log
                .iter()
                .map(Event::json)
                .eq(other.iter().map(Event::json)),
            _ => true,
        };
        logs_agree
            && self.scope == other.scope
            && self.context == other.context
            && self.head.last == other.head.last
            && self.task == other.task
    }
}

/// Tasks looked at in one part of a sweep.
pub(crate) const LOOKED_AT: usize = 1_000;
/// Events that one part removes at most, if more than one task has them.
const MAX_EVENTS: u64 = 5_000;

/// What is to be known of a task to judge whether it has expired.
pub(crate) struct Candidate {
    pub(crate) number: i64,
    pub(crate) created_ms: i64,
    pub(crate) status_ms: i64,
    pub(crate) state: TaskState,
    pub(crate) last: u64,
}

/// Tasks that have expired, by their numbers, and where to look on.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) tasks: Vec<i64>,
    pub(crate) next: Option<SweepMark>,
}

/// Chooses from the next [`LOOKED_AT`] tasks in the order of their numbers, which is about that of
/// their creation; `is_outbox` tells whether a webhook still needs the log of one.
pub(crate) fn choose<E>(
    candidates: &[Candidate],
    sweep: &Sweep,
    is_outbox: impl Fn(i64) -> Result<bool, E>,
) -> Result<Found, E> {
    let before = sweep.before.unix_ms();
    let (mut found, mut events) = (Found::default(), 0);
    for task in candidates {
        let old = task.state.is_terminal() && task.status_ms < before;
        if old && (sweep.kind == SweepKind::Expire || !is_outbox(task.number)?) {
            events += task.last;
            let full = found.tasks.len() >= sweep.limit.max(1);
            if full || events > MAX_EVENTS && !found.tasks.is_empty() {
                return Ok(found);
            }
            found.tasks.push(task.number);
        }
        found.next = Some(SweepMark(task.number as u64));
    }
    // From here on they are all too young, as far as clocks go forwards.
    let young = candidates.iter().all(|task| task.created_ms >= before);
    if candidates.len() < LOOKED_AT || young {
        found.next = None;
    }
    Ok(found)
}
