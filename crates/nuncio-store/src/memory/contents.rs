//! What the lock guards: all tasks, and the lists that lead to them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use nuncio_protocol::{PushConfigId, TaskId, Timestamp};
use tokio::time::Instant;

use super::conversations::Conversations;
use super::desk::Desk;
use super::entry::Entry;
use super::lease::until;
use super::log::Log;
use super::owners::Owned;
use super::scope::{KeyUse, ScopeLists};
use super::store::MemoryOptions;
use crate::input::{check_append, check_new, check_transition, may_write};
use crate::{
    Append, Appended, Claim, Created, DeliveryState, Head, HeldRun, Idempotency, Lease, NewTask,
    PushConfigRow, Scope, StoreError, Webhook,
};

/// All that a [`super::MemoryStore`] holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) tasks: HashMap<TaskId, Entry>,
    pub(super) scopes: Vec<ScopeLists>,
    scope_numbers: HashMap<Scope, usize>,
    /// How far each owner has prolonged its leases.
    renewed: HashMap<Arc<str>, Instant>,
    /// Ended tasks, oldest first.
    pub(super) finished: VecDeque<TaskId>,
    max_finished: usize,
    evicted: Vec<Entry>,
    pub(super) conversations: Conversations,
    pub(super) owned: Owned,
}

impl Contents {
    pub(super) fn new(options: &MemoryOptions) -> Self {
        Self {
            max_finished: options.max_finished,
            conversations: Conversations::new(options.max_sessions),
            owned: Owned::new(options.max_owned),
            ..Self::default()
        }
    }

    pub(super) fn scope(&self, scope: &Scope) -> Option<&ScopeLists> {
        self.scope_numbers.get(scope).map(|at| &self.scopes[*at])
    }

    pub(super) fn entry(&self, scope: &Scope, task: &TaskId) -> Option<&Entry> {
        self.tasks
            .get(task)
            .filter(|entry| self.scopes[entry.scope].scope == *scope)
    }

    pub(super) fn entry_mut(&mut self, scope: &Scope, task: &TaskId) -> Option<&mut Entry> {
        let scopes = &self.scopes;
        self.tasks
            .get_mut(task)
            .filter(|entry| scopes[entry.scope].scope == *scope)
    }

    /// The task at a place of a list.
    pub(super) fn listed(&self, task: &TaskId) -> Option<&Entry> {
        self.tasks.get(task)
    }

    pub(super) fn listed_mut(&mut self, task: &TaskId) -> Option<&mut Entry> {
        self.tasks.get_mut(task)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tasks.values()
    }

