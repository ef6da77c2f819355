//! A program that serves one run after another.

use std::io;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};

use super::child::Child;

/// The longest pause before a program that ends again and again is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The first such pause.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The place of a kept program.
#[derive(Default)]
pub(super) struct Kept(Mutex<Slot>);

#[derive(Default)]
struct Slot {
    /// The program between two runs.
    child: Option<Child>,
    /// Runs in a row that the program has not survived.
    failures: u32,
    /// When it may be started again.
    not_before: Option<Instant>,
}

/// The program, for one run. It ends with the run unless it is [given back](Self::give_back).
pub(super) struct Borrowed<'a> {
    slot: MutexGuard<'a, Slot>,
}

impl Kept {
    /// Waits until no other run has the program.
    pub(super) async fn borrow(&self) -> Borrowed<'_> {
        Borrowed {
            slot: self.0.lock().await,
        }
    }
}

impl Borrowed<'_> {
    /// The program, started if it does not run; after failures not at once.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) async fn child(
        &mut self,
        start: impl FnOnce() -> io::Result<Child>,
    ) -> io::Result<Child> {
        let living = self.slot.child.take().filter(|child| !child.has_ended());
        if let Some(child) = living {
            self.slot.failures = 1;
            return Ok(child);
        }
        if let Some(moment) = self.slot.not_before {
            sleep_until(moment).await;
        }
        // Counts until the program is given back, also if the run is dropped.
        self.slot.failures = self.slot.failures.saturating_add(1);
        self.slot.not_before = Some(Instant::now() + pause(self.slot.failures));
        start()
    }

    /// Keeps a program that has served its run.
    pub(super) fn give_back(mut self, mut child: Child) {
        child.read = 0;
        self.slot.child = Some(child);
        self.slot.failures = 0;
        self.slot.not_before = None;
    }
}

/// How long after its start a program may be started again, if this many runs have failed with it.
fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end_growing() {
        let pauses = [0, 1, 2, 3, 9, 10, u32::MAX].map(|n| pause(n).as_millis());
        assert_eq!(pauses, [100, 100, 200, 400, 25_600, 30_000, 30_000]);
    }
}
