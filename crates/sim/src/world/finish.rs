//! What must hold when something is over.

use std::collections::BTreeMap;

use engine::{Outcome, exit_code};
use model::{ExitStatus, IdSet, JobId};
use wire::{JobFault, StartCause, StartFailure, Stream};

use super::World;
use crate::process::{End, Process, ProcessId};
use crate::report::{Failure, Report};
use crate::session::Session;
use crate::task_id::TaskId;

impl World<'_> {
    /// A process that has nobody above it must have ended.
    pub(super) fn must_be_gone(&mut self, id: ProcessId) {
        if self.processes[id.0].is_running() {
            let agent = self.processes[id.0].agent;
            self.checker.violate(format!("agent {agent} lives on with nobody above it"));
        }
    }

    /// What was below a process that has ended must have ended too.
    pub(super) fn must_be_reaped(&mut self, id: ProcessId) {
        let process = &self.processes[id.0];
        if process.has_orphans() {
            self.checker.violate(format!("agent {} has left tasks behind", process.agent));
        }
    }

    /// The head has ended some time ago.
    pub(super) fn must_be_empty(&mut self) {
        self.expect_nobody("live on after the head's end");
    }

    /// The session has taken as long as it may.
    pub(super) fn must_be_over(&mut self) {
        let words = format!("are not over after {:?}", self.session.time_max);
        self.expect_nobody(&words);
    }

    fn expect_nobody(&mut self, words: &str) {
        let running = self.processes.iter().filter(|process| process.is_running());
        let agents: IdSet = running.map(|process| process.agent.0).collect();
        if !agents.is_empty() {
            self.checker.violate(format!("agents {agents} {words}"));
        }
    }

    /// Checks what the run has come to, and reports it.
    pub(super) fn finish(mut self) -> Result<Report, Failure> {
        if self.checker.violations.is_empty() {
            self.expect_nobody("wait, and nothing is left to happen");
        }
        if self.checker.violations.is_empty() {
            self.check_output();
            self.check_code();
            self.check_told();
            self.check_innocence();
            self.check_statuses();
            self.check_tasks_are_gone();
        }
        let hash = self.checker.hash();
        let report = &mut self.checker.report;
        report.outcome = self.processes[0].engine.outcome().clone();
        report.steps = self.steps;
        report.hash = hash;
        if self.checker.violations.is_empty() {
            return Ok(self.checker.report);
        }
        Err(Failure {
            violations: self.checker.violations,
            log: self.log.into_tail(),
            report: Box::new(self.checker.report),
        })
    }

    /// When the head has come to its end, all that tasks wrote has been written for the user, or it
    /// says whose may be missing. After an orderly end of all the head is the last.
    fn check_output(&mut self) {
        let is_closed = self.closed_outputs.contains(&true);
        let report = &self.checker.report;
        let is_head_last = report.ended_at == Some(report.empty_at);
        let is_orderly = self.session.faults.is_empty() && !self.session.has_timeout();
        if is_orderly && self.session.starts_work() && !is_head_last {
            self.checker.violate("the head ended before its agents".into());
        }
        let is_full = !self.session.disks.is_empty();
        if is_closed || is_full || !matches!(self.processes[0].end, Some(End::Exit(_))) {
            return;
        }
        let incomplete = &self.processes[0].engine.outcome().incomplete;
        let is_whole = |process: &&Process| !incomplete.contains(process.agent.0);
        let whole = self.processes.iter().filter(is_whole);
        for (&of, task) in whole.flat_map(|process| &process.tasks) {
            for stream in [Stream::Stdout, Stream::Stderr] {
                let output = &self.session.output;
                if output.goes_to_user(stream) {
                    self.checker.on_stream_total(of, stream, task.written(stream));
                }
                if output.file(stream).is_some() {
                    self.checker.on_file_total(of, stream, task.written(stream));
                }
            }
            self.checker.report.input_bytes += task.input.read;
        }
    }

    /// The exit status is 0 if and only if every task has ended with 0 and nothing went wrong.
    fn check_code(&mut self) {
        let Some(code) = self.checker.report.code else { return };
        let outcome = self.processes[0].engine.outcome();
        if outcome.code != code {
            let words = format!("exit status {code}, but the outcome says {}", outcome.code);
            self.checker.violations.push(words);
        }
        if code == 0 {
            self.check_success();
        } else if !causes(outcome).contains(&code) && !self.has_broken(code) {
            let words = format!("exit status {code}, which none of the causes gives: {outcome:?}");
            self.checker.violations.push(words);
        }
    }

    /// Whether the head had to end at once, for a reason that an outcome does not tell.
    fn has_broken(&self, code: u8) -> bool {
        code == exit_code::INTERNAL && self.processes[0].end == Some(End::Abandon(code))
    }

    /// Nothing is blamed that was not hurt: without faults nobody is lost, and so on.
    fn check_innocence(&mut self) {
        let Session { faults, .. } = self.session;
        let outcome = self.processes[0].engine.outcome();
        let starts_work = faults.is_empty() && self.session.starts_work();
        let tasks_work = starts_work && self.session.tasks_work();
        let links_last =
            faults.is_empty() && self.session.shells_last() && self.session.keeps_time();
        // A node that a spare stands in for may be slow, and is named.
        let may_be_late = self.session.planned() < self.session.n;
        let is_late = |failure: &StartFailure| may_be_late && failure.cause == StartCause::Deadline;
        let blamed = [
            (links_last, outcome.losses.is_empty(), "a loss"),
            (starts_work, outcome.start_failures.iter().all(is_late), "a failed start"),
            (tasks_work, outcome.code == 0, "a failed job"),
        ];
        for (is_innocent, is_clean, words) in blamed {
            if is_innocent && !is_clean {
                let words = format!("{words} without a reason: {outcome:?}");
                self.checker.violations.push(words);
            }
        }
    }

    /// No task has an end that it did not come to, nor runs a second time.
    fn check_statuses(&mut self) {
        let outcome = self.processes[0].engine.outcome();
        let mut ended: BTreeMap<TaskId, ExitStatus> = BTreeMap::new();
        for (&of, task) in self.processes.iter().flat_map(|process| &process.tasks) {
            let before = task.ended.and_then(|status| ended.insert(of, status));
            if before.is_some() {
                self.checker.violations.push(format!("rank {of} ran twice"));
            }
        }
        let is_lost = !outcome.losses.is_empty();
        for (rank, status) in outcome.statuses.iter() {
            let really = ended.get(&TaskId::first(rank));
            let never_ran = self.session.failing_spawns.contains_key(&rank) || really.is_none();
            if really != Some(&status) && !never_ran && !is_lost {
                let words = format!("rank {rank}: {status:?} was told, {really:?} is true");
                self.checker.violations.push(words);
            }
        }
    }

    /// Nobody has left a task behind.
    fn check_tasks_are_gone(&mut self) {
        for index in 0..self.processes.len() {
            self.must_be_reaped(ProcessId(index));
        }
    }

    fn check_success(&mut self) {
        let tasks = self.processes.iter().flat_map(|process| &process.tasks);
        let failed: Vec<TaskId> = tasks
            .clone()
            .filter(|(of, _)| !self.failing_jobs.contains(&of.job))
            .filter(|(_, task)| task.ended != Some(ExitStatus::Exited(0)))
            .map(|(&of, _)| of)
            .collect();
        let launched = tasks.filter(|(of, _)| of.job == JobId::FIRST).count();
        let n_tasks = self.map.len() as usize;
        if launched != n_tasks || !failed.is_empty() {
            let words =
                format!("exit status 0, but {launched} of {n_tasks} ran, {failed:?} failed");
            self.checker.violations.push(words);
        }
        for Process { agent, files, .. } in &self.processes {
            if !files.is_empty() {
                let words = format!("agent {agent} has files of jobs that are over: {files:?}");
                self.checker.violations.push(words);
            }
        }
    }
}

