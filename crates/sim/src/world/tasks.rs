//! Tasks: their steps, their pipes, their ends.

use engine::Input;
use model::{ExitStatus, JobId, Rank, Signal};
use wire::Stream;

use super::callers::caller_of;
use super::{Happening, LOCAL_TIME, World};
use crate::checker::stream_key;
use crate::pattern;
use crate::process::ProcessId;
use crate::task::{Act, Task, Wait, stream_index};

/// The only job of a session.
const JOB: JobId = JobId(0);

/// The most that a driver reads from a task at once.
const READ_BYTES_MAX: u64 = 16_384;

const KILLED: ExitStatus = ExitStatus::Signaled { signal: Signal::KILL, core: false };

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

impl World<'_> {
    pub(super) fn task_step(&mut self, id: ProcessId, rank: Rank) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
        if !task.is_running() || task.waits_for != Wait::Turn {
            return;
        }
        if task.stopped_until > self.now {
            return self.queue.push(task.stopped_until, Happening::TaskStep(id, rank));
        }
        self.checker.note([self.now.as_nanos(), id.0 as u64, u64::from(rank.0), self.steps]);
        for act in task.step() {
            self.act(id, rank, act);
        }
    }

    /// A task that was stopped goes on: with a signal that came meanwhile, if it dies of that.
    pub(super) fn continue_task(&mut self, id: ProcessId, rank: Rank) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
        if task.stopped_until <= self.now
            && let Some(signal) = task.pending.take()
        {
            self.end_task(id, rank, ExitStatus::Signaled { signal, core: false });
        }
    }

    fn act(&mut self, id: ProcessId, rank: Rank, act: Act) {
        match act {
            Act::Wake(time) => self.after(time, Happening::TaskStep(id, rank)),
            Act::Wrote(stream) => self.read_task_soon(id, rank, stream),
            Act::Pmi(data) => self.on_pmi(id, rank, data),
            Act::EnteredFence(fence) => self.checker.on_fence_entered(fence),
            Act::LeftFence(fence) => self.checker.on_fence_left(fence),
            Act::EnteredMeeting(meeting) => self.checker.on_meeting_entered(meeting, rank),
            Act::LeftMeeting(meeting, members) => self.checker.on_meeting_left(meeting, &members),
            Act::InRing(ring, place) => self.checker.on_ring(ring, rank, place),
            Act::Gathered(missing) => self.checker.on_gathered(rank, &missing),
            Act::TookInput => self.fill_input(id, rank),
            Act::Ended(status) => self.end_task(id, rank, status),
            Act::NoCard(_) if self.checker.has_excused() => {
                self.end_task(id, rank, ExitStatus::Exited(1));
            }
            Act::NoCard(words) | Act::Wrong(words) => self.checker.violate(words),
        }
    }

    /// Gives a task its turn if this is what it waits for.
    pub(super) fn go_on_if(&mut self, id: ProcessId, rank: Rank, wait: Wait) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
        if task.waits_for == wait {
            task.waits_for = Wait::Turn;
            self.after(LOCAL_TIME, Happening::TaskStep(id, rank));
        }
    }

    pub(super) fn end_task(&mut self, id: ProcessId, rank: Rank, status: ExitStatus) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
        if !task.is_running() {
            return;
        }
        task.ended = Some(status);
        task.waits_for = Wait::End;
        let usage = task.usage();
        self.checker.refer(|reference| reference.end(rank, status));
        if status == ExitStatus::Exited(0) || self.session.goes_on {
            self.checker.excuse_from_fences(rank, task.fences);
        }
        log!(self, "rank {rank} ends: {status:?}");
        self.tell_soon(id, Input::TaskExited { job: JOB, rank, status, usage });
        self.see_ends(id, rank);
    }

    /// Lets the driver see the end of what nobody holds open any more.
    fn see_ends(&mut self, id: ProcessId, rank: Rank) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
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
            self.tell_soon(id, Input::CallerGone(JOB, caller_of(rank)));
        } else if closes {
            self.tell_soon(id, Input::TaskPmiClosed { job: JOB, rank });
        }
        if breaks {
            self.tell_soon(id, Input::TaskInputClosed { job: JOB, rank });
        }
        for stream in STREAMS {
            self.read_task_soon(id, rank, stream);
        }
    }

    /// Kills tasks and what they have left behind.
    pub(super) fn kill_all_tasks(&mut self, id: ProcessId) {
        let left: Vec<Rank> = self.processes[id.0]
            .tasks
            .iter_mut()
            .filter(|(_, task)| task.is_anything_left())
            .map(|(&rank, task)| {
                task.strays = 0;
                rank
            })
            .collect();
        for rank in left {
            self.end_task(id, rank, KILLED);
            self.see_ends(id, rank);
        }
    }

    /// The kernel kills the tasks of an agent that was killed, and not what they have left behind.
    pub(super) fn kill_running_tasks(&mut self, id: ProcessId) {
        let tasks = self.processes[id.0].tasks.iter();
        let running = tasks.filter(|(_, task)| task.is_running()).map(|(&rank, _)| rank);
        for rank in running.collect::<Vec<_>>() {
            self.end_task(id, rank, KILLED);
        }
    }

    /// Lets the driver read a stream, unless it was told not to.
    pub(super) fn read_task_soon(&mut self, id: ProcessId, rank: Rank, stream: Stream) {
        let process = &mut self.processes[id.0];
        let Some(task) = process.tasks.get_mut(&rank) else { return };
        let pipe = &mut task.pipes[stream_index(stream)];
        if !process.ignores_tasks && !pipe.is_over && !pipe.has_reader_coming {
            pipe.has_reader_coming = true;
            self.after(LOCAL_TIME, Happening::ReadTask(id, rank, stream));
        }
    }

    pub(super) fn read_task(&mut self, id: ProcessId, rank: Rank, stream: Stream) {
        let process = &mut self.processes[id.0];
        if let Some(at) = process.paused_until(self.now) {
            return self.queue.push(at, Happening::ReadTask(id, rank, stream));
        }
        let is_read = process.is_running() && !process.ignores_tasks;
        let Some(task) = process.tasks.get_mut(&rank) else { return };
        let is_anything_left = task.is_anything_left();
        let pipe = &mut task.pipes[stream_index(stream)];
        pipe.has_reader_coming = false;
        if pipe.is_over || !is_read {
            return;
        }
        let len = pipe.available().min(READ_BYTES_MAX);
        if len > 0 {
            let data = pattern::bytes(stream_key(rank, stream), pipe.read, len);
            pipe.read += len;
            self.tell(id, Input::TaskOutput { job: JOB, rank, stream, data });
            self.go_on_if(id, rank, Wait::Room);
            self.read_task_soon(id, rank, stream);
        } else if !is_anything_left {
            pipe.is_over = true;
            self.tell(id, Input::TaskOutputEnd { job: JOB, rank, stream });
        }
    }

    /// Moves standard input into the task's pipe as far as there is room.
    pub(super) fn fill_input(&mut self, id: ProcessId, rank: Rank) {
        let Some(task) = self.processes[id.0].tasks.get_mut(&rank) else { return };
        let taken = if task.is_running() { task.input.fill() } else { 0 };
        if taken > 0 {
            let bytes = u32::try_from(taken).unwrap_or(u32::MAX);
            self.tell_soon(id, Input::TaskInputWritten { job: JOB, rank, bytes });
            self.go_on_if(id, rank, Wait::Input);
        }
    }
}

impl Task {
    /// The bytes that it has written to a stream.
    pub(super) fn written(&self, stream: Stream) -> u64 {
        self.pipes[stream_index(stream)].written
    }
}
