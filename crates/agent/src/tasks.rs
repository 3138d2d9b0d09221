//! The tasks on this node, and the commands that they are created from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::thread;

use bytes::Bytes;
use engine::{Input, Spawn};
use model::{AgentId, JobId, PmiOffer, Rank, Time};
use os::machine::DescriptorLimit;
use os::process::Usage;
use os::{ExitStatus, Pid, Ready, Signal};
use rustix::fs::{Mode, OFlags};
use wire::{JobFault, JobSpec};

use crate::command::{self, Command};
use crate::open_mpi;
use crate::reactor::Reactor;
use crate::source::TaskPart;
use crate::task::{NewTask, Task, TaskSpec};
use crate::task_output::PACE;

/// How many tasks are created at once. While one finds its program, on a processor of its own, we
/// make the next one.
const NEW_MAX: usize = 2;

/// All tasks that anything can still be heard from.
#[derive(Debug)]
pub(crate) struct Tasks {
    agent: AgentId,
    descriptors: DescriptorLimit,
    /// By job and number of the app.
    commands: BTreeMap<(JobId, u32), Result<Rc<Command>, JobFault>>,
    /// The names of jobs that have had tasks here, which their processes carry.
    names: BTreeMap<JobId, String>,
    /// What tasks of a job may map.
    snapshots: BTreeMap<JobId, OwnedFd>,
    /// Those that are being created, the oldest first.
    new: VecDeque<NewTask>,
    tasks: BTreeMap<(JobId, Rank), Task>,
    /// Which task a process is, while it runs.
    by_pid: BTreeMap<Pid, (JobId, Rank)>,
    /// Whether output is read for now, also that of tasks to come.
    is_read: bool,
    /// Whether it has been decided who keeps the session.
    is_parted: bool,
    /// Whose output is read at a pace, and when the next time.
    paced: BTreeSet<(JobId, Rank)>,
    paced_at: Option<Time>,
    /// What tasks without standard input read; opened once.
    null: Option<Rc<OwnedFd>>,
}

impl Tasks {
    /// No tasks yet. They get the descriptor limit that we were started with.
    pub(crate) fn new(agent: AgentId, descriptors: DescriptorLimit) -> Tasks {
        Tasks {
            agent,
            descriptors,
            commands: BTreeMap::new(),
            names: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            new: VecDeque::new(),
            tasks: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            is_read: true,
            is_parted: false,
            paced: BTreeSet::new(),
            paced_at: None,
            null: None,
        }
    }

    /// Looks the commands of these apps up.
    ///
    /// # Errors
    /// The first that keeps the job from running here.
    pub(crate) fn prepare(&mut self, spec: &JobSpec, apps: &[u32]) -> Result<(), JobFault> {
        apps.iter().try_for_each(|&app| self.command(spec, app).clone().map(drop))
    }

    /// Those of these apps whose programs are linked with a library of Open MPI, and which.
    pub(crate) fn open_mpi(&self, spec: &JobSpec, apps: &[u32]) -> Vec<(u32, String)> {
        let library = |app: &u32| {
            let command = self.commands.get(&(spec.job, *app))?.as_ref().ok()?;
            let program = Path::new(OsStr::from_bytes(command.program().to_bytes()));
            Some((*app, open_mpi::library_of(program)?))
        };
        apps.iter().filter_map(library).collect()
    }

    /// Begins to create a task. [`Tasks::finish_spawn`] says how it went.
    pub(crate) fn spawn(&mut self, reactor: &mut Reactor, spawn: &Spawn) {
        if self.new.len() == NEW_MAX {
            self.finish_spawn(reactor);
        }
        let mut new = self.create(spawn);
        if new.is_err() && !self.new.is_empty() {
            self.finish_spawns(reactor);
            new = self.create(spawn); // those before it have given descriptors back
        }
        match new {
            Ok(new) => self.new.push_back(new),
            Err(error) => {
                let (job, rank) = (spawn.job.job, spawn.rank);
                reactor.report(Input::Spawned { job, rank, result: Err(error) });
            }
        }
    }

