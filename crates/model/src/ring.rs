//! Tasks in a ring, each with a neighbour on either side (S4-07).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Tasks that stand one behind the other.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RingStretch {
    /// How many.
    pub count: u32,
    /// What the first one brings for its left neighbour: any bytes.
    pub left: Vec<u8>,
    /// What the last one brings for its right neighbour.
    pub right: Vec<u8>,
}

/// Where a stretch is in the closed ring.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RingPlace {
    /// The number of its first task, from 0.
    pub first: u32,
    /// What the task before it has brought for its right neighbour.
    pub left: Vec<u8>,
    /// What the task behind it has brought for its left neighbour.
    pub right: Vec<u8>,
}

impl RingStretch {
    /// Closes the ring: what is next to the whole is the whole.
    pub fn close(self) -> RingPlace {
        RingPlace { first: 0, left: self.right, right: self.left }
    }
}
