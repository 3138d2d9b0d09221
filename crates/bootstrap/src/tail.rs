//! The last words of a remote shell, kept for the error message.

/// Keeps the end of what a stream said, in bounded memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    /// How much is kept.
    pub const BYTES_MAX: usize = 4096;

    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(Tail::BYTES_MAX)..];
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(Tail::BYTES_MAX);
        self.bytes.drain(..excess);
        self.bytes.extend_from_slice(bytes);
    }

    /// What is kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Tail;

    #[test]
    fn only_the_end_is_kept() {
        let mut tail = Tail::default();
        tail.push(&[b'a'; 10_000]);
        assert_eq!(tail.bytes(), [b'a'; Tail::BYTES_MAX]);
        tail.push(b"end");
        assert_eq!(tail.bytes().len(), Tail::BYTES_MAX);
        assert!(tail.bytes().ends_with(b"aend"));
    }
}
