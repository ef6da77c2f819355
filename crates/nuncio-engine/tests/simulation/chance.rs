//! Chance that can be had again: numbers from a seed.

use std::sync::Arc;

use parking_lot::Mutex;

/// SplitMix64; clones draw from the same sequence.
#[derive(Clone, Debug)]
pub(crate) struct Chance(Arc<Mutex<u64>>);

impl Chance {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    fn draw(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.draw() % end
    }

    /// True once in `times`.
    pub(crate) fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }
}
