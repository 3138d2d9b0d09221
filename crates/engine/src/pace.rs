//! How fast an agent of an adaptive tree starts others.
//!
//! One start a gap: a second one at once would not be there earlier, and it would be tied to this
//! host, though another may be free before. Best is a driver that tells when its host is free
//! ([`crate::Input::Started`]). Without that, a start is made every gap of what is assumed, and no
//! more are in flight than a latency holds, until children join: then they tell. Starts that wait
//! for their host come up a true gap apart.

use core::time::Duration;

use model::{Time, Tree};

/// Joins after which a gap counts as measured.
const JOINS_MIN: u32 = 2;

/// When the next start may be made.
#[derive(Debug)]
pub(crate) struct Pace {
    latency: Duration,
    gap: Duration,
    /// Whether the driver tells when its host is free.
    told: bool,
    /// When the host is free for the next start; `None`: when the driver says so.
    free_at: Option<Time>,
    has_started: bool,
    joins: u32,
    first_join: Time,
}

impl Pace {
    pub(crate) fn new(now: Time, latency: Duration, gap: Duration) -> Pace {
        Pace {
            latency,
            gap,
            told: false,
            free_at: Some(now),
            has_started: false,
            joins: 0,
            first_join: now,
        }
    }

    /// The driver will tell when its host is free.
    pub(crate) fn be_told(&mut self) {
        self.told = true;
        if self.has_started {
            self.free_at = None;
        }
    }

    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.free_at.is_some_and(|at| at <= now)
    }

    /// When the host is free, if that is later than now.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        self.free_at.filter(|&at| at > now)
    }

    /// How many starts may be in flight as far as latency and gap are concerned.
    pub(crate) fn in_flight_max(&self) -> usize {
        if self.told || self.joins > 0 {
            return usize::MAX;
        }
        let quotient = self.latency.as_nanos() / self.gap.as_nanos().max(1);
        usize::try_from(quotient).unwrap_or(usize::MAX).saturating_add(1)
    }

    pub(crate) fn on_start(&mut self, now: Time) {
        self.has_started = true;
        self.free_at = (!self.told).then(|| now + self.gap);
    }

    pub(crate) fn on_started(&mut self, now: Time) {
        self.free_at = Some(now);
    }

    /// Handles that a child has joined.
    pub(crate) fn on_joined(&mut self, now: Time, first_start: Time) {
        self.joins += 1;
        let took = now.since(first_start);
        if self.joins == 1 {
            self.first_join = now;
            let usual = self.gap.mul_f64(took.as_secs_f64() / self.latency.as_secs_f64());
            self.latency = took;
            // A start that is over this soon can't have kept its host for longer.
            self.gap = self.gap.max(usual).min(took / 4);
        }
        self.latency = self.latency.min(took);
        if self.joins >= JOINS_MIN && !self.told {
            let measured = now.since(self.first_join) / (self.joins - 1);
            self.gap = measured.min(self.latency);
        }
    }

    /// What a child needs to know of the costs.
    pub(crate) fn tree(&self) -> Tree {
        Tree::Adaptive { latency: self.latency, gap: self.gap }
    }
}
