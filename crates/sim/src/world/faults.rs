//! Faults, and what else comes from outside.

use std::time::Duration;

use engine::{Input, LinkId};
use model::{AgentId, ExitStatus, Rank, Signal};
use wire::{Hello, Message, Stream};

use super::{Happening, World};
use crate::fault::{Fault, Side, Twin};
use crate::link::index;
use crate::process::{End, ProcessId};
use crate::shell::Shell;
use crate::task::stream_index;

impl World<'_> {
    /// Lets the faults of this step happen.
    pub(super) fn strike_by_step(&mut self) {
        while self.step_faults.last().is_some_and(|&(step, _)| step <= self.steps) {
            if let Some((_, fault)) = self.step_faults.pop() {
                self.strike(&fault);
            }
        }
    }

    pub(super) fn strike(&mut self, fault: &Fault) {
        log!(self, "fault: {fault:?}");
        let has_struck = match *fault {
            Fault::Crash(agent) => self.crash(agent),
            Fault::KillKeeper(agent) => self.kill_keeper(agent),
            Fault::KillShell(agent) => self.kill_newest_shell(agent),
            Fault::KillTask(rank) => self.kill_task(rank),
            Fault::Cut(agent) => self.cut(agent, true),
            Fault::Hush(agent) => self.cut(agent, false),
            Fault::HalfOpen(agent, end) => self.half_open_links(agent, end),
            Fault::Partition(agent, time) => self.partition(agent, time),
            Fault::SlowLink(agent, time) => self.slow_links(agent, time),
            Fault::Duplicate(agent, twin) => self.duplicate(agent, twin),
            Fault::Slow(agent, time) => self.slow(agent, time),
            Fault::PauseTask(rank, time) => self.pause_task(rank, time),
            Fault::Pause(agent, time) => self.pause(agent, time),
            Fault::UserSignal(signal) => self.tell_head(Input::UserSignal(signal)),
            Fault::CloseOutput(stream) => self.close_output(stream),
        };
        self.checker.report.faults_struck += u32::from(has_struck);
    }

    fn running(&self, agent: AgentId) -> Option<ProcessId> {
        let is_it = |index: &usize| {
            let process = &self.processes[*index];
            process.agent == agent && process.is_running()
        };
        (0..self.processes.len()).rev().find(is_it).map(ProcessId)
    }

    fn crash(&mut self, agent: AgentId) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.end_process(id, End::Crash);
        true
    }

    fn kill_keeper(&mut self, agent: AgentId) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.tell(id, Input::KeeperGone);
        true
    }

    fn kill_newest_shell(&mut self, agent: AgentId) -> bool {
        let newest =
            self.shells.iter().rposition(|shell| shell.agents.contains(&agent) && !shell.is_over);
        let Some(index) = newest else { return false };
        self.kill_shell(crate::shell::ShellId(index));
        true
    }

    /// Where a task runs.
    fn node_of(&self, rank: Rank) -> Option<ProcessId> {
        let has_it = |index: &usize| {
            let task = self.processes[*index].tasks.get(&rank);
            task.is_some_and(|task| task.is_running())
        };
        (0..self.processes.len()).find(has_it).map(ProcessId)
    }

    fn pause_task(&mut self, rank: Rank, time: Duration) -> bool {
        let Some(id) = self.node_of(rank) else { return false };
        if let Some(task) = self.processes[id.0].tasks.get_mut(&rank) {
            task.paused_until = self.now + time;
        }
        true
    }

    fn slow(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.processes[id.0].drag_us = time.as_secs_f64() * 1e6;
        true
    }

    fn kill_task(&mut self, rank: Rank) -> bool {
        let Some(id) = self.node_of(rank) else { return false };
        self.end_task(id, rank, ExitStatus::Signaled { signal: Signal::KILL, core: false });
        true
    }

    fn cut(&mut self, agent: AgentId, is_noticed: bool) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let Some(shell) = self.processes[id.0].shell else { return false };
        self.shells[shell.0].is_cut = true;
        for link in self.uplinks(id) {
            self.cut_link(link, is_noticed);
        }
        true
    }

    /// The links of a process to its parent.
    fn uplinks(&self, id: ProcessId) -> Vec<LinkId> {
        let is_uplink = |&index: &usize| self.links[index].ends[1] == id;
        (0..self.links.len()).filter(is_uplink).map(|index| LinkId(index as u64)).collect()
    }

    fn half_open_links(&mut self, agent: AgentId, end: Side) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let links = self.uplinks(id);
        for &link in &links {
            self.half_open(link, usize::from(end == Side::Child));
        }
        !links.is_empty()
    }

    fn partition(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let Some(shell) = self.processes[id.0].shell else { return false };
        let until = self.now + time;
        self.shells[shell.0].blocked_until = until;
        for link in self.uplinks(id) {
            self.block_link(link, until);
        }
        true
    }

    fn slow_links(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let links = self.uplinks(id);
        for &link in &links {
            self.links[index(link)].latency += time;
        }
        !links.is_empty()
    }

    fn duplicate(&mut self, agent: AgentId, twin: Twin) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let Some(shell) = self.processes[id.0].shell else { return false };
        let Shell { by, attempt, .. } = self.shells[shell.0];
        // Before its welcome an agent says hello on the one connection that it keeps, so that nobody
        // can have said it earlier.
        let is_welcome = self.checker.report.welcomes.contains_key(&agent);
        if !self.processes[by.0].is_running() || (twin == Twin::Hello && !is_welcome) {
            return false;
        }
        let link = self.connect_twin(by, id, attempt);
        if twin == Twin::Hello {
            let pid = u32::try_from(id.0).unwrap_or(u32::MAX);
            let hello = Message::Hello(Hello { attempt, pid });
            self.after(Duration::from_millis(1), Happening::Arrival(link, 0, hello));
        }
        true
    }

    fn pause(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.processes[id.0].paused_until = self.now + time;
        true
    }

    fn close_output(&mut self, stream: Stream) -> bool {
        self.closed_outputs[stream_index(stream)] = true;
        self.tell_head(Input::OutputClosed(stream))
    }

    fn tell_head(&mut self, input: Input) -> bool {
        let is_running = self.processes[ProcessId::HEAD.0].is_running();
        self.tell(ProcessId::HEAD, input);
        is_running
    }
}
