//! Sweeping, and tasks that come from or go to another store.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_protocol::{TaskId, Timestamp};

use super::contents::{Contents, note_key};
use super::entry::Entry;
use super::lease::until;
use super::log::Log;
use crate::input::check_import;
use crate::{
    Head, Idempotency, Imported, PushConfigRow, StoreError, Sweep, SweepKind, SweepMark, Swept,
    WholeTask,
};

impl Contents {
    /// Does a part of a sweep: goes along the ended tasks, oldest first.
    pub(super) fn sweep(&mut self, sweep: &Sweep) -> Result<Swept, StoreError> {
        let mut at = sweep.from.map_or(0, |mark| mark.0 as usize);
        let mut swept = Swept::default();
        while let Some(id) = self.finished.get(at).cloned() {
            if swept.tasks.len() >= sweep.limit.max(1) {
                swept.next = Some(SweepMark(at as u64));
                return Ok(swept);
            }
            let Some(entry) = self.tasks.get_mut(&id) else {
                at += 1;
                continue;
            };
            if entry.status_ms >= sweep.before.unix_ms() {
                at += 1;
                continue;
            }
            let scope = self.scopes[entry.scope].scope.clone();
            match sweep.kind {
                SweepKind::Expire => {
                    self.finished.remove(at);
                    self.evict(&id);
                    swept.tasks.push((scope, id));
                }
                SweepKind::Compact => {
                    at += 1;
                    if entry.compact()? {
                        swept.tasks.push((scope, id));
                    }
                }
            }
        }
        Ok(swept)
    }

    /// Reads tasks by id, whole.
    pub(super) fn export(
        &self,
        after: Option<&TaskId>,
        limit: usize,
    ) -> Result<Vec<WholeTask>, StoreError> {
        let mut ids: Vec<&TaskId> = self.tasks.keys().collect();
        ids.retain(|id| after.is_none_or(|after| *id > after));
        ids.sort();
        let entries = ids
            .into_iter()
            .take(limit)
            .filter_map(|id| self.tasks.get(id));
        entries.map(|entry| self.whole(entry)).collect()
    }

    fn whole(&self, entry: &Entry) -> Result<WholeTask, StoreError> {
        let lists = &self.scopes[entry.scope];
        let keys = entry.keys.iter().filter_map(|text| {
            let used = lists.keys.get(text)?;
            Some(Idempotency {
                key: text.to_string(),
                request_hash: used.request_hash,
            })
        });
        let mut head = entry.head.clone();
        head.owner = None;
        Ok(WholeTask {
            scope: lists.scope.clone(),
            context: entry.context.clone(),
            task: entry.view().task()?,
            log: match &entry.log {
                Log::Forgotten { .. } => None,
                log => Some(log.read(0, usize::MAX)?),
            },
            head,
            status_time: Timestamp::from_unix_ms(entry.status_ms),
            requests: entry.requests.clone(),
            keys: keys.collect(),
            webhooks: entry.push_configs.values().cloned().collect(),
        })
    }

    /// Stores a task of another store.
    pub(super) fn import(&mut self, whole: WholeTask) -> Result<Imported, StoreError> {
        check_import(&whole)?;
        if let Some(entry) = self.tasks.get(&whole.task.id) {
            let same = self.whole(entry)?.tells_the_same(&whole);
            return Ok(if same {
                Imported::Same
            } else {
                Imported::Different
            });
        }
        let scope = self.scope_number(whole.scope.clone());
        for key in &whole.keys {
            if let Some((task, _)) = self.key_use(scope, Some(key)) {
                let key = key.key.clone();
                return Ok(Imported::KeyInUse { key, task });
            }
        }
        let lists = &mut self.scopes[scope];
        let mut entry = Entry {
            id: whole.task.id.clone(),
            scope,
            context: whole.context,
            status_ms: whole.status_time.unix_ms(),
            base_at: whole.head.last as usize,
            base: whole.task,
            log: match whole.log {
                Some(events) => Log::Live(events),
                None => Log::Forgotten {
                    count: whole.head.last as usize,
                },
            },
            head: Head {
                owner: None,
                ..whole.head
            },
            leased_until: until(Duration::ZERO),
            requests: whole.requests,
            push_configs: BTreeMap::new(),
            desks: BTreeMap::new(),
            nodes: Vec::new(),
            keys: Vec::new(),
        };
        for row in whole.webhooks {
            let id = row.webhook.config.id.clone().unwrap_or_default();
            entry.push_configs.insert(id, row);
        }
        for key in &whole.keys {
            note_key(lists, &mut entry, Some(key));
        }
        lists.enter(&entry);
        let (id, ended) = (entry.id.clone(), entry.head.state.is_terminal());
        self.tasks.insert(id.clone(), entry);
        if ended {
            self.finish(id);
        }
        Ok(Imported::New)
    }
}

impl Entry {
    /// Forgets the log of an ended task; `false` if it has none, or a webhook still needs it.
    fn compact(&mut self) -> Result<bool, StoreError> {
        let behind = |row: &PushConfigRow| row.cursor < self.head.last;
        let forgotten = matches!(self.log, Log::Forgotten { .. });
        if forgotten || self.push_configs.values().any(behind) {
            return Ok(false);
        }
        let count = self.log.len();
        self.base = self.view().task()?;
        self.base_at = count;
        self.log = Log::Forgotten { count };
        self.requests = Vec::new();
        Ok(true)
    }
}
