//! What happens in a session, line by line: `STEP TIME ns WORDS`.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};

/// How many lines a failure shows.
const TAIL_LINES_MAX: usize = 150;

/// Where the lines go.
pub(crate) enum Log<'a> {
    /// Nowhere, and they are not even made.
    None,
    /// The last ones are kept.
    Tail(VecDeque<String>),
    /// All are passed on.
    All(&'a mut dyn FnMut(&str)),
}

impl<'a> Log<'a> {
    pub(crate) fn tail() -> Log<'a> {
        Log::Tail(VecDeque::new())
    }

    pub(crate) fn is_kept(&self) -> bool {
        match self {
            Log::None => false,
            Log::Tail(_) | Log::All(_) => true,
        }
    }

    pub(crate) fn push(&mut self, line: String) {
        match self {
            Log::None => {}
            Log::Tail(lines) => {
                if lines.len() == TAIL_LINES_MAX {
                    lines.pop_front();
                }
                lines.push_back(line);
            }
            Log::All(sink) => sink(&line),
        }
    }

    pub(crate) fn into_tail(self) -> Vec<String> {
        match self {
            Log::Tail(lines) => lines.into(),
            Log::None | Log::All(_) => Vec::new(),
        }
    }
}

/// FNV-1a over bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextHash(pub(crate) u64);

impl TextHash {
    pub(crate) const EMPTY: TextHash = TextHash(0xcbf2_9ce4_8422_2325);

    pub(crate) fn add(&mut self, text: &str) {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// A hash of the name of an enum's variant: unlike the standard hash of a discriminant it is the
/// same on every machine.
pub(crate) fn kind_hash(value: &impl Debug) -> u64 {
    let mut name = VariantName(TextHash::EMPTY);
    // An error says that the name has ended.
    let _ = write!(name, "{value:?}");
    name.0.0
}

/// Takes the first word that is written to it.
struct VariantName(TextHash);

impl Write for VariantName {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = text.find(|letter: char| !letter.is_ascii_alphanumeric());
        self.0.add(&text[..end.unwrap_or(text.len())]);
        if end.is_some() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_name_of_the_variant_and_nothing_else() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "to be written")]
        enum Kind {
            Bare,
            Tuple(u32),
            Struct { bare: u32 },
        }
        let hash = |text: &str| {
            let mut hash = TextHash::EMPTY;
            hash.add(text);
            hash.0
        };
        assert_eq!(kind_hash(&Kind::Bare), hash("Bare"));
        assert_eq!(kind_hash(&Kind::Tuple(7)), hash("Tuple"));
        assert_eq!(kind_hash(&Kind::Struct { bare: 7 }), hash("Struct"));
    }
}
