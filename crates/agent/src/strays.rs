//! What a job's tasks leave behind: processes that outlive them, adopted by us as the sub-reaper.
//!
//! Our helpers' processes are not strays, nor are agents below them. Children of ours that are no
//! helpers are, with all below them. Who has no children has no strays, which costs one system call;
//! the kernel's list of our children costs one read of a small file; only when it shows a stray, or
//! when the kernel keeps no such list, is all of `/proc` read.

use std::collections::BTreeSet;
use std::time::Duration;

use engine::Input;
use model::{JobId, Time};
use os::{Pid, Signal, process};

use crate::reactor::Reactor;

/// From one look to the next while strays are dying; their deaths are announced besides.
const ROUND: Duration = Duration::from_millis(20);

/// How long to try: what is stuck in the kernel for longer must not keep a job from ending.
const BOUND: Duration = Duration::from_secs(10);

/// The sweeps that go on.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    jobs: Vec<JobId>,
    next_round: Time,
    give_up: Time,
}

impl Sweeps {
    /// Begins to sweep. Call [`Sweeps::go_on`] afterwards.
    pub(crate) fn begin(&mut self, now: Time, job: JobId) {
        self.jobs.push(job);
        self.give_up = now + BOUND;
    }

    /// When to call [`Sweeps::go_on`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        (!self.jobs.is_empty()).then_some(self.next_round)
    }

    /// Kills what is there, and says so when nothing is. Reap before.
    pub(crate) fn go_on(&mut self, now: Time, reactor: &mut Reactor, helpers: &BTreeSet<Pid>) {
        let strays = strays(helpers);
        if !strays.is_empty() && now < self.give_up {
            kill(&strays);
            self.next_round = now + ROUND;
            return;
        }
        for job in self.jobs.drain(..) {
            reactor.report(Input::Swept(job));
        }
    }
}

/// Stops all before it kills the first, so that fewer can start others meanwhile.
fn kill(strays: &[Pid]) {
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in strays {
            let _ = process::kill(*pid, signal); // gone is fine
        }
    }
}

fn strays(helpers: &BTreeSet<Pid>) -> Vec<Pid> {
    let no_stray = !process::has_children()
        || own_children().is_some_and(|pids| pids.iter().all(|pid| helpers.contains(pid)));
    if no_stray {
        return Vec::new();
    }
    let mut spared = helpers.clone();
    let descendants = process::descendants_of(process::own_pid()).unwrap_or_default();
    descendants
        .into_iter()
        .filter(|process| {
            let is_spared = spared.contains(&process.pid) || spared.contains(&process.parent);
            if is_spared {
                spared.insert(process.pid);
            }
            !is_spared
        })
        .map(|process| process.pid)
        .collect()
}

/// `None` where the kernel has no such list (CONFIG_PROC_CHILDREN).
fn own_children() -> Option<Vec<Pid>> {
    let list = std::fs::read_to_string("/proc/thread-self/children").ok()?;
    list.split_ascii_whitespace().map(|pid| pid.parse().ok()).collect()
}
