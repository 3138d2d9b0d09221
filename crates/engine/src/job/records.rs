//! The record of each task, for jobs that ask for it: statuses alone are folded on their way up, and
//! nothing else that grows with the job goes there unasked.
//!
//! Records wait for the end of all tasks of their node, which is when all that these wrote is read. They
//! go up in bounded pieces before the word that all is done. What failed tasks wrote last is much
//! more than the rest, and bounded for each member with all that are below it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use model::{JobId, Rank, Time, Usage};
use proto::LastLines;
use wire::{Message, TaskRecord};

use super::{Job, Task};
use crate::engine::Engine;

/// Records in one message.
const RECORDS_MAX: usize = 256;

/// Records with last words that pass one member: a megabyte of words at most.
const WORDS_MAX: usize = 256;

/// What is kept of one task.
#[derive(Debug)]
pub(super) struct Kept {
    pid: u32,
    began: Time,
    end: Option<(Time, Usage)>,
    /// What it wrote to standard error last.
    last_lines: LastLines,
    /// Whether its end was told as a fault.
    has_failed: bool,
}

/// Records on their way up.
#[derive(Debug, Default)]
pub(super) struct Records {
    waiting: Vec<TaskRecord>,
    /// How many with words have passed.
    with_words: usize,
}

impl Records {
    fn add(&mut self, mut record: TaskRecord) {
        if self.with_words >= WORDS_MAX {
            record.last_words = Bytes::new();
        }
        self.with_words += usize::from(!record.last_words.is_empty());
        self.waiting.push(record);
    }
}

impl Task {
    /// Begins the record of a task that was created.
    pub(super) fn keep(&mut self, now: Time, pid: u32) {
        let (end, last_lines) = (None, LastLines::default());
        self.kept = Some(Box::new(Kept { pid, began: now, end, last_lines, has_failed: false }));
    }

    /// Takes note of its end.
    pub(super) fn keep_end(&mut self, now: Time, usage: Usage) {
        if let Some(kept) = &mut self.kept {
            kept.end = Some((now, usage));
        }
    }

    /// Takes note of a fault of its own, which makes its last words worth telling.
    pub(super) fn keep_fault(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.has_failed = true;
        }
    }

    /// Takes note of what it wrote to standard error, or where that goes.
    pub(super) fn keep_words(&mut self, data: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.last_lines.on_data(data);
        }
    }

    fn record(&mut self, rank: Rank) -> Option<TaskRecord> {
        let status = self.ended?;
        let Kept { pid, began, end, last_lines, has_failed } =
            *self.kept.take_if(|it| it.end.is_some())?;
        let (ended, usage) = end?;
        let wall_us = u64::try_from(ended.since(began).as_micros()).unwrap_or(u64::MAX);
        let last_words = if has_failed { last_lines.lines() } else { Bytes::new() };
        Some(TaskRecord { rank, pid, status, wall_us, usage, last_words })
    }
}

impl Job {
    /// The records of tasks that have ended, each once.
    fn own_records(&mut self) -> Vec<TaskRecord> {
        self.tasks.iter_mut().filter_map(|(&rank, task)| task.record(rank)).collect()
    }
}

impl Engine {
    /// Sends all records up that are here.
    pub(crate) fn send_records(&mut self, id: JobId) {
        let own = self.jobs.get_mut(id).map(Job::own_records).unwrap_or_default();
        self.keep_records(id, own);
        self.pass_records(id, 1);
    }

    /// Takes records from below, or of this node.
    pub(crate) fn keep_records(&mut self, id: JobId, records: Vec<TaskRecord>) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        records.into_iter().for_each(|record| job.records.add(record));
        // The head's go no farther.
        self.pass_records(id, if self.is_head() { 1 } else { RECORDS_MAX });
    }

    /// Sends records up while so many wait.
    fn pass_records(&mut self, id: JobId, least: usize) {
        while let Some(job) = self.jobs.get_mut(id).filter(|job| job.records.waiting.len() >= least)
        {
            let rest = job.records.waiting.split_off(RECORDS_MAX.min(job.records.waiting.len()));
            let records = mem::replace(&mut job.records.waiting, rest);
            self.up_job(Message::Records(id, records));
        }
    }
}
