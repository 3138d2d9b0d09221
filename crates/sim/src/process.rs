//! An agent's process, or the head's: an engine and what its driver holds for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::{Engine, LinkId, StartId};
use model::{AgentId, JobId, Time};

use crate::shell::ShellId;
use crate::task::Task;
use crate::task_id::TaskId;

/// A process's index in the world. An agent that is started twice is two processes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct ProcessId(pub(crate) usize);

impl ProcessId {
    pub(crate) const HEAD: ProcessId = ProcessId(0);
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// Its engine said that everything is over.
    Exit(u8),
    /// Its engine gave up, and ended all that was below.
    Abandon(u8),
    /// It was killed.
    Crash,
}

/// An agent or the head.
pub(crate) struct Process {
    pub(crate) agent: AgentId,
    pub(crate) engine: Engine,
    /// The shell that started it.
    pub(crate) shell: Option<ShellId>,
    /// The link on which it was welcomed.
    pub(crate) uplink: Option<LinkId>,
    pub(crate) end: Option<End>,
    /// Its keeper was killed: nobody kills what it may leave behind.
    pub(crate) has_lost_keeper: bool,
    /// It was killed, and its keeper is about to kill what is left below.
    pub(crate) is_unreaped: bool,
    /// Open links.
    pub(crate) links: BTreeSet<LinkId>,
    pub(crate) shells: BTreeMap<StartId, ShellId>,
    pub(crate) tasks: BTreeMap<TaskId, Box<Task>>,
    /// Spawned jobs whose files it has made and not closed.
    pub(crate) files: BTreeSet<JobId>,
    /// The driver was told to leave in the kernel what the tasks write.
    pub(crate) ignores_tasks: bool,
    /// When its host can start the next helper.
    pub(crate) starts_free_at: Time,
    /// When all is sent that hosts are sent of the program.
    pub(crate) sends_free_at: Time,
    /// Until when it works on what it was told: it has one thread.
    pub(crate) busy_until: Time,
    /// Connections that wait for it to accept them.
    pub(crate) unaccepted: u32,
    /// When pauses of it end.
    pause_ends: Vec<Time>,
    /// How much longer each message takes it than it should.
    pub(crate) slowed_by: Duration,
    /// The earliest wake-up on its way.
    pub(crate) armed: Option<Time>,
    /// Wake-ups at `last_wake` so far, to notice one that goes on for ever.
    pub(crate) wakes: u32,
    pub(crate) last_wake: Time,
}

impl Process {
    pub(crate) fn new(agent: AgentId, engine: Engine, shell: Option<ShellId>) -> Process {
        Process {
            agent,
            engine,
            shell,
            uplink: None,
            end: None,
            has_lost_keeper: false,
            is_unreaped: false,
            links: BTreeSet::new(),
            shells: BTreeMap::new(),
            tasks: BTreeMap::new(),
            files: BTreeSet::new(),
            ignores_tasks: false,
            starts_free_at: Time::ZERO,
            sends_free_at: Time::ZERO,
            busy_until: Time::ZERO,
            unaccepted: 0,
            pause_ends: Vec::new(),
            slowed_by: Duration::ZERO,
            armed: None,
            wakes: 0,
            last_wake: Time::ZERO,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    /// Whether something runs below it that must not outlive it. Where agent and keeper were both
    /// killed, the kernel kills the tasks, and what they have left behind is out of anybody's reach.
    pub(crate) fn has_orphans(&self) -> bool {
        let is_out_of_reach = self.has_lost_keeper && self.end == Some(End::Crash);
        self.tasks
            .values()
            .any(|task| if is_out_of_reach { task.is_running() } else { task.is_anything_left() })
    }

    /// A pause within a longer one does not shorten it: what came meanwhile waits for the end of both.
    pub(crate) fn pause_until(&mut self, time: Time) {
        self.pause_ends.push(time);
    }

    /// When the next pause of it ends, if it is paused. What waits for one end after the other stays
    /// in the order in which it came.
    pub(crate) fn paused_until(&self, now: Time) -> Option<Time> {
        self.pause_ends.iter().copied().filter(|&end| end > now).min()
    }
}
