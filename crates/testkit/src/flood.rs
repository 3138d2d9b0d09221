//! Lines whose loss, damage or mixing a reader can prove.
//!
//! A line names its rank and its number, is filled up to its length, and ends with a checksum of all that.

use std::fmt::Write;

/// One line of a flood.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FloodLine {
    /// The task that writes it.
    pub rank: u32,
    /// Its number among the lines of that task.
    pub index: u64,
}

const FILL: &str = "the quick brown fox jumps over the lazy dog and runs through the dark forest; ";

/// ` ` and eight digits.
const CHECKSUM_BYTES: usize = 9;

impl FloodLine {
    /// Appends the line to `out`: `bytes` bytes with the line end, or more when its numbers need more.
    pub fn append(self, out: &mut String, bytes: usize) {
        let start = out.len();
        let _ = write!(out, "{} {} ", self.rank, self.index);
        let mut missing = (start + bytes).saturating_sub(out.len() + CHECKSUM_BYTES + 1);
        while missing > 0 {
            let part = missing.min(FILL.len());
            out.push_str(&FILL[..part]);
            missing -= part;
        }
        let sum = Fnv::of(&out.as_bytes()[start..]).low_32_bits();
        let _ = writeln!(out, " {sum:08x}");
    }

    /// Reads a line without its line end; `None` when it is not as it was written.
    pub fn parse(line: &str) -> Option<FloodLine> {
        let (body, sum) = line.rsplit_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != Fnv::of(body.as_bytes()).low_32_bits() {
            return None;
        }
        let mut words = body.split(' ');
        let rank = words.next()?.parse().ok()?;
        let index = words.next()?.parse().ok()?;
        Some(FloodLine { rank, index })
    }
}

/// The FNV-1a checksum: enough to see a lost or doubled byte, and four lines of code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fnv(u64);

impl Fnv {
    /// The checksum of nothing.
    pub const EMPTY: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    /// The checksum of `bytes`.
    pub fn of(bytes: &[u8]) -> Fnv {
        Self::EMPTY.and(bytes)
    }

    /// The checksum of what this one covers, and then `bytes`.
    #[must_use]
    pub fn and(self, bytes: &[u8]) -> Fnv {
        let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Fnv(bytes.iter().fold(self.0, step))
    }

    /// The whole checksum.
    pub fn value(self) -> u64 {
        self.0
    }

    fn low_32_bits(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_line_has_the_length_asked_for_and_is_read_back() {
        let line = FloodLine { rank: 3, index: 41 };
        let mut text = String::new();
        line.append(&mut text, 100);
        assert_eq!(text.len(), 100);
        assert_eq!(FloodLine::parse(text.trim_end()), Some(line));
    }

    #[test]
    fn a_torn_flood_line_is_seen() {
        let mut text = String::new();
        FloodLine { rank: 3, index: 41 }.append(&mut text, 100);
        let torn = text[..50].to_owned() + &text[51..];
        assert_eq!(FloodLine::parse(torn.trim_end()), None);
    }
}
