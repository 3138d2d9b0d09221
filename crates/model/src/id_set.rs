//! Sets of dense numbers (agents, nodes, ranks), kept and shown folded: `0-3,8`.
//!
//! A set is a sorted list of disjoint ranges that do not touch, so that equal sets have equal
//! representations, and a million ids in one piece cost eight bytes. Union and difference are
//! linear in the number of ranges; a lookup is a binary search. A bitmap would be faster for
//! scattered ids, but the sets that travel are parts of a tree, and those are a few ranges.

use alloc::vec::Vec;
use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// A set of `u32` ids. Ranges are inclusive at both ends.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct IdSet {
    ranges: Vec<(u32, u32)>,
}

/// A text that is no id set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IdSetError {
    /// One part between commas is no number.
    #[error("id set: `{text}` is not a number")]
    Number {
        /// The part that was read as a number.
        text: alloc::string::String,
        /// What is wrong with it.
        #[source]
        source: ParseIntError,
    },
    /// A range that ends before it starts.
    #[error("id set: range {0}-{1} ends before it starts")]
    Backwards(u32, u32),
}

impl IdSet {
    /// The empty set.
    pub const fn new() -> IdSet {
        IdSet { ranges: Vec::new() }
    }

    /// The ids from `start` to `end`, both included; empty when `end` is below `start`.
    pub fn range(start: u32, end: u32) -> IdSet {
        let mut set = IdSet::new();
        set.insert_range(start, end);
        set
    }

    /// Adds `id`. Returns whether it is new to the set.
    pub fn insert(&mut self, id: u32) -> bool {
        let is_new = !self.contains(id);
        if is_new {
            self.insert_range(id, id);
        }
        is_new
    }

    /// Adds the ids from `start` to `end`, both included; nothing when `end` is below `start`.
    pub fn insert_range(&mut self, start: u32, end: u32) {
        if end < start {
            return;
        }
        let first = self.ranges.partition_point(|&(_, e)| e < start && start - e > 1);
        let past = self.ranges.partition_point(|&(s, _)| s <= end || s - end == 1);
        let merged = match self.ranges.get(first..past) {
            Some([]) | None => (start, end),
            Some(touched) => (touched[0].0.min(start), touched[touched.len() - 1].1.max(end)),
        };
        self.ranges.splice(first..past, [merged]);
    }

    /// Takes `id` out. Returns whether it was in the set.
    pub fn remove(&mut self, id: u32) -> bool {
        let Some(index) = self.position(id) else { return false };
        let (start, end) = self.ranges[index];
        let before = (start < id).then(|| (start, id - 1));
        let after = (id < end).then(|| (id + 1, end));
        self.ranges.splice(index..=index, before.into_iter().chain(after));
        true
    }

    /// Whether `id` is in the set.
    pub fn contains(&self, id: u32) -> bool {
        self.position(id).is_some()
    }

    /// The ids that are in either set.
    #[must_use]
    pub fn union(&self, other: &IdSet) -> IdSet {
        let mut pending: Vec<_> = self.ranges.iter().chain(&other.ranges).copied().collect();
        pending.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::with_capacity(pending.len());
        for (start, end) in pending {
            match ranges.last_mut() {
                Some(last) if start <= last.1 || start - last.1 == 1 => last.1 = last.1.max(end),
                Some(_) | None => ranges.push((start, end)),
            }
        }
        IdSet { ranges }
    }

