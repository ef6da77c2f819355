//! Time that stands still and ids that count.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use nuncio_protocol::{Clock, Ids, Timestamp};

/// A clock that moves only when told.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl Default for FixedClock {
    fn default() -> Self {
        Self(AtomicI64::new(1_761_647_400_000))
    }
}

impl FixedClock {
    /// Moves it by milliseconds, backwards too.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(self.0.load(Ordering::SeqCst))
    }
}

/// Ids `id-00000001`, `id-00000002` and so on.
#[derive(Debug, Default)]
pub struct NumberedIds(AtomicU64);

impl Ids for NumberedIds {
    fn next(&self) -> String {
        format!("id-{:08}", self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
