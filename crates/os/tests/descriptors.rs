//! Pollers, signals and sockets on real descriptors.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use os::net::{self, Listener};
use os::poller::PollError;
use os::stream::{Pipe, ReadOutcome, pipe};
use os::{Clock, Interest, Poller, Ready, Signal, SignalFd};

const BOUND: Duration = Duration::from_secs(10);

#[test]
fn what_is_not_read_stays_ready() {
    let Pipe { read, write } = pipe().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&read, 7, Interest::READ).unwrap();
    os::stream::write(&write, b"ab").unwrap();
    for _ in 0..2 {
        let expected =
            Ready { token: 7, readable: true, writable: false, hangup: false, ended: false };
        assert_eq!(wait(&mut poller), [expected]);
        os::stream::read(&read, &mut [0; 1]).unwrap();
    }
    drop(write);
    let expected = Ready { token: 7, readable: true, writable: false, hangup: true, ended: true };
    assert_eq!(wait(&mut poller), [expected]);
    poller.remove(&read).unwrap();
}

#[test]
fn a_descriptor_nobody_is_interested_in_only_reports_a_hangup() {
    let Pipe { read, write } = pipe().unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&read, 1, Interest::READ).unwrap();
    poller.modify(&read, 2, Interest::NONE).unwrap();
    os::stream::write(&write, b"x").unwrap();
    let mut ready = Vec::new();
    poller.wait(Some(Duration::ZERO), &mut ready).unwrap();
    assert_eq!(ready, []);
    drop(write);
    assert_eq!(wait(&mut poller)[0].token, 2);
}

#[test]
fn a_file_that_never_blocks_is_refused_as_always_ready() {
    for path in ["/proc/self/exe", "/dev/null"] {
        let file = std::fs::File::open(path).unwrap();
        let added = Poller::new().unwrap().add(&file, 0, Interest::READ);
        assert!(matches!(added, Err(PollError::AlwaysReady)), "{path}");
    }
}

#[test]
fn a_wait_never_ends_before_its_timeout() {
    let clock = Clock::new();
    let mut poller = Poller::new().unwrap();
    let timeout = Duration::from_micros(1_500);
    poller.wait(Some(timeout), &mut Vec::new()).unwrap();
    assert!(u128::from(clock.now()) >= timeout.as_nanos());
}

#[test]
fn a_blocked_signal_is_read_with_its_sender() {
    let signals = SignalFd::new(&[Signal(40)]).unwrap();
    assert_eq!(signals.read().unwrap(), None);
    os::signals::raise(Signal(40));
    let received = signals.read().unwrap().unwrap();
    assert_eq!((received.signal, received.sender), (Signal(40), os::process::own_pid()));
    assert_eq!(signals.read().unwrap(), None);
}

#[test]
fn one_listener_takes_both_families() {
    let listener = Listener::on_any_address(0).unwrap();
    let mut loopbacks = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
    if os::machine::interface_addresses().unwrap().contains(&IpAddr::V6(Ipv6Addr::LOCALHOST)) {
        loopbacks.push(IpAddr::V6(Ipv6Addr::LOCALHOST));
    }
    for ip in loopbacks {
        let ours = net::connect(SocketAddr::from((ip, listener.port()))).unwrap();
        wait_for(ours.as_fd(), Interest::WRITE);
        net::connect_result(&ours).unwrap();
        wait_for(listener.as_fd(), Interest::READ);
        let (theirs, peer) = listener.accept().unwrap().unwrap();
        assert_eq!(peer, net::local_address(&ours).unwrap());
        exchange(&ours, &theirs);
    }
    assert!(listener.accept().unwrap().is_none());
}

#[test]
fn a_refused_connection_says_so() {
    let port = Listener::on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap().port();
    let error = match net::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))) {
        Ok(fd) => {
            wait_for(fd.as_fd(), Interest::WRITE);
            net::connect_result(&fd).unwrap_err()
        }
        Err(error) => error,
    };
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

fn exchange(ours: &OwnedFd, theirs: &OwnedFd) {
    let times = net::LinkTimes {
        keepalive_idle: Duration::from_secs(5),
        keepalive_probes: 9,
        keepalive_interval: Duration::from_secs(1),
        unacknowledged_max: Duration::from_secs(10),
    };
    net::set_link_options(ours, &times).unwrap();
    os::stream::write(ours, b"hello").unwrap();
    net::shutdown_write(ours).unwrap();
    wait_for(theirs.as_fd(), Interest::READ);
    let mut buffer = [0; 8];
    assert_eq!(os::stream::read(theirs, &mut buffer).unwrap(), ReadOutcome::Data(5));
    wait_for(theirs.as_fd(), Interest::READ);
    assert_eq!(os::stream::read(theirs, &mut buffer).unwrap(), ReadOutcome::Eof);
}

fn wait(poller: &mut Poller) -> Vec<Ready> {
    let mut ready = Vec::new();
    poller.wait(Some(BOUND), &mut ready).unwrap();
    assert!(!ready.is_empty(), "nothing happened in time");
    ready
}

fn wait_for(fd: std::os::fd::BorrowedFd<'_>, interest: Interest) {
    let mut poller = Poller::new().unwrap();
    poller.add(fd, 0, interest).unwrap();
    wait(&mut poller);
}
