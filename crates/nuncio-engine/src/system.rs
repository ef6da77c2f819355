//! The real clock and real identifiers.

use std::sync::Arc;

use nuncio_protocol::{Clock, Ids, Timestamp};

use crate::Environment;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that the rule asks to use"
    )]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_unix_ms(since.map_or(0, |elapsed| elapsed.as_millis() as i64))
    }
}

/// Identifiers that sort by time and cannot be guessed: 48 bits of milliseconds, 122 random bits.
///
/// A plain UUIDv7 would have 74 random bits at most (SEC-09 asks for 122).
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "these are the ids that the rule asks to use"
    )]
    fn next(&self) -> String {
        let mut text = format!("{:012x}-", SystemClock.now().unix_ms());
        let mut digits = [0; uuid::fmt::Simple::LENGTH];
        text.push_str(uuid::Uuid::new_v4().simple().encode_lower(&mut digits));
        text
    }
}

impl Environment {
    /// The surroundings of a real process; `token_key` must outlive it.
    pub fn system(token_key: [u8; 32]) -> Self {
        Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            token_key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-09: nobody guesses an id; and later ids sort later.
    #[test]
    fn ids_are_distinct_and_ordered_by_time() {
        let ids: Vec<String> = (0..1_000).map(|_| RandomIds.next()).collect();
        let distinct: std::collections::HashSet<&str> = ids.iter().map(|id| &id[13..]).collect();
        assert_eq!(distinct.len(), ids.len());
        let mut times: Vec<&str> = ids.iter().map(|id| &id[..12]).collect();
        times.dedup();
        assert!(times.is_sorted());
    }
}