    pub(super) fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.tasks.values_mut()
    }

    /// Whose a task is.
    pub(super) fn scope_of(&self, entry: &Entry) -> &Scope {
        &self.scopes[entry.scope].scope
    }

    pub(super) fn create(&mut self, new: NewTask) -> Result<Created, StoreError> {
        check_new(&new)?;
        let scope = self.scope_number(new.scope);
        if let Some(used) = self.key_use(scope, new.idempotency.as_ref()) {
            let (task, same_request) = used;
            return Ok(Created::Existing { task, same_request });
        }
        if self.tasks.contains_key(&new.task.id) {
            return Err(StoreError::Corrupt("a task of that id exists".to_owned()));
        }
        let status = &new.task.status;
        let head = Head {
            last: new.events.len() as u64,
            state: status.state,
            epoch: u64::from(new.lease.is_some()),
            turn: 1,
            attempt: 1,
            owner: None,
            checkpoint: new.checkpoint,
        };
        let mut entry = Entry {
            id: new.task.id.clone(),
            scope,
            context: new.context,
            status_ms: status.timestamp.map_or(0, Timestamp::unix_ms),
            head,
            leased_until: Instant::now(),
            base_at: new.events.len(),
            base: new.task,
            log: Log::Live(new.events),
            requests: new
                .request
                .map(|request| (1, request))
                .into_iter()
                .collect(),
            push_configs: BTreeMap::new(),
            desks: BTreeMap::new(),
            nodes: Vec::new(),
            keys: Vec::new(),
        };
        if let Some(lease) = &new.lease {
            entry.lease_to(lease);
        }
        if let Some(webhook) = new.push_config {
            put_webhook(&mut entry, webhook, 0);
        }
        let lists = &mut self.scopes[scope];
        note_key(lists, &mut entry, new.idempotency.as_ref());
        lists.enter(&entry);
        let ended = entry.head.state.is_terminal();
        let id = entry.id.clone();
        self.tasks.insert(id.clone(), entry);
        if ended {
            self.finish(id);
        }
        Ok(Created::New)
    }

    pub(super) fn append(&mut self, mut append: Append) -> Result<Appended, StoreError> {
        check_append(&append)?;
        let Some(entry) = self.entry(&append.scope, &append.task) else {
            return Ok(Appended::Missing);
        };
        if let Some(used) = self.key_use(entry.scope, append.idempotency.as_ref()) {
            let (task, same_request) = used;
            return Ok(Appended::Existing { task, same_request });
        }
        if !may_write(&entry.head, &append) {
            return Ok(Appended::Conflict(entry.head.clone()));
        }
        check_transition(&entry.head, &append)?;
        let (ends, task) = (append.state.is_terminal(), append.task.clone());
        let Some(entry) = self.tasks.get_mut(&task) else {
            return Ok(Appended::Missing);
        };
        let lists = &mut self.scopes[entry.scope];
        let status_ms = entry.status_ms.max(append.status_time.unix_ms());
        if entry.head.state != append.state || entry.status_ms != status_ms {
            lists.change(entry, append.state, status_ms);
            entry.status_ms = status_ms;
        }
        note_key(lists, entry, append.idempotency.as_ref());
        if let Some(webhook) = append.push_config.take() {
            put_webhook(entry, webhook, append.after);
        }
        entry.take_in(append);
        let epoch = entry.head.epoch;
        if ends {
            self.finish(task);
        }
        Ok(Appended::Done { epoch })
    }

    /// Claims runs.
    pub(super) fn claim(
        &mut self,
        lease: &Lease,
        claim: &Claim,
        limit: usize,
    ) -> Vec<(Scope, TaskId)> {
        let now = Instant::now();
        let expired: Vec<(Scope, TaskId)> = self
            .scopes
            .iter()
            .filter(|lists| {
                claim
                    .agents()
                    .is_none_or(|of| of.contains(&lists.scope.agent))
            })
            .flat_map(|lists| lists.running().map(move |task| (&lists.scope, task)))
            .filter(|(_, task)| self.may_claim(task, lease, claim, now))
            .take(limit)
            .map(|(scope, task)| (scope.clone(), task.clone()))
            .collect();
        for (_, task) in &expired {
            if let Some(entry) = self.tasks.get_mut(task) {
                entry.head.epoch += 1;
                entry.head.attempt += 1;
                entry.lease_to(lease);
            }
        }
        expired
    }

    fn may_claim(&self, task: &TaskId, lease: &Lease, claim: &Claim, now: Instant) -> bool {
        let Some(entry) = self.tasks.get(task) else {
            return false;
        };
        let Some(owner) = &entry.head.owner else {
            return true;
        };
        let renewed = self.renewed.get(owner);
        let is_over = entry.leased_until <= now && renewed.is_none_or(|until| *until <= now);
        *owner != lease.owner && (is_over || *claim == Claim::AllOthers)
    }

    pub(super) fn renew(&mut self, lease: Lease) {
        let until = until(lease.term);
        let renewed = self.renewed.entry(lease.owner).or_insert(until);
        *renewed = until.max(*renewed);
    }

    pub(super) fn held(&self, owner: &str) -> Vec<HeldRun> {
        let running = self.scopes.iter().flat_map(|lists| {
            let entries = lists.running().filter_map(|task| self.tasks.get(task));
            entries.map(move |entry| (&lists.scope, entry))
        });
        running
            .filter(|(_, entry)| entry.head.owner.as_deref() == Some(owner))
            .map(|(scope, entry)| HeldRun {
                scope: scope.clone(),
                task: entry.id.clone(),
                epoch: entry.head.epoch,
            })
            .collect()
    }

    pub(super) fn release_all(&mut self, owner: &str) {
        self.renewed.remove(owner);
        for entry in self.tasks.values_mut() {
            entry.head.owner.take_if(|of| **of == *owner);
        }
    }

    pub(super) fn put_push_config(&mut self, scope: &Scope, webhook: &Webhook) -> bool {
        let task = webhook.config.task_id.as_ref();
        let Some(entry) = task.and_then(|task| self.entry_mut(scope, task)) else {
            return false;
        };
        let last = entry.head.last;
        put_webhook(entry, webhook.clone(), last);
        true
    }

    pub(super) fn advance_push_cursor(&mut self, task: &TaskId, id: &PushConfigId, cursor: u64) {
        let entry = self.tasks.get_mut(task);
        if let Some(row) = entry.and_then(|entry| entry.push_configs.get_mut(id)) {
            row.cursor = row.cursor.max(cursor);
        }
    }

    /// Tasks with an enabled webhook that has not had all it is to get.
    pub(super) fn push_backlog(
        &self,
        after: Option<&TaskId>,
        limit: usize,
    ) -> Vec<(Scope, TaskId)> {
        let is_behind = |entry: &&Entry| {
            let last = entry.head.last;
            entry.push_configs.iter().any(|(id, row)| {
                let desk = entry.desks.get(id);
                let enabled = desk.is_none_or(|desk| desk.state.disabled.is_none());
                enabled && (row.cursor < last || desk.is_some_and(Desk::is_requested))
            })
        };
        let mut behind: Vec<&Entry> = self
            .tasks
            .values()
            .filter(is_behind)
            .filter(|entry| after.is_none_or(|after| entry.id > *after))
            .collect();
        behind.sort_by(|a, b| a.id.cmp(&b.id));
        let named = |entry: &Entry| (self.scopes[entry.scope].scope.clone(), entry.id.clone());
        behind.into_iter().take(limit).map(named).collect()
    }

    pub(super) fn scope_number(&mut self, scope: Scope) -> usize {
        if let Some(number) = self.scope_numbers.get(&scope) {
            return *number;
        }
        let number = self.scopes.len();
        self.scopes.push(ScopeLists::new(scope.clone()));
        self.scope_numbers.insert(scope, number);
        number
    }

    pub(super) fn key_use(
        &self,
        scope: usize,
        key: Option<&Idempotency>,
    ) -> Option<(TaskId, bool)> {
        let key = key?;
        let used = self.scopes[scope].keys.get(key.key.as_str())?;
        Some((used.task.clone(), used.request_hash == key.request_hash))
    }

    /// Counts a task as ended, and forgets the oldest ones beyond the bound.
    pub(super) fn finish(&mut self, task: TaskId) {
        if let Some(entry) = self.tasks.get_mut(&task)
            && entry.base_at == entry.log.len()
        {
            entry.log.end();
        }
        self.finished.push_back(task);
        while self.finished.len() > self.max_finished {
            let Some(oldest) = self.finished.pop_front() else {
                return;
            };
            self.evict(&oldest);
        }
    }

    /// Takes a task out of everything.
    pub(super) fn evict(&mut self, task: &TaskId) {
        if let Some(entry) = self.tasks.remove(task) {
            self.scopes[entry.scope].leave(&entry);
            self.evicted.push(entry);
        }
    }

    /// What has been forgotten, to be dropped once the lock is gone: freeing takes its time.
    pub(super) fn take_evicted(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.evicted)
    }
}

pub(super) fn note_key(lists: &mut ScopeLists, entry: &mut Entry, key: Option<&Idempotency>) {
    let Some(key) = key else { return };
    let text: Arc<str> = key.key.as_str().into();
    entry.keys.push(Arc::clone(&text));
    let used = KeyUse {
        task: entry.id.clone(),
        request_hash: key.request_hash,
    };
    lists.keys.insert(text, used);
}

/// Puts a webhook on a task; one of the same id keeps its place in the log, and begins anew
/// otherwise.
fn put_webhook(entry: &mut Entry, mut webhook: Webhook, cursor: u64) {
    webhook.config.task_id = Some(entry.id.clone());
    let id = webhook.config.id.clone().unwrap_or_default();
    match entry.push_configs.get_mut(&id) {
        Some(row) => {
            row.webhook = webhook;
            if let Some(desk) = entry.desks.get_mut(&id) {
                desk.state = DeliveryState::default();
            }
        }
        None => {
            entry
                .push_configs
                .insert(id, PushConfigRow { webhook, cursor });
        }
    }
}
