//! The log of calls, written in batches and off the path of events and calls.

use std::mem::take;
use std::time::Duration;

use nuncio_protocol::Timestamp;
use nuncio_store::CallRecord;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Courier;

/// How long calls are gathered before they are written.
const GATHER: Duration = Duration::from_secs(1);

/// Calls that wait to be written at most; while the store does not answer, newer ones are lost.
const MAX_WAITING: usize = 10_000;

/// How often old calls are dropped, and how many at a time.
const PRUNE_EVERY: Duration = Duration::from_secs(3_600);
const PRUNE_AT_ONCE: usize = 5_000;

/// Calls on their way into the log.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    waiting: Mutex<Vec<CallRecord>>,
    noted: Notify,
}

impl Recorder {
    /// Notes a call, to be written soon.
    pub(super) fn note(&self, call: CallRecord) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < MAX_WAITING {
            waiting.push(call);
            drop(waiting);
            self.noted.notify_one();
        }
    }
}

impl Courier {
    /// Writes what is noted and drops what is old, until `ended` fires; then writes what is left.
    pub(super) async fn keep_records(&self, ended: &CancellationToken) {
        let mut prune_at = Instant::now();
        loop {
            tokio::select! {
                () = ended.cancelled() => break,
                () = self.recorder.noted.notified() => {
                    tokio::select! {
                        () = ended.cancelled() => break,
                        () = sleep(GATHER) => self.write_records().await,
                    }
                }
                () = sleep_until(prune_at) => {
                    self.prune_records().await;
                    prune_at = Instant::now() + PRUNE_EVERY;
                }
            }
        }
        self.write_records().await;
    }

    async fn write_records(&self) {
        let calls = take(&mut *self.recorder.waiting.lock());
        if calls.is_empty() {
            return;
        }
        let keep = self.outbound.settings.keep_calls;
        let written = self.core.store.record_calls(calls.clone(), keep).await;
        if let Err(error) = written {
            tracing::warn!(%error, calls = calls.len(), "calls of webhooks are not logged yet");
            let mut waiting = self.recorder.waiting.lock();
            let newer = std::mem::replace(&mut *waiting, calls);
            waiting.extend(newer);
            waiting.truncate(MAX_WAITING);
            drop(waiting);
            self.recorder.noted.notify_one();
        }
    }

    async fn prune_records(&self) {
        let kept = self.outbound.settings.keep_calls_for.as_millis();
        let kept = i64::try_from(kept).unwrap_or(i64::MAX);
        let before = self.core.now().unix_ms().saturating_sub(kept);
        let before = Timestamp::from_unix_ms(before);
        loop {
            let pruned = self.core.store.prune_calls(before, PRUNE_AT_ONCE).await;
            match pruned {
                Ok(dropped) if dropped == PRUNE_AT_ONCE as u64 => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "old calls of webhooks stay in the log");
                    return;
                }
            }
        }
    }
}
