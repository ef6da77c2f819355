//! How often, and after which delays, something is tried again. No delay is random.

use std::time::Duration;

/// Delays that grow by a factor up to a cap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first delay.
    pub first: Duration,
    /// What each delay is multiplied by to give the next.
    pub factor: f64,
    /// The longest delay.
    pub cap: Duration,
}

impl Backoff {
    /// The delay before retry number `n`, counted from 0.
    pub fn delay(&self, n: u32) -> Duration {
        let exponent = i32::try_from(n.min(64)).unwrap_or(64);
        let seconds = self.first.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(self.cap)
            .min(self.cap)
    }
}

/// What is tried again within one call.
///
/// Everything is, when no connection came about: then nothing was sent. So is what the agent
/// declined for now with `Retry-After`, since it did not begin. Reads are also tried again after a
/// connection that broke.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How many further attempts; 2.
    pub retries: u32,
    /// The delays where the agent names none: 200 ms, doubling, 5 s at most.
    pub backoff: Backoff,
    /// The longest `Retry-After` that is waited for; 30 s. A longer one is given to the caller.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            backoff: Backoff {
                first: Duration::from_millis(200),
                factor: 2.0,
                cap: Duration::from_secs(5),
            },
            max_retry_after: Duration::from_secs(30),
        }
    }
}

/// How a task is followed when its stream is lost, or when there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FollowPolicy {
    /// Whether tasks are followed by streams where the agent has them; yes. Else they are polled.
    pub streams: bool,
    /// How many attempts in a row to get a lost stream, or a poll, back; 8.
    ///
    /// With the delays between them they give an agent that restarts more than 15 s.
    pub attempts: u32,
    /// The delays between those: 250 ms, doubling, 5 s at most.
    pub reconnect: Backoff,
    /// The delays between polls that show no change: 100 ms, growing by half, 5 s at most.
    pub poll: Backoff,
    /// How long a task without a change is polled before the wait is given up; one hour.
    pub max_quiet: Duration,
    /// How long a stream may stay open after its task has ended; 1 s.
    pub linger: Duration,
}

impl Default for FollowPolicy {
    fn default() -> Self {
        Self {
            streams: true,
            attempts: 8,
            reconnect: Backoff {
                first: Duration::from_millis(250),
                factor: 2.0,
                cap: Duration::from_secs(5),
            },
            poll: Backoff {
                first: Duration::from_millis(100),
                factor: 1.5,
                cap: Duration::from_secs(5),
            },
            max_quiet: Duration::from_secs(3600),
            linger: Duration::from_secs(1),
        }
    }
}