    /// Waits for the oldest task that is being created, and says how it went. Returns whether there
    /// was one.
    pub(crate) fn finish_spawn(&mut self, reactor: &mut Reactor) -> bool {
        let Some(new) = self.new.pop_front() else { return false };
        let (job, rank) = new.task();
        let result = match new.wait(&reactor.poller) {
            Ok(mut task) => {
                if !self.is_read {
                    task.read_output(reactor, false);
                }
                let pid = task.pid();
                self.by_pid.insert(pid, (job, rank));
                self.tasks.insert((job, rank), task);
                Ok(pid.unsigned_abs())
            }
            Err(error) => Err(error.into_parts(&self.descriptors)),
        };
        reactor.report(Input::Spawned { job, rank, result });
        true
    }

    /// The same for all that are being created.
    pub(crate) fn finish_spawns(&mut self, reactor: &mut Reactor) {
        while self.finish_spawn(reactor) {}
    }

    /// Once the first have been created, leaves the session to them if each can have a processor of its own: there they may
    /// use it all to wait for each other, and what they wait for must not wait for them. Where they are more, they share
    /// what there is with this agent as before, and it answers several at a time.
    pub(crate) fn leave_session(&mut self) {
        if self.tasks.is_empty() || mem::replace(&mut self.is_parted, true) {
            return;
        }
        let processors = thread::available_parallelism().map_or(1, usize::from);
        if self.tasks.len() <= processors {
            let _ = os::process::begin_session(); // else all is as where they are more
        }
    }

    /// A task, unless all is over with it.
    pub(crate) fn get(&mut self, job: JobId, rank: Rank) -> Option<&mut Task> {
        self.tasks.get_mut(&(job, rank))
    }

    /// Keeps bytes for tasks of a job to map, in place of those before. Where there is no memory for
    /// them, tasks ask for each value.
    pub(crate) fn keep_snapshot(&mut self, job: JobId, data: &[u8]) {
        self.snapshots.remove(&job);
        if !data.is_empty()
            && let Ok(file) = os::memory::sealed(data)
        {
            self.snapshots.insert(job, file);
        }
    }

    /// Writes to a task's PMI connection, with what is kept for its job.
    pub(crate) fn write_pmi_with_snapshot(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        rank: Rank,
        data: Bytes,
    ) {
        let Some(task) = self.tasks.get_mut(&(job, rank)) else { return };
        task.write_pmi_with(reactor, self.snapshots.get(&job), data.clone(), data);
    }

    /// Writes to the PMI connections of tasks, with memory that has these bytes. Where there is none, or it cannot be sent,
    /// they get the bytes.
    pub(crate) fn write_pmi_in_memory(
        &mut self,
        reactor: &mut Reactor,
        job: JobId,
        replies: Vec<(Rank, Bytes)>,
        data: &Bytes,
    ) {
        let file = os::memory::sealed(data).ok();
        for (rank, reply) in replies {
            if let Some(task) = self.tasks.get_mut(&(job, rank)) {
                task.write_pmi_with(reactor, file.as_ref(), reply, data.clone());
            }
        }
    }

    /// Reads what all tasks write, those to come included, or leaves it in the kernel.
    pub(crate) fn read_output(&mut self, reactor: &mut Reactor, on: bool) {
        self.is_read = on;
        for task in self.tasks.values_mut() {
            task.read_output(reactor, on);
        }
    }

    /// Forgets what the tasks of a job are created from: there will be no more. Returns the variable that its
    /// processes carry, if it had any.
    pub(crate) fn forget_job(&mut self, job: JobId) -> Option<String> {
        self.commands.retain(|(theirs, _), _| *theirs != job);
        self.snapshots.remove(&job);
        self.names.remove(&job).map(|name| format!("{}={name}", engine::JOB_VARIABLE))
    }

