//! What one caller has at one agent: keys, and the order of the lists.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use nuncio_protocol::{ContextId, TaskId, TaskState};

use super::entry::Entry;
use crate::{ListFilter, PageKey, Scope};

/// Where a task stands in a list; the greatest comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) status_ms: i64,
    pub(super) task: TaskId,
}

/// What a key was used for.
#[derive(Clone, Debug)]
pub(super) struct KeyUse {
    pub(super) task: TaskId,
    pub(super) request_hash: [u8; 32],
}

const STATES: usize = TaskState::ALL.len();

/// The tasks of a conversation in the order of the lists; mostly one, so no tree.
type Conversation = Vec<(Place, TaskState)>;

/// The lists and keys of one scope.
#[derive(Debug)]
pub(super) struct ScopeLists {
    pub(super) scope: Scope,
    pub(super) keys: HashMap<Arc<str>, KeyUse>,
    by_state: [BTreeSet<Place>; STATES],
    by_context: HashMap<ContextId, Conversation>,
    waiting: BTreeSet<(ContextId, TaskId)>,
}

impl ScopeLists {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            keys: HashMap::new(),
            by_state: Default::default(),
            by_context: HashMap::new(),
            waiting: BTreeSet::new(),
        }
    }

    /// Lists a new task.
    pub(super) fn enter(&mut self, entry: &Entry) {
        let (place, state) = (entry.place(), entry.head.state);
        self.note_waiting(entry, state);
        let tasks = self.by_context.entry(entry.context.clone()).or_default();
        let at = tasks.partition_point(|(other, _)| *other < place);
        tasks.insert(at, (place.clone(), state));
        self.by_state[index(state)].insert(place);
    }

    /// Lists a task anew, before it changes.
    pub(super) fn change(&mut self, entry: &Entry, state: TaskState, status_ms: i64) {
        let (old, old_state) = (entry.place(), entry.head.state);
        let new = Place {
            status_ms,
            task: entry.id.clone(),
        };
        self.forget_waiting(entry);
        self.note_waiting(entry, state);
        if let Some(tasks) = self.by_context.get_mut(&entry.context) {
            remove(tasks, &old);
            let at = tasks.partition_point(|(other, _)| *other < new);
            tasks.insert(at, (new.clone(), state));
        }
        self.by_state[index(old_state)].remove(&old);
        self.by_state[index(state)].insert(new);
    }

    /// Takes a task out of all lists, and its keys with it.
    pub(super) fn leave(&mut self, entry: &Entry) {
        let place = entry.place();
        self.forget_waiting(entry);
        self.by_state[index(entry.head.state)].remove(&place);
        if let Some(tasks) = self.by_context.get_mut(&entry.context) {
            remove(tasks, &place);
            if tasks.is_empty() {
                self.by_context.remove(&entry.context);
            }
        }
        for key in &entry.keys {
            self.keys.remove(key);
        }
    }

    fn note_waiting(&mut self, entry: &Entry, state: TaskState) {
        if state == TaskState::InputRequired {
            self.waiting
                .insert((entry.context.clone(), entry.id.clone()));
        }
    }

    fn forget_waiting(&mut self, entry: &Entry) {
        if entry.head.state == TaskState::InputRequired {
            self.waiting
                .remove(&(entry.context.clone(), entry.id.clone()));
        }
    }

    /// The tasks that run or are to run.
    pub(super) fn running(&self) -> impl Iterator<Item = &TaskId> {
        [TaskState::Submitted, TaskState::Working]
            .into_iter()
            .flat_map(|state| &self.by_state[index(state)])
            .map(|place| &place.task)
    }

    /// The tasks of a conversation that wait for input.
    pub(super) fn waiting(&self, context: &ContextId) -> impl Iterator<Item = &TaskId> {
        let first = (context.clone(), TaskId::default());
        let context = context.clone();
        self.waiting
            .range(first..)
            .take_while(move |(of, _)| *of == context)
            .map(|(_, task)| task)
    }

    /// The places of a page, and how many there are in all.
    pub(super) fn page(
        &self,
        filter: &ListFilter,
        from: Option<&PageKey>,
        size: usize,
    ) -> (Vec<Place>, u64) {
        let low = filter.not_before.map_or(Bound::Unbounded, |time| {
            Bound::Included(Place {
                status_ms: time.unix_ms(),
                task: TaskId::default(),
            })
        });
        let high = from.map_or(Bound::Unbounded, |key| {
            Bound::Excluded(Place {
                status_ms: key.status_time.unix_ms(),
                task: key.task.clone(),
            })
        });
        match &filter.context {
            Some(context) => self.page_of_context(context, filter.state, low, high, size),
            None => self.page_of_states(filter.state, low, high, size),
        }
    }

    fn page_of_context(
        &self,
        context: &ContextId,
        state: Option<TaskState>,
        low: Bound<Place>,
        high: Bound<Place>,
        size: usize,
    ) -> (Vec<Place>, u64) {
        let tasks = self.by_context.get(context).map_or(&[][..], |tasks| tasks);
        let start = match &low {
            Bound::Included(low) => tasks.partition_point(|(place, _)| place < low),
            _ => 0,
        };
        let end = match &high {
            Bound::Excluded(high) => tasks.partition_point(|(place, _)| place < high),
            _ => tasks.len(),
        };
        let matches = |(_, of): &&(Place, TaskState)| state.is_none_or(|state| state == *of);
        let total = tasks[start..].iter().filter(matches).count();
        let page = tasks.get(start..end).unwrap_or_default().iter().rev();
        let page = page.filter(matches).take(size);
        (page.map(|(place, _)| place.clone()).collect(), total as u64)
    }

    fn page_of_states(
        &self,
        state: Option<TaskState>,
        low: Bound<Place>,
        high: Bound<Place>,
        size: usize,
    ) -> (Vec<Place>, u64) {
        let chosen: Vec<&BTreeSet<Place>> = self
            .by_state
            .iter()
            .enumerate()
            .filter(|(at, set)| !set.is_empty() && state.is_none_or(|state| index(state) == *at))
            .map(|(_, set)| set)
            .collect();
        let total: usize = match &low {
            Bound::Unbounded => chosen.iter().map(|set| set.len()).sum(),
            _ => chosen
                .iter()
                .map(|set| set.range((low.clone(), Bound::Unbounded)).count())
                .sum(),
        };
        if empty(&low, &high) {
            return (Vec::new(), total as u64);
        }
        let mut runs: Vec<_> = chosen
            .iter()
            .map(|set| {
                let mut run = set.range((low.clone(), high.clone())).rev();
                (run.next(), run)
            })
            .collect();
        let newest = std::iter::from_fn(|| {
            let (first, rest) = runs.iter_mut().max_by_key(|(first, _)| *first)?;
            std::mem::replace(first, rest.next()).cloned()
        });
        (newest.take(size).collect(), total as u64)
    }
}

/// Whether nothing can be between the bounds; a range of a tree panics on such a pair.
fn empty(low: &Bound<Place>, high: &Bound<Place>) -> bool {
    match (low, high) {
        (Bound::Included(low), Bound::Excluded(high)) => low >= high,
        _ => false,
    }
}

fn remove(tasks: &mut Conversation, place: &Place) {
    let at = tasks.partition_point(|(other, _)| other < place);
    if tasks.get(at).is_some_and(|(other, _)| other == place) {
        tasks.remove(at);
    }
}

fn index(state: TaskState) -> usize {
    state as usize
}
