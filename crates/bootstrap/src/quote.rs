//! Quotes a word for a login shell that we do not know.
//!
//! `sh`, `bash`, `dash`, `csh`, `tcsh` and `fish` agree on single quotes except for three
//! characters: no shell can hold `'` in them, `fish` lets `\` escape there, and `csh` expands `!`.
//! So those three stand outside, each behind a backslash, where all agree again. A newline has no
//! form that `csh` accepts.

/// `word` as one word of a shell command.
pub fn quote(word: &[u8]) -> Vec<u8> {
    if !word.is_empty() && word.iter().all(|byte| is_plain(*byte)) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' | b'\\' | b'!' => quoted.extend([b'\'', b'\\', *byte, b'\'']),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Means nothing to any shell, anywhere in a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./,:@+".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(quote(b"/usr/bin/convoke-1.0"), b"/usr/bin/convoke-1.0");
        assert_eq!(quote(b""), b"''");
        assert_eq!(quote(b"a b"), b"'a b'");
        assert_eq!(quote(b"~"), b"'~'");
        assert_eq!(quote(b"it's"), br"'it'\''s'");
    }
}
