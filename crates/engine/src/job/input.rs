//! Standard input: from the head down to the tasks that read it.
//!
//! The job says who reads it, so a piece names nobody. It goes over each link once, and only where
//! somebody below still reads; the slowest reader holds the writer. Tasks that are still to be created
//! get what came before them when all of the node have been.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use model::{AgentId, JobId, Rank};
use proto::Readers;
use wire::{Message, Stdin};

use super::Job;
use crate::Effect;
use crate::engine::Engine;

/// Standard input that may be on its way to a task, in bytes.
pub(crate) const INPUT_BYTES: u32 = 256 << 10;

/// Who reads input that comes to a member.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reader {
    /// A task here.
    Task(Rank),
    /// Tasks below this child.
    Child(AgentId),
}

/// Standard input as it passes one member.
#[derive(Debug)]
pub(super) struct JobInput {
    readers: Readers<Reader>,
    /// What came before all tasks here were created.
    held: VecDeque<Bytes>,
    /// The end came, too.
    is_end_held: bool,
}

impl JobInput {
    pub(super) fn new() -> JobInput {
        JobInput {
            readers: Readers::new(INPUT_BYTES, []),
            held: VecDeque::new(),
            is_end_held: false,
        }
    }
}

impl Job {
    fn reading_tasks(&self) -> Vec<Rank> {
        let task = |reader: &Reader| match reader {
            Reader::Task(rank) => Some(*rank),
            Reader::Child(_) => None,
        };
        self.input.readers.iter().filter_map(task).collect()
    }
}

impl Engine {
    pub(crate) fn on_user_input(&mut self, data: Bytes) {
        self.govern(|head, orders| head.on_user_input(data, orders));
    }

    pub(crate) fn on_user_input_end(&mut self) {
        self.govern(|head, orders| head.on_user_input_end(orders));
    }

    /// Finds out who here and below reads, when the job is launched.
    pub(super) fn open_input(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        let stdin = job.spec.io.stdin;
        let own =
            job.tasks.keys().filter(|&&rank| stdin.reaches(rank)).map(|&rank| Reader::Task(rank));
        let below = match stdin {
            Stdin::Nobody => Vec::new(),
            Stdin::Task(rank) => self.job_child_with(id, rank).into_iter().collect(),
            Stdin::All => job.children.iter().copied().collect(),
        };
        let readers: Vec<Reader> = own.chain(below.into_iter().map(Reader::Child)).collect();
        let is_alone = readers.is_empty() && stdin == Stdin::All;
        if let Some(job) = self.jobs.get_mut(id) {
            job.input.readers = Readers::new(INPUT_BYTES, readers);
        }
        if is_alone {
            self.up_job(Message::InputClosed(id));
        }
    }

    /// Handles a piece of standard input.
    pub(crate) fn on_input(&mut self, id: JobId, offset: u64, data: Bytes) {
        let children = self.reading_children(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.to_spawn.is_empty() {
            self.write_tasks(id, &data);
        } else if !job.reading_tasks().is_empty() {
            job.input.held.push_back(data.clone());
        }
        self.tell_some(children, Message::Input { job: id, offset, data });
    }

    pub(crate) fn on_input_end(&mut self, id: JobId) {
        let children = self.reading_children(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.to_spawn.is_empty() {
            self.end_task_input(id);
        } else {
            job.input.is_end_held = true;
        }
        self.tell_some(children, Message::InputEnd(id));
    }

    /// Gives tasks that have all been created what came for them meanwhile.
    pub(super) fn release_input(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let held = core::mem::take(&mut job.input.held);
        let has_ended = core::mem::take(&mut job.input.is_end_held);
        held.iter().for_each(|data| self.write_tasks(id, data));
        if has_ended {
            self.end_task_input(id);
        }
    }

    fn write_tasks(&mut self, id: JobId, data: &Bytes) {
        let Some(job) = self.jobs.get(id) else { return };
        for rank in job.reading_tasks() {
            self.effects.push_back(Effect::WriteTask { job: id, rank, data: data.clone() });
        }
    }

    fn end_task_input(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        for rank in job.reading_tasks() {
            self.effects.push_back(Effect::CloseTaskInput { job: id, rank });
        }
    }

    /// The children below which somebody reads.
    fn reading_children(&self, id: JobId) -> Vec<AgentId> {
        let Some(job) = self.jobs.get(id) else { return Vec::new() };
        let child = |reader: &Reader| match reader {
            Reader::Task(_) => None,
            Reader::Child(agent) => Some(*agent),
        };
        job.input.readers.iter().filter_map(child).collect()
    }

    /// Handles that a task here, or the slowest below a child, has taken more.
    pub(crate) fn on_input_taken(&mut self, id: JobId, reader: Reader, bytes: u32) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let grant = job.input.readers.on_taken(&reader, bytes);
        if let Some(grant) = grant {
            self.up_job(Message::InputCredit(id, grant));
        }
    }

    /// Handles that a task here, or everybody below a child, reads no more.
    pub(crate) fn on_input_closed(&mut self, id: JobId, reader: Reader) {
        let Some(job) = self.jobs.get_mut(id).filter(|job| job.input.readers.contains(&reader))
        else {
            return;
        };
        let grant = job.input.readers.on_closed(&reader);
        if job.input.readers.is_empty() {
            self.up_job(Message::InputClosed(id));
        } else if let Some(grant) = grant {
            self.up_job(Message::InputCredit(id, grant));
        }
    }
}
