//! What is still to happen, in the order of time, then of the order in which it was pushed.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::Time;

/// A queue by time. Things due at the same time come out as they went in.
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    pushed: u64,
}

struct Entry<T> {
    time: Time,
    sequence: u64,
    item: T,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { heap: BinaryHeap::new(), pushed: 0 }
    }

    pub(crate) fn push(&mut self, time: Time, item: T) {
        self.heap.push(Reverse(Entry { time, sequence: self.pushed, item }));
        self.pushed += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.time)
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.time, entry.item))
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (Time, u64) {
        (self.time, self.sequence)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> Ordering {
        self.key().cmp(&other.key())
    }
}
