//! Keeping to how long things are kept: ended tasks, the logs of ended tasks, sessions.

use std::time::Duration;

use nuncio_protocol::Timestamp;
use nuncio_store::{StoreError, Sweep, SweepKind, SweepMark, Swept};
use tokio_util::sync::CancellationToken;

use crate::Engine;

/// How long is kept what has ended, or rests.
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
    /// Sessions with the state of their contexts, from the last time that something was written to
    /// one; 90 days. `None` keeps them for ever.
    ///
    /// State that a caller's sessions share, or an agent's, stays. As long is known whose the tasks and
    /// conversations of agents elsewhere are that calls are [passed on](crate::Passing) to, from the last
    /// time that one was used; then they are nobody's.
    pub sessions: Option<Duration>,
    /// The time between two sweeps; 10 minutes.
    pub every: Duration,
    /// Tasks, sessions, or ids of agents elsewhere, in one commit of a sweep; 50.
    pub batch: usize,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Self {
            tasks: Some(30 * DAY),
            events: Some(7 * DAY),
            sessions: Some(90 * DAY),
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
                if let Err(error) = self.sweep_all(&retention).await {
                    tracing::warn!(%error, "what has expired is not removed yet");
                }
            }
        };
        tokio::select! {
            () = sweeping => {}
            () = shutdown.cancelled() => {}
        }
    }

    async fn sweep_all(&self, retention: &Retention) -> Result<(), StoreError> {
        let (tasks, logs) = self.sweep(retention).await?;
        let sessions = self.sweep_sessions(retention).await?;
        let owned = self.sweep_owned(retention).await?;
        if tasks > 0 || logs > 0 || sessions > 0 || owned > 0 {
            tracing::info!(
                tasks,
                logs,
                sessions,
                owned,
                "removed what is kept no longer"
            );
        }
        Ok(())
    }

    /// Sweeps tasks once; gives how many, and how many logs of other tasks, have been removed.
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
            self.reclaim().await?;
        }
        Ok((tasks, logs))
    }

    /// Sweeps sessions once; gives how many have been removed.
    ///
    /// # Errors
    /// As [`Engine::sweep`].
    pub async fn sweep_sessions(&self, retention: &Retention) -> Result<u64, StoreError> {
        let Some(age) = retention.sessions else {
            return Ok(0);
        };
        let before = self.before(age);
        let mut removed = 0;
        loop {
            let store = &self.core.store;
            let part = store.prune_sessions(before, retention.batch.max(1)).await?;
            if part == 0 {
                break;
            }
            removed += part;
            tokio::time::sleep(BREATH).await;
        }
        if removed > 0 {
            self.reclaim().await?;
        }
        Ok(removed)
    }

    /// Forgets once whose the tasks and conversations of agents elsewhere are that nobody has used for
    /// as long as sessions are kept; gives their number.
    ///
    /// # Errors
    /// As [`Engine::sweep`].
    pub async fn sweep_owned(&self, retention: &Retention) -> Result<u64, StoreError> {
        let Some(age) = retention.sessions else {
            return Ok(0);
        };
        let before = self.before(age);
        let mut removed = 0;
        loop {
            let store = &self.core.store;
            let part = store.prune_owned(before, retention.batch.max(1)).await?;
            if part == 0 {
                return Ok(removed);
            }
            removed += part;
            tokio::time::sleep(BREATH).await;
        }
    }

    async fn reclaim(&self) -> Result<(), StoreError> {
        while self.core.store.reclaim().await? {
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    /// The time before which things are older than `age`.
    fn before(&self, age: Duration) -> Timestamp {
        let now = self.core.now().unix_ms();
        Timestamp::from_unix_ms(now.saturating_sub_unsigned(millis(age)))
    }

    async fn sweep_kind(
        &self,
        kind: SweepKind,
        age: Option<Duration>,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let Some(age) = age else { return Ok(0) };
        let before = self.before(age);
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
