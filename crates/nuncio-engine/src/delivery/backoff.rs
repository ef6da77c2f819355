//! When a call that failed is made again, and when it is given up.
//!
//! A running process measures by the monotonic clock. What it has measured is kept with the
//! webhook; the next process adds the time it was away, by the wall clock and within bounds, so
//! that a clock that jumps can neither give anything up early nor keep it waiting.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use nuncio_protocol::Timestamp;
use nuncio_store::DeliveryState;
use tokio::time::Instant;

use super::DeliverySettings;

/// A receiver that says when to come back is not believed beyond this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// Calls that are refused for good, such as with 404, are made this often.
const MAX_REFUSALS: u32 = 5;

/// Why a call did not succeed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
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
    /// Since when the events that wait have failed, and the newest one that waited then.
    waiting: Option<(Span, u64)>,
    /// Since when nothing at all has been taken, and the same by the wall clock.
    down: Option<(Span, Timestamp)>,
}

/// A time that goes on, some of which an earlier process has measured.
#[derive(Clone, Copy, Debug)]
struct Span {
    before: Duration,
    since: Instant,
}

impl Span {
    fn new(before: Duration) -> Self {
        Self {
            before,
            since: Instant::now(),
        }
    }

    fn length(self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// How long until it is as long as this.
    fn left(self, limit: Duration) -> Duration {
        limit.saturating_sub(self.length())
    }
}

/// What follows from a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same event again, after this time.
    Retry(Duration),
    /// No further call for this event.
    GiveUp,
}

impl DeliverySettings {
    /// The longest time between two calls.
    fn longest_wait(&self) -> Duration {
        let delays = self.retry_delays.iter().copied();
        let longest = delays.max().unwrap_or_default().max(MAX_RETRY_AFTER);
        longest.mul_f64(1.2)
    }
}

impl Streak {
    /// Goes on where another process, or an earlier turn, has left off; the second value is how
    /// long the next call has to wait.
    pub(super) fn resumed(
        state: &DeliveryState,
        now: Timestamp,
        settings: &DeliverySettings,
    ) -> (Self, Duration) {
        let longest = settings.longest_wait();
        let away = state.last_call.map_or(Duration::ZERO, |last| {
            milliseconds(now.unix_ms() - last.unix_ms()).min(longest)
        });
        let wait = state.next_call.map_or(Duration::ZERO, |next| {
            milliseconds(next.unix_ms() - now.unix_ms()).min(longest)
        });
        let waits = state.failing_since.is_some() && state.upto > 0;
        let streak = Self {
            attempts: state.attempts,
            refusals: state.refusals,
            waiting: waits.then(|| (Span::new(state.failing_for + away), state.upto)),
            down: state
                .failing_since
                .map(|since| (Span::new(state.down_for + away), since)),
        };
        (streak, wait)
    }

    /// What another process has to know: the call just made was at `now`, the next one follows
    /// after `wait`.
    pub(super) fn state(&self, now: Timestamp, wait: Option<Duration>) -> DeliveryState {
        let Some((down, since)) = self.down else {
            return DeliveryState::default();
        };
        let later = |wait: Duration| {
            let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_unix_ms(now.unix_ms().saturating_add(wait))
        };
        DeliveryState {
            attempts: self.attempts,
            refusals: self.refusals,
            upto: self.waiting.map_or(0, |(_, upto)| upto),
            failing_for: self
                .waiting
                .map_or(Duration::ZERO, |(span, _)| span.length()),
            down_for: down.length(),
            failing_since: Some(since),
            last_call: Some(now),
            next_call: wait.map(later),
            disabled: None,
        }
    }

    /// The number of the next call for the event that waits, from 1.
    pub(super) fn next_attempt(&self) -> u32 {
        self.attempts.saturating_add(1)
    }

    /// How long nothing at all has been taken.
    pub(super) fn down_for(&self) -> Duration {
        self.down.map_or(Duration::ZERO, |(span, _)| span.length())
    }

