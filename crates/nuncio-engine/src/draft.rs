//! Sends whose task is not stored yet: who repeats one meanwhile joins it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use nuncio_store::{Idempotency, Scope};
use parking_lot::Mutex;

use crate::cell::Cell;

type Key = (Scope, String);

/// The sends under way, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Drafts(Mutex<HashMap<Key, Draft>>);

#[derive(Debug)]
struct Draft {
    cell: Weak<Cell>,
    request_hash: [u8; 32],
}

/// Holds the key of a send until its run is over; from the commit on, the store knows it too.
///
/// Dropped before the run has come to anything, it gives up the send, so that nobody who joined it
/// waits in vain.
#[derive(Debug)]
pub(crate) struct DraftGuard {
    drafts: Arc<Drafts>,
    key: Key,
    cell: Arc<Cell>,
}

/// What became of a key.
pub(crate) enum Joined {
    /// Nobody else had it.
    First(DraftGuard),
    /// The same request is under way, or another one with this key.
    Other { cell: Arc<Cell>, same_request: bool },
}

impl Drafts {
    /// Takes the key for this cell, unless a send under way has it.
    pub(crate) fn join(
        self: &Arc<Self>,
        scope: &Scope,
        key: &Idempotency,
        cell: &Arc<Cell>,
    ) -> Joined {
        let mut drafts = self.0.lock();
        let place = (scope.clone(), key.key.clone());
        if let Some(draft) = drafts.get(&place)
            && let Some(cell) = draft.cell.upgrade()
        {
            return Joined::Other {
                cell,
                same_request: draft.request_hash == key.request_hash,
            };
        }
        let draft = Draft {
            cell: Arc::downgrade(cell),
            request_hash: key.request_hash,
        };
        drafts.insert(place.clone(), draft);
        Joined::First(DraftGuard {
            drafts: Arc::clone(self),
            key: place,
            cell: Arc::clone(cell),
        })
    }
}

impl Drop for DraftGuard {
    fn drop(&mut self) {
        self.drafts.0.lock().remove(&self.key);
        self.cell.abandon();
    }
}
