//! Faults, and what else comes from outside.

use engine::{Input, LinkId};
use model::{AgentId, ExitStatus, Rank, Signal};
use wire::Stream;

use super::World;
use crate::fault::Fault;
use crate::process::{End, ProcessId};
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

    fn kill_task(&mut self, rank: Rank) -> bool {
        let has_it = |index: &usize| {
            let task = self.processes[*index].tasks.get(&rank);
            task.is_some_and(|task| task.is_running())
        };
        let Some(id) = (0..self.processes.len()).find(has_it).map(ProcessId) else { return false };
        self.end_task(id, rank, ExitStatus::Signaled { signal: Signal::KILL, core: false });
        true
    }

    fn cut(&mut self, agent: AgentId, is_noticed: bool) -> bool {
        let Some(id) = self.running(agent) else { return false };
        let Some(shell) = self.processes[id.0].shell else { return false };
        self.shells[shell.0].is_cut = true;
        let cut: Vec<usize> =
            (0..self.links.len()).filter(|&index| self.links[index].ends[1] == id).collect();
        for index in cut {
            self.cut_link(LinkId(index as u64), is_noticed);
        }
        true
    }

    fn pause(&mut self, agent: AgentId, time: std::time::Duration) -> bool {
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
