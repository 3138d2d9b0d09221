//! The search for the parent: which of its addresses to try, and when.
//!
//! A parent has as many addresses as its machine has networks, and some lead nowhere from here, or
//! to another machine with the same address. So the next one is tried a little after the one
//! before, without waiting for its failure, and the first that proves itself is kept.

use std::collections::VecDeque;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use engine::LinkId;
use model::{AgentId, Time};

/// From one address to the next. A round trip on a local network takes far less; one between
/// continents takes more, and then two are under way.
const STAGGER: Duration = Duration::from_millis(50);

/// The search, until the parent is found or no address is left.
#[derive(Debug)]
pub(crate) struct Approach {
    parent: AgentId,
    attempt: u32,
    left: VecDeque<SocketAddr>,
    next_at: Time,
    under_way: Vec<(LinkId, SocketAddr)>,
    failures: Vec<String>,
}

impl Approach {
    /// A search that begins `now`.
    pub(crate) fn new(
        now: Time,
        parent: AgentId,
        attempt: u32,
        addresses: Vec<SocketAddr>,
    ) -> Approach {
        Approach {
            parent,
            attempt,
            left: addresses.into(),
            next_at: now,
            under_way: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Who is looked for.
    pub(crate) fn parent(&self) -> AgentId {
        self.parent
    }

    /// Which start of us this is.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The address to try next, if its time has come: also as soon as nothing is under way.
    pub(crate) fn next_address(&mut self, now: Time) -> Option<SocketAddr> {
        if now < self.next_at && !self.under_way.is_empty() {
            return None;
        }
        self.next_at = now + STAGGER;
        self.left.pop_front()
    }

    /// When the next address is due.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        (!self.left.is_empty()).then_some(self.next_at)
    }

    /// A connection to `address` is under way as `id`.
    pub(crate) fn on_begun(&mut self, id: LinkId, address: SocketAddr) {
        self.under_way.push((id, address));
    }

    /// No connection to `address` could be begun.
    pub(crate) fn on_not_begun(&mut self, address: SocketAddr, error: &dyn Display) {
        self.failures.push(format!("{address}: {error}"));
    }

    /// A connection that was under way has failed.
    pub(crate) fn on_failed(&mut self, id: LinkId, error: &dyn Display) {
        if let Some(index) = self.under_way.iter().position(|(other, _)| *other == id) {
            let (_, address) = self.under_way.remove(index);
            self.on_not_begun(address, error);
        }
    }

    /// Whether `id` is one of its connections.
    pub(crate) fn has(&self, id: LinkId) -> bool {
        self.under_way.iter().any(|(other, _)| *other == id)
    }

    /// Its connections other than `id`.
    pub(crate) fn others(self, id: LinkId) -> impl Iterator<Item = LinkId> {
        self.under_way.into_iter().map(|(other, _)| other).filter(move |other| *other != id)
    }

    /// Whether no address is left and none is under way.
    pub(crate) fn has_failed(&self) -> bool {
        self.left.is_empty() && self.under_way.is_empty()
    }

    /// What went wrong, address by address.
    pub(crate) fn into_words(self) -> String {
        match self.failures.as_slice() {
            [] => "the parent has no address".to_owned(),
            failures => failures.join("; "),
        }
    }
}

/// Uses what sshd tells in `SSH_CONNECTION` (`CLIENT PORT SERVER PORT`): the address that the remote
/// shell came from.
///
/// Where it is one of the parent's, it is known to lead there, and comes first. Else it may be an
/// address translation that the parent knows nothing of, or be left from the login of a user, and
/// comes last.
pub(crate) fn use_shell_address(
    mut addresses: Vec<SocketAddr>,
    ssh_connection: Option<&str>,
) -> Vec<SocketAddr> {
    let client = ssh_connection.and_then(|text| text.split(' ').next()?.parse::<IpAddr>().ok());
    let Some((ip, port)) = client.zip(addresses.first().map(SocketAddr::port)) else {
        return addresses;
    };
    let shell = SocketAddr::new(ip, port);
    match addresses.iter().position(|address| *address == shell) {
        Some(index) => addresses[..=index].rotate_right(1),
        None => addresses.push(shell),
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_that_the_shell_came_from_is_tried_first_if_it_is_the_parents() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let [a, b, c] = ["10.0.0.1:7", "10.0.1.1:7", "[fd00::1]:7"].map(address);
        let using = |connection| use_shell_address(vec![a, b, c], connection);
        assert_eq!(using(Some("fd00::1 5000 fd00::2 22")), [c, a, b]);
        assert_eq!(using(Some("192.0.2.1 5000 10.0.0.2 22")), [a, b, c, address("192.0.2.1:7")]);
        assert_eq!(using(Some("UNKNOWN")), [a, b, c]);
        assert_eq!(using(None), [a, b, c]);
    }

    fn at_ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn approach(n_addresses: u16) -> Approach {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Approach::new(at_ms(0), AgentId(0), 0, (1..=n_addresses).map(address).collect())
    }

    #[test]
    fn a_silent_address_delays_the_next_one_only_a_little() {
        let mut approach = approach(2);
        let first = approach.next_address(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), first);
        assert_eq!(approach.next_address(at_ms(0)), None);
        assert_eq!(approach.poll_timeout(), Some(at_ms(50)));
        assert_eq!(approach.next_address(at_ms(50)).map(|it| it.port()), Some(2));
        assert_eq!(approach.poll_timeout(), None);
    }

    #[test]
    fn a_refused_address_is_followed_by_the_next_one_at_once() {
        let mut approach = approach(2);
        let first = approach.next_address(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), first);
        approach.on_failed(LinkId(1), &"refused");
        assert!(!approach.has_failed());
        let second = approach.next_address(at_ms(1)).unwrap();
        approach.on_not_begun(second, &"no route");
        assert!(approach.has_failed());
        assert_eq!(approach.into_words(), "127.0.0.1:1: refused; 127.0.0.1:2: no route");
    }
}
