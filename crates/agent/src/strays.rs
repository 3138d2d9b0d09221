//! What a job's tasks leave behind: processes that outlive them, adopted by us as the sub-reaper.
//!
//! Our helpers' processes are not strays, nor are agents below them. Children of ours that are no
//! helpers are, with all below them. Who has no children has no strays, which costs one system call;
//! the kernel's list of our children costs one read of a small file; only when it shows a stray, or
//! when the kernel keeps no such list, is all of `/proc` read.
//!
//! While tasks of another job run here, only a stray's environment tells whose it is, as its program was given it. One
//! that has another is killed when no job has tasks here any more.

use std::collections::BTreeSet;
use std::io::ErrorKind;
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
    /// With the variable that their processes carry.
    jobs: Vec<(JobId, Option<String>)>,
    next_round: Time,
    give_up: Time,
}

impl Sweeps {
    /// Begins to sweep. Call [`Sweeps::go_on`] afterwards.
    pub(crate) fn begin(&mut self, now: Time, job: JobId, mark: Option<String>) {
        self.jobs.push((job, mark));
        self.give_up = now + BOUND;
    }

    /// The jobs that are being swept.
    pub(crate) fn jobs(&self) -> BTreeSet<JobId> {
        self.jobs.iter().map(|(job, _)| *job).collect()
    }

    /// When to call [`Sweeps::go_on`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        (!self.jobs.is_empty()).then_some(self.next_round)
    }

    /// Kills what is there, and says so when nothing is. Reap before. `others` are running tasks of other jobs.
    pub(crate) fn go_on(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        helpers: &BTreeSet<Pid>,
        others: &BTreeSet<Pid>,
    ) {
        let mut strays = strays(&helpers.union(others).copied().collect());
        let mut in_doubt = false;
        if !others.is_empty() {
            strays.retain(|&pid| {
                let is_of_swept = self.is_of_swept(pid);
                in_doubt |= is_of_swept.is_none();
                is_of_swept == Some(true)
            });
        }
        if (in_doubt || !strays.is_empty()) && now < self.give_up {
            kill(&strays);
            self.next_round = now + ROUND;
            return;
        }
        for (job, _) in self.jobs.drain(..) {
            reactor.report(Input::Swept(job));
        }
    }

    /// `None` while it starts another program.
    fn is_of_swept(&self, pid: Pid) -> Option<bool> {
        let environment = match process::environment_of(pid) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            environment => environment.unwrap_or_default(),
        };
        let mut marks = self.jobs.iter().filter_map(|(_, mark)| mark.as_ref());
        Some(marks.any(|mark| environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes())))
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

/// All below us but these and what is below them.
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
