//! A task that somebody holds: its committed view, its recent events, its run.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use nuncio_protocol::{A2aError, Event, Message, StreamResponse, Task, TaskId, TaskState};
use nuncio_store::{Head, Scope, Store, StoreError, StoredTask};
use parking_lot::Mutex;
use tokio::sync::{Notify, OnceCell};

use crate::RunCx;
use crate::delivery::Wakes;
use crate::request::RequestParts;

/// Positions between two folds that are kept.
const FOLD_STEP: u64 = 1_024;

/// Folds that are kept of a live task.
const MAX_FOLDS: usize = 16;

/// One live task. Whoever runs, reads or writes it holds the same cell.
///
/// `view` is what has been committed and nothing else. Writers hold `writing` from reading the
/// view to publishing what they wrote, so that in one process no compare-and-set is lost.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) id: TaskId,
    pub(crate) scope: Scope,
    pub(crate) writing: tokio::sync::Mutex<()>,
    view: Mutex<View>,
    loaded: OnceCell<()>,
    pub(crate) changed: Notify,
    /// The task as it stood earlier, for streams that go on from there; see [`Cell::fold_before`].
    folds: Mutex<BTreeMap<u64, Arc<Task>>>,
    /// Whether it has, or has had, webhooks.
    has_webhooks: AtomicBool,
    ring_events: usize,
    hub: Weak<Hub>,
}

/// The committed state of a task, and who works on it here.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) task: Arc<Task>,
    pub(crate) head: Head,
    pub(crate) run: Option<RunCx>,
    /// Set when the task was never stored.
    pub(crate) unstored: Option<Unstored>,
    /// Whether the store refuses what the run wants to write at the moment.
    pub(crate) trouble: bool,
    ring: VecDeque<Event>,
}

/// What a send came to that made no task.
#[derive(Debug)]
pub(crate) enum Unstored {
    /// The agent answered directly.
    Answered(Message),
    /// It could not be stored.
    Failed(A2aError),
    /// It was given up before it began; whoever joined it begins anew.
    Abandoned,
}

/// Messages that wait for their turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue(Arc<Mutex<VecDeque<QueuedMessage>>>);

/// A stored message that no run has answered yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuedMessage {
    pub(crate) position: u64,
    pub(crate) message: Message,
    pub(crate) request: RequestParts,
}

impl Queue {
    pub(crate) fn push(&self, message: QueuedMessage) {
        self.0.lock().push_back(message);
    }

