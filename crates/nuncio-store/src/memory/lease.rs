//! The time that leases are counted on: tokio's, so that it stands still in tests that say so.

use std::time::Duration;

use tokio::time::Instant;

/// Ten years: who leases for longer leases for good.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// When a lease given now is over.
pub(super) fn until(term: Duration) -> Instant {
    Instant::now() + term.min(LONGEST)
}
