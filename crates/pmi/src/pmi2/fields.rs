//! The fields of a message: `key=value;` each, in any order (`reference/pmi2.md` §1).

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::str::FromStr;

/// The fields of a message that are still to be read. A semicolon within a value is written twice.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Those of the body of a frame.
    pub fn of(body: &'a [u8]) -> Fields<'a> {
        Fields { rest: body }
    }

    /// The value of the first field called `key`.
    pub fn get(self, key: &str) -> Option<Cow<'a, [u8]>> {
        self.into_iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| value)
    }

    /// The same of one that is a number.
    pub fn number<N: FromStr>(self, key: &str) -> Option<N> {
        self.get(key).and_then(|text| core::str::from_utf8(&text).ok()?.trim().parse().ok())
    }

    /// Whether the field called `key` says so.
    pub fn is_true(self, key: &str) -> bool {
        self.get(key).is_some_and(|value| *value == b"TRUE"[..])
    }
}

impl<'a> IntoIterator for Fields<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        Iter { rest: self.rest }
    }
}

/// Fields one after the other.
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], Cow<'a, [u8]>);

    /// One without `=` has an empty value.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let key_end = memchr::memchr2(b'=', b';', self.rest).unwrap_or(self.rest.len());
        let (key, after) = self.rest.split_at(key_end);
        let value = match after.split_first() {
            Some((b'=', value)) => value,
            Some(_) | None => after,
        };
        let end = value_end(value);
        self.rest = value.get(end + 1..).unwrap_or_default();
        Some((key, unescaped(&value[..end])))
    }
}

/// Where the first semicolon stands that is not followed by another, which it would stand for.
fn value_end(value: &[u8]) -> usize {
    let mut from = 0;
    while let Some(offset) = memchr::memchr(b';', &value[from..]) {
        let at = from + offset;
        if value.get(at + 1) != Some(&b';') {
            return at;
        }
        from = at + 2;
    }
    value.len()
}

fn unescaped(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b';', value).is_none() {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == b';' {
            bytes.next();
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn read(body: &str) -> Vec<(&str, Vec<u8>)> {
        let fields = Fields::of(body.as_bytes()).into_iter();
        fields.map(|(key, value)| (str::from_utf8(key).unwrap(), value.into_owned())).collect()
    }

    #[test]
    fn fields_are_cut_at_single_semicolons() {
        let body = "cmd=put;key=a=b;value=x;;y;;;empty=;flag;last=z";
        let expected = [
            ("cmd", "put"),
            ("key", "a=b"),
            ("value", "x;y;"),
            ("empty", ""),
            ("flag", ""),
            ("last", "z"),
        ];
        let expected = expected.map(|(key, value)| (key, value.as_bytes().to_vec()));
        assert_eq!(read(body), expected);
        assert_eq!(read(""), []);
        assert_eq!(read(";"), [("", vec![])]);
    }
}