    pub(crate) fn take(&self) -> Option<QueuedMessage> {
        self.0.lock().pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

impl Cell {
    fn key(&self) -> Key {
        Key {
            id: self.id.clone(),
            scope: self.scope.clone(),
        }
    }

    /// By what the store finds its task.
    pub(crate) fn key_of_store(&self) -> (Scope, TaskId) {
        (self.scope.clone(), self.id.clone())
    }

    /// Whether the store has more of its task than is known here.
    pub(crate) fn is_behind(&self, head: &Head) -> bool {
        self.view(|view| (head.last, head.epoch) > (view.head.last, view.head.epoch))
    }

    /// The task as it stood at a position up to this one, with that position: where to begin to fold.
    pub(crate) fn fold_before(&self, position: u64) -> (u64, Task) {
        let folds = self.folds.lock();
        let nearest = folds.range(..=position).next_back();
        nearest.map_or_else(Default::default, |(at, task)| (*at, Task::clone(task)))
    }

    /// Keeps the task as it stood at a position, if that is one of few; the earliest goes.
    pub(crate) fn keep_fold(&self, at: u64, task: &Task) {
        if !at.is_multiple_of(FOLD_STEP) {
            return;
        }
        let mut folds = self.folds.lock();
        if folds.contains_key(&at) {
            return;
        }
        folds.insert(at, Arc::new(task.clone()));
        if folds.len() > MAX_FOLDS {
            folds.pop_first();
        }
    }

    /// Looks at the committed view.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.view.lock())
    }

    /// The committed task and its newest position, as of one moment.
    pub(crate) fn snapshot(&self) -> (Arc<Task>, u64) {
        self.view(|view| (Arc::clone(&view.task), view.head.last))
    }

    /// Takes over what has been committed: events in order, and the head after them.
    ///
    /// `folded` is the task after the events if the writer has it already.
    pub(crate) fn publish(&self, events: &[Event], head: Head, folded: Option<Arc<Task>>) {
        let mut view = self.view.lock();
        match folded {
            Some(task) => view.task = task,
            None => {
                let task = Arc::make_mut(&mut view.task);
                for event in events {
                    if let Err(error) = task.apply(event.response()) {
                        tracing::error!(task.id = %self.id, %error, "a stored event does not fold");
                    }
                }
            }
        }
        view.head = head;
        view.ring.extend(events.iter().cloned());
        let excess = view.ring.len().saturating_sub(self.ring_events);
        view.ring.drain(..excess);
        drop(view);
        self.changed.notify_waiters();
        self.wake_webhooks();
    }

    /// Replaces the view by what the store has, after somebody else wrote.
    pub(crate) fn replace(&self, stored: StoredTask) {
        // Never unset: one that has just been registered may be missing in what was read.
        self.has_webhooks
            .fetch_or(stored.has_webhooks, Ordering::AcqRel);
        let mut view = self.view.lock();
        view.task = stored.task;
        view.head = stored.head;
        view.ring.clear();
        drop(view);
        self.changed.notify_waiters();
    }

    /// Notes that a webhook has been stored: it is told of all that follows.
    pub(crate) fn note_webhook(&self) {
        self.has_webhooks.store(true, Ordering::Release);
    }

    /// Lets whoever delivers know that there is something new for webhooks.
    pub(crate) fn wake_webhooks(&self) {
        if self.has_webhooks.load(Ordering::Acquire)
            && let Some(hub) = self.hub.upgrade()
        {
            hub.wakes.wake(&self.scope, &self.id);
        }
    }

    pub(crate) fn set_run(&self, run: RunCx) {
        self.view.lock().run = Some(run);
        self.changed.notify_waiters();
    }

    /// Notes that a run is over, unless another one has begun since.
    pub(crate) fn end_run(&self, run: &RunCx) {
        let mut view = self.view.lock();
        let is_same = |other: &RunCx| Arc::ptr_eq(&other.inner, &run.inner);
        if view.run.as_ref().is_some_and(is_same) {
            view.run = None;
        }
        drop(view);
        self.changed.notify_waiters();
    }

    /// Notes whether the store refuses writes, so that nobody waits for it in vain.
    pub(crate) fn set_trouble(&self, trouble: bool) {
        let before = std::mem::replace(&mut self.view.lock().trouble, trouble);
        if before != trouble {
            self.changed.notify_waiters();
        }
    }

    /// Ends a cell whose task was never stored.
    pub(crate) fn resolve_unstored(&self, unstored: Unstored) {
        let mut view = self.view.lock();
        view.unstored = Some(unstored);
        view.run = None;
        drop(view);
        self.changed.notify_waiters();
    }

    /// Gives up a send whose task is neither stored nor answered.
    pub(crate) fn abandon(&self) {
        let open = self.view(|view| view.head.last == 0 && view.unstored.is_none());
        if open {
            self.resolve_unstored(Unstored::Abandoned);
        }
    }

    /// Whether its task is stored and has not ended.
    fn is_open(&self) -> bool {
        self.loaded.initialized()
            && self.view(|view| view.head.last > 0 && !view.state().is_terminal())
    }

    /// What is there to read after a position, as of one moment.
    pub(crate) fn read(&self, after: u64, limit: usize) -> Recent {
        self.view(|view| {
            if after >= view.head.last {
                return Recent::Nothing {
                    ended: view.state().is_terminal(),
                    pause: view.pause(),
                    trouble: view.trouble,
                };
            }
            view.recent(after, limit)
                .map_or(Recent::InStore, Recent::Events)
        })
    }
}

/// What a reader finds in memory.
#[derive(Debug)]
pub(crate) enum Recent {
    /// These events come next.
    Events(Vec<Event>),
    /// There are further events, but only the store has them.
    InStore,
    /// There is nothing more yet.
    Nothing {
        /// Nor will there be: the task has ended.
        ended: bool,
        /// The task rests in this state, having answered the message at this position.
        pause: Option<(TaskState, u64)>,
        /// The store refuses writes.
        trouble: bool,
    },
}

impl Drop for Cell {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.forget(&self.key());
        }
    }
}

impl View {
    pub(crate) fn state(&self) -> TaskState {
        self.head.state
    }

    /// The interrupted state in which the task rests, with the position of the message answered.
    ///
    /// A message that has just been recorded leaves the state as it is until its run says WORKING:
    /// then the task does not rest.
    pub(crate) fn pause(&self) -> Option<(TaskState, u64)> {
        let resting = self.state().is_interrupted() && self.run.is_none();
        resting.then_some((self.head.state, self.head.turn))
    }

    /// The events after a position, if they are still in memory.
    fn recent(&self, after: u64, limit: usize) -> Option<Vec<Event>> {
        let first = self.ring.front()?.position?;
        let skip = usize::try_from((after + 1).checked_sub(first)?).ok()?;
        Some(self.ring.iter().skip(skip).take(limit).cloned().collect())
    }
}

/// A task within a scope: a stranger who guesses an id gets a cell of their own, and an empty one.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    id: TaskId,
    scope: Scope,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

type Shard = Mutex<HashMap<Key, Weak<Cell>>>;

/// All live tasks of this process.
#[derive(Debug)]
pub(crate) struct Hub {
    shards: Vec<Shard>,
    hasher: RandomState,
    ring_events: usize,
    /// What is new for webhooks.
    pub(crate) wakes: Arc<Wakes>,
}

const SHARDS: usize = 32;

