//! What must hold after everything that happens, and the counts that tests ask for.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::Rank;
use wire::Stream;

use crate::pattern;
use crate::reference::Reference;
use crate::report::Report;
use crate::task::{Meeting, stream_index};

/// Watches a run.
#[derive(Default)]
pub(crate) struct Checker {
    pub(crate) report: Report,
    pub(crate) violations: Vec<String>,
    pub(crate) reference: Reference,
    n_tasks: u32,
    /// How many tasks have entered the fence of each number.
    entered: Vec<u32>,
    /// How many tasks have ended after so many fences, so that later ones do not wait for them.
    excused: BTreeMap<usize, u32>,
    /// Who has entered the barrier of a group.
    meetings: BTreeMap<Meeting, BTreeSet<u32>>,
    /// Of each ring who has which number in it, and who is on either side.
    rings: BTreeMap<(usize, u32), [u32; 3]>,
    /// Tasks that have ended, and for which nobody waits.
    excused_ranks: BTreeSet<u32>,
    /// Bytes of each stream that the head has written.
    written: BTreeMap<(Rank, usize), u64>,
    /// Bytes of each stream that were written to files.
    filed: BTreeMap<(Rank, usize), u64>,
    hash: Hash,
}

impl Checker {
    pub(crate) fn new(n: u32, n_tasks: u32) -> Checker {
        Checker { n_tasks, reference: Reference::new(n, n_tasks), ..Checker::default() }
    }

    /// The job has so many tasks, now that it is known who is there.
    pub(crate) fn set_tasks(&mut self, n_tasks: u32) {
        self.n_tasks = n_tasks;
        self.reference.set_tasks(n_tasks);
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

    pub(crate) fn on_fence_entered(&mut self, fence: usize) {
        if self.entered.len() <= fence {
            self.entered.resize(fence + 1, 0);
        }
        self.entered[fence] += 1;
    }

    /// A task that has entered so many fences has ended, and the others may go on without it.
    pub(crate) fn excuse_from_fences(&mut self, rank: Rank, fences: usize) {
        self.excused_ranks.insert(rank.0);
        *self.excused.entry(fences).or_default() += 1;
    }

    /// Whether some task may miss what another was to put.
    pub(crate) fn has_excused(&self) -> bool {
        !self.excused.is_empty()
    }

    /// A fence is never released before all tasks have entered it, but for those that are excused.
    pub(crate) fn on_fence_left(&mut self, fence: usize) {
        let entered = self.entered.get(fence).copied().unwrap_or(0);
        let excused: u32 = self.excused.range(..=fence).map(|(_, count)| count).sum();
        if entered + excused != self.n_tasks {
            let n_tasks = self.n_tasks;
            self.violate(format!("fence {fence} released when {entered} of {n_tasks} had entered"));
        }
    }

    /// Who stand side by side in a ring know of each other, and in a whole ring the last and the first do.
    pub(crate) fn on_ring(&mut self, ring: usize, rank: Rank, [number, left, right]: [u32; 3]) {
        let other = self.rings.insert((ring, number), [left, rank.0, right]);
        let before = number.checked_sub(1).unwrap_or(self.n_tasks - 1);
        let behind = (number + 1) % self.n_tasks;
        let is_right = |side: u32, theirs: usize, of: u32| {
            let place = self.rings.get(&(ring, side));
            place.is_none_or(|place| place[1] == of && place[theirs] == rank.0)
        };
        if other.is_some() || !is_right(before, 2, left) || !is_right(behind, 0, right) {
            let words = format!("rank {rank} is number {number} of a ring, {left} to {right}");
            self.violate(words);
        }
    }

    /// Only those that are excused bring nothing into an allgather.
    pub(crate) fn on_gathered(&mut self, rank: Rank, missing: &[u32]) {
        if let Some(other) = missing.iter().find(|other| !self.excused_ranks.contains(other)) {
            self.violate(format!("rank {rank} has not got what rank {other} brought"));
        }
    }

    pub(crate) fn on_meeting_entered(&mut self, meeting: Meeting, rank: Rank) {
        self.meetings.entry(meeting).or_default().insert(rank.0);
    }

    /// A group's barrier ends when all its members have entered it, but for those that are excused.
    pub(crate) fn on_meeting_left(&mut self, meeting: Meeting, members: &[u32]) {
        let entered = self.meetings.entry(meeting).or_default();
        let has_come = |rank| entered.contains(rank) || self.excused_ranks.contains(rank);
        if let Some(missing) = members.iter().find(|rank| !has_come(rank)) {
            self.violate(format!("{meeting:?} ended before rank {missing} had entered"));
        }
    }

    /// No output is doubled, reordered or made up.
    pub(crate) fn on_output(&mut self, rank: Rank, stream: Stream, data: &Bytes) {
        let written = self.written.entry((rank, stream_index(stream))).or_default();
        let wrong = pattern::first_wrong(stream_key(rank, stream), *written, data);
        *written += data.len() as u64;
        self.report.output_bytes += data.len() as u64;
        if let Some(at) = wrong {
            self.violate(format!("{stream:?} of rank {rank}: wrong byte at offset {at}"));
        }
    }

    /// The same in files.
    pub(crate) fn on_file(&mut self, rank: Rank, stream: Stream, data: &Bytes) {
        let filed = self.filed.entry((rank, stream_index(stream))).or_default();
        let wrong = pattern::first_wrong(stream_key(rank, stream), *filed, data);
        *filed += data.len() as u64;
        self.report.file_bytes += data.len() as u64;
        if let Some(at) = wrong {
            self.violate(format!("file of {stream:?} of rank {rank}: wrong byte at offset {at}"));
        }
    }

    /// No output is lost: its files hold all of what the task wrote.
    pub(crate) fn on_file_total(&mut self, rank: Rank, stream: Stream, total: u64) {
        let filed = self.filed.get(&(rank, stream_index(stream))).copied().unwrap_or(0);
        if filed != total {
            self.violate(format!("file of {stream:?} of rank {rank}: {filed} of {total} bytes"));
        }
    }

    /// No output is lost: the head has written all of what the task wrote.
    pub(crate) fn on_stream_total(&mut self, rank: Rank, stream: Stream, total: u64) {
        let written = self.written.get(&(rank, stream_index(stream))).copied().unwrap_or(0);
        if written != total {
            self.violate(format!("{stream:?} of rank {rank}: {written} of {total} bytes arrived"));
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
pub(crate) fn stream_key(rank: Rank, stream: Stream) -> u64 {
    u64::from(rank.0) * 2 + stream_index(stream) as u64
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
