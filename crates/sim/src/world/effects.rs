//! Performing what engines want.

use engine::{Effect, Input, Spawn};
use model::{AgentId, ExitStatus, JobId, NodeId, Signal};
use wire::{JobFault, Stream};

use super::{Happening, World};
use crate::calibration::Cpu;
use crate::checker::INPUT_KEY;
use crate::link::transfer_time;
use crate::log::kind_hash;
use crate::pattern;
use crate::process::{End, ProcessId};
use crate::script::Script;
use crate::task::{Task, Wait};
use crate::task_id::TaskId;

/// The most that a driver reads at once.
const READ_BYTES_MAX: u64 = 65_536;

impl World<'_> {
    pub(super) fn perform(&mut self, id: ProcessId, effect: Effect) {
        log!(self, "agent {} wants {effect:?}", self.processes[id.0].agent);
        self.checker.note([id.0 as u64, kind_hash(&effect), 0, 0]);
        if !self.processes[id.0].is_running() {
            return self.checker.violate(format!("an effect after the last one: {effect:?}"));
        }
        match effect {
            Effect::Start(start) => self.start(id, &start),
            Effect::SendProgram(start) => self.send_program(id, start),
            Effect::KillShell(start) => self.kill_shell_of(id, start),
            Effect::Send { links, message } => self.send(id, &links, &message),
            Effect::SetLinkTimeout(link, ms) => self.set_link_timeout(id, link, ms),
            Effect::Close(link) => self.close_link(id, link),
            Effect::Prepare { job, host: _, apps } if job.job == JobId::FIRST => {
                self.prepare(id, job.job, &apps)
            }
            Effect::Prepare { job, host: _, apps } => self.prepare_spawned(id, &job, &apps),
            Effect::Listen => self.listen(id),
            Effect::Connect { peer, contact } => self.seek(id, peer, contact),
            Effect::Spawn(spawn) => self.spawn(id, &spawn),
            Effect::SignalTasks { job, signal } => self.signal_tasks(id, job, signal),
            Effect::Sweep(job) => self.sweep(id, job),
            Effect::ReadTasks(on) => self.read_tasks(id, on),
            Effect::WriteTask { job, rank, data } => {
                self.write_task(id, TaskId { job, rank }, &data)
            }
            Effect::CloseTaskInput { job, rank } => self.close_task_input(id, TaskId { job, rank }),
            Effect::PmiSend { job, rank, data } | Effect::PmiSendSnapshot { job, rank, data } => {
                self.pmi_send(id, TaskId { job, rank }, &data)
            }
            Effect::KeepSnapshot { .. } => {} // scripted tasks ask for each value
            Effect::PmiSendInMemory { job, replies, data } => {
                replies
                    .iter()
                    .for_each(|&(rank, _)| self.pmi_send(id, TaskId { job, rank }, &data));
            }
            Effect::AnswerCaller { caller, data: _ } => self.on_greeted(id, caller),
            Effect::AdmitCaller { caller, job, rank } => self.admit(caller, TaskId { job, rank }),
            Effect::DropCaller(caller) => self.turn_away(caller),
            Effect::WriteOutput { job, rank, stream, data } => {
                self.write_output(TaskId { job, rank }, stream, &data)
            }
            Effect::WriteFile { job, rank, stream, data } => {
                self.write_file(id, TaskId { job, rank }, stream, &data)
            }
            Effect::CloseFiles(job) => {
                if !self.processes[id.0].files.remove(&job) {
                    self.checker.violate(format!("files of job {} that were not made", job.0));
                }
            }
            Effect::ReadInput(bytes) => self.want_input(bytes),
            Effect::StopInput => self.input_wanted = 0,
            Effect::SuspendSelf => self.suspend(id),
            Effect::Exit(code) => self.exit(id, code),
            Effect::Abandon { code, words: _ } => self.end_process(id, End::Abandon(code)),
        }
    }

    fn prepare(&mut self, id: ProcessId, job: JobId, apps: &[u32]) {
        let agent = self.processes[id.0].agent;
        if apps != self.session.programs_on(agent) {
            self.checker.violate(format!("agent {agent} looks up programs {apps:?}"));
        }
        let errno = self.session.missing_programs.get(&agent);
        let words = "/bin/scripted".into();
        let fault = errno.map(|&errno| JobFault::Program { agent, app: apps[0], errno, words });
        self.tell_soon(
            id,
            Input::Prepared { job, fault, pmi_port: self.pmi_port(), open_mpi: vec![] },
        );
    }

    fn spawn(&mut self, id: ProcessId, spawn: &Spawn) {
        let (rank, job) = (spawn.rank, spawn.job.job);
        if let Some(errno) = self.failing_spawn(spawn) {
            let result = Err((errno, "execve".into()));
            return self.tell_soon(id, Input::Spawned { job, rank, result });
        }
        self.checker.violations.extend(self.rulebook.on_spawn());
        let (mut task, map) = if job == JobId::FIRST {
            (self.task_of_first(spawn), &self.map)
        } else {
            (self.spawned_task(spawn), &spawn.job.map)
        };
        if spawn.job.io.output.merged {
            task.merge_outputs();
        }
        let (of, agent) = (TaskId { job, rank }, self.processes[id.0].agent);
        if map.node_of(rank).map(NodeId::agent) != Some(agent) {
            self.checker.violate(format!("rank {of} was launched by agent {agent}"));
        }
        self.processes[id.0].tasks.insert(of, Box::new(task));
        self.checker.refer(|reference| reference.launch(agent, of));
        let &Cpu { spawn_us, exec_us, .. } = self.machines.cpu();
        let spawned = self.work(id, self.now, spawn_us);
        let runs = self.machines.work(agent, spawned, exec_us);
        let spawned_input = Input::Spawned { job, rank, result: Ok(1000 + rank.0) };
        self.queue.push(spawned + super::LOCAL_TIME, Happening::Input(id, spawned_input));
        self.queue.push(runs + 2 * super::LOCAL_TIME, Happening::TaskStep(id, of));
    }

    fn task_of_first(&mut self, spawn: &Spawn) -> Task {
        let rank = spawn.rank;
        let app = self.session.program_of(rank);
        if spawn.app != app || spawn.job.app(app).is_none_or(|app| app.first_rank > rank) {
            self.checker.violate(format!("task {rank} is created as one of app {}", spawn.app));
        }
        let own = self.session.own_script(rank).map(Script::steps);
        let script = own.unwrap_or_else(|| self.script.clone());
        let (n_tasks, kvsname) = (self.map.len(), self.kvsname.clone());
        let dialect = self.session.dialect_of(rank);
        Task::new(rank, n_tasks, app, dialect, kvsname, script, spawn.stdin)
    }

    fn signal_tasks(&mut self, id: ProcessId, job: JobId, signal: Signal) {
        let status = ExitStatus::Signaled { signal, core: false };
        let now = self.now;
        let tasks = self.processes[id.0].tasks.iter_mut();
        let dying: Vec<TaskId> = tasks
            .filter(|(of, task)| of.job == job && task.is_running() && task.dies_of(signal))
            .filter_map(|(&of, task)| {
                let is_held = task.stopped_until > now && signal != Signal::KILL;
                task.pending = task.pending.or(is_held.then_some(signal));
                (!is_held).then_some(of)
            })
            .collect();
        for of in dying {
            self.end_task(id, of, status);
        }
    }

    fn sweep(&mut self, id: ProcessId, job: JobId) {
        self.kill_all_tasks(id, Some(job));
        self.tell_soon(id, Input::Swept(job));
    }

    fn read_tasks(&mut self, id: ProcessId, on: bool) {
        let process = &mut self.processes[id.0];
        process.ignores_tasks = !on;
        for of in process.tasks.keys().copied().collect::<Vec<_>>() {
            for stream in [Stream::Stdout, Stream::Stderr] {
                self.read_task_soon(id, of, stream);
            }
        }
    }

    fn write_task(&mut self, id: ProcessId, of: TaskId, data: &bytes::Bytes) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else {
            // That it could not be created may be on its way.
            if !self.session.failing_spawns.contains_key(&of.rank) {
                let words = format!("WriteTask of rank {of}, which is not there");
                self.checker.violate(words);
            }
            return;
        };
        self.checker.on_task_input(task.input.given, data);
        task.input.given += data.len() as u64;
        self.fill_input(id, of);
    }

    fn close_task_input(&mut self, id: ProcessId, of: TaskId) {
        if let Some(task) = self.processes[id.0].tasks.get_mut(&of) {
            task.input.ends = true;
            self.go_on_if(id, of, Wait::Input);
        } else if !self.session.failing_spawns.contains_key(&of.rank) {
            let words = format!("CloseTaskInput of rank {of}, which is not there");
            self.checker.violate(words);
        }
    }

    fn pmi_send(&mut self, id: ProcessId, of: TaskId, data: &bytes::Bytes) {
        if let Some(task) = self.processes[id.0].tasks.get_mut(&of) {
            task.receive(data);
            self.go_on_if(id, of, Wait::Pmi);
        }
    }

    fn write_output(&mut self, of: TaskId, stream: Stream, data: &bytes::Bytes) {
        self.checker.on_output(of, stream, data);
        let len = data.len() as u64;
        self.unwritten += len;
        let report = &mut self.checker.report;
        report.unwritten_max = report.unwritten_max.max(self.unwritten);
        let begin = self.reader_free_at.max(self.now);
        self.reader_free_at = begin + transfer_time(len, self.session.costs.reader);
        let bytes = u32::try_from(len).unwrap_or(u32::MAX);
        self.queue.push(self.reader_free_at + super::LOCAL_TIME, Happening::OutputRead(bytes));
    }

    /// Writes at once, as far as there is room on the disk.
    fn write_file(&mut self, id: ProcessId, of: TaskId, stream: Stream, data: &bytes::Bytes) {
        let agent = self.processes[id.0].agent;
        let may =
            if self.session.output.local { agent != AgentId::HEAD } else { agent == AgentId::HEAD };
        let is_made = of.job == JobId::FIRST || self.processes[id.0].files.contains(&of.job);
        if !may || !is_made {
            self.checker.violate(format!("agent {agent} writes a file of rank {of}"));
        }
        let filed = self.filed.entry(agent).or_default();
        *filed += data.len() as u64;
        if self.session.disks.get(&agent).is_some_and(|room| *filed > *room) {
            const ENOSPC: i32 = 28;
            let words = "`/out`".into();
            return self.tell_soon(id, Input::NotWritten { errno: ENOSPC, words });
        }
        self.checker.on_file(of, stream, data);
    }

    pub(super) fn output_read(&mut self, bytes: u32) {
        self.unwritten -= u64::from(bytes);
        self.tell(ProcessId::HEAD, Input::OutputWritten(bytes));
    }

    fn want_input(&mut self, bytes: u32) {
        self.input_wanted += u64::from(bytes);
        if !self.input_is_on_its_way {
            self.input_is_on_its_way = true;
            self.after(super::LOCAL_TIME, Happening::ReadInput);
        }
    }

    pub(super) fn read_input(&mut self) {
        self.input_is_on_its_way = false;
        if self.input_is_ended || self.input_wanted == 0 {
            return;
        }
        let left = self.session.input_bytes - self.input_given;
        if left == 0 {
            self.input_is_ended = true;
            return self.tell(ProcessId::HEAD, Input::UserInputEnd);
        }
        let len = left.min(self.input_wanted).min(READ_BYTES_MAX);
        let data = pattern::bytes(INPUT_KEY, self.input_given, len);
        self.input_given += len;
        self.input_wanted -= len;
        self.tell(ProcessId::HEAD, Input::UserInput(data));
        self.want_input(0);
    }

    /// The head stops itself; the user lets it go on after a while.
    fn suspend(&mut self, id: ProcessId) {
        const SUSPENDED: std::time::Duration = std::time::Duration::from_secs(30);
        // Agents that call meanwhile find that nobody answers.
        self.hurt.insert(AgentId::HEAD.0);
        self.rulebook.on_late();
        self.processes[id.0].pause_until(self.now + SUSPENDED);
        self.after(SUSPENDED, Happening::Input(id, Input::Resumed));
    }

    fn exit(&mut self, id: ProcessId, code: u8) {
        let process = &self.processes[id.0];
        let agent = process.agent;
        if process.tasks.values().any(|task| task.is_anything_left()) {
            self.checker.violate(format!("agent {agent} exits and leaves tasks behind"));
        }
        self.end_process(id, End::Exit(code));
    }
}
