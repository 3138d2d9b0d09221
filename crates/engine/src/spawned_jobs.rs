//! What is known of the jobs that tasks have spawned, where records are wanted.
//!
//! All of it stays with the head until the session is over, so it is bounded, however many jobs there are: the
//! programs' words and a record for each task are counted when a job is launched, and jobs that are too many are
//! left out. What failed tasks said last is counted as it comes, and left out of the records alone.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use model::{JobId, Rank, StatusRuns, TaskMap};
use wire::{App, JobSpec, TaskRecord};

/// How many bytes are kept of all of them.
const BYTES_MAX: usize = 256 << 20;

/// A job that a task has spawned, as it was launched, and what has become of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpawnedJob {
    /// Who asked for it.
    pub spawner: (JobId, Rank),
    /// Its programs.
    pub apps: Vec<App>,
    /// Which task ran where.
    pub map: TaskMap,
    /// How its tasks ended, folded.
    pub statuses: StatusRuns,
    /// What is known of each that has ended, in no order.
    pub records: Vec<TaskRecord>,
}

/// Them all.
#[derive(Clone, Debug, Default)]
pub struct SpawnedJobs {
    jobs: BTreeMap<JobId, SpawnedJob>,
    bytes: usize,
    left_out: u32,
}

impl SpawnedJob {
    pub(crate) fn new(spec: &JobSpec, spawner: (JobId, Rank)) -> SpawnedJob {
        let (apps, map) = (spec.apps.clone(), spec.map.clone());
        SpawnedJob { spawner, apps, map, statuses: StatusRuns::new(), records: Vec::new() }
    }

    /// Whether as many have come as were counted.
    fn has_all_records(&self) -> bool {
        u32::try_from(self.records.len()).is_ok_and(|records| records >= self.map.len())
    }
}

impl SpawnedJobs {
    /// Those that are kept, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, &SpawnedJob)> {
        self.jobs.iter().map(|(id, job)| (*id, job))
    }

    /// How many were launched and not kept.
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Handles that a job is launched.
    pub(crate) fn on_launch(&mut self, id: JobId, job: SpawnedJob) {
        let tasks = usize::try_from(job.map.len()).unwrap_or(usize::MAX);
        let words: usize = job.apps.iter().flat_map(|app| &app.argv).map(Bytes::len).sum();
        let bytes = tasks.saturating_mul(mem::size_of::<TaskRecord>()).saturating_add(words);
        let bytes = self.bytes.saturating_add(bytes).saturating_add(mem::size_of::<SpawnedJob>());
        if bytes > BYTES_MAX {
            self.left_out += 1;
        } else {
            self.bytes = bytes;
            self.jobs.insert(id, job);
        }
    }

    /// Takes records of tasks that have ended.
    pub(crate) fn on_records(&mut self, id: JobId, records: Vec<TaskRecord>) {
        for mut record in records {
            let words = record.last_words.len();
            let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.has_all_records()) else {
                return;
            };
            if self.bytes.saturating_add(words) > BYTES_MAX {
                record.last_words = Bytes::new();
            }
            self.bytes += record.last_words.len();
            job.records.push(record);
        }
    }

    /// Takes word of how tasks have ended.
    pub(crate) fn on_statuses(&mut self, id: JobId, statuses: &StatusRuns) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.statuses.merge(statuses);
        }
    }
}
