//! When a call that failed is made again, and when it is given up.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use tokio::time::Instant;

use super::DeliverySettings;

/// A receiver that says when to come back is not believed beyond this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Calls that are refused for good, such as with 404, are made this often.
const MAX_REFUSALS: u32 = 5;

/// Why a call did not succeed.
#[derive(Debug)]
pub(super) struct Failure {
    /// For the log; no secret and no path.
    pub(super) cause: String,
    /// Whether nothing speaks for the next call to end otherwise.
    pub(super) is_refusal: bool,
    /// When the receiver wants to be called again.
    pub(super) retry_after: Option<Duration>,
}

/// How the calls of one webhook have gone since the last success.
#[derive(Clone, Debug, Default)]
pub(super) struct Streak {
    attempts: u32,
    refusals: u32,
    /// When the first of them failed, and the newest event that waited then.
    since: Option<(Instant, u64)>,
}

/// What follows from a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same event again, at this time.
    Retry(Instant),
    /// No further call for this event.
    GiveUp,
}

impl Streak {
    /// Notes a failure for the first event that waits, `last` being the newest one there is.
    ///
    /// Events that wait together grow old together: once one of them is given up, the others get
    /// one call each, while what came later has its own time.
    pub(super) fn fail(
        &mut self,
        failure: &Failure,
        event: u64,
        last: u64,
        settings: &DeliverySettings,
        seed: &impl Hash,
    ) -> Verdict {
        let now = Instant::now();
        if self.since.is_none_or(|(_, known)| event > known) {
            *self = Self::default();
        }
        let (since, _) = *self.since.get_or_insert((now, last));
        self.refusals += u32::from(failure.is_refusal);
        let end = since + settings.give_up_after;
        if now >= end || self.refusals >= MAX_REFUSALS {
            return Verdict::GiveUp;
        }
        let delays = &settings.retry_delays;
        let step = (self.attempts as usize).min(delays.len().saturating_sub(1));
        let planned = delays.get(step).copied().unwrap_or_default();
        let delay = match failure.retry_after {
            Some(asked) => asked.min(MAX_RETRY_AFTER),
            None => planned,
        };
        let jitter = jitter((seed, event, self.attempts));
        // Never earlier than asked, at most a fifth earlier or later than planned.
        let factor = match failure.retry_after {
            Some(_) => 1.0 + jitter / 5.0,
            None => 0.8 + jitter * 0.4,
        };
        self.attempts = self.attempts.saturating_add(1);
        Verdict::Retry((now + delay.mul_f64(factor)).min(end))
    }
}

/// Between 0 and 1, another for each webhook and attempt, so that no receiver is called by all at once.
fn jitter(of: impl Hash) -> f64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    f64::from(hasher.finish() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> Failure {
        Failure {
            cause: "500".to_owned(),
            is_refusal: false,
            retry_after: None,
        }
    }

    fn wait(verdict: &Verdict) -> f64 {
        match verdict {
            Verdict::Retry(at) => (*at - Instant::now()).as_secs_f64(),
            Verdict::GiveUp => panic!("given up"),
        }
    }

    /// PUSH-05: longer and longer, for 72 hours, then given up; what waited with it follows.
    #[tokio::test(start_paused = true)]
    async fn delays_grow_and_end_after_72_hours() {
        let (mut streak, settings) = (Streak::default(), DeliverySettings::default());
        let started = Instant::now();
        let mut delays = Vec::new();
        loop {
            match streak.fail(&failure(), 2, 5, &settings, &"hook") {
                Verdict::GiveUp => break,
                retry => {
                    delays.push(wait(&retry));
                    tokio::time::sleep(Duration::from_secs_f64(wait(&retry))).await;
                }
            }
        }
        let hours = started.elapsed().as_secs_f64() / 3_600.0;
        assert!((71.9..72.1).contains(&hours), "{hours}");
        assert!((4.0..=6.0).contains(&delays[0]), "{delays:?}");
        assert!((24.0..=36.0).contains(&delays[1]), "{delays:?}");
        assert!(delays.len() < 15, "{delays:?}");
        for event in 3..=5 {
            let verdict = streak.fail(&failure(), event, 6, &settings, &"hook");
            assert_eq!(verdict, Verdict::GiveUp);
        }
        let later = streak.fail(&failure(), 6, 6, &settings, &"hook");
        assert!((4.0..=6.0).contains(&wait(&later)), "its own time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_not_called_before_it_asks_to_be() {
        let settings = DeliverySettings::default();
        for hook in ["a", "b", "c", "d"] {
            let mut streak = Streak::default();
            let mut failure = failure();
            failure.retry_after = Some(Duration::from_secs(100));
            let retry = streak.fail(&failure, 1, 1, &settings, &hook);
            assert!((100.0..=120.0).contains(&wait(&retry)), "{retry:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_given_up_soon() {
        let (mut streak, settings) = (Streak::default(), DeliverySettings::default());
        let mut refusal = failure();
        refusal.is_refusal = true;
        for _ in 1..MAX_REFUSALS {
            wait(&streak.fail(&refusal, 1, 1, &settings, &"hook"));
        }
        let last = streak.fail(&refusal, 1, 1, &settings, &"hook");
        assert_eq!(last, Verdict::GiveUp);
    }
}