    /// The processes of tasks that run, but for those of some jobs.
    pub(crate) fn pids_but_of(&self, jobs: &BTreeSet<JobId>) -> BTreeSet<Pid> {
        let others = self.by_pid.iter().filter(|(_, (job, _))| !jobs.contains(job));
        others.map(|(&pid, _)| pid).collect()
    }

    /// Sends a signal to all tasks of a job.
    pub(crate) fn signal(&self, job: JobId, signal: Signal) {
        for ((_, _), task) in self.of_job(job) {
            task.signal(signal);
        }
    }

    /// Handles a task's descriptor that is ready.
    pub(crate) fn on_ready(
        &mut self,
        now: Time,
        reactor: &mut Reactor,
        (job, rank): (JobId, Rank),
        part: TaskPart,
        ready: Ready,
    ) {
        if matches!(part, TaskPart::Output(_)) && !self.is_read {
            return; // found ready before that was said
        }
        if let Some(task) = self.tasks.get_mut(&(job, rank)) {
            task.on_ready(now, reactor, part, ready);
            if task.is_paced() {
                self.paced.insert((job, rank));
                self.paced_at.get_or_insert(now + PACE);
            }
            self.forget_if_over(job, rank);
        }
    }

    /// When to call [`Tasks::on_time`].
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.paced_at
    }

    /// Reads all output that is read at a pace, if it is time.
    pub(crate) fn on_time(&mut self, now: Time, reactor: &mut Reactor) {
        if self.paced_at.is_none_or(|at| now < at) {
            return;
        }
        for (job, rank) in mem::take(&mut self.paced) {
            let Some(task) = self.tasks.get_mut(&(job, rank)) else { continue };
            task.on_pace(now, reactor);
            if task.is_paced() {
                self.paced.insert((job, rank));
            }
            self.forget_if_over(job, rank);
        }
        self.paced_at = (!self.paced.is_empty()).then(|| now + PACE);
    }

    /// Handles the end of a process that may be a task's. Returns whether it was.
    pub(crate) fn on_reaped(
        &mut self,
        reactor: &mut Reactor,
        pid: Pid,
        status: ExitStatus,
        usage: Usage,
    ) -> bool {
        let Some((job, rank)) = self.by_pid.remove(&pid) else { return false };
        if let Some(task) = self.tasks.get_mut(&(job, rank)) {
            task.on_reaped(reactor, status, usage);
            self.forget_if_over(job, rank);
        }
        true
    }

    fn forget_if_over(&mut self, job: JobId, rank: Rank) {
        if self.tasks.get(&(job, rank)).is_some_and(Task::is_over) {
            self.tasks.remove(&(job, rank));
        }
    }

    fn of_job(&self, job: JobId) -> impl Iterator<Item = (&(JobId, Rank), &Task)> {
        self.tasks.range((job, Rank(0))..=(job, Rank(u32::MAX)))
    }

    fn command(&mut self, spec: &JobSpec, app: u32) -> &Result<Rc<Command>, JobFault> {
        let agent = self.agent;
        let prepare = || Command::prepare(spec, app, agent).map(Rc::new);
        self.commands.entry((spec.job, app)).or_insert_with(prepare)
    }

    fn create(&mut self, spawn: &Spawn) -> Result<NewTask, (i32, String)> {
        self.names.entry(spawn.job.job).or_insert_with(|| spawn.job.kvsname.clone());
        let null = self.null().map_err(|error| {
            (error.raw_os_error().unwrap_or_default(), "open /dev/null".to_owned())
        })?;
        let command = match self.command(&spawn.job, spawn.app) {
            Ok(command) => Rc::clone(command),
            Err(fault) => return Err(fault_parts(fault)),
        };
        let spec = TaskSpec {
            job: spawn.job.job,
            rank: spawn.rank,
            command,
            env: command::c_strings(&spawn.env),
            stdin: spawn.stdin,
            merged: spawn.job.io.output.merged,
            pmi: spawn.job.pmi != PmiOffer::None && !spawn.job.pmi_port,
            null,
            descriptors: self.descriptors,
        };
        NewTask::begin(spec).map_err(|error| error.into_parts(&self.descriptors))
    }

    fn null(&mut self) -> io::Result<Rc<OwnedFd>> {
        if let Some(null) = &self.null {
            return Ok(Rc::clone(null));
        }
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Rc::clone(self.null.insert(Rc::new(null))))
    }
}

