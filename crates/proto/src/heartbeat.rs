//! Notices a peer that is silent though its link is up: a stopped or hung agent, a lost network.
//!
//! A parent pings all its children in one tick and each answers at once, so an idle agent wakes for
//! its own tick, for its parent's ping and for its children's answers. The time between two ticks
//! grows with the number of children so that this stays under one wake-up a second; each ping says
//! when the next one comes, so nobody needs to know anybody else's period. A link that is *cut* is
//! noticed sooner, by the kernel's own probes, which wake no process.

use core::time::Duration;

use model::Time;

/// How many announced pings may stay away.
const MISSED_MAX: u32 = 3;

/// A parent's ticks.
#[derive(Debug)]
pub struct Ticker {
    period: Duration,
    next: Time,
}

impl Ticker {
    /// Ticks for so many children, no faster than `shortest`.
    pub fn new(now: Time, shortest: Duration, children: usize) -> Ticker {
        let period = period(shortest, children);
        Ticker { period, next: now + period }
    }

    /// Ticks for so many children from the next tick on, which stays when it was to be.
    pub fn set_children(&mut self, shortest: Duration, children: usize) {
        self.period = period(shortest, children);
    }

    /// Whether a ping is due to every child; the next one is then due a period later.
    pub fn is_due(&mut self, now: Time) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.period;
        }
        due
    }

    /// Ticks from `now` on with this period, whatever it costs.
    pub fn hurry(&mut self, now: Time, period: Duration) {
        self.period = period;
        self.next = now;
    }

    /// When to ask again.
    pub fn next(&self) -> Time {
        self.next
    }

    /// What a ping must announce.
    pub fn period_ms(&self) -> u32 {
        u32::try_from(self.period.as_millis()).unwrap_or(u32::MAX)
    }
}

fn period(shortest: Duration, children: usize) -> Duration {
    let answers = u32::try_from(children).unwrap_or(u32::MAX);
    shortest.max(Duration::from_secs(2 + u64::from(answers)))
}

/// The silence of one peer.
#[derive(Debug)]
pub struct Silence {
    heard: Time,
    allowed: Option<Duration>,
}

impl Silence {
    /// A peer that was heard of at `now` and has not announced anything.
    pub fn new(now: Time) -> Silence {
        Silence { heard: now, allowed: None }
    }

    /// Handles any sign of life.
    pub fn on_heard(&mut self, now: Time) {
        self.heard = now;
    }

    /// Handles the announcement that the next ping comes within `next_ms`.
    pub fn on_announced(&mut self, now: Time, next_ms: u32) {
        self.heard = now;
        self.allowed = Some(Duration::from_millis(u64::from(next_ms)) * MISSED_MAX);
    }

    /// Handles that the peer will be silent for as long as it likes.
    pub fn on_suspended(&mut self) {
        self.allowed = None;
    }

    /// When the peer is lost if nothing comes.
    pub fn lost_at(&self) -> Option<Time> {
        self.allowed.map(|allowed| self.heard + allowed)
    }

    /// How long the peer has been silent.
    pub fn length(&self, now: Time) -> Duration {
        now.since(self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_of_many_ticks_slowly_enough_to_sleep_a_second_between_wake_ups() {
        for children in 0..300_usize {
            let ticker = Ticker::new(Time::ZERO, Duration::from_millis(2500), children);
            let wake_ups = 2 + children as u64;
            assert!(u64::from(ticker.period_ms()) >= wake_ups * 1000 || children == 0);
        }
    }

    #[test]
    fn a_peer_is_lost_only_after_it_missed_what_it_announced_itself() {
        let mut silence = Silence::new(Time::ZERO);
        assert_eq!(silence.lost_at(), None);
        silence.on_announced(Time::ZERO, 1000);
        assert_eq!(silence.lost_at(), Some(Time::ZERO + Duration::from_secs(3)));
        silence.on_heard(Time::ZERO + Duration::from_secs(2));
        assert_eq!(silence.lost_at(), Some(Time::ZERO + Duration::from_secs(5)));
        silence.on_suspended();
        assert_eq!(silence.lost_at(), None);
    }
}
