//! A slow child: what it was to start does not wait for it.
//!
//! A child that is much longer on its way than the others took is not given up, but its parent starts
//! itself what that child was to start (`takeover.rs`). The names are still here, since they go with the
//! welcome. When it comes up at last it has nobody to start.
//!
//! What is much longer is measured: [`MUCH`] times the median of those that have come up, once they are as
//! many as are on their way. So where most hosts are slow, none is, and a single child has nobody to be
//! compared with. A false alarm costs no time, but gives the parent children that the plan gave others.
//! So that the starts of few milliseconds of this host itself, or a busy processor, do not spoil plans, starts
//! count as long as is assumed of a remote shell at the least.
//!
//! It costs a look at the longest awaited child, and the times that starts took.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::time::Duration;

use model::{Time, Tree};

use crate::engine::{Engine, Phase};

/// How many times the usual a start takes that is slow. Starts that queue on this host take up to twice
/// the median of those before them. Of heavy-tailed ones (log-normal with sigma 0.7, Pareto with index
/// 2) about one in a hundred takes six times the median. And a call whose first packet is lost comes a
/// second later, which is within six times the least that counts.
const MUCH: u32 = 6;

/// What the starts took of children that have come up, tries again included, in two halves: the least of
/// the longer half is their median.
#[derive(Debug, Default)]
pub(crate) struct StartTimes {
    shorter: BinaryHeap<Duration>,
    longer: BinaryHeap<Reverse<Duration>>,
}

impl StartTimes {
    pub(crate) fn note(&mut self, took: Duration) {
        self.shorter.push(took);
        self.longer.extend(self.shorter.pop().map(Reverse));
        if self.longer.len() > self.shorter.len() + 1 {
            self.shorter.extend(self.longer.pop().map(|Reverse(took)| took));
        }
    }

    /// After how long a start is slow, while so many others are on their way.
    fn slow_after(&self, in_flight: usize) -> Option<Duration> {
        let Reverse(median) = self.longer.peek()?;
        let is_known = self.shorter.len() + self.longer.len() >= in_flight;
        is_known.then(|| MUCH * (*median).max(Tree::ASSUMED_LATENCY))
    }
}

impl Engine {
    /// When the next child is slow that is to start others, if it does not come up before.
    pub(crate) fn slow_due(&self) -> Option<Time> {
        let (since, _) = self.children.longest_awaited()?;
        let may_start = self.phase == Phase::Join && !self.joining.is_over;
        let after = self.start_times.slow_after(self.children.agents_in_flight());
        Some(since + after.filter(|_| may_start)?)
    }

    /// Starts what slow children were to start.
    pub(crate) fn relieve_slow(&mut self) {
        self.children.refresh();
        while self.slow_due().is_some_and(|at| at <= self.now)
            && let Some((_, agent)) = self.children.longest_awaited()
        {
            // Nobody of them can have failed: nobody has started them.
            let below = self.children[&agent].below.clone();
            self.take_over(agent, &below);
            self.children.refresh();
        }
    }
}
