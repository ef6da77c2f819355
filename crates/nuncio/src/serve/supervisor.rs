//! What a supervisor such as systemd is told: ready, stopping, still alive.
//!
//! Nothing is told unless `NOTIFY_SOCKET` names somebody who listens.

use std::future::Future;
use std::time::Duration;

/// What can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Requests are answered.
    Ready,
    /// The server is about to end.
    Stopping,
    /// The watchdog may wait for the next one.
    Alive,
}

/// Tells it, if somebody listens.
pub(super) fn tell(word: Word) {
    #[cfg(unix)]
    {
        let state = match word {
            Word::Ready => sd_notify::NotifyState::Ready,
            Word::Stopping => sd_notify::NotifyState::Stopping,
            Word::Alive => sd_notify::NotifyState::Watchdog,
        };
        if let Err(error) = sd_notify::notify(&[state]) {
            tracing::warn!(%error, ?word, "the supervisor could not be told");
        }
    }
    #[cfg(not(unix))]
    let _ = word;
}

/// How long the supervisor waits for a sign of life, if it does.
pub(super) fn patience() -> Option<Duration> {
    #[cfg(unix)]
    return sd_notify::watchdog_enabled();
    #[cfg(not(unix))]
    return None;
}

/// Gives signs of life twice as often as needed, as long as `answers` says yes in time.
///
/// A store that hangs, or a runtime that does, is silence: the supervisor then starts the server
/// anew. Runs until dropped.
pub(super) async fn watch<A>(
    patience: Duration,
    mut answers: impl FnMut() -> A,
    mut alive: impl FnMut(),
) where
    A: Future<Output = bool>,
{
    let period = (patience / 2).max(Duration::from_millis(1));
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match tokio::time::timeout(period, answers()).await {
            Ok(true) => alive(),
            Ok(false) | Err(_) => tracing::warn!("the store does not answer: no sign of life"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    async fn signs_within(seconds: u64, answers: impl Fn(u32) -> Option<bool>) -> u32 {
        let (asked, signs) = (Cell::new(0), Cell::new(0));
        let watching = watch(
            Duration::from_secs(10),
            || {
                asked.set(asked.get() + 1);
                let answer = answers(asked.get());
                async move {
                    match answer {
                        Some(answer) => answer,
                        None => std::future::pending().await,
                    }
                }
            },
            || signs.set(signs.get() + 1),
        );
        let _ = tokio::time::timeout(Duration::from_secs(seconds), watching).await;
        signs.get()
    }

    /// R14: twice in the time that the supervisor waits, and only while the store answers.
    #[tokio::test(start_paused = true)]
    async fn signs_of_life_need_a_store_that_answers() {
        assert_eq!(signs_within(59, |_| Some(true)).await, 12);
        assert_eq!(signs_within(59, |_| Some(false)).await, 0);
        assert_eq!(signs_within(59, |_| None).await, 0, "a store that hangs");
        let passing = |n: u32| Some(!(3..=5).contains(&n));
        assert_eq!(signs_within(59, passing).await, 9, "and again afterwards");
    }
}
