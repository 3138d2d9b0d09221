//! The search for the parent: which of its addresses to try, and when.
//!
//! A parent has as many addresses as its machine has networks, and some lead nowhere from here, or
//! to another machine with the same address. So the next one is tried a little after the one
//! before, without waiting for its failure, and the first that proves itself is kept.
//!
//! Where none of them leads to the parent, one thing certainly does: the remote shell, whose input came
//! from there. So its streams are tried last, once every address has failed or nobody answers: then
//! all else is given up. It costs more than a connection, so it does not take part in the race.

use std::collections::VecDeque;
use std::fmt::{self, Display};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use engine::{Input, LinkId};
use model::{AgentId, Time};

/// From one address to the next. A round trip on a local network takes far less; one between
/// continents takes more, and then two are under way.
const STAGGER: Duration = Duration::from_millis(50);

/// How long nobody may answer at any address. A host asks for a connection again after one second and
/// after three (RFC 6298, 2.1 and 5.5), also where the other's queue was full. Whoever leaves
/// three calls without an answer swallows them: a firewall, or a host that is gone.
const UNANSWERED_MAX: Duration = Duration::from_millis(3_500);

/// What part of the time for the parent's welcome somebody who has answered may take to prove that it
/// is the parent: the shell needs some of it, too.
const PROOF_PART: u32 = 3;

/// The search, until the parent is found or nothing is left to try.
#[derive(Debug)]
pub(crate) struct Approach {
    parent: AgentId,
    attempt: u32,
    /// The parent is that of the routing tree.
    is_routing: bool,
    left: VecDeque<SocketAddr>,
    next_at: Time,
    under_way: Vec<(LinkId, Way)>,
    /// Until when to wait for an address, while there is a shell to try after them.
    shell_at: Option<ShellAt>,
    failures: Vec<String>,
}

/// A way to the parent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// A connection to an address of its.
    Address(SocketAddr),
    /// The streams of the shell that it started us with.
    Shell,
}

#[derive(Clone, Copy, Debug)]
struct ShellAt {
    /// While nobody has answered.
    unanswered: Time,
    /// Once somebody has.
    unproven: Time,
    is_answered: bool,
}

impl Approach {
    /// A search that begins `now`. `has_shell` says whether the shell's streams can be tried, and
    /// `welcome_timeout` how long all of it may take.
    pub(crate) fn new(
        now: Time,
        (parent, attempt): (AgentId, u32),
        addresses: Vec<SocketAddr>,
        has_shell: bool,
        welcome_timeout: Duration,
    ) -> Approach {
        let unproven = welcome_timeout / PROOF_PART;
        let shell_at = ShellAt {
            unanswered: now + UNANSWERED_MAX.min(unproven),
            unproven: now + unproven,
            is_answered: false,
        };
        Approach {
            parent,
            attempt,
            is_routing: false,
            left: addresses.into(),
            next_at: now,
            under_way: Vec::new(),
            shell_at: has_shell.then_some(shell_at),
            failures: Vec::new(),
        }
    }

    /// A search for the parent in the routing tree, to which no shell leads.
    pub(crate) fn of_routing_parent(
        now: Time,
        parent: AgentId,
        addresses: Vec<SocketAddr>,
    ) -> Approach {
        let approach = Approach::new(now, (parent, 0), addresses, false, Duration::ZERO);
        Approach { is_routing: true, ..approach }
    }

    /// Who is looked for.
    pub(crate) fn parent(&self) -> AgentId {
        self.parent
    }

    /// Which start of us this is.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The way to try next, if its time has come; an address also as soon as nothing is under way.
    /// The shell is the last: give up all that is under way then.
    pub(crate) fn next_way(&mut self, now: Time) -> Option<Way> {
        if self.shell_at.is_some_and(|at| at.time() <= now || self.has_no_address()) {
            self.shell_at = None;
            self.left.clear();
            return Some(Way::Shell);
        }
        if now < self.next_at && !self.under_way.is_empty() {
            return None;
        }
        self.next_at = now + STAGGER;
        self.left.pop_front().map(Way::Address)
    }

