//! The last lines of a stream, in bounded memory.

use alloc::vec::Vec;

use bytes::Bytes;

/// Keeps the end of what a stream said.
#[derive(Debug, Default)]
pub struct LastLines {
    bytes: Vec<u8>,
}

impl LastLines {
    /// The most lines that are given out.
    pub const LINES_MAX: usize = 10;

    /// The most bytes of them.
    pub const BYTES_MAX: usize = 4096;

    /// Takes what was said next.
    pub fn on_data(&mut self, data: &[u8]) {
        // One byte more tells whether the first line is whole.
        const KEPT_MAX: usize = LastLines::BYTES_MAX + 1;
        let data = &data[data.len().saturating_sub(KEPT_MAX)..];
        let excess = (self.bytes.len() + data.len()).saturating_sub(KEPT_MAX);
        self.bytes.drain(..excess);
        self.bytes.extend_from_slice(data);
    }

    /// The last lines. The first is cut only where it alone is too long.
    pub fn lines(&self) -> Bytes {
        let text = &self.bytes[..];
        let kept = match text.len().checked_sub(LastLines::BYTES_MAX) {
            None | Some(0) => text,
            Some(excess) => match memchr::memchr(b'\n', text).filter(|end| end + 1 < text.len()) {
                Some(end) => &text[end + 1..],
                None => &text[excess..],
            },
        };
        let body = kept.strip_suffix(b"\n").unwrap_or(kept);
        let before = memchr::memrchr_iter(b'\n', body).nth(LastLines::LINES_MAX - 1);
        Bytes::copy_from_slice(&kept[before.map_or(0, |end| end + 1)..])
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn last(parts: &[&str]) -> String {
        let mut lines = LastLines::default();
        parts.iter().for_each(|part| lines.on_data(part.as_bytes()));
        String::from_utf8(lines.lines().to_vec()).unwrap()
    }

    #[test]
    fn what_is_short_is_kept_as_it_is() {
        for text in ["", "\n", "a", "a\n", "a\nb", "\n\n\n"] {
            assert_eq!(last(&[text]), text);
        }
        assert_eq!(last(&["a\nb", "c\nd"]), "a\nbc\nd");
    }

    #[test]
    fn of_many_lines_the_last_ten_are_kept_whether_the_last_is_whole_or_not() {
        let text: String = (0..100).map(|n| n.to_string() + "\n").collect();
        for end in ["", "half"] {
            let text = text.clone() + end;
            let first = if end.is_empty() { 90 } else { 91 };
            let expected: String = (first..100).map(|n| n.to_string() + "\n").collect();
            assert_eq!(last(&[&text]), expected.clone() + end);
            let bytes: alloc::vec::Vec<&str> = text.split_inclusive(|_| true).collect();
            assert_eq!(last(&bytes), expected + end);
        }
    }

    #[test]
    fn no_more_than_so_many_bytes_are_kept_and_only_a_line_that_is_too_long_is_cut() {
        for line_bytes in 1..6_000 {
            let line = "x".repeat(line_bytes - 1) + "\n";
            let kept = last(&[&line, &line, &line]);
            let lines = (LastLines::BYTES_MAX / line_bytes).clamp(1, 3);
            let expected = (lines * line_bytes).min(LastLines::BYTES_MAX);
            assert_eq!(kept.len(), expected, "lines of {line_bytes}");
        }
    }
}
