//! One sshd for all names: its host works on few logins at a time, and it refuses who comes while many are
//! under way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use model::Time;

/// An sshd behind all names of a session, as `sshd_config(5)` describes it under `MaxStartups`.
#[derive(Clone, Copy, Debug)]
pub struct Sshd {
    /// While so many logins are under way, some more are refused at random.
    pub start: u32,
    /// The part of them that is.
    pub rate: f64,
    /// From so many on all are; in between the part grows evenly.
    pub full: u32,
    /// What a login takes of a processor, that of the client included.
    pub work: Duration,
    /// Processors.
    pub cores: usize,
}

impl Sshd {
    /// `MaxStartups 10:30:100`, the default, before two processors.
    pub const USUAL: Sshd =
        Sshd { start: 10, rate: 0.3, full: 100, work: Duration::from_millis(104), cores: 2 };

    /// The probability that a login is refused beside so many others.
    fn refuses(&self, under_way: usize) -> f64 {
        let (start, full) = (f64::from(self.start), f64::from(self.full));
        let beyond = under_way as f64 - start;
        if beyond < 0.0 { 0.0 } else { self.rate + (1.0 - self.rate) * beyond / (full - start) }
    }
}

/// The logins of an sshd.
#[derive(Debug)]
pub(crate) struct Logins {
    sshd: Sshd,
    /// When those under way are through.
    through: BinaryHeap<Reverse<Time>>,
    free_at: BinaryHeap<Reverse<Time>>,
}

impl Logins {
    pub(crate) fn new(sshd: Sshd) -> Logins {
        let free_at = (0..sshd.cores).map(|_| Reverse(Time::ZERO)).collect();
        Logins { sshd, through: BinaryHeap::new(), free_at }
    }

    /// When somebody is through who comes now; `None`: it is refused, which `chance`, from 0 to 1, decides.
    pub(crate) fn come(&mut self, now: Time, chance: f64) -> Option<Time> {
        while self.through.peek().is_some_and(|Reverse(through)| *through <= now) {
            self.through.pop();
        }
        if chance < self.sshd.refuses(self.through.len()) {
            return None;
        }
        let Reverse(free_at) = self.free_at.pop()?;
        let through = free_at.max(now) + self.sshd.work;
        self.free_at.push(Reverse(through));
        self.through.push(Reverse(through));
        Some(through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_refused_from_the_start_on_and_all_from_full_on() {
        let mut logins = Logins::new(Sshd::USUAL);
        let never = 0.999_999;
        for login in 1_u32..=10 {
            let through = logins.come(Time::ZERO, 0.0).expect("let in");
            assert_eq!(through, Time::ZERO + Sshd::USUAL.work * login.div_ceil(2));
        }
        assert_eq!(logins.come(Time::ZERO, 0.29), None);
        for _ in 10..100 {
            assert!(logins.come(Time::ZERO, never).is_some());
        }
        assert_eq!(logins.come(Time::ZERO, never), None);
        assert!(logins.come(Time::ZERO + Sshd::USUAL.work * 46, 0.0).is_some());
    }
}
