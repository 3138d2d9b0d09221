//! Faults, and what else comes from outside.

use std::time::Duration;

use engine::{AgentConfig, Engine, Input, LinkEnd, LinkId};
use model::{AgentId, ExitStatus, IdSet, Rank, Signal, Time};
use wire::Stream;

use super::{Happening, World};
use crate::fault::{Fault, ShellPlan, TwinOf, Way};
use crate::link::Link;
use crate::process::{End, Process, ProcessId};
use crate::shell::{Shell, ShellId, ShellProgram};
use crate::task::stream_index;
use crate::task_id::TaskId;

/// Neither end of a link hears anything.
const BOTH: [bool; 2] = [true; 2];

/// After which time a twin hears that its shell is gone.
const TWIN_TIME: Duration = Duration::from_secs(1);

/// Longer than any session.
const FOR_EVER: Duration = Duration::from_secs(1_000_000);

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
            Fault::Cut(agent) => self.cut(agent, BOTH, true).is_some(),
            Fault::Hush(agent) => self.cut(agent, BOTH, false).is_some(),
            Fault::CutFor(agent, time) => self.cut_for(agent, time),
            Fault::Partition(ref agents, time) => self.part(agents, time),
            Fault::HalfLost(agent, Way::Up) => self.cut(agent, [true, false], true).is_some(),
            Fault::HalfLost(agent, Way::Down) => self.cut(agent, [false, true], true).is_some(),
            Fault::HalfOpen(agent, way) => self.half_open(agent, way),
            Fault::CutRoute(agent) => self.cut_route(agent),
            Fault::BreakRoute(agent) => self.break_route(agent),
            Fault::SlowLink(agent, time) => self.slow_link(agent, time),
            Fault::Twin(agent, of) => self.bring_up_twin(agent, of),
            Fault::Pause(agent, time) => self.pause(agent, time),
            Fault::Hang(agent) => self.pause(agent, FOR_EVER),
            Fault::Slow(agent, time) => self.slow(agent, time),
            Fault::HangShell(agent) => self.hang_shell(agent),
            Fault::HangTask(rank, time) => self.hang_task(rank, time),
            Fault::UserSignal(signal) => self.tell_head(Input::UserSignal(signal)),
            Fault::CloseOutput(stream) => self.close_output(stream),
        };
        if has_struck {
            self.checker.report.faults_struck += 1;
            self.hurt = self.hurt.union(&fault.hurts());
            if matches!(fault, Fault::Slow(..)) && self.session.calibration.cpu.is_shared {
                // All processes wait for one processor.
                self.hurt.insert_range(0, self.session.n);
            }
            self.hurt_companions();
        }
    }

    /// Agents that one shell has started live by it together.
    fn hurt_companions(&mut self) {
        let hurt = &mut self.hurt;
        for shell in self.shells.iter().filter(|shell| shell.agents.len() > 1) {
            if shell.agents.iter().any(|agent| hurt.contains(agent.0)) {
                shell.agents.iter().for_each(|agent| _ = hurt.insert(agent.0));
            }
        }
    }

    fn running(&self, agent: AgentId) -> Option<ProcessId> {
        let is_it = |index: &usize| {
            let process = &self.processes[*index];
            process.agent == agent && process.is_running()
        };
        (0..self.processes.len()).rev().find(is_it).map(ProcessId)
    }

    /// The newest process of an agent whose keeper lives: it outlives the agent until all is killed.
    fn kept(&self, agent: AgentId) -> Option<ProcessId> {
        let is_it = |process: &Process| {
            let has_keeper = process.is_running() || process.is_unreaped;
            process.agent == agent && has_keeper && !process.has_lost_keeper
        };
        self.processes.iter().rposition(is_it).map(ProcessId)
    }

    fn crash(&mut self, agent: AgentId) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.end_process(id, End::Crash);
        true
    }

    fn kill_keeper(&mut self, agent: AgentId) -> bool {
        let Some(id) = self.kept(agent) else { return false };
        self.processes[id.0].has_lost_keeper = true;
        self.tell_soon(id, Input::KeeperGone);
        true
    }

    fn newest_shell(&self, agent: AgentId) -> Option<ShellId> {
        let is_it = |shell: &Shell| shell.agents.contains(&agent) && !shell.is_over;
        self.shells.iter().rposition(is_it).map(ShellId)
    }

    fn kill_newest_shell(&mut self, agent: AgentId) -> bool {
        let Some(shell) = self.newest_shell(agent) else { return false };
        self.kill_shell(shell);
        true
    }

    fn hang_shell(&mut self, agent: AgentId) -> bool {
        let Some(shell) = self.newest_shell(agent) else { return false };
        self.shells[shell.0].plan = ShellPlan::Hangs;
        for link in self.links_over(shell) {
            self.cut_link(link, BOTH, false);
        }
        true
    }

    fn runner_of(&self, rank: Rank) -> Option<ProcessId> {
        let has_it = |index: &usize| {
            let task = self.processes[*index].tasks.get(&TaskId::first(rank));
            task.is_some_and(|task| task.is_running())
        };
        (0..self.processes.len()).find(has_it).map(ProcessId)
    }

    fn hang_task(&mut self, rank: Rank, time: Duration) -> bool {
        let Some(id) = self.runner_of(rank) else { return false };
        let until = self.now + time;
        let Some(task) = self.processes[id.0].tasks.get_mut(&TaskId::first(rank)) else {
            return false;
        };
        task.stopped_until = until;
        self.queue.push(until, Happening::ContinueTask(id, TaskId::first(rank)));
        true
    }

    fn kill_task(&mut self, rank: Rank) -> bool {
        let Some(id) = self.runner_of(rank) else { return false };
        self.end_task(
            id,
            TaskId::first(rank),
            ExitStatus::Signaled { signal: Signal::KILL, core: false },
        );
        true
    }

    /// Cuts the links and the shell between an agent and its spawn parent. Returns which.
    fn cut(
        &mut self,
        agent: AgentId,
        deaf: [bool; 2],
        is_noticed: bool,
    ) -> Option<(Vec<LinkId>, ShellId)> {
        let id = self.running(agent)?;
        let shell = self.processes[id.0].shell?;
        self.shells[shell.0].is_cut = true;
        let cut = self.links_up_of(id);
        for &link in &cut {
            self.cut_link(link, deaf, is_noticed);
        }
        Some((cut, shell))
    }

    fn half_open(&mut self, agent: AgentId, way: Way) -> bool {
        let (end, deaf) = match way {
            Way::Up => (0, [false, true]),
            Way::Down => (1, [true, false]),
        };
        let Some((links, _)) = self.cut(agent, deaf, false) else { return false };
        for link in links {
            self.break_link(link, end, LinkEnd::Closed, Happening::LinkDown);
        }
        true
    }

    /// The first of the links that an agent has opened for the routing tree.
    fn route_of(&self, agent: AgentId) -> Option<LinkId> {
        let id = self.running(agent)?;
        let is_it = |link: &Link| link.ends[1] == id && link.is_route && !link.is_closed[1];
        self.links.iter().position(is_it).map(|index| LinkId(index as u64))
    }

    fn cut_route(&mut self, agent: AgentId) -> bool {
        let Some(link) = self.route_of(agent) else { return false };
        self.cut_link(link, BOTH, true);
        true
    }

    /// Both ends are told that a link is gone, and what was on it is lost.
    fn break_route(&mut self, agent: AgentId) -> bool {
        let Some(link) = self.route_of(agent) else { return false };
        for end in [0, 1] {
            self.break_link(link, end, LinkEnd::Closed, Happening::LinkDown);
        }
        true
    }

    pub(super) fn links_up_of(&self, id: ProcessId) -> Vec<LinkId> {
        let links = self.links.iter().zip(0..);
        links
            .filter(|(link, _)| link.ends[1] == id && !link.is_route)
            .map(|(_, index)| LinkId(index))
            .collect()
    }

    fn cut_for(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some((links, shell)) = self.cut(agent, BOTH, true) else { return false };
        let heals_at = self.now + time;
        for link in links {
            self.queue.push(heals_at, Happening::HealLink(link));
        }
        self.queue.push(heals_at, Happening::HealShell(shell));
        true
    }

    /// Cuts everything between these agents and all others.
    fn part(&mut self, agents: &IdSet, time: Duration) -> bool {
        let heals_at = self.now + time;
        self.partitions.push((agents.clone(), heals_at));
        for index in 0..self.links.len() {
            let [parent, child] = self.links[index].ends.map(|id| self.processes[id.0].agent);
            if agents.contains(parent.0) != agents.contains(child.0) {
                let link = LinkId(index as u64);
                self.cut_link(link, BOTH, true);
                self.queue.push(heals_at, Happening::HealLink(link));
            }
        }
        for index in 0..self.shells.len() {
            let shell = &mut self.shells[index];
            let (by, first) = (self.processes[shell.by.0].agent, shell.agents[0]);
            if agents.contains(by.0) != agents.contains(first.0) {
                shell.is_cut = true;
                self.queue.push(heals_at, Happening::HealShell(ShellId(index)));
            }
        }
        true
    }

    /// Until when a partition is between two agents, if one is.
    pub(super) fn apart_until(&self, one: AgentId, other: AgentId) -> Option<Time> {
        let is_between = |agents: &IdSet| agents.contains(one.0) != agents.contains(other.0);
        let until = self.partitions.iter().filter(|(agents, _)| is_between(agents));
        until.map(|&(_, until)| until).filter(|&until| until > self.now).max()
    }

    fn slow_link(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        for link in self.links_up_of(id) {
            self.links[crate::link::index(link)].latency += time;
        }
        true
    }

    fn slow(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.processes[id.0].slowed_by = time;
        true
    }

    /// A second process of an agent calls the parent of the first. Its own shell is gone: it is
    /// what a start that counts as failed has left behind.
    fn bring_up_twin(&mut self, agent: AgentId, of: TwinOf) -> bool {
        let newest = self.shells.iter().rfind(|shell| shell.agents.contains(&agent));
        let Some(&Shell { by, attempt, start, .. }) = newest else { return false };
        if self.session.is_over_shell(agent) {
            return false; // it could call nobody
        }
        let attempt = match of {
            TwinOf::Newest | TwinOf::Mute => attempt,
            TwinOf::Earlier => attempt.saturating_sub(1),
        };
        let (shell, id) = (ShellId(self.shells.len()), ProcessId(self.processes.len()));
        self.shells.push(Shell {
            start,
            by,
            agents: vec![agent],
            attempt,
            plan: ShellPlan::Works,
            started: vec![id],
            program: ShellProgram::Unasked,
            is_over: true,
            is_cut: self.apart_until(self.processes[by.0].agent, agent).is_some(),
        });
        let config: AgentConfig = self.agent_config(shell, agent, id);
        self.add_process(Process::new(agent, Engine::agent(self.now, config), Some(shell)));
        if of == TwinOf::Mute {
            self.processes[id.0].pause_until(self.now + FOR_EVER);
        }
        let link = self.machines.link_latency(agent);
        self.after(link, Happening::Call(id, 0));
        self.after(TWIN_TIME, Happening::HealShell(shell));
        true
    }

    fn pause(&mut self, agent: AgentId, time: Duration) -> bool {
        let Some(id) = self.running(agent) else { return false };
        self.processes[id.0].pause_until(self.now + time);
        if id == ProcessId::HEAD {
            self.rulebook.on_late();
        }
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
