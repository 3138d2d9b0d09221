//! How fast an agent of an adaptive tree starts others.
//!
//! One start a gap: a second one at once would not be up earlier, and it would be tied to this
//! host, though another may be free before. Best is a driver that tells when its host is free
//! ([`crate::Input::Started`]). Without that, a start is made every gap of what is assumed, and no
//! more are in flight than a latency holds, until children join. The first tells the latency, and
//! the gap is taken to be the same part of it; the next tell the gap, since starts that wait for
//! their host come up a true gap apart. Costs a few words, and time in nothing.
//!
//! Where many names are of one host, its sshd turns away who finds too many before it. As many as are left
//! then fit, and no more are in flight, but for one more each time that so many have joined.

use core::time::Duration;

use model::{Time, Tree};

/// When the next start may be made.
#[derive(Debug)]
pub(crate) struct Pace {
    latency: Duration,
    gap: Duration,
    /// Whether the driver tells when its host is free.
    told: bool,
    /// When the host is free for the next start; `None`: when the driver says so.
    free_at: Option<Time>,
    /// When the latest start was made, if any was.
    last_start: Option<Time>,
    has_joined: bool,
    spell: Option<Spell>,
    crowd: Option<Crowd>,
}

/// How many starts in flight hosts let in, since one was turned away for there were too many.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    most: usize,
    joined: usize,
}

/// Joins while starts were in flight all the time.
#[derive(Clone, Copy, Debug)]
struct Spell {
    first_join: Time,
    later_joins: u32,
}

impl Pace {
    pub(crate) fn new(now: Time, latency: Duration, gap: Duration) -> Pace {
        Pace {
            latency,
            gap,
            told: false,
            free_at: Some(now),
            last_start: None,
            has_joined: false,
            spell: None,
            crowd: None,
        }
    }

    /// The driver will tell when its host is free, also after what has been started already.
    pub(crate) fn be_told(&mut self) {
        self.told = true;
        if self.last_start.is_some() {
            self.free_at = None;
        }
    }

    pub(crate) fn is_free(&self, now: Time) -> bool {
        self.free_at.is_some_and(|at| at <= now)
    }

