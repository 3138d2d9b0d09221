//! Numbers that look random and follow from a seed (splitmix64).

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// What random numbers are drawn for, on one node. The numbers are part of what a seed means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// The latency of a start of the node's agent.
    Latency = 101,
    /// The gap after a start of the node's agent.
    Gap = 102,
    /// Whether the node is slow.
    Slow = 103,
    /// The latency of the link to its parent.
    Link = 104,
    /// Whether an sshd refuses the node's agent.
    Login = 105,
}

impl Random {
    /// The stream of `seed` for one `purpose`, so that one more number drawn for one purpose
    /// leaves the others as they are.
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut random = Random { state: seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95) };
        random.next();
        random
    }

    /// The stream of `seed` for one `purpose` on one `node`, for its `index`-th use.
    pub(crate) fn keyed(seed: u64, node: u32, purpose: Purpose, index: u32) -> Random {
        let key = u64::from(node) << 32 | u64::from(index);
        let mut random =
            Random::new(seed ^ key.wrapping_mul(0xaef1_7502_108e_f2d9), purpose as u64);
        random.next();
        random
    }

    /// A number between 0 and 1, both excluded.
    pub fn fraction(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        ((self.next() >> 11) as f64 + 0.5) / STEPS
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times on average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`, which are not empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[usize::try_from(self.below(choices.len() as u64)).unwrap_or_default()]
    }
}