fn fault_parts(fault: &JobFault) -> (i32, String) {
    match fault {
        JobFault::Program { errno, words, .. } | JobFault::Directory { errno, words, .. } => {
            (*errno, words.clone())
        }
        JobFault::Output { .. }
        | JobFault::Spawn { .. }
        | JobFault::Task { .. }
        | JobFault::Unfinalized { .. }
        | JobFault::Abort { .. }
        | JobFault::Pmi { .. } => (0, "prepare the job".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::TaskMap;
    use wire::{App, Stream};

    use super::*;
    use crate::source::Source;

    const JOB: JobId = JobId(0);
    const RANK: Rank = Rank(0);
    const OUTPUT: TaskPart = TaskPart::Output(Stream::Stdout);

    #[test]
    fn a_task_that_is_created_while_nothing_is_read_is_not_read_either() {
        let mut reactor = Reactor::new().unwrap();
        let mut tasks = Tasks::new(AgentId(1), DescriptorLimit { before: 64, now: 64 });
        tasks.read_output(&mut reactor, false);
        let spawn = spawn_echo();
        tasks.spawn(&mut reactor, &spawn);
        assert!(tasks.finish_spawn(&mut reactor));
        // Its PMI connection ends with it, behind all that it wrote.
        assert_eq!(ready_parts(&mut reactor), [TaskPart::Pmi]);
        tasks.read_output(&mut reactor, true);
        assert!(ready_parts(&mut reactor).contains(&OUTPUT));
        wait_for_its_end(&mut tasks);
    }

    #[test]
    fn what_was_ready_before_reading_was_stopped_stays_in_the_kernel() {
        let mut reactor = Reactor::new().unwrap();
        let mut tasks = Tasks::new(AgentId(1), DescriptorLimit { before: 64, now: 64 });
        let spawn = spawn_echo();
        tasks.spawn(&mut reactor, &spawn);
        assert!(tasks.finish_spawn(&mut reactor));
        while reactor.next_input().is_some() {}
        wait_for_its_end(&mut tasks);
        tasks.read_output(&mut reactor, false);
        let ready =
            Ready { token: 0, readable: true, writable: false, hangup: false, ended: false };
        tasks.on_ready(Time::ZERO, &mut reactor, (JOB, RANK), OUTPUT, ready);
        assert_eq!(reactor.next_input(), None);
    }

    fn wait_for_its_end(tasks: &mut Tasks) {
        let pid = rustix::process::Pid::from_raw(tasks.get(JOB, RANK).unwrap().pid());
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
    }

    fn spawn_echo() -> Spawn {
        Spawn { job: echo().into(), rank: RANK, app: 0, env: vec![], stdin: false }
    }

    fn echo() -> JobSpec {
        let argv = [&b"/bin/echo"[..], b"out"].map(Bytes::from_static).to_vec();
        let dir = Bytes::from_static(b"/");
        let app = App { first_rank: RANK, argv, env: vec![], dir };
        JobSpec::new(JOB, vec![app], TaskMap::from_counts([1]).unwrap())
    }

    /// What is ready of the task, once something is.
    fn ready_parts(reactor: &mut Reactor) -> Vec<TaskPart> {
        let mut ready = Vec::new();
        reactor.poller.wait(Some(Duration::from_secs(10)), &mut ready).unwrap();
        let part = |ready: &Ready| match Source::of(ready.token) {
            Some(Source::Task(JOB, RANK, part)) => Some(part),
            other => panic!("{other:?} is ready"),
        };
        ready.iter().filter_map(part).collect()
    }
}
