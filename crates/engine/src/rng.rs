//! Jitter: a few random numbers that depend on a seed alone.

use core::time::Duration;

/// SplitMix64 (Steele, Lea, Flood 2014): enough to keep retries apart.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// A duration between half and one and a half of `mean`.
    pub(crate) fn jitter(&mut self, mean: Duration) -> Duration {
        let per_mille = 500 + u32::try_from(self.next() % 1001).unwrap_or(0);
        mean * per_mille / 1000
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