    /// When the host is free, if that is later than now and known.
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        self.free_at.filter(|&at| at > now)
    }

    /// How many starts may be in flight as far as latency and gap are concerned, and hosts let in.
    pub(crate) fn in_flight_max(&self) -> usize {
        let let_in = self.crowd.map_or(usize::MAX, |crowd| crowd.most);
        if self.told || self.has_joined {
            return let_in;
        }
        let quotient = self.latency.as_nanos() / self.gap.as_nanos().max(1);
        usize::try_from(quotient).unwrap_or(usize::MAX).saturating_add(1).min(let_in)
    }

    /// Handles that a host turned a start away since there were too many; so many are left in flight.
    pub(crate) fn on_busy(&mut self, in_flight: usize) {
        self.crowd = Some(Crowd { most: in_flight.max(1), joined: 0 });
    }

    /// Handles a start beside so many others in flight.
    pub(crate) fn on_start(&mut self, now: Time, in_flight: usize) {
        self.last_start = Some(now);
        self.free_at = (!self.told).then(|| now + self.gap);
        if in_flight == 0 {
            self.spell = None;
        }
    }

    pub(crate) fn on_started(&mut self, now: Time) {
        self.free_at = Some(now);
    }

    /// Handles that a child has joined.
    pub(crate) fn on_joined(&mut self, now: Time, first_start: Time) {
        let took = now.since(first_start);
        if let Some(crowd) = &mut self.crowd {
            crowd.joined += 1;
            if crowd.joined == crowd.most {
                *crowd = Crowd { most: crowd.most + 1, joined: 0 };
            }
        }
        if !self.has_joined {
            self.has_joined = true;
            self.gap = self.gap.max(self.usual_part(took)).min(took / 4);
            self.latency = took;
            // What was assumed until now need not be waited for.
            if let (Some(free_at), Some(last)) = (&mut self.free_at, self.last_start) {
                *free_at = (*free_at).min(last + self.gap);
            }
        }
        self.latency = self.latency.min(took);
        match &mut self.spell {
            None => self.spell = Some(Spell { first_join: now, later_joins: 0 }),
            Some(spell) => {
                spell.later_joins += 1;
                let gap = now.since(spell.first_join) / spell.later_joins;
                // Two may come up together by chance.
                self.gap = gap.clamp(self.gap / 2, self.gap.saturating_mul(2)).min(self.latency);
            }
        }
    }

    /// The part of a latency that a gap has by what was assumed.
    fn usual_part(&self, latency: Duration) -> Duration {
        let nanos = latency.as_nanos().saturating_mul(self.gap.as_nanos());
        let part = nanos / self.latency.as_nanos().max(1);
        u64::try_from(part).map_or(latency, Duration::from_nanos)
    }

    /// What a child is to assume.
    pub(crate) fn tree(&self) -> Tree {
        Tree::Adaptive { latency: self.latency, gap: self.gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn usual() -> Pace {
        Pace::new(at(0), ms(257), ms(7))
    }

    #[test]
    fn untold_a_start_is_due_every_gap_and_a_latency_holds_so_many() {
        let mut pace = usual();
        assert!(pace.is_free(at(0)));
        pace.on_start(at(0), 0);
        assert_eq!(pace.due(at(0)), Some(at(7)));
        assert!(pace.is_free(at(7)));
        assert_eq!(pace.in_flight_max(), 37);
    }

    #[test]
    fn told_a_start_is_due_when_the_driver_says_so() {
        let mut pace = usual();
        pace.on_start(at(0), 0);
        pace.be_told();
        assert!(!pace.is_free(at(1_000)));
        assert_eq!(pace.due(at(1_000)), None);
        pace.on_started(at(1_000));
        assert!(pace.is_free(at(1_000)));
    }

    #[test]
    fn the_first_child_tells_the_latency_and_the_next_tell_the_gap() {
        let mut pace = usual();
        pace.on_joined(at(1_056), at(0));
        assert!(matches!(pace.tree(), Tree::Adaptive { latency, gap }
            if latency == ms(1_056) && gap > ms(28) && gap < ms(29)));
        for join in 2..=6 {
            pace.on_joined(at(1_028 + join * 40), at(join * 7));
        }
        let gap = pace.tree();
        assert!(
            matches!(gap, Tree::Adaptive { gap, .. } if gap > ms(36) && gap < ms(44)),
            "{gap:?}"
        );
        assert_eq!(pace.in_flight_max(), usize::MAX);
    }

    #[test]
    fn a_start_that_is_over_soon_has_a_small_gap() {
        let mut pace = usual();
        pace.on_joined(at(4), at(0));
        assert_eq!(pace.tree(), Tree::Adaptive { latency: ms(4), gap: ms(1) });
    }

    #[test]
    fn once_the_gap_is_known_to_be_smaller_the_next_start_is_due_by_it() {
        let mut pace = usual();
        pace.on_start(at(0), 0);
        assert_eq!(pace.due(at(3)), Some(at(7)));
        pace.on_joined(at(4), at(0));
        assert_eq!((pace.is_free(at(4)), pace.due(at(0))), (true, Some(at(1))));
    }

    #[test]
    fn who_is_turned_away_leaves_as_many_as_fit_and_one_more_when_these_have_joined() {
        let mut pace = usual();
        pace.on_busy(12);
        pace.on_busy(11);
        assert_eq!(pace.in_flight_max(), 11);
        (0..11).for_each(|_| pace.on_joined(at(300), at(0)));
        assert_eq!(pace.in_flight_max(), 12);
        (0..11).for_each(|_| pace.on_joined(at(300), at(0)));
        assert_eq!(pace.in_flight_max(), 12);
        pace.on_busy(0);
        assert_eq!(pace.in_flight_max(), 1);
    }

    #[test]
    fn costs_of_nothing_are_no_mistake() {
        let mut pace = Pace::new(at(0), Duration::ZERO, Duration::ZERO);
        pace.on_joined(at(0), at(0));
        pace.on_joined(at(0), at(0));
        assert_eq!(pace.tree(), Tree::Adaptive { latency: ms(0), gap: ms(0) });
        let mut pace = Pace::new(at(0), Duration::ZERO, Duration::MAX);
        pace.on_joined(at(5), at(0));
        assert_eq!(pace.in_flight_max(), usize::MAX);
    }
}