impl Hub {
    pub(crate) fn new(ring_events: usize) -> Arc<Self> {
        Arc::new(Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            ring_events,
            wakes: Arc::default(),
        })
    }

    fn shard(&self, id: &TaskId) -> &Shard {
        &self.shards[self.hasher.hash_one(id) as usize % SHARDS]
    }

    fn forget(&self, key: &Key) {
        let mut shard = self.shard(&key.id).lock();
        // Another cell of the same task may have been made since the last holder let go.
        if shard.get(key).is_some_and(|cell| cell.strong_count() == 0) {
            shard.remove(key);
        }
    }

    /// A cell for a task that is about to be stored: nobody can find it yet.
    pub(crate) fn begin(self: &Arc<Self>, scope: Scope, task: Arc<Task>) -> Arc<Cell> {
        let cell = self.cell(task.id.clone(), scope, OnceCell::new_with(Some(())));
        cell.view.lock().task = task;
        Arc::new(cell)
    }

    /// Makes a cell findable.
    ///
    /// To be called just before its task is stored: from the commit on, whoever learns the id has
    /// to find this cell and no other.
    pub(crate) fn register(&self, cell: &Arc<Cell>) {
        self.shard(&cell.id)
            .lock()
            .insert(cell.key(), Arc::downgrade(cell));
    }

    fn cell(self: &Arc<Self>, id: TaskId, scope: Scope, loaded: OnceCell<()>) -> Cell {
        let head = Head {
            last: 0,
            state: TaskState::Unspecified,
            epoch: 0,
            turn: 0,
            attempt: 0,
            owner: None,
            checkpoint: None,
        };
        let view = View {
            task: Arc::default(),
            head,
            run: None,
            unstored: None,
            trouble: false,
            ring: VecDeque::new(),
        };
        Cell {
            id,
            scope,
            writing: tokio::sync::Mutex::new(()),
            view: Mutex::new(view),
            folds: Mutex::default(),
            loaded,
            changed: Notify::new(),
            has_webhooks: AtomicBool::new(false),
            ring_events: self.ring_events,
            hub: Arc::downgrade(self),
        }
    }

    /// The cell of a task that somebody holds already, if it is this scope's.
    pub(crate) fn live(&self, scope: &Scope, id: &TaskId) -> Option<Arc<Cell>> {
        let key = Key {
            id: id.clone(),
            scope: scope.clone(),
        };
        let cell = self.shard(id).lock().get(&key).and_then(Weak::upgrade)?;
        cell.loaded.initialized().then_some(cell)
    }

    /// The cells of a task, whoever's it is.
    pub(crate) fn of_task(&self, id: &TaskId) -> Vec<Arc<Cell>> {
        let shard = self.shard(id).lock();
        let named = shard.iter().filter(|(key, _)| key.id == *id);
        let live: Vec<_> = named.filter_map(|(_, cell)| cell.upgrade()).collect();
        drop(shard);
        live.into_iter().filter(|cell| cell.is_open()).collect()
    }

    /// The cells of all stored tasks that have not ended.
    pub(crate) fn open_cells(&self) -> Vec<Arc<Cell>> {
        let mut open = Vec::new();
        for shard in &self.shards {
            let live: Vec<_> = shard.lock().values().filter_map(Weak::upgrade).collect();
            open.extend(live.into_iter().filter(|cell| cell.is_open()));
        }
        open
    }

    /// The cell of a stored task; `None` if this scope has no such task.
    ///
    /// The cell is findable before it is loaded, so that nobody can write past it meanwhile.
    pub(crate) async fn open(
        self: &Arc<Self>,
        store: &dyn Store,
        scope: &Scope,
        id: &TaskId,
    ) -> Result<Option<Arc<Cell>>, StoreError> {
        let cell = self.cell_of(scope, id);
        let load = || async {
            match store.load(scope, id).await {
                Ok(Some(stored)) => {
                    cell.replace(stored);
                    Ok(())
                }
                Ok(None) => Err(None),
                Err(error) => Err(Some(error)),
            }
        };
        match cell.loaded.get_or_try_init(load).await {
            Ok(()) => Ok(Some(cell)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    /// The cell of a task that has just been claimed; whoever follows the task here holds it too.
    pub(crate) async fn of_stored(self: &Arc<Self>, stored: &StoredTask) -> Arc<Cell> {
        let cell = self.cell_of(&stored.scope, &stored.task.id);
        let load = || async { cell.replace(stored.clone()) };
        cell.loaded.get_or_init(load).await;
        cell
    }

    /// The cell of a task, which may not be loaded yet.
    fn cell_of(self: &Arc<Self>, scope: &Scope, id: &TaskId) -> Arc<Cell> {
        let key = Key {
            id: id.clone(),
            scope: scope.clone(),
        };
        let mut shard = self.shard(id).lock();
        if let Some(cell) = shard.get(&key).and_then(Weak::upgrade) {
            return cell;
        }
        let cell = Arc::new(self.cell(id.clone(), scope.clone(), OnceCell::new()));
        shard.insert(key, Arc::downgrade(&cell));
        cell
    }
}

/// The message events among these, with their positions: what runs have to answer.
pub(crate) fn messages(events: &[Event]) -> impl Iterator<Item = (u64, &Message)> {
    events
        .iter()
        .filter_map(|event| match (event.position, event.response()) {
            (Some(position), StreamResponse::Message(message)) => Some((position, message)),
            _ => None,
        })
}
