//! Who tells the deliverer that there is something to deliver.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use nuncio_protocol::{PushConfigId, TaskId};
use nuncio_store::Scope;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A task within its scope.
pub(crate) type TaskKey = (Scope, TaskId);

/// A webhook of a task.
pub(crate) type WebhookKey = (TaskKey, PushConfigId);

/// The tasks with webhooks that have changed since the deliverer looked last.
///
/// Each is noted once however much happens, and only while somebody delivers.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    listening: AtomicBool,
    /// Whether a webhook was changed, so that it is not to wait for its next attempt.
    woken: Mutex<BTreeMap<TaskKey, bool>>,
    pub(crate) noted: Notify,
    /// Whether what has been left behind is to be looked for again.
    look_again: AtomicBool,
    /// The webhooks that are being delivered to, and whether they have been changed meanwhile.
    busy: Mutex<HashMap<WebhookKey, bool>>,
}

impl Wakes {
    /// Notes that a task with webhooks has new events.
    pub(crate) fn wake(&self, scope: &Scope, task: &TaskId) {
        self.note((scope.clone(), task.clone()), false);
    }

    /// Notes that a webhook has been created, replaced or deleted: from the return on, no call
    /// begins that knows only what was before (OP-PDEL-02).
    pub(crate) fn change(&self, scope: &Scope, task: &TaskId, webhook: &PushConfigId) {
        let task = (scope.clone(), task.clone());
        let key = (task.clone(), webhook.clone());
        if let Some(changed) = self.busy.lock().get_mut(&key) {
            *changed = true;
        }
        self.note(task, true);
    }

    fn note(&self, task: TaskKey, changed: bool) {
        if self.listening.load(Ordering::Acquire) {
            *self.woken.lock().entry(task).or_default() |= changed;
            self.noted.notify_one();
        }
    }

    /// Has what is left behind looked for again: anything may have been changed.
    pub(crate) fn look_again(&self) {
        self.look_again.store(true, Ordering::Release);
        self.noted.notify_one();
    }

    /// Whether it is to be looked for again; asked once.
    pub(super) fn is_to_look_again(&self) -> bool {
        self.look_again.swap(false, Ordering::AcqRel)
    }

    /// Begins or ends noting.
    pub(super) fn listen(&self, listening: bool) {
        self.listening.store(listening, Ordering::Release);
        if !listening {
            self.woken.lock().clear();
        }
    }

    /// Takes what has been noted of one task.
    pub(super) fn take(&self) -> Option<(TaskKey, bool)> {
        self.woken.lock().pop_first()
    }

    /// Forgets all that has been noted; whoever does has to read the backlog again.
    pub(super) fn forget(&self) -> bool {
        let mut woken = self.woken.lock();
        let any = !woken.is_empty();
        woken.clear();
        any
    }

    pub(super) fn begin(&self, webhook: &WebhookKey) {
        self.busy.lock().insert(webhook.clone(), false);
    }

    pub(super) fn end(&self, webhook: &WebhookKey) {
        self.busy.lock().remove(webhook);
    }

    /// Whether the webhook has been changed since it was asked last.
    pub(super) fn has_changed(&self, webhook: &WebhookKey) -> bool {
        let mut busy = self.busy.lock();
        busy.get_mut(webhook).is_some_and(std::mem::take)
    }
}