    /// The ids of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &IdSet) -> IdSet {
        let mut ranges = Vec::with_capacity(self.ranges.len());
        for &(start, end) in &self.ranges {
            let overlapping = other.ranges.partition_point(|&(_, e)| e < start);
            push_gaps(&mut ranges, start, end, &other.ranges[overlapping..]);
        }
        IdSet { ranges }
    }

    /// The ids that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &IdSet) -> IdSet {
        self.difference(&self.difference(other))
    }

    /// How many ids the set has.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|&range| range_len(range)).sum()
    }

    /// Whether the set has no ids.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest id.
    pub fn first(&self) -> Option<u32> {
        self.ranges.first().map(|&(start, _)| start)
    }

    /// How many ids of the set are smaller than `id`, if that is in the set.
    pub fn index_of(&self, id: u32) -> Option<u64> {
        let position = self.position(id)?;
        let before = self.ranges[..position].iter().map(|&range| range_len(range)).sum::<u64>();
        Some(before + u64::from(id - self.ranges[position].0))
    }

    /// The ids with so many smaller ones in the set, from `first` on.
    #[must_use]
    pub fn slice(&self, first: u64, count: u64) -> IdSet {
        let mut parts = self.parts();
        parts.take(first);
        parts.take(count)
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(start, end)| start..=end)
    }

    /// The maximal ranges in ascending order, both ends included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Splits into the `count` smallest ids and the rest.
    #[must_use]
    pub fn split(&self, count: u64) -> (IdSet, IdSet) {
        let mut parts = self.parts();
        let first = parts.take(count);
        (first, parts.take(u64::MAX))
    }

    /// Cuts the set into consecutive parts, each as large as the caller asks.
    pub fn parts(&self) -> Parts<'_> {
        Parts { ranges: &self.ranges, used: 0 }
    }

    fn position(&self, id: u32) -> Option<usize> {
        let index = self.ranges.partition_point(|&(_, end)| end < id);
        (self.ranges.get(index)?.0 <= id).then_some(index)
    }
}

/// What is left of a set that is being cut into parts. All cuts together are linear.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    ranges: &'a [(u32, u32)],
    /// Ids of the first range that are taken already.
    used: u32,
}

impl Parts<'_> {
    /// Takes the next `count` ids, or all that are left.
    pub fn take(&mut self, mut count: u64) -> IdSet {
        let mut taken = Vec::new();
        while let Some((&(start, end), rest)) = self.ranges.split_first() {
            if count == 0 {
                break;
            }
            let start = start + self.used;
            if count < range_len((start, end)) {
                let last = u64::from(start) + count - 1;
                let last = u32::try_from(last).unwrap_or(end);
                taken.push((start, last));
                self.used += last - start + 1;
                break;
            }
            count -= range_len((start, end));
            taken.push((start, end));
            (self.ranges, self.used) = (rest, 0);
        }
        IdSet { ranges: taken }
    }

    /// Takes the next id.
    pub fn take_one(&mut self) -> Option<u32> {
        self.take(1).first()
    }
}

impl FromIterator<u32> for IdSet {
    fn from_iter<I: IntoIterator<Item = u32>>(ids: I) -> IdSet {
        let mut set = IdSet::new();
        for id in ids {
            set.insert_range(id, id);
        }
        set
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(start, end)) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if start == end {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}-{end}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for IdSet {
    type Err = IdSetError;

    /// Reads `0-3,8`, in any order, with overlaps. The empty text is the empty set.
    fn from_str(text: &str) -> Result<IdSet, IdSetError> {
        let mut set = IdSet::new();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (start, end) = part.split_once('-').unwrap_or((part, part));
            let (start, end) = (parse_id(start)?, parse_id(end)?);
            if end < start {
                return Err(IdSetError::Backwards(start, end));
            }
            set.insert_range(start, end);
        }
        Ok(set)
    }
}

impl<'de> Deserialize<'de> for IdSet {
    /// Restores order and disjointness whatever the sender wrote.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IdSet, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename = "IdSet")]
        struct Raw {
            ranges: Vec<(u32, u32)>,
        }
        let mut ranges = Raw::deserialize(deserializer)?.ranges;
        ranges.retain(|&(start, end)| start <= end);
        Ok(IdSet { ranges }.union(&IdSet::new()))
    }
}

fn parse_id(text: &str) -> Result<u32, IdSetError> {
    text.parse().map_err(|source| IdSetError::Number { text: text.into(), source })
}

fn range_len((start, end): (u32, u32)) -> u64 {
    u64::from(end) - u64::from(start) + 1
}

/// Pushes what is left of `start..=end` when the `holes`, of which the first reaches `start`,
/// are cut out.
fn push_gaps(ranges: &mut Vec<(u32, u32)>, mut start: u32, end: u32, holes: &[(u32, u32)]) {
    for &(hole_start, hole_end) in holes {
        if hole_start > end {
            break;
        }
        if hole_start > start {
            ranges.push((start, hole_start - 1));
        }
        match hole_end.checked_add(1) {
            Some(next) if next <= end => start = next,
            Some(_) | None => return,
        }
    }
    ranges.push((start, end));
}
