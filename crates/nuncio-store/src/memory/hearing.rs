//! What the handles of one memory store hear of each other.

use std::sync::atomic::{AtomicU64, Ordering};

use nuncio_protocol::TaskId;
use parking_lot::RwLock;
use tokio::sync::broadcast;

use crate::Change;

/// Changes that a handle's readers may be behind.
const CAPACITY: usize = 1_024;

/// Who hears of changes.
#[derive(Debug, Default)]
pub(super) struct Hearers {
    last: AtomicU64,
    handles: RwLock<Vec<(u64, broadcast::Sender<Change>)>>,
}

impl Hearers {
    /// Another handle: its tag, which its own changes bear.
    pub(super) fn enter(&self) -> u64 {
        let tag = self.last.fetch_add(1, Ordering::Relaxed);
        let (sender, _) = broadcast::channel(CAPACITY);
        self.handles.write().push((tag, sender));
        tag
    }

    pub(super) fn leave(&self, tag: u64) {
        self.handles.write().retain(|(of, _)| *of != tag);
    }

    /// What a handle is to hear, if there are others.
    pub(super) fn subscribe(&self, tag: u64) -> Option<broadcast::Receiver<Change>> {
        let handles = self.handles.read();
        let mine = handles.iter().find(|(of, _)| *of == tag)?;
        (handles.len() > 1).then(|| mine.1.subscribe())
    }

    /// Tells the other handles.
    pub(super) fn tell(&self, tag: u64, task: &TaskId) {
        for (of, sender) in self.handles.read().iter() {
            if *of != tag {
                // Nobody may be listening.
                let _ = sender.send(Change::Task(task.clone()));
            }
        }
    }
}
