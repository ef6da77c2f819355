//! What is known of a webhook's delivery, in memory.

use std::collections::{BTreeMap, VecDeque};

use nuncio_protocol::{PushConfigId, Timestamp};

use super::contents::Contents;
use super::entry::Entry;
use crate::webhooks::MAX_LETTERS;
use crate::{
    CallRecord, DeadLetter, Delivery, DeliveryFilter, DeliveryState, LetterChange, Redelivery,
    Settlement, WebhookId,
};

/// How a webhook's delivery stands.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) state: DeliveryState,
    pub(super) letters: BTreeMap<u64, DeadLetter>,
    pub(super) calls: VecDeque<CallRecord>,
}

impl Desk {
    /// Whether there are dead letters to be delivered again.
    pub(super) fn is_requested(&self) -> bool {
        self.letters.values().any(|letter| letter.requested)
    }
}

impl Entry {
    fn delivery(&self, contents: &Contents, id: &PushConfigId) -> Option<Delivery> {
        let row = self.push_configs.get(id)?;
        let desk = self.desks.get(id);
        let count = |requested: bool| {
            let letters = desk.into_iter().flat_map(|desk| desk.letters.values());
            letters.filter(|one| one.requested || !requested).count() as u64
        };
        Some(Delivery {
            scope: contents.scope_of(self).clone(),
            webhook: row.webhook.clone(),
            cursor: row.cursor,
            last: self.head.last,
            state: desk.map(|desk| desk.state.clone()).unwrap_or_default(),
            dead: count(false),
            requested: count(true),
        })
    }
}

impl Contents {
    pub(super) fn delivery(&self, webhook: &WebhookId) -> Option<Delivery> {
        self.listed(&webhook.task)?.delivery(self, &webhook.config)
    }

    /// A page by task id and id.
    pub(super) fn deliveries(
        &self,
        filter: &DeliveryFilter,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Vec<Delivery> {
        let of_filter = |entry: &&Entry| filter.task.as_ref().is_none_or(|task| *task == entry.id);
        let mut ids: Vec<WebhookId> = self
            .entries()
            .filter(of_filter)
            .flat_map(|entry| {
                let named = |config: &PushConfigId| WebhookId {
                    task: entry.id.clone(),
                    config: config.clone(),
                };
                entry.push_configs.keys().map(named)
            })
            .filter(|id| after.is_none_or(|after| id > after))
            .collect();
        ids.sort_unstable();
        ids.iter()
            .filter_map(|id| self.delivery(id))
            .filter(|delivery| {
                let quiet = delivery.state == DeliveryState::default() && delivery.dead == 0;
                !filter.in_trouble || !quiet
            })
            .take(limit)
            .collect()
    }

    /// What is known of a webhook that is there.
    fn desk_mut(&mut self, webhook: &WebhookId) -> Option<&mut Desk> {
        let entry = self.listed_mut(&webhook.task)?;
        if !entry.push_configs.contains_key(&webhook.config) {
            return None;
        }
        Some(entry.desks.entry(webhook.config.clone()).or_default())
    }

    pub(super) fn desk(&self, webhook: &WebhookId) -> Option<&Desk> {
        self.listed(&webhook.task)?.desks.get(&webhook.config)
    }

    pub(super) fn settle(&mut self, settlement: Settlement) {
        let Settlement {
            webhook,
            cursor,
            state,
            letter,
            ..
        } = settlement;
        self.advance_push_cursor(&webhook.task, &webhook.config, cursor);
        let Some(desk) = self.desk_mut(&webhook) else {
            return;
        };
        desk.state = state;
        match letter {
            LetterChange::Keep => {}
            LetterChange::Put(letter) => {
                desk.letters.insert(letter.position, letter);
                while desk.letters.len() > MAX_LETTERS {
                    desk.letters.pop_first();
                }
            }
            LetterChange::Remove(position) => {
                desk.letters.remove(&position);
            }
        }
    }

    pub(super) fn redeliver(&mut self, which: &Redelivery) -> u64 {
        let mut marked = 0;
        for entry in self.entries_mut() {
            for (config, desk) in &mut entry.desks {
                let of_webhook = which
                    .webhook
                    .as_ref()
                    .map(|webhook| webhook.task == entry.id && webhook.config == *config);
                if of_webhook == Some(false) {
                    continue;
                }
                if of_webhook == Some(true) {
                    desk.state = DeliveryState::default();
                }
                for letter in desk.letters.values_mut() {
                    let at = which.position.is_none_or(|at| at == letter.position);
                    if at && which.since.is_none_or(|since| letter.given_up >= since) {
                        letter.requested = true;
                        marked += 1;
                    }
                }
            }
        }
        marked
    }

    pub(super) fn record_calls(&mut self, calls: Vec<CallRecord>, keep: usize) {
        for call in calls {
            if let Some(desk) = self.desk_mut(&call.webhook) {
                desk.calls.push_back(call);
                while desk.calls.len() > keep {
                    desk.calls.pop_front();
                }
            }
        }
    }

    pub(super) fn prune_calls(&mut self, before: Timestamp, limit: usize) -> u64 {
        let mut dropped = 0;
        for entry in self.entries_mut() {
            for desk in entry.desks.values_mut() {
                while dropped < limit && desk.calls.front().is_some_and(|call| call.at < before) {
                    desk.calls.pop_front();
                    dropped += 1;
                }
            }
        }
        dropped as u64
    }
}
