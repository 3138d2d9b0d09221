//! Tasks: their steps, their pipes, their ends.

use engine::Input;
use model::{ExitStatus, JobId, Signal};
use wire::Stream;

use super::callers::caller_of;
use super::{Happening, LOCAL_TIME, World};
use crate::checker::stream_key;
use crate::pattern;
use crate::process::ProcessId;
use crate::task::{Act, Task, Wait, stream_index};
use crate::task_id::TaskId;

/// The most that a driver reads from a task at once.
const READ_BYTES_MAX: u64 = 16_384;

const KILLED: ExitStatus = ExitStatus::Signaled { signal: Signal::KILL, core: false };

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl World<'_> {
    pub(super) fn task_step(&mut self, id: ProcessId, of: TaskId) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if !task.is_running() || task.waits_for != Wait::Turn {
            return;
        }
        if task.stopped_until > self.now {
            return self.queue.push(task.stopped_until, Happening::TaskStep(id, of));
        }
        self.checker.note([self.now.as_nanos(), id.0 as u64, of.number(), self.steps]);
        for act in task.step() {
            self.act(id, of, act);
        }
    }

    /// A task that was stopped goes on: with a signal that came meanwhile, if it dies of that.
    pub(super) fn continue_task(&mut self, id: ProcessId, of: TaskId) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if task.stopped_until <= self.now
            && let Some(signal) = task.pending.take()
        {
            self.end_task(id, of, ExitStatus::Signaled { signal, core: false });
        }
    }

    fn act(&mut self, id: ProcessId, of: TaskId, act: Act) {
        match act {
            Act::Wake(time) => self.after(time, Happening::TaskStep(id, of)),
            Act::Wrote(stream) => self.read_task_soon(id, of, stream),
            Act::Pmi(data) => self.on_pmi(id, of, data),
            Act::EnteredFence(fence) => {
                self.checker.gather(of.job, |job| job.on_fence_entered(fence))
            }
            Act::LeftFence(fence) => self.checker.gather(of.job, |job| job.on_fence_left(fence)),
            Act::EnteredMeeting(meeting) => {
                self.checker.gather(of.job, |job| job.on_meeting_entered(meeting, of.rank))
            }
            Act::LeftMeeting(meeting, members) => {
                self.checker.gather(of.job, |job| job.on_meeting_left(meeting, &members))
            }
            Act::InRing(ring, place) => {
                self.checker.gather(of.job, |job| job.on_ring(ring, of.rank, place))
            }
            Act::Gathered(missing) => {
                self.checker.gather(of.job, |job| job.on_gathered(of.rank, &missing))
            }
            Act::Refused(words) if self.rulebook.must_grant() => {
                self.checker.violate(format!("rank {of} was refused a job: {words}"));
            }
            Act::Refused(_) => {}
            Act::TookInput => self.fill_input(id, of),
            Act::Ended(status) => self.end_task(id, of, status),
            Act::NoCard(_) if self.checker.has_excused() => {
                self.end_task(id, of, ExitStatus::Exited(1));
            }
            Act::NoCard(words) | Act::Wrong(words) => self.checker.violate(words),
        }
    }

    /// Gives a task its turn if this is what it waits for.
    pub(super) fn go_on_if(&mut self, id: ProcessId, of: TaskId, wait: Wait) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if task.waits_for == wait {
            task.waits_for = Wait::Turn;
            self.after(LOCAL_TIME, Happening::TaskStep(id, of));
        }
    }

    pub(super) fn end_task(&mut self, id: ProcessId, of: TaskId, status: ExitStatus) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if !task.is_running() {
            return;
        }
        task.ended = Some(status);
        task.waits_for = Wait::End;
        let usage = task.usage();
        self.checker.refer(|reference| reference.end(of, status));
        if status == ExitStatus::Exited(0) || self.session.goes_on {
            let fences = task.fences;
            self.checker.gather(of.job, |job| job.excuse_from_fences(of.rank, fences));
        }
        log!(self, "rank {of} ends: {status:?}");
        self.tell_soon(id, Input::TaskExited { job: of.job, rank: of.rank, status, usage });
        self.see_ends(id, of);
    }

    /// Lets the driver see the end of what nobody holds open any more.
    fn see_ends(&mut self, id: ProcessId, of: TaskId) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        if task.is_anything_left() {
            return;
        }
        let input = &mut task.input;
        let breaks =
            input.exists && !input.is_broken && !(input.ends && input.taken == input.given);
        input.is_broken |= breaks;
        let was_open = task.pmi.is_connected || !self.session.pmi_port;
        let closes = !std::mem::replace(&mut task.pmi.is_over, true) && was_open;
        let is_caller = !task.pmi.unsent.is_empty();
        if closes && is_caller {
            self.tell_soon(id, Input::CallerGone(of.job, caller_of(of)));
        } else if closes {
            self.tell_soon(id, Input::TaskPmiClosed { job: of.job, rank: of.rank });
        }
        if breaks {
            self.tell_soon(id, Input::TaskInputClosed { job: of.job, rank: of.rank });
        }
        for stream in STREAMS {
            self.read_task_soon(id, of, stream);
        }
    }

    /// Kills tasks and what they have left behind, of one job or of all.
    pub(super) fn kill_all_tasks(&mut self, id: ProcessId, job: Option<JobId>) {
        let left: Vec<TaskId> = self.processes[id.0]
            .tasks
            .iter_mut()
            .filter(|(of, task)| job.is_none_or(|job| of.job == job) && task.is_anything_left())
            .map(|(&of, task)| {
                task.strays = 0;
                of
            })
            .collect();
        for of in left {
            self.end_task(id, of, KILLED);
            self.see_ends(id, of);
        }
    }

    /// The kernel kills the tasks of an agent that was killed, and not what they have left behind.
    pub(super) fn kill_running_tasks(&mut self, id: ProcessId) {
        let tasks = self.processes[id.0].tasks.iter();
        let running = tasks.filter(|(_, task)| task.is_running()).map(|(&of, _)| of);
        for of in running.collect::<Vec<_>>() {
            self.end_task(id, of, KILLED);
        }
    }

    /// Lets the driver read a stream, unless it was told not to.
    pub(super) fn read_task_soon(&mut self, id: ProcessId, of: TaskId, stream: Stream) {
        let process = &mut self.processes[id.0];
        let Some(task) = process.tasks.get_mut(&of) else { return };
        let pipe = &mut task.pipes[stream_index(stream)];
        if !process.ignores_tasks && !pipe.is_over && !pipe.has_reader_coming {
            pipe.has_reader_coming = true;
            self.after(LOCAL_TIME, Happening::ReadTask(id, of, stream));
        }
    }

    pub(super) fn read_task(&mut self, id: ProcessId, of: TaskId, stream: Stream) {
        let process = &mut self.processes[id.0];
        if let Some(at) = process.paused_until(self.now) {
            return self.queue.push(at, Happening::ReadTask(id, of, stream));
        }
        let is_read = process.is_running() && !process.ignores_tasks;
        let Some(task) = process.tasks.get_mut(&of) else { return };
        let is_anything_left = task.is_anything_left();
        let pipe = &mut task.pipes[stream_index(stream)];
        pipe.has_reader_coming = false;
        if pipe.is_over || !is_read {
            return;
        }
        let len = pipe.available().min(READ_BYTES_MAX);
        if len > 0 {
            let data = pattern::bytes(stream_key(of, stream), pipe.read, len);
            pipe.read += len;
            self.tell(id, Input::TaskOutput { job: of.job, rank: of.rank, stream, data });
            self.go_on_if(id, of, Wait::Room);
            self.read_task_soon(id, of, stream);
        } else if !is_anything_left {
            pipe.is_over = true;
            self.tell(id, Input::TaskOutputEnd { job: of.job, rank: of.rank, stream });
        }
    }

    /// Moves standard input into the task's pipe as far as there is room.
    pub(super) fn fill_input(&mut self, id: ProcessId, of: TaskId) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&of) else { return };
        let taken = if task.is_running() { task.input.fill() } else { 0 };
        if taken > 0 {
            let bytes = u32::try_from(taken).unwrap_or(u32::MAX);
            self.tell_soon(id, Input::TaskInputWritten { job: of.job, rank: of.rank, bytes });
            self.go_on_if(id, of, Wait::Input);
        }
    }
}

impl Task {
    /// The bytes that it has written to a stream.
    pub(super) fn written(&self, stream: Stream) -> u64 {
        self.pipes[stream_index(stream)].written
    }
}
