//! The values of an allgather on their way through the tree: in order of rank, and with no key (S4-17).
//!
//! What travels are runs of ranks whose values have one length, in ascending order. Each is three numbers: how many
//! ranks are left out before it, how many it has, and how long each of their values is; behind them stand the values.
//! A rank that is left out has an empty value. Agents join runs, so that values of one length are one run in the end:
//! half a dozen bytes beside the values, for however many tasks (S4-18, S4-23).

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::iter::repeat_n;
use core::mem;

use bytes::{Bytes, BytesMut};
use model::Rank;

use crate::pairs::{append_number, read_number};

/// What tasks of a job have brought.
#[derive(Debug)]
pub struct Values {
    /// How many tasks the job has.
    size: u32,
    /// By their first rank. No rank is in two.
    runs: BTreeMap<u32, Run>,
}

/// Values of one length, of ranks one after the other. Neither is 0.
#[derive(Debug)]
struct Run {
    count: u32,
    length: usize,
    bytes: Bytes,
}

/// Bytes that are no values of an allgather, or not of these tasks. Only our own agents send these, so it is a fault of
/// ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ValuesError {
    /// They end within a run, or have an empty one.
    #[error("values of an allgather are cut or garbled")]
    Garbled,
    /// There is no such rank.
    #[error("an allgather has a value of a rank behind the last of {size}")]
    NoSuchRank {
        /// How many tasks the job has.
        size: u32,
    },
    /// A rank has a value already.
    #[error("an allgather has two values of rank {0}, or of one behind it")]
    Twice(Rank),
}

impl Values {
    /// None yet, of a job of so many tasks.
    pub fn of(size: u32) -> Values {
        Values { size, runs: BTreeMap::new() }
    }

    /// Adds the value of a task that has none yet.
    ///
    /// # Errors
    /// When it has one, or there is no such task.
    pub fn insert(&mut self, Rank(rank): Rank, value: Bytes) -> Result<(), ValuesError> {
        if value.is_empty() {
            return Ok(());
        }
        self.add(rank, Run { count: 1, length: value.len(), bytes: value })
    }

    /// Adds those that another agent has encoded.
    ///
    /// # Errors
    /// When they are none, or there are others of the same ranks. What stands before the mistake is added.
    pub fn merge(&mut self, encoded: &Bytes) -> Result<(), ValuesError> {
        let (mut at, mut next) = (0, 0_u32);
        while at < encoded.len() {
            let mut number = || read_number(encoded, &mut at).ok_or(ValuesError::Garbled);
            let (gap, count, length) = (number()?, number()?, number()?);
            let end = count.checked_mul(length).and_then(|bytes| at.checked_add(bytes));
            let end = end.filter(|end| (at + 1..=encoded.len()).contains(end));
            let bytes = encoded.slice(at..end.ok_or(ValuesError::Garbled)?);
            at += bytes.len();
            let (gap, count) = (narrow(gap)?, narrow(count)?);
            let first = next.checked_add(gap).ok_or(ValuesError::Garbled)?;
            self.add(first, Run { count, length, bytes })?;
            next = first + count;
        }
        Ok(())
    }

    fn add(&mut self, first: u32, run: Run) -> Result<(), ValuesError> {
        let end = first.checked_add(run.count).filter(|end| *end <= self.size);
        let end = end.ok_or(ValuesError::NoSuchRank { size: self.size })?;
        let before = self.runs.range(..end).next_back();
        if before.is_some_and(|(start, before)| start + before.count > first) {
            return Err(ValuesError::Twice(Rank(first)));
        }
        self.runs.insert(first, run);
        Ok(())
    }

    /// Encodes them for another agent.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        let mut next = 0;
        let mut runs = self.runs.iter().peekable();
        while let Some((&first, run)) = runs.next() {
            let mut joined = vec![run];
            let gap = first - next;
            next = first + run.count;
            while let Some((_, behind)) =
                runs.next_if(|(first, behind)| **first == next && behind.length == run.length)
            {
                next += behind.count;
                joined.push(behind);
            }
            [gap, next - first].iter().for_each(|number| append_number(&mut out, widen(*number)));
            append_number(&mut out, run.length);
            joined.iter().for_each(|run| out.extend_from_slice(&run.bytes));
        }
        out.freeze()
    }

    /// Encodes them in parts, each of which another agent merges: of so many bytes or a value more, but for the last.
    pub fn encode_in_parts(self, part_bytes: usize) -> Vec<Bytes> {
        let none = || Values::of(self.size);
        let (mut parts, mut part, mut bytes) = (Vec::new(), none(), 0);
        for (mut first, mut run) in self.runs {
            while run.count > 0 {
                let room = part_bytes.saturating_sub(bytes).div_ceil(run.length).max(1);
                let count = run.count.min(u32::try_from(room).unwrap_or(u32::MAX));
                let taken = run.bytes.split_to(widen(count) * run.length);
                bytes += taken.len();
                part.runs.insert(first, Run { count, length: run.length, bytes: taken });
                (first, run.count) = (first + count, run.count - count);
                if bytes >= part_bytes {
                    parts.push(mem::replace(&mut part, none()).encode());
                    bytes = 0;
                }
            }
        }
        if parts.is_empty() || bytes > 0 {
            parts.push(part.encode());
        }
        parts
    }

    /// The values of all ranks, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let end = self.runs.last_key_value().map_or(0, |(first, run)| first + run.count);
        let with_gaps = self.runs.iter().scan(0, |next, (first, run)| {
            let gap = first - mem::replace(next, first + run.count);
            Some((gap, run))
        });
        let values = with_gaps.flat_map(|(gap, run)| {
            repeat_n(&[][..], widen(gap)).chain(run.bytes.chunks_exact(run.length))
        });
        values.chain(repeat_n(&[][..], widen(self.size - end)))
    }
}

