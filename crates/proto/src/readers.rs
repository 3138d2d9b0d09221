//! Input for several readers at once: the slowest holds the writer.
//!
//! A member of the tree hands each byte to all of its readers, tasks and subtrees, and lets the writer
//! send again what all of them have taken, in whole steps of half the window. Whole steps make the
//! tree's depth of no account: the least of many counts, rounded down to steps, is the same in whatever
//! order one rounds and compares. So the writer always has half of the window left once all readers
//! have taken what there is, and never waits for nothing.

use alloc::collections::BTreeMap;

/// The readers of one member, and how much each has taken.
#[derive(Debug)]
pub struct Readers<K> {
    taken: BTreeMap<K, u64>,
    step: u64,
    granted: u64,
}

impl<K: Ord> Readers<K> {
    /// Readers over a window of so many bytes, all of it granted already.
    pub fn new(window: u32, readers: impl IntoIterator<Item = K>) -> Readers<K> {
        let taken = readers.into_iter().map(|reader| (reader, 0)).collect();
        Readers { taken, step: u64::from(window / 2).max(1), granted: 0 }
    }

    /// Handles that a reader has taken more; returns what the writer may send beyond what it may.
    pub fn on_taken(&mut self, reader: &K, bytes: u32) -> Option<u32> {
        let taken = self.taken.get_mut(reader)?;
        *taken = taken.saturating_add(u64::from(bytes));
        self.grant()
    }

    /// Handles that a reader reads no more, which may have been the slowest.
    pub fn on_closed(&mut self, reader: &K) -> Option<u32> {
        self.taken.remove(reader)?;
        self.grant()
    }

    /// Who still reads.
    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.taken.keys()
    }

    /// Whether this is one who reads.
    pub fn contains(&self, reader: &K) -> bool {
        self.taken.contains_key(reader)
    }

    /// Whether nobody reads any more.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    fn grant(&mut self) -> Option<u32> {
        let least = self.taken.values().min()?;
        let steps = least / self.step * self.step;
        let more = steps.checked_sub(self.granted).filter(|more| *more > 0)?;
        self.granted = steps;
        Some(u32::try_from(more).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn the_slowest_holds_the_writer_until_it_closes() {
        let mut readers = Readers::new(100, ["a", "b"]);
        assert_eq!(readers.on_taken(&"a", 100), None);
        assert_eq!(readers.on_taken(&"b", 49), None);
        assert_eq!(readers.on_taken(&"b", 1), Some(50));
        assert_eq!(readers.on_closed(&"b"), Some(50));
        assert_eq!(readers.on_taken(&"b", 1000), None, "a stranger");
        assert_eq!(readers.on_closed(&"a"), None);
        assert!(readers.is_empty());
    }

    /// A tree of members as they pass grants on: each is a reader of the one before it, and has a task
    /// of its own.
    #[test]
    fn however_deep_the_tree_the_writer_never_starves_while_all_read() {
        for window in [1_u32, 2, 7, 256, 1000] {
            for depth in 1..40_usize {
                let mut levels: Vec<Readers<u8>> =
                    (0..depth).map(|_| Readers::new(window, [0, 1])).collect();
                if let Some(last) = levels.last_mut() {
                    last.on_closed(&1);
                }
                let (mut credit, mut sent) = (u64::from(window), 0_u64);
                for piece in (1..=window).cycle().take(300) {
                    assert!(credit > 0, "window {window}, depth {depth}, after {sent}");
                    let piece = u64::from(piece).min(credit);
                    credit -= piece;
                    sent += piece;
                    let bytes = u32::try_from(piece).unwrap();
                    for level in (0..depth).rev() {
                        let mut grant = levels[level].on_taken(&0, bytes);
                        for above in (0..level).rev() {
                            let Some(bytes) = grant else { break };
                            grant = levels[above].on_taken(&1, bytes);
                        }
                        credit += u64::from(grant.unwrap_or(0));
                    }
                }
            }
        }
    }
}