    /// Notes a failure, at `now` by the wall clock, for the first event that waits, `last` being
    /// the newest one there is.
    ///
    /// Events that wait together grow old together: once one of them is given up, the others get
    /// one call each, while what came later has its own time.
    pub(super) fn fail(
        &mut self,
        failure: &Failure,
        (event, last): (u64, u64),
        now: Timestamp,
        settings: &DeliverySettings,
        seed: &impl Hash,
    ) -> Verdict {
        self.down.get_or_insert((Span::new(Duration::ZERO), now));
        if self.waiting.is_none_or(|(_, known)| event > known) {
            self.waiting = None;
            (self.attempts, self.refusals) = (0, 0);
        }
        let (waiting, _) = *self
            .waiting
            .get_or_insert((Span::new(Duration::ZERO), last));
        self.refusals += u32::from(failure.is_refusal);
        let left = waiting.left(settings.give_up_after);
        if left.is_zero() || self.refusals >= MAX_REFUSALS {
            self.attempts = 0;
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
        Verdict::Retry(delay.mul_f64(factor).min(left))
    }
}

fn milliseconds(span: i64) -> Duration {
    Duration::from_millis(u64::try_from(span).unwrap_or(0))
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

    const NOW_MS: i64 = 1_700_000_000_000;

    fn failure() -> Failure {
        Failure {
            is_refusal: false,
            retry_after: None,
        }
    }

    fn wait(verdict: &Verdict) -> f64 {
        match verdict {
            Verdict::Retry(wait) => wait.as_secs_f64(),
            Verdict::GiveUp => panic!("given up"),
        }
    }

    fn later(seconds: i64) -> Timestamp {
        Timestamp::from_unix_ms(NOW_MS + seconds * 1_000)
    }

    /// PUSH-05: longer and longer, for 72 hours, then given up; what waited with it follows.
    ///
    /// P6: it makes no difference how often the process ends on the way.
    #[tokio::test(start_paused = true)]
    async fn delays_grow_and_end_after_72_hours_however_often_the_process_ends() {
        let settings = DeliverySettings::default();
        for restarts in [false, true] {
            let mut streak = Streak::default();
            let started = Instant::now();
            let wall = || later(i64::try_from(started.elapsed().as_secs()).unwrap());
            let mut delays = Vec::new();
            while let Verdict::Retry(delay) =
                streak.fail(&failure(), (2, 5), wall(), &settings, &"hook")
            {
                delays.push(delay.as_secs_f64());
                if restarts {
                    let state = streak.state(wall(), Some(delay));
                    tokio::time::sleep(delay / 2).await;
                    let wait;
                    (streak, wait) = Streak::resumed(&state, wall(), &settings);
                    tokio::time::sleep(wait).await;
                } else {
                    tokio::time::sleep(delay).await;
                }
            }
            let hours = started.elapsed().as_secs_f64() / 3_600.0;
            assert!((71.9..72.1).contains(&hours), "{hours}");
            assert!((4.0..=6.0).contains(&delays[0]), "{delays:?}");
            assert!((24.0..=36.0).contains(&delays[1]), "{delays:?}");
            assert!((8..15).contains(&delays.len()), "{delays:?}");
            for event in 3..=5 {
                let verdict = streak.fail(&failure(), (event, 6), wall(), &settings, &"hook");
                assert_eq!(verdict, Verdict::GiveUp);
            }
            let next = streak.fail(&failure(), (6, 6), wall(), &settings, &"hook");
            assert!((4.0..=6.0).contains(&wait(&next)), "its own time");
            assert!(streak.down_for() > Duration::from_secs(71 * 3_600));
        }
    }

    /// R11: a clock that jumps between two processes gives nothing up, and keeps nothing waiting
    /// for longer than the longest delay.
    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_counts_within_bounds() {
        let settings = DeliverySettings::default();
        let mut streak = Streak::default();
        let delay = streak.fail(&failure(), (1, 1), later(0), &settings, &"hook");
        let delay = Duration::from_secs_f64(wait(&delay));
        let state = streak.state(later(0), Some(delay));
        let year = 365 * 86_400;
        let (mut ahead, wait) = Streak::resumed(&state, later(year), &settings);
        assert_eq!(wait, Duration::ZERO);
        let verdict = ahead.fail(&failure(), (1, 1), later(year), &settings, &"hook");
        assert!(matches!(verdict, Verdict::Retry(_)), "{verdict:?}");
        let (behind, wait) = Streak::resumed(&state, later(-year), &settings);
        assert!(wait <= settings.longest_wait(), "{wait:?}");
        assert!(behind.down_for() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_not_called_before_it_asks_to_be() {
        let settings = DeliverySettings::default();
        for hook in ["a", "b", "c", "d"] {
            let mut streak = Streak::default();
            let mut failure = failure();
            failure.retry_after = Some(Duration::from_secs(100));
            let retry = streak.fail(&failure, (1, 1), later(0), &settings, &hook);
            assert!((100.0..=120.0).contains(&wait(&retry)), "{retry:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_given_up_soon() {
        let (mut streak, settings) = (Streak::default(), DeliverySettings::default());
        let mut refusal = failure();
        refusal.is_refusal = true;
        for _ in 1..MAX_REFUSALS {
            wait(&streak.fail(&refusal, (1, 1), later(0), &settings, &"hook"));
        }
        let last = streak.fail(&refusal, (1, 1), later(0), &settings, &"hook");
        assert_eq!(last, Verdict::GiveUp);
    }
}
