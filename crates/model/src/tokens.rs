//! The words of a line of a host file or a rank file.

/// Words, and `=` as one of its own, with blanks around it or none. A comment is no word.
pub(crate) fn tokens(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line.split('#').next().unwrap_or_default();
    core::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let first = rest.chars().next()?;
        let is_end = |c: char| c == '=' || c.is_ascii_whitespace();
        let end = if first == '=' { 1 } else { rest.find(is_end).unwrap_or(rest.len()) };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

/// The column of `word`, which is a slice of `line`; searching for its text could find an earlier
/// one.
pub(crate) fn column_of(line: &str, word: &str) -> usize {
    let at = word.as_ptr() as usize - line.as_ptr() as usize;
    line[..at].chars().count() + 1
}
