//! One task in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_protocol::{ContextId, Event, PushConfigId, Task, TaskId};
use tokio::time::Instant;

use super::desk::Desk;
use super::lease::until;
use super::log::Log;
use super::scope::Place;
use crate::fold::fold;
use crate::nodes::MAX_NODES;
use crate::{Append, Head, Lease, LeaseChange, NodeRow, PushConfigRow, StoreError};

/// A task with its log.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: TaskId,
    /// The number of its scope.
    pub(super) scope: usize,
    pub(super) context: ContextId,
    pub(super) status_ms: i64,
    pub(super) head: Head,
    /// When the lease of `head.owner` is over, if that owner has not renewed it.
    pub(super) leased_until: Instant,
    /// The task as of position `base_at`.
    pub(super) base: Arc<Task>,
    pub(super) base_at: usize,
    pub(super) log: Log,
    /// What accompanied messages, by their positions.
    pub(super) requests: Vec<(u64, Arc<str>)>,
    pub(super) push_configs: BTreeMap<PushConfigId, PushConfigRow>,
    /// How the delivery of some of them stands.
    pub(super) desks: BTreeMap<PushConfigId, Desk>,
    /// Its call tree, in the order of first writing.
    pub(super) nodes: Vec<NodeRow>,
    /// The keys that lead here.
    pub(super) keys: Vec<Arc<str>>,
}

impl Entry {
    /// Leases it from now on.
    pub(super) fn lease_to(&mut self, lease: &Lease) {
        self.head.owner = Some(Arc::clone(&lease.owner));
        self.leased_until = until(lease.term);
    }

    /// Where it stands in the lists.
    pub(super) fn place(&self) -> Place {
        Place {
            status_ms: self.status_ms,
            task: self.id.clone(),
        }
    }

    /// Takes in what has been found fit; the lists know it already.
    pub(super) fn take_in(&mut self, append: Append) {
        if let Some(request) = append.request {
            self.requests.push((append.after + 1, request));
        }
        self.head.state = append.state;
        self.head.last += append.events.len() as u64;
        self.log.extend(append.events);
        if let Some(task) = append.snapshot {
            self.base = task;
            self.base_at = self.log.len();
        }
        match append.lease {
            LeaseChange::Keep => {}
            LeaseChange::Release => self.head.owner = None,
            LeaseChange::Take(lease) => {
                self.head.epoch += 1;
                self.lease_to(&lease);
            }
        }
        if let Some(turn) = append.turn {
            (self.head.turn, self.head.attempt) = (turn, 1);
        }
        if append.checkpoint.is_some() {
            self.head.checkpoint = append.checkpoint;
        }
    }

    /// Puts a node in the place of the one of its id, or after the others while there is room.
    pub(super) fn record(&mut self, node: NodeRow) {
        let room = self.nodes.len() < MAX_NODES;
        match self.nodes.iter_mut().rfind(|known| known.id == node.id) {
            Some(known) => known.json = node.json,
            None if room => self.nodes.push(node),
            None => {}
        }
    }

    /// What is needed to fold it after the lock has been let go.
    pub(super) fn view(&self) -> View {
        View {
            base: Arc::clone(&self.base),
            tail: self.log.tail(self.base_at),
        }
    }
}

/// A task that is still to be folded.
#[derive(Debug)]
pub(super) struct View {
    base: Arc<Task>,
    tail: Vec<Event>,
}

impl View {
    /// The task.
    pub(super) fn task(self) -> Result<Arc<Task>, StoreError> {
        if self.tail.is_empty() {
            return Ok(self.base);
        }
        fold(
            Some(Arc::unwrap_or_clone(self.base)),
            self.tail.iter().map(Event::response),
        )
    }
}
