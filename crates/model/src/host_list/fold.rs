//! Names that differ in one number, written as one: `n[01-03,07]`.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{NumberRange, padded, parse_digits};
use crate::HostName;

/// Folds neighbours that differ in one number and agree in slots.
pub(super) fn fold<'a>(hosts: impl Iterator<Item = (&'a str, Option<u32>)>) -> String {
    let mut text = String::new();
    let mut group: Option<Group<'a>> = None;
    for (name, slots) in hosts {
        if group.as_mut().is_some_and(|group| group.admit(name, slots)) {
            continue;
        }
        if let Some(full) = group.replace(Group::new(name, slots)) {
            full.write(&mut text);
        }
    }
    if let Some(last) = group {
        last.write(&mut text);
    }
    text
}

/// Neighbours that are written as one.
struct Group<'a> {
    first: &'a str,
    slots: Option<u32>,
    /// Set from the second name on.
    common: Option<Common<'a>>,
}

struct Common<'a> {
    prefix: &'a str,
    suffix: &'a str,
    ranges: Vec<NumberRange>,
}

impl<'a> Group<'a> {
    fn new(first: &'a str, slots: Option<u32>) -> Group<'a> {
        Group { first, slots, common: None }
    }

    /// Takes the next name in if it fits.
    fn admit(&mut self, name: &'a str, slots: Option<u32>) -> bool {
        if slots != self.slots || name.contains(':') || self.first.contains(':') {
            return false;
        }
        match &mut self.common {
            Some(common) => common.push(name),
            None => {
                self.common = Common::of(self.first, name);
                self.common.is_some()
            }
        }
    }

    fn write(&self, text: &mut String) {
        if !text.is_empty() {
            text.push(',');
        }
        match &self.common {
            Some(common) => common.write(text),
            None => text.push_str(&with_brackets(self.first)),
        }
        if let Some(slots) = self.slots {
            text.push_str(&alloc::format!(":{slots}"));
        }
    }
}

impl<'a> Common<'a> {
    /// What two names share, if they differ in exactly one number.
    fn of(a: &'a str, b: &'a str) -> Option<Common<'a>> {
        let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
        let shared = a.as_bytes().get(..same)?.iter().rev();
        let digits_back = shared.take_while(|b| b.is_ascii_digit()).count();
        let start = same - digits_back;
        let digits = |name: &str| name.bytes().skip(start).take_while(u8::is_ascii_digit).count();
        let prefix = a.get(..start)?;
        let suffix = a.get(start + digits(a)..)?;
        let mut common = Common { prefix, suffix, ranges: Vec::new() };
        (a != b && common.push(a) && common.push(b)).then_some(common)
    }

    fn push(&mut self, name: &str) -> bool {
        let middle = name.strip_prefix(self.prefix).and_then(|rest| rest.strip_suffix(self.suffix));
        let Some(digits) = middle else { return false };
        let Some(number) = parse_digits(digits) else { return false };
        match self.ranges.last_mut() {
            Some(range) if range.last + 1 == number && padded(number, range.width) == digits => {
                range.last = number;
            }
            Some(_) | None => {
                let range = NumberRange { first: number, last: number, width: digits.len() };
                self.ranges.push(range);
            }
        }
        true
    }

    fn write(&self, text: &mut String) {
        text.push_str(self.prefix);
        text.push('[');
        for (index, range) in self.ranges.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&padded(range.first, range.width));
            if range.last > range.first {
                text.push('-');
                text.push_str(&padded(range.last, range.width));
            }
        }
        text.push(']');
        text.push_str(self.suffix);
    }
}

/// Puts an IPv6 address back into its brackets.
fn with_brackets(name: &str) -> Cow<'_, str> {
    if !name.contains(':') {
        return Cow::Borrowed(name);
    }
    let parts = HostName::of(name);
    let host = alloc::format!("[{}]", parts.host);
    Cow::Owned(HostName { host: &host, ..parts }.to_string())
}
