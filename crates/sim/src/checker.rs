//! What must hold after everything that happens, and the counts that tests ask for.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::JobId;
use wire::Stream;

use crate::gatherings::Gatherings;
use crate::pattern;
use crate::reference::Reference;
use crate::report::Report;
use crate::task::stream_index;
use crate::task_id::TaskId;

/// Watches a run.
#[derive(Default)]
pub(crate) struct Checker {
    pub(crate) report: Report,
    pub(crate) violations: Vec<String>,
    pub(crate) reference: Reference,
    gatherings: BTreeMap<JobId, Gatherings>,
    /// Bytes of each stream that the head has written.
    written: BTreeMap<(TaskId, usize), u64>,
    /// Bytes of each stream that were written to files.
    filed: BTreeMap<(TaskId, usize), u64>,
    hash: Hash,
}

impl Checker {
    pub(crate) fn new(n: u32, n_tasks: u32) -> Checker {
        let mut checker = Checker { reference: Reference::new(n), ..Checker::default() };
        checker.set_tasks(JobId::FIRST, n_tasks);
        checker
    }

    /// A job has so many tasks, as far as is known who is there.
    pub(crate) fn set_tasks(&mut self, job: JobId, n_tasks: u32) {
        self.gatherings.entry(job).or_default().n_tasks = n_tasks;
    }

    /// Takes what is said about the tasks of a job that meet.
    pub(crate) fn gather(
        &mut self,
        job: JobId,
        wrong: impl FnOnce(&mut Gatherings) -> Option<String>,
    ) {
        if let Some(words) = wrong(self.gatherings.entry(job).or_default()) {
            self.violate(words);
        }
    }

    /// Whether some task may miss what another was to put.
    pub(crate) fn has_excused(&self) -> bool {
        self.gatherings.values().any(Gatherings::has_excused)
    }

    /// Takes what the reference says about something.
    pub(crate) fn refer(&mut self, wrong: impl FnOnce(&mut Reference) -> Option<String>) {
        if let Some(words) = wrong(&mut self.reference) {
            self.violate(words);
        }
    }

    pub(crate) fn violate(&mut self, words: String) {
        self.violations.push(words);
    }

    /// Takes note of something that happened.
    pub(crate) fn note(&mut self, parts: [u64; 4]) {
        for part in parts {
            self.hash.add(part);
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash.0
    }

    /// No output is doubled, reordered or made up.
    pub(crate) fn on_output(&mut self, of: TaskId, stream: Stream, data: &Bytes) {
        let written = self.written.entry((of, stream_index(stream))).or_default();
        let wrong = pattern::first_wrong(stream_key(of, stream), *written, data);
        *written += data.len() as u64;
        self.report.output_bytes += data.len() as u64;
        if let Some(at) = wrong {
            self.violate(format!("{stream:?} of rank {of}: wrong byte at offset {at}"));
        }
    }

    /// The same in files.
    pub(crate) fn on_file(&mut self, of: TaskId, stream: Stream, data: &Bytes) {
        let filed = self.filed.entry((of, stream_index(stream))).or_default();
        let wrong = pattern::first_wrong(stream_key(of, stream), *filed, data);
        *filed += data.len() as u64;
        self.report.file_bytes += data.len() as u64;
        if let Some(at) = wrong {
            self.violate(format!("file of {stream:?} of rank {of}: wrong byte at offset {at}"));
        }
    }

    /// No output is lost: its files hold all of what the task wrote.
    pub(crate) fn on_file_total(&mut self, of: TaskId, stream: Stream, total: u64) {
        let filed = self.filed.get(&(of, stream_index(stream))).copied().unwrap_or(0);
        if filed != total {
            self.violate(format!("file of {stream:?} of rank {of}: {filed} of {total} bytes"));
        }
    }

    /// No output is lost: the head has written all of what the task wrote.
    pub(crate) fn on_stream_total(&mut self, of: TaskId, stream: Stream, total: u64) {
        let written = self.written.get(&(of, stream_index(stream))).copied().unwrap_or(0);
        if written != total {
            self.violate(format!("{stream:?} of rank {of}: {written} of {total} bytes arrived"));
        }
    }

    /// Standard input arrives as it was.
    pub(crate) fn on_task_input(&mut self, offset: u64, data: &Bytes) {
        if let Some(at) = pattern::first_wrong(INPUT_KEY, offset, data) {
            self.violate(format!("standard input: wrong byte at offset {at}"));
        }
    }
}

/// The pattern of the user's input.
pub(crate) const INPUT_KEY: u64 = 13;

/// The pattern of a task's output stream.
pub(crate) fn stream_key(of: TaskId, stream: Stream) -> u64 {
    of.number() * 2 + stream_index(stream) as u64
}

/// FNV-1a over whole words.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
}
