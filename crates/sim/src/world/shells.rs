//! Shells and the processes that they start: how agents come to life, and how processes end.

use std::time::Duration;

use engine::{AgentConfig, Engine, Input, LinkId, Start, StartId};
use model::{AgentId, ExitStatus, Signal, Time};
use wire::ShellFailureKind;

use super::{Happening, LOCAL_TIME, ShellEnd, World};
use crate::calibration::Cpu;
use crate::fault::ShellPlan;
use crate::process::{End, Process, ProcessId};
use crate::random::Purpose;
use crate::shell::{CALL_AGAIN, HUNG_MAX, Shell, ShellId, ShellProgram};

/// How long a system call takes to find that nobody answers.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Within which time all is gone that was below a process that has ended.
const REAPED_MAX: Duration = Duration::from_secs(1);

/// With what ssh ends when a signal ended what it ran.
const SSH_FAILED: u8 = 255;

impl World<'_> {
    pub(super) fn start(&mut self, id: ProcessId, start: &Start) {
        let agents: Vec<AgentId> = start.agents.iter().map(|&(agent, _)| agent).collect();
        for &agent in &agents {
            *self.checker.report.starts.entry(agent).or_default() += 1;
            let is_member = self.is_member(id);
            let held = is_member.then(|| self.holders.start(id, agent)).flatten();
            let wrong = [held, self.sets.start(id, agent)];
            wrong.into_iter().flatten().for_each(|words| self.checker.violate(words));
        }
        let first = agents.first().copied().unwrap_or_default();
        let starter = self.processes[id.0].agent;
        let plan = self.session.plan_of(starter, first, start.attempt);
        self.checker.report.shells += 1;
        let shell = ShellId(self.shells.len());
        let apart_until = self.apart_until(starter, first);
        if let Some(time) = apart_until {
            self.queue.push(time, Happening::HealShell(shell));
        }
        self.shells.push(Shell {
            start: start.start,
            by: id,
            agents,
            attempt: start.attempt,
            plan,
            started: Vec::new(),
            program: ShellProgram::Unasked,
            is_over: false,
            is_cut: apart_until.is_some(),
        });
        if self.processes[id.0].shells.insert(start.start, shell).is_some() {
            self.checker.violate(format!("{:?} was used twice", start.start));
        }
        self.begin_shell(id, shell, plan);
    }

    fn begin_shell(&mut self, id: ProcessId, shell: ShellId, plan: ShellPlan) {
        let Shell { agents, attempt, .. } = &self.shells[shell.0];
        let (first, attempt) = (agents.first().copied().unwrap_or(AgentId::HEAD), *attempt);
        let latency = self.machines.latency(first, attempt);
        let starter = self.processes[id.0].agent;
        let gap = self.session.gap_of(starter);
        let gap = gap.unwrap_or_else(|| self.machines.gap(starter, first, attempt));
        let begin = self.work(id, self.now, self.machines.cpu().spawn_us);
        let login = self.log_in(first, attempt);
        let plan = if login.is_some() { plan } else { ShellPlan::Fails(ShellFailureKind::Busy) };
        self.shells[shell.0].plan = plan;
        let process = &mut self.processes[id.0];
        process.starts_free_at = process.starts_free_at.max(begin) + gap;
        let ready = process.starts_free_at.max(login.unwrap_or(self.now)) + latency;
        if self.session.tells_started {
            let started = Input::Started(self.shells[shell.0].start);
            self.queue.push(process.starts_free_at, Happening::Input(id, started));
        }
        match plan {
            ShellPlan::Works | ShellPlan::Fails(_) | ShellPlan::EndsEarly | ShellPlan::Mute => {
                self.queue.push(ready, Happening::ShellReady(shell));
            }
            ShellPlan::Slow(time) => self.queue.push(ready + time, Happening::ShellReady(shell)),
            ShellPlan::NotRun(errno) => {
                self.shells[shell.0].is_over = true;
                let start = self.shells[shell.0].start;
                self.tell_soon(id, Input::ShellNotRun { start, errno, words: "execve".into() });
            }
            ShellPlan::Hangs => {}
        }
    }

    /// When the sshd that serves all names, if one does, is through with a start; `None`: it refuses it.
    fn log_in(&mut self, agent: AgentId, attempt: u32) -> Option<Time> {
        let chance = self.machines.random(agent, Purpose::Login, attempt).fraction();
        self.logins.as_mut().map_or(Some(self.now), |logins| logins.come(self.now, chance))
    }

    pub(super) fn shell_ready(&mut self, id: ShellId) {
        let shell = &self.shells[id.0];
        if shell.is_over || !self.processes[shell.by.0].is_running() {
            return;
        }
        if shell.is_cut {
            return self.after(CALL_AGAIN, Happening::ShellReady(id));
        }
        let works = matches!(
            shell.plan,
            ShellPlan::Works | ShellPlan::Slow(_) | ShellPlan::EndsEarly | ShellPlan::Mute
        );
        if works && self.asks_for_program(id) {
            return;
        }
        match self.shells[id.0].plan {
            ShellPlan::Works | ShellPlan::Slow(_) => self.bring_up(id, true),
            ShellPlan::Mute => self.bring_up(id, false),
            ShellPlan::EndsEarly => {
                self.bring_up(id, true);
                self.kill_shell(id);
            }
            ShellPlan::Fails(kind) => {
                let status = ExitStatus::Exited(255);
                self.end_shell(
                    id,
                    Duration::ZERO,
                    ShellEnd { kind, status, words: "no such luck" },
                );
            }
            ShellPlan::NotRun(_) | ShellPlan::Hangs => {}
        }
    }

    /// Creates the agents that a shell starts.
    fn bring_up(&mut self, id: ShellId, connects: bool) {
        for agent in self.shells[id.0].agents.clone() {
            let process = ProcessId(self.processes.len());
            let engine = Engine::agent(self.now, self.agent_config(id, agent, process));
            log!(self, "agent {agent} exists");
            self.shells[id.0].started.push(process);
            self.add_process(Process::new(agent, engine, Some(id)));
            if connects {
                let &Cpu { exec_us, parse_us, .. } = self.machines.cpu();
                let runs = self.work(process, self.now, exec_us + parse_us);
                let link = self.machines.link_latency(agent);
                self.queue.push(runs + link, Happening::Call(process, 0));
            }
        }
    }

    pub(super) fn agent_config(
        &self,
        id: ShellId,
        agent: AgentId,
        process: ProcessId,
    ) -> AgentConfig {
        let shell = &self.shells[id.0];
        AgentConfig {
            agent,
            parent: self.processes[shell.by.0].agent,
            attempt: shell.attempt,
            pid: u32::try_from(process.0).unwrap_or(u32::MAX),
            seed: self.session.seed ^ u64::from(agent.0),
            children_max: self.session.children_max,
            reports_started: self.session.tells_started,
            welcome_timeout: self.session.welcome_timeout(),
        }
    }

    /// A started agent's SYN is on its way to its parent's listening socket. If that has no room, or
    /// the network is cut, it is lost, and sent again later.
    pub(super) fn call(&mut self, id: ProcessId, tries: usize) {
        let Some(shell) = self.processes[id.0].shell else { return };
        let Shell { by, is_cut, .. } = self.shells[shell.0];
        if is_cut {
            self.call_again(id, tries);
        } else if self.has_room_for(id, by) {
            self.processes[by.0].unaccepted += 1;
            self.await_turn(id);
        } else {
            self.checker.report.syns_dropped += 1;
            self.call_again(id, tries);
        }
    }

    /// Whether the parent's queue takes one more connection; a call over a shell waits in the shell.
    fn has_room_for(&self, id: ProcessId, parent: ProcessId) -> bool {
        let backlog = self.session.calibration.accept.backlog;
        self.is_over_shell(id) || self.processes[parent.0].unaccepted < backlog
    }

    /// The kernel has taken a connection. It is in the parent's queue until the parent is free, and for
    /// ever if that hangs.
    pub(super) fn await_turn(&mut self, id: ProcessId) {
        let Some(shell) = self.processes[id.0].shell else { return };
        let by = self.shells[shell.0].by;
        let parent = &self.processes[by.0];
        if let Some(until) = parent.paused_until(self.now) {
            return self.queue.push(until, Happening::Queued(id));
        }
        let begin = parent.busy_until.max(self.now);
        let done = self.work(by, begin, self.machines.cpu().handshake_us);
        if begin > self.now {
            self.queue.push(begin, Happening::Accept(id, done));
        } else {
            self.accept(id, done);
        }
    }

    /// A parent accepts a connection, which so leaves the queue, and shakes hands until `done`; then
    /// the other end has its part of that to do.
    pub(super) fn accept(&mut self, id: ProcessId, done: Time) {
        let Some(shell) = self.processes[id.0].shell else { return };
        let by = self.shells[shell.0].by;
        let parent = &mut self.processes[by.0];
        if let Some(until) = parent.paused_until(self.now) {
            return self.queue.push(until, Happening::Queued(id));
        }
        parent.unaccepted -= 1;
        let done = self.work(id, done, self.machines.cpu().handshake_us);
        if done > self.now {
            self.queue.push(done, Happening::Connected(id));
        } else {
            self.connected(id);
        }
    }

    fn call_again(&mut self, id: ProcessId, tries: usize) {
        let retransmits_s = &self.session.calibration.accept.retransmits_s;
        let before = tries.checked_sub(1).map_or(0.0, |index| retransmits_s[index]);
        match retransmits_s.get(tries) {
            Some(next) => {
                self.after(Duration::from_secs_f64(next - before), Happening::Call(id, tries + 1));
            }
            None => self.tell(id, Input::ConnectFailed("connection timed out".into())),
        }
    }

    /// A started agent reaches its parent, or finds that it can't.
    pub(super) fn connected(&mut self, id: ProcessId) {
        let Some(shell) = self.processes[id.0].shell else { return };
        if !self.processes[id.0].is_running() {
            return;
        }
        let Shell { by, is_cut, .. } = self.shells[shell.0];
        if is_cut {
            let words = "connection timed out".into();
            self.after(CONNECT_TIMEOUT, Happening::Input(id, Input::ConnectFailed(words)));
        } else if self.processes[by.0].is_running() {
            self.connect(by, id, false);
        } else {
            self.tell(id, Input::ConnectFailed("connection refused".into()));
        }
    }

    /// An engine ends a helper. One that has ended by itself meanwhile is no mistake.
    pub(super) fn kill_shell_of(&mut self, id: ProcessId, start: StartId) {
        match self.processes[id.0].shells.get(&start) {
            Some(&shell) => self.kill_shell(shell),
            None => self.checker.violate(format!("KillShell of {start:?}, which is not there")),
        }
    }

    /// Kills a helper; the agents at its other end hear of it.
    pub(super) fn kill_shell(&mut self, id: ShellId) {
        let status = ExitStatus::Signaled { signal: Signal::KILL, core: false };
        let kind = ShellFailureKind::Other;
        self.end_shell(id, LOCAL_TIME, ShellEnd { kind, status, words: "" });
        for link in self.links_over(id) {
            self.after(LOCAL_TIME, Happening::LinkDown(link, 0));
        }
        self.tell_started(id);
    }

    /// Tells the agents of a shell that it is gone; from then on their time runs.
    fn tell_started(&mut self, id: ShellId) {
        let shell = &self.shells[id.0];
        let is_cut = shell.is_cut;
        let link = self.machines.link_latency(shell.agents[0]);
        for process in shell.started.clone() {
            if !is_cut {
                // Where the shell is the link, its end is the link's and nothing else.
                let over = self.links_up_of(process).pop().filter(|_| self.is_over_shell(process));
                let gone = match over {
                    Some(link) => Happening::LinkDown(link, 1),
                    None => Happening::Input(process, Input::ShellGone),
                };
                self.after(link, gone);
                self.after(link + HUNG_MAX, Happening::Outlived(process));
            }
            self.after(self.session.orphan_time(), Happening::MustBeGone(process));
        }
    }

    fn is_over_shell(&self, id: ProcessId) -> bool {
        self.session.is_over_shell(self.processes[id.0].agent)
    }

    /// The links that run over a shell.
    pub(super) fn links_over(&self, id: ShellId) -> Vec<LinkId> {
        let over = self.shells[id.0].started.iter().filter(|started| self.is_over_shell(**started));
        over.flat_map(|started| self.links_up_of(*started)).collect()
    }

    fn end_shell(&mut self, id: ShellId, after: Duration, end: ShellEnd) {
        if !std::mem::replace(&mut self.shells[id.0].is_over, true) {
            self.after(after, Happening::ShellEnded(id, end));
        }
    }

    pub(super) fn shell_ended(&mut self, id: ShellId, end: ShellEnd) {
        let shell = &self.shells[id.0];
        let (by, start) = (shell.by, shell.start);
        let ShellEnd { kind, status, words } = end;
        self.tell(by, Input::ShellEnded { start, kind, status, words: words.into() });
    }

    /// A process ends, and with it all that it holds.
    pub(super) fn end_process(&mut self, id: ProcessId, end: End) {
        let process = &mut self.processes[id.0];
        process.end = Some(end);
        if process.tasks.values().any(|task| task.is_running()) {
            self.cut_short.insert(process.agent.0);
        }
        self.running -= 1;
        log!(self, "agent {} ends: {end:?}", self.processes[id.0].agent);
        self.checker.report.empty_at = self.now;
        for link in self.processes[id.0].links.clone() {
            self.close_end(id, link);
        }
        for shell in self.processes[id.0].shells.clone().into_values() {
            self.shells[shell.0].is_over = true;
            self.tell_started(shell);
        }
        match end {
            End::Exit(_) | End::Abandon(_) => {
                self.kill_all_tasks(id, None);
                self.end_own_shell(id, end);
            }
            End::Crash => self.leave_to_keeper(id),
        }
        if self.processes[id.0].has_orphans() {
            self.after(REAPED_MAX, Happening::MustBeReaped(id));
        }
        if id == ProcessId::HEAD {
            self.end_head(end);
        }
    }

    /// The kernel kills the tasks of an agent that was killed; the rest is its keeper's to kill, if
    /// that lives.
    fn leave_to_keeper(&mut self, id: ProcessId) {
        self.kill_running_tasks(id);
        let process = &mut self.processes[id.0];
        if process.has_lost_keeper {
            return self.end_own_shell(id, End::Crash);
        }
        process.is_unreaped = true;
        self.unreaped += 1;
        self.after(self.session.costs.keeper, Happening::Reap(id));
    }

    /// The keeper of a killed agent has killed what was below, says what killed the agent, and ends.
    /// One that was killed meanwhile has done neither.
    pub(super) fn reap(&mut self, id: ProcessId) {
        let process = &mut self.processes[id.0];
        process.is_unreaped = false;
        self.unreaped -= 1;
        if !process.has_lost_keeper && process.has_orphans() {
            self.checker.report.empty_at = self.now;
            self.kill_all_tasks(id, None);
        }
        self.end_own_shell(id, End::Crash);
    }

    /// The keeper of an agent whose shell is gone has waited long enough for its end.
    pub(super) fn outlived(&mut self, id: ProcessId) {
        let process = &self.processes[id.0];
        if process.is_running() && !process.has_lost_keeper {
            self.end_process(id, End::Crash);
        }
    }

    /// Whatever ended at one end of a shell while it was cut is heard of at the other.
    pub(super) fn heal_shell(&mut self, id: ShellId) {
        let shell = &mut self.shells[id.0];
        shell.is_cut = false;
        let started = &self.shells[id.0].started;
        let all_ended = started.iter().all(|process| !self.processes[process.0].is_running());
        if self.shells[id.0].is_over {
            self.tell_started(id);
        } else if all_ended && !started.is_empty() {
            let (kind, status) = (ShellFailureKind::Other, ExitStatus::Exited(SSH_FAILED));
            self.end_shell(id, LOCAL_TIME, ShellEnd { kind, status, words: "" });
        }
    }

    /// The shell that started a process ends with it and its keeper, and its parent sees that.
    fn end_own_shell(&mut self, id: ProcessId, end: End) {
        let Some(shell_id) = self.processes[id.0].shell else { return };
        let shell = &self.shells[shell_id.0];
        let is_last = shell.started.iter().all(|started| !self.processes[started.0].is_running());
        if !is_last || shell.is_cut {
            return;
        }
        let has_lost_keeper = self.processes[id.0].has_lost_keeper;
        let (kind, code) = match end {
            // The keeper is the process that the shell knows, and it says what killed the agent.
            End::Exit(_) | End::Abandon(_) | End::Crash if has_lost_keeper => {
                (ShellFailureKind::Other, SSH_FAILED)
            }
            End::Exit(code) | End::Abandon(code) => (ShellFailureKind::Other, code),
            End::Crash => (ShellFailureKind::AgentKilled(Signal::KILL), SSH_FAILED),
        };
        let shell_end = ShellEnd { kind, status: ExitStatus::Exited(code), words: "" };
        let link = self.machines.link_latency(self.processes[id.0].agent);
        self.end_shell(shell_id, link, shell_end);
    }

    fn end_head(&mut self, end: End) {
        self.compare_status(end);
        let report = &mut self.checker.report;
        report.ended_at = Some(self.now);
        report.code = match end {
            End::Exit(code) | End::Abandon(code) => Some(code),
            End::Crash => None,
        };
        self.after(self.session.orphan_time(), Happening::MustBeEmpty);
    }
}
