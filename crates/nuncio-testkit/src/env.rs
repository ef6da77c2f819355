//! Time that stands still and ids that count.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use nuncio_protocol::{Clock, Ids, SpanRecord, SpanSink, Timestamp};
use parking_lot::Mutex;

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

/// Ids `id-0001-00000001`, `id-0001-00000002` and so on; each value has a first number of its own,
/// so that two engines on one store are two.
#[derive(Debug)]
pub struct NumberedIds {
    series: u64,
    last: AtomicU64,
}

impl Default for NumberedIds {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            series: LAST.fetch_add(1, Ordering::SeqCst) + 1,
            last: AtomicU64::new(0),
        }
    }
}

impl Ids for NumberedIds {
    fn next(&self) -> String {
        let number = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        format!("id-{:04}-{number:08}", self.series)
    }
}

/// Spans as they end.
#[derive(Debug, Default)]
pub struct RecordedSpans(Mutex<Vec<SpanRecord>>);

impl RecordedSpans {
    /// All so far.
    pub fn all(&self) -> Vec<SpanRecord> {
        self.0.lock().clone()
    }
}

impl SpanSink for RecordedSpans {
    fn ended(&self, span: SpanRecord) {
        self.0.lock().push(span);
    }
}
