//! A program that misbehaves as its first argument says, for the tests of whole processes.
//!
//! Everything it starts holds its standard output, whose end therefore proves that all are gone.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::ffi::CString;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use os::{AgentGroup, Interest, KeeperOptions, Poller, Signal, SignalFd, SpawnSpec};

const BOUND: Duration = Duration::from_secs(10);

fn main() {
    let what = std::env::args().nth(1).expect("an argument");
    match what.as_str() {
        "wait" => wait_for_ever(),
        "stubborn" => be_stubborn(),
        "stopped" => stop(),
        "orphan" => start("stubborn", true),
        "bomb" => explode(),
        "reaper" => reap_a_zoo(),
        "fenced" => die_with_parent(),
        "kept" => be_kept(AgentGroup::Shared),
        "kept-apart" => be_kept(AgentGroup::OwnSession),
        other => panic!("no fixture `{other}`"),
    }
}

fn wait_for_ever() -> ! {
    say("pid", os::process::own_pid());
    loop {
        let mut ready = Vec::new();
        Poller::new().unwrap().wait(None, &mut ready).unwrap();
    }
}

fn be_stubborn() -> ! {
    os::signals::ignore(&[Signal::TERM, Signal::HUP, Signal::INT]);
    wait_for_ever()
}

fn stop() -> ! {
    say("pid", os::process::own_pid());
    os::signals::raise(Signal::STOP);
    wait_for_ever()
}

/// Starts copies of itself as fast as it can, some of which leave their parent.
fn explode() {
    let mut n = 0;
    loop {
        start("stubborn", n % 2 == 0);
        start("orphan", true);
        n += 1;
        if n == 10 {
            wait_for_ever();
        }
    }
}

/// Starts one of each, waits until they run, and kills them all.
fn reap_a_zoo() {
    os::process::set_child_subreaper().unwrap();
    for what in ["stubborn", "stopped", "orphan", "bomb"] {
        start(what, what != "stopped");
    }
    assert!(os::process::has_children());
    let mut reaped = 0;
    os::process::kill_all_descendants(BOUND, &mut |_, _| reaped += 1).unwrap();
    assert_eq!(os::process::reap_any().unwrap(), os::process::Reaped::NoChildren);
    assert!(!os::process::has_children());
    assert!(reaped >= 3);
    say("clean", 0);
}

/// Starts a child that is to die with us, and waits to be killed.
fn die_with_parent() -> ! {
    let exe = exe();
    let mut spec = SpawnSpec::new(&exe, vec![&exe, c"stubborn"], vec![]);
    spec.parent_death_signal = Some(Signal::KILL);
    spec.new_session = true;
    os::spawn(&spec).unwrap();
    wait_for_ever()
}

/// An agent with a keeper: starts tasks, answers pings, ends as it is told on standard input.
fn be_kept(group: AgentGroup) {
    let kept = os::fork_keeper(KeeperOptions { name: c"keeper", group }).unwrap();
    let signals = SignalFd::new(&[Signal::TERM, Signal::TSTP, Signal::USR1]).unwrap();
    say("keeper", kept.keeper);
    say("agent", os::process::own_pid());
    for what in ["stubborn", "stopped", "orphan"] {
        start(what, true);
    }
    let mut poller = Poller::new().unwrap();
    let stdin = std::io::stdin();
    poller.add(&kept.keeper_gone, 0, Interest::READ).unwrap();
    poller.add(&signals, 1, Interest::READ).unwrap();
    poller.add(stdin.as_fd(), 2, Interest::READ).unwrap();
    let mut ready = Vec::new();
    loop {
        poller.wait(None, &mut ready).unwrap();
        for source in &ready {
            match source.token {
                0 => {
                    os::process::kill_all_descendants(BOUND, &mut |_, _| {}).unwrap();
                    std::process::exit(0);
                }
                1 => report_signals(&signals),
                _ => obey(stdin.as_fd()),
            }
        }
    }
}

fn report_signals(signals: &SignalFd) {
    while let Some(received) = signals.read().unwrap() {
        say(&received.signal.to_string(), received.sender);
    }
}

fn obey(stdin: std::os::fd::BorrowedFd<'_>) {
    let mut order = [0; 1];
    os::stream::read(stdin, &mut order).unwrap();
    match &order {
        b"p" => say("pong", 0),
        b"k" => os::signals::raise(Signal::KILL),
        _ => std::process::exit(7),
    }
}

/// Starts ourselves as something else; it tells its own pid.
fn start(what: &str, new_session: bool) {
    let (exe, what) = (exe(), CString::new(what).unwrap());
    let mut spec = SpawnSpec::new(&exe, vec![&exe, &what], vec![]);
    spec.new_session = new_session;
    let _ = os::spawn(&spec); // a bomb may have filled the machine
}

fn exe() -> CString {
    CString::new(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes()).unwrap()
}

/// One line in one write, since several processes write to the same pipe.
fn say(word: &str, number: i32) {
    let line = format!("{word} {number}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}