/// The exit statuses that what went wrong can give. Among tasks the first that failed decides, but
/// for MPI_Abort; what came first of the rest can't be told from an outcome.
fn causes(outcome: &Outcome) -> Vec<u8> {
    let is_abort = |fault: &&JobFault| matches!(fault, JobFault::Abort { .. });
    let spawned: Vec<&JobFault> = outcome.spawned_faults.iter().map(|it| &it.fault).collect();
    let first: Vec<&JobFault> = outcome.faults.iter().collect();
    let aborts: Vec<_> = first.iter().chain(&spawned).copied().filter(is_abort).collect();
    let firsts: Vec<_> = first.first().into_iter().chain(spawned.first()).copied().collect();
    let faults = if aborts.is_empty() { firsts } else { aborts };
    let mut causes: Vec<u8> = faults.into_iter().map(exit_code::of_fault).collect();
    let others = [
        (!outcome.start_failures.is_empty(), exit_code::NOT_STARTED),
        (outcome.shortage.is_some(), exit_code::NOT_STARTED),
        (!outcome.losses.is_empty(), exit_code::AGENT_LOST),
        (outcome.timed_out, exit_code::TIMED_OUT),
        (outcome.output_closed, exit_code::OUTPUT_CLOSED),
    ];
    causes.extend(others.into_iter().filter(|&(is_so, _)| is_so).map(|(_, code)| code));
    causes.extend(outcome.signal.map(|signal| 128 + signal.0));
    causes
}
