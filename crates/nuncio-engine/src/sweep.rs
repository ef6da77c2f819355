//! Keeping to how long things are kept: ended tasks, and the logs of ended tasks.

use std::time::Duration;

use nuncio_protocol::Timestamp;
use nuncio_store::{StoreError, Sweep, SweepKind, SweepMark, Swept};
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// How long what has ended is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Ended tasks, from their last status; 30 days. `None` keeps them for ever.
    ///
    /// Their logs, keys and webhooks go with them.
    pub tasks: Option<Duration>,
    /// The logs of ended tasks, from the same time; 7 days. `None` keeps them as long as the task.
    ///
    /// The task itself stays as it is; only a stream cannot begin at an older position of it any
    /// more. A log that a webhook has not been told whole is kept.
    pub events: Option<Duration>,
    /// The time between two sweeps; 10 minutes.
    pub every: Duration,
    /// Tasks in one commit of a sweep; 50.
    pub batch: usize,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Self {
            tasks: Some(30 * DAY),
            events: Some(7 * DAY),
            every: Duration::from_secs(600),
            batch: 50,
        }
    }
}

/// The pause between two commits of a sweep: others come first.
const BREATH: Duration = Duration::from_millis(20);

impl Engine {
    /// Removes what is kept no longer, now and from time to time, until `shutdown` fires.
    ///
    /// Works in small commits with pauses in between. What fails is logged and tried again with the
    /// next sweep. Several processes may sweep one store.
    pub async fn keep(&self, retention: Retention, shutdown: CancellationToken) {
        let sweeping = async {
            let mut ticks = tokio::time::interval(retention.every.max(BREATH));
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                match self.sweep(&retention).await {
                    Ok((0, 0)) => {}
                    Ok((tasks, logs)) => {
                        tracing::info!(tasks, logs, "removed what is kept no longer");
                    }
                    Err(error) => tracing::warn!(%error, "what has expired is not removed yet"),
                }
            }
        };
        tokio::select! {
            () = sweeping => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Sweeps once; gives how many tasks, and how many logs of other tasks, have been removed.
    ///
    /// # Errors
    /// [`StoreError`] if the store cannot be read or written; what was removed before stays so.
    pub async fn sweep(&self, retention: &Retention) -> Result<(u64, u64), StoreError> {
        let batch = retention.batch;
        let tasks = self
            .sweep_kind(SweepKind::Expire, retention.tasks, batch)
            .await?;
        let logs = self
            .sweep_kind(SweepKind::Compact, retention.events, batch)
            .await?;
        if tasks > 0 || logs > 0 {
            while self.core.store.reclaim().await? {
                tokio::time::sleep(BREATH).await;
            }
        }
        Ok((tasks, logs))
    }

    async fn sweep_kind(
        &self,
        kind: SweepKind,
        age: Option<Duration>,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let Some(age) = age else { return Ok(0) };
        let before = self
            .core
            .now()
            .unix_ms()
            .saturating_sub_unsigned(millis(age));
        let before = Timestamp::from_unix_ms(before);
        let (mut removed, mut from): (u64, Option<SweepMark>) = (0, None);
        loop {
            let sweep = Sweep {
                kind,
                before,
                from,
                limit,
            };
            let Swept { tasks, next } = self.core.store.sweep(sweep).await?;
            removed += tasks.len() as u64;
            from = next;
            if from.is_none() {
                return Ok(removed);
            }
            tokio::time::sleep(BREATH).await;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