    /// When the next way is due.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let address = (!self.left.is_empty()).then_some(self.next_at);
        address.into_iter().chain(self.shell_at.map(|at| at.time())).min()
    }

    /// A connection is under way as `id`.
    pub(crate) fn on_begun(&mut self, id: LinkId, way: Way) {
        self.under_way.push((id, way));
    }

    /// Somebody has answered, who has yet to prove who it is.
    pub(crate) fn on_answered(&mut self) {
        if let Some(at) = &mut self.shell_at {
            at.is_answered = true;
        }
    }

    /// No connection could be begun.
    pub(crate) fn on_not_begun(&mut self, way: Way, error: &dyn Display) {
        self.failures.push(format!("{way}: {error}"));
    }

    /// A connection that was under way has failed.
    pub(crate) fn on_failed(&mut self, id: LinkId, error: &dyn Display) {
        if let Some(index) = self.under_way.iter().position(|(other, _)| *other == id) {
            let (_, way) = self.under_way.remove(index);
            self.on_not_begun(way, error);
        }
    }

    /// Gives up what is under way, and returns it: it has had its time.
    pub(crate) fn give_up(&mut self) -> Vec<LinkId> {
        let given_up = std::mem::take(&mut self.under_way);
        self.failures.extend(given_up.iter().map(|(_, way)| format!("{way}: no answer in time")));
        given_up.into_iter().map(|(id, _)| id).collect()
    }

    /// Whether `id` is one of its connections.
    pub(crate) fn has(&self, id: LinkId) -> bool {
        self.under_way.iter().any(|(other, _)| *other == id)
    }

    /// Its connections other than `id`.
    pub(crate) fn others(self, id: LinkId) -> impl Iterator<Item = LinkId> {
        self.under_way.into_iter().map(|(other, _)| other).filter(move |other| *other != id)
    }

    /// Whether nothing is left to try and nothing is under way.
    pub(crate) fn has_failed(&self) -> bool {
        self.shell_at.is_none() && self.has_no_address()
    }

    /// What to tell the engine, once it has failed.
    pub(crate) fn into_failure(self) -> Input {
        if self.is_routing {
            Input::NotConnected(self.parent)
        } else {
            Input::ConnectFailed(self.into_words())
        }
    }

    /// What went wrong, way by way.
    fn into_words(self) -> String {
        match self.failures.as_slice() {
            [] => "the parent has no address".to_owned(),
            failures => failures.join("; "),
        }
    }

    fn has_no_address(&self) -> bool {
        self.left.is_empty() && self.under_way.is_empty()
    }
}

impl ShellAt {
    fn time(&self) -> Time {
        if self.is_answered { self.unproven } else { self.unanswered }
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Address(address) => address.fmt(f),
            Way::Shell => f.write_str("the remote shell's streams"),
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

    fn approach(n_addresses: u16, has_shell: bool) -> Approach {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let addresses = (1..=n_addresses).map(address).collect();
        let whom = (AgentId(0), 0);
        Approach::new(at_ms(0), whom, addresses, has_shell, Duration::from_secs(30))
    }

    fn port(way: Option<Way>) -> Option<u16> {
        match way? {
            Way::Address(address) => Some(address.port()),
            Way::Shell => None,
        }
    }

    #[test]
    fn a_silent_address_delays_the_next_one_only_a_little() {
        let mut approach = approach(2, false);
        let first = approach.next_way(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), first);
        assert_eq!(approach.next_way(at_ms(0)), None);
        assert_eq!(approach.poll_timeout(), Some(at_ms(50)));
        assert_eq!(port(approach.next_way(at_ms(50))), Some(2));
        assert_eq!(approach.poll_timeout(), None);
    }

    #[test]
    fn a_refused_address_is_followed_by_the_next_one_at_once() {
        let mut approach = approach(2, false);
        let first = approach.next_way(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), first);
        approach.on_failed(LinkId(1), &"refused");
        assert!(!approach.has_failed());
        let second = approach.next_way(at_ms(1)).unwrap();
        approach.on_not_begun(second, &"no route");
        assert!(approach.has_failed());
        assert_eq!(approach.into_words(), "127.0.0.1:1: refused; 127.0.0.1:2: no route");
    }

    #[test]
    fn the_shell_is_tried_at_once_when_every_address_has_failed() {
        for n in 0..5 {
            let mut approach = approach(n, true);
            for number in 1..=n {
                let way = approach.next_way(at_ms(0)).unwrap();
                assert_eq!(port(Some(way)), Some(number));
                approach.on_begun(LinkId(number.into()), way);
                approach.on_failed(LinkId(number.into()), &"refused");
            }
            assert_eq!(approach.next_way(at_ms(0)), Some(Way::Shell));
            approach.on_begun(LinkId(99), Way::Shell);
            assert!(!approach.has_failed());
            approach.on_failed(LinkId(99), &"connection closed");
            assert!(approach.has_failed());
            assert!(
                approach.into_words().ends_with("the remote shell's streams: connection closed")
            );
        }
    }

    #[test]
    fn the_shell_is_tried_when_nobody_has_answered_three_calls() {
        let mut approach = approach(1, true);
        let way = approach.next_way(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), way);
        assert_eq!(approach.next_way(at_ms(3_499)), None);
        assert_eq!(approach.poll_timeout(), Some(at_ms(3_500)));
        assert_eq!(approach.next_way(at_ms(3_500)), Some(Way::Shell));
        assert_eq!(approach.give_up(), [LinkId(1)]);
        assert_eq!(approach.poll_timeout(), None);
        assert_eq!(approach.into_words(), "127.0.0.1:1: no answer in time");
    }

    #[test]
    fn whoever_has_answered_has_a_third_of_the_time_to_prove_who_it_is() {
        let mut approach = approach(1, true);
        let way = approach.next_way(at_ms(0)).unwrap();
        approach.on_begun(LinkId(1), way);
        approach.on_answered();
        assert_eq!(approach.next_way(at_ms(9_999)), None);
        assert_eq!(approach.next_way(at_ms(10_000)), Some(Way::Shell));
    }
}
