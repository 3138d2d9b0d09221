//! What the far end of a remote shell asks its parent for, on its standard output.
//!
//! One line of text, `CONVOKE-ASKS-1` and what for, since login scripts print there, too: whatever
//! stands before it is skipped, in bounded memory. What comes behind the line belongs to whoever
//! answers. Nothing proves that it is the agent who asks; what is answered must not need that.

use crate::boot::drop_noise;

/// Something that the far end asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Request {
    /// The link to its parent: none of the parent's addresses has answered. What follows, both ways,
    /// is the link.
    Link,
    /// The agent's program, which its host lacks ([`deliver`](crate::deliver)).
    Program,
    /// Its boot line, once it has the program.
    Boot,
}

/// A request, as it came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    /// What for.
    pub request: Request,
    /// What came behind its line.
    pub rest: Vec<u8>,
}

/// Finds requests in what a shell prints.
#[derive(Debug, Default)]
pub struct RequestReader {
    /// What may be the beginning of a request.
    seen: Vec<u8>,
}

const MAGIC: &[u8] = b"CONVOKE-ASKS-1 ";

/// The longest line, from the magic to its end.
const LINE_BYTES_MAX: usize = 128;

impl Request {
    /// The line that asks for it, newline included. Nothing may stand on it before.
    pub fn line(self) -> Vec<u8> {
        [MAGIC, self.word(), b"\n"].concat()
    }

    fn word(self) -> &'static [u8] {
        match self {
            Request::Link => b"link",
            Request::Program => b"program",
            Request::Boot => b"boot",
        }
    }

    fn from_word(word: &[u8]) -> Option<Request> {
        let all = [Request::Link, Request::Program, Request::Boot];
        all.into_iter().find(|request| request.word() == word)
    }
}

impl RequestReader {
    /// Takes what was printed. What is behind a request is its answerer's; read on while it is `None`.
    pub fn push(&mut self, bytes: &[u8]) -> Option<Asked> {
        self.seen.extend_from_slice(bytes);
        loop {
            drop_noise(&mut self.seen, MAGIC);
            if !self.seen.starts_with(MAGIC) {
                return None;
            }
            let Some(end) = self.seen.iter().position(|byte| *byte == b'\n') else {
                if self.seen.len() > LINE_BYTES_MAX {
                    self.seen.drain(..MAGIC.len());
                    continue;
                }
                return None;
            };
            let word = self.seen[MAGIC.len()..end].trim_ascii_end();
            if let Some(request) = Request::from_word(word) {
                let rest = self.seen.split_off(end + 1);
                self.seen = Vec::new();
                return Some(Asked { request, rest });
            }
            self.seen.drain(..MAGIC.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_found_behind_noise_byte_by_byte() {
        let mut stream = b"Welcome!\nCONVOKE-ASKS-1 for nothing\nprompt> CONVOKE-ASKS-".to_vec();
        stream.extend(Request::Link.line());
        let mut reader = RequestReader::default();
        let asked: Vec<Asked> = stream.iter().filter_map(|byte| reader.push(&[*byte])).collect();
        assert_eq!(asked, [Asked { request: Request::Link, rest: Vec::new() }]);
        stream.extend(b"\0\xff behind");
        let asked = RequestReader::default().push(&stream).unwrap();
        assert_eq!(asked.rest, b"\0\xff behind");
    }

    #[test]
    fn a_terminal_may_end_lines_with_a_carriage_return() {
        let asked = RequestReader::default().push(b"CONVOKE-ASKS-1 link\r\n").unwrap();
        assert_eq!(asked.request, Request::Link);
    }

    #[test]
    fn noise_without_end_is_not_kept() {
        let mut reader = RequestReader::default();
        for noise in [&b"y"[..], MAGIC, b"y\n"] {
            for _ in 0..10_000 {
                assert_eq!(reader.push(noise), None);
                assert!(reader.seen.len() <= LINE_BYTES_MAX + noise.len());
            }
        }
        assert!(reader.push(&Request::Link.line()).is_some());
    }
}