fn narrow(number: usize) -> Result<u32, ValuesError> {
    u32::try_from(number).map_err(|_| ValuesError::Garbled)
}

fn widen(number: u32) -> usize {
    usize::try_from(number).expect("a job's tasks are counted in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What so many agents with as many tasks each bring, which meet in pairs. Ranks are dealt to them in turn, or not.
    fn meet(agents: u32, tasks: u32, is_dealt: bool, value: fn(u32) -> Vec<u8>) -> Bytes {
        let size = agents * tasks;
        let rank_of =
            |agent, task| if is_dealt { task * agents + agent } else { agent * tasks + task };
        let mut parts: Vec<Bytes> = (0..agents)
            .map(|agent| {
                let mut own = Values::of(size);
                for rank in (0..tasks).map(|task| rank_of(agent, task)) {
                    own.insert(Rank(rank), value(rank).into()).unwrap();
                }
                own.encode()
            })
            .collect();
        while parts.len() > 1 {
            parts = parts.chunks(2).map(|pair| join(size, pair)).collect();
        }
        parts.remove(0)
    }

    fn join(size: u32, parts: &[Bytes]) -> Bytes {
        let mut all = Values::of(size);
        parts.iter().for_each(|part| all.merge(part).unwrap());
        all.encode()
    }

    #[test]
    fn values_of_any_lengths_arrive_in_order_of_rank_wherever_their_tasks_are() {
        let value = |rank: u32| vec![u8::try_from(rank % 251).unwrap(); (rank % 7 / 2) as usize];
        for agents in 1..=33 {
            for (tasks, is_dealt) in [(1, false), (5, false), (5, true)] {
                let whole = meet(agents, tasks, is_dealt, value);
                let mut values = Values::of(agents * tasks);
                values.merge(&whole).unwrap();
                let expected: Vec<Vec<u8>> = (0..agents * tasks).map(value).collect();
                assert_eq!(values.iter().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn parts_hold_all_values_between_them_and_all_but_the_last_are_full_and_not_a_value_more() {
        for lengths in [&[][..], &[0, 0], &[7], &[5; 100], &[1, 0, 40, 40, 3, 3, 3, 0, 90, 2]] {
            let size = u32::try_from(lengths.len()).unwrap();
            let all = || {
                let mut all = Values::of(size);
                for (rank, &length) in (0..).zip(lengths) {
                    all.insert(Rank(rank), vec![b'v'; length].into()).unwrap();
                }
                // As another agent has joined it.
                join(size, &[all.encode()])
            };
            for part_bytes in 1..lengths.iter().sum::<usize>() + 2 {
                let mut whole = Values::of(size);
                whole.merge(&all()).unwrap();
                let parts = whole.encode_in_parts(part_bytes);
                assert_eq!(join(size, &parts), all());
                for part in &parts[..parts.len() - 1] {
                    let mut values = Values::of(size);
                    values.merge(part).unwrap();
                    let bytes: usize = values.iter().map(<[u8]>::len).sum();
                    assert!((part_bytes..part_bytes + 90).contains(&bytes), "{bytes} {part_bytes}");
                }
            }
        }
    }

    #[test]
    fn values_of_one_length_cost_six_bytes_beside_themselves_and_a_pair_costs_each_thirteen() {
        let value = |_| vec![b'x'; 50];
        assert_eq!(meet(128, 16, false, value).len(), 2048 * 50 + 4);
        assert_eq!(meet(1024, 16, true, value).len(), 16_384 * 50 + 5);
        let mut pair = BytesMut::new();
        crate::Pairs::append(&mut pair, b"", b"card-16383", &value(0));
        assert_eq!(pair.len(), 50 + 13);
    }

    #[test]
    fn values_cut_anywhere_of_ranks_that_are_not_there_or_have_one_are_an_error() {
        let whole = meet(2, 1, false, |rank| vec![b'v'; 3 + rank as usize]);
        for bytes in 1..whole.len() {
            let cut = Values::of(2).merge(&whole.slice(..bytes));
            // Between the runs is a good place.
            assert_eq!(cut.is_ok(), bytes == 6, "{bytes} of {} bytes", whole.len());
        }
        assert_eq!(Values::of(1).merge(&whole), Err(ValuesError::NoSuchRank { size: 1 }));
        let mut values = Values::of(2);
        values.insert(Rank(1), Bytes::from_static(b"own")).unwrap();
        assert_eq!(values.merge(&whole), Err(ValuesError::Twice(Rank(1))));
        for garbled in [&[0, 0, 1][..], &[0, 1, 0], &[0xff; 40], &[0, 0xff, 0xff, 0xff, 0x7f, 9]] {
            let merged = Values::of(2).merge(&Bytes::copy_from_slice(garbled));
            assert_eq!(merged, Err(ValuesError::Garbled), "{garbled:?}");
        }
    }
}
