//! Host lists as users write them: `a,b:2,n[01-16]`, after flux RFC 29.
//!
//! `[…]` holds numbers and ranges, whose zero padding is kept; several brackets in one name
//! multiply, the last one fastest. A host may be followed by `:SLOTS` and preceded by `USER@`.
//! An IPv6 address stands in brackets of its own, `[::1]:2`; it is told from a range by its
//! colons, and kept without the brackets.
//!
//! One node runs one agent, so a name that is given twice is one node with the slots added, at
//! its first position. Names are compared as they are written. A name can never look like an
//! option to the command that it is handed to, and the number of names is bounded before any of
//! them exists.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most names that one list may have.
pub const HOSTS_MAX: u64 = 1 << 20;

/// The most bytes of one name: 255 for a domain name, and room for a user's name.
pub const HOST_NAME_BYTES_MAX: usize = 320;

/// The most slots of one node.
pub const SLOTS_MAX: u32 = 1 << 20;

/// Decimal digits of a number in brackets: what an `u64` is sure to hold.
const DIGITS_MAX: usize = 18;

/// An allocated machine.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Node {
    /// Its name, with `user@` if the user wrote one, without the brackets of an IPv6 address.
    pub name: String,
    /// Room for tasks, where something says how much.
    pub slots: Option<u32>,
    /// The most tasks that it takes when it is oversubscribed; at least its slots.
    pub slots_max: Option<u32>,
}

/// Nodes in the user's order, each once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostList {
    nodes: Vec<Node>,
    index_of: BTreeMap<String, usize>,
}

/// A host list that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("host list, column {column}: {problem}")]
pub struct HostListError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: HostProblem,
}

/// What can be wrong with a host.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HostProblem {
    /// Nothing where a name belongs.
    #[error("a host name is missing")]
    Missing,
    /// A character that names do not have.
    #[error("`{0}` cannot be part of a host name")]
    Character(char),
    /// The remote shell would take the name for an option.
    #[error("a host name cannot start with `-`")]
    LeadingDash,
    /// More than [`HOST_NAME_BYTES_MAX`].
    #[error("a host name has at most {HOST_NAME_BYTES_MAX} bytes")]
    TooLong,
    /// A bracket without its partner.
    #[error("`[` is not closed")]
    Unclosed,
    /// A bracket without its partner.
    #[error("`]` has no `[` before it")]
    Unopened,
    /// No number where a range needs one.
    #[error("`{0}` is not a number of at most {DIGITS_MAX} digits")]
    Number(String),
    /// A range that ends before it starts.
    #[error("range {0}-{1} ends before it starts")]
    Backwards(String, String),
    /// More than [`HOSTS_MAX`].
    #[error("more than {HOSTS_MAX} host names")]
    TooMany,
    /// No number of slots after the colon.
    #[error("`{0}` is not a number of slots from 1 to {SLOTS_MAX}")]
    Slots(String),
    /// Several colons outside of brackets.
    #[error("an IPv6 address needs brackets, as in `[::1]:2`")]
    BareIpv6,
    /// Brackets with colons that hold no address.
    #[error("`{0}` is not an IPv6 address")]
    Ipv6(String),
    /// Something after the host that its place does not allow.
    #[error("unexpected `{0}` after the host; slots are written `host:4`")]
    Trailing(String),
}

impl HostList {
    /// The list without nodes.
    pub const fn new() -> HostList {
        HostList { nodes: Vec::new(), index_of: BTreeMap::new() }
    }

    /// The nodes in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes in order, as their owner's.
    pub fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// Adds a node, or the slots to the node of that name. A mention without slots adds one to
    /// what is there.
    pub fn add(&mut self, node: Node) {
        if let Some(&index) = self.index_of.get(&node.name) {
            let known = &mut self.nodes[index].slots;
            let sum = known.unwrap_or(1).saturating_add(node.slots.unwrap_or(1));
            *known = Some(sum);
        } else {
            self.index_of.insert(node.name.clone(), self.nodes.len());
            self.nodes.push(node);
        }
    }

    /// Reads one host with its ranges and slots, as a line of a host file has it, and adds it.
    pub(crate) fn add_text(&mut self, text: &str, user: Option<&str>) -> Result<(), HostListError> {
        let pattern = Pattern::parse(text)?;
        let known = self.nodes.len() as u64;
        if pattern.count().saturating_add(known) > HOSTS_MAX {
            return Err(HostListError { column: 1, problem: HostProblem::TooMany });
        }
        pattern.for_each_name(|name| {
            let name = match user {
                Some(user) if !name.contains('@') => alloc::format!("{user}@{name}"),
                Some(_) | None => name.to_string(),
            };
            self.add(Node { name, slots: pattern.slots, slots_max: None });
        });
        Ok(())
    }
}

impl FromIterator<Node> for HostList {
    fn from_iter<I: IntoIterator<Item = Node>>(nodes: I) -> HostList {
        let mut list = HostList::new();
        nodes.into_iter().for_each(|node| list.add(node));
        list
    }
}

impl FromStr for HostList {
    type Err = HostListError;

    fn from_str(text: &str) -> Result<HostList, HostListError> {
        let mut list = HostList::new();
        let mut start = 0;
        for part in split_outside_brackets(text) {
            let blanks = part.len() - part.trim_start().len();
            let column = text[..start + blanks].chars().count();
            list.add_text(part.trim(), None)
                .map_err(|error| HostListError { column: column + error.column, ..error })?;
            start += part.len() + 1;
        }
        Ok(list)
    }
}

impl fmt::Display for HostList {
    /// Writes the list folded; it reads back as the same list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.nodes.iter().map(|node| (node.name.as_str(), node.slots));
        f.write_str(&fold(hosts))
    }
}

/// Folds names for a message: `n[01-03,07],login`. Order is kept, and only neighbours fold.
pub fn fold_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    fold(names.into_iter().map(|name| (name, None)))
}

/// Checks that `name` can be one host's name, and gives the first character that cannot.
fn check_name(name: &str, column: usize) -> Result<(), HostListError> {
    let fail = |column, problem| Err(HostListError { column, problem });
    let host = name.rsplit_once('@').map_or(name, |(_, host)| host);
    if host.is_empty() {
        return fail(column + name.chars().count(), HostProblem::Missing);
    }
    if name.starts_with('-') || host.starts_with('-') {
        return fail(column, HostProblem::LeadingDash);
    }
    for (index, c) in name.chars().enumerate() {
        if !is_name_char(c) {
            return fail(column + index, HostProblem::Character(c));
        }
    }
    Ok(())
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '@' | '+')
}

/// Splits at commas that are not inside brackets.
fn split_outside_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.split(move |c| {
        match c {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => {}
        }
        c == ',' && !is_inside
    })
}

/// One host of a list before it is expanded.
struct Pattern {
    pieces: Vec<Piece>,
    slots: Option<u32>,
}

enum Piece {
    Text(String),
    Numbers(Vec<NumberRange>),
}

struct NumberRange {
    first: u64,
    last: u64,
    width: usize,
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, HostListError> {
        let mut reader = Reader { text, at: 0 };
        let pieces = match reader.ipv6()? {
            Some(name) => alloc::vec![Piece::Text(name)],
            None => reader.pieces()?,
        };
        let pattern = Pattern { pieces, slots: reader.slots()? };
        pattern.check(text)?;
        Ok(pattern)
    }

    /// How many names there are, without making them.
    fn count(&self) -> u64 {
        self.pieces.iter().map(Piece::count).fold(1, u64::saturating_mul)
    }

    fn for_each_name(&self, mut f: impl FnMut(&str)) {
        expand(&self.pieces, &mut String::new(), &mut f);
    }

    /// Checks the longest and all the fixed parts of the names by one of them.
    fn check(&self, text: &str) -> Result<(), HostListError> {
        let bytes: usize = self.pieces.iter().map(Piece::bytes_max).sum();
        if bytes > HOST_NAME_BYTES_MAX {
            return Err(HostListError { column: 1, problem: HostProblem::TooLong });
        }
        match self.pieces.as_slice() {
            [] => Err(HostListError { column: 1, problem: HostProblem::Missing }),
            [Piece::Text(name)] if name.contains(':') => Ok(()),
            pieces => {
                // Digits stand for the numbers: they are allowed wherever a number is.
                let sample: String = pieces.iter().map(Piece::sample).collect();
                check_name(&sample, 1).map_err(|error| locate(text, pieces, error))
            }
        }
    }
}

/// Moves an error's column from the sample name, which has one digit for each bracket, to the
/// text as it was written.
fn locate(text: &str, pieces: &[Piece], error: HostListError) -> HostListError {
    let mut in_sample = error.column;
    let mut column = 0;
    let mut rest = text;
    for piece in pieces {
        let (sample, written) = match piece {
            Piece::Text(text) => (text.chars().count(), text.len()),
            Piece::Numbers(_) => (1, rest.find(']').map_or(rest.len(), |at| at + 1)),
        };
        if in_sample <= sample {
            break;
        }
        in_sample -= sample;
        column += rest[..written].chars().count();
        rest = &rest[written..];
    }
    HostListError { column: column + in_sample, ..error }
}

impl Piece {
    fn count(&self) -> u64 {
        match self {
            Piece::Text(_) => 1,
            Piece::Numbers(ranges) => {
                ranges.iter().map(NumberRange::count).fold(0, u64::saturating_add)
            }
        }
    }

    fn bytes_max(&self) -> usize {
        match self {
            Piece::Text(text) => text.len(),
            Piece::Numbers(_) => DIGITS_MAX,
        }
    }

    fn sample(&self) -> &str {
        match self {
            Piece::Text(text) => text,
            Piece::Numbers(_) => "0",
        }
    }
}

impl NumberRange {
    fn count(&self) -> u64 {
        self.last - self.first + 1
    }
}

fn expand(pieces: &[Piece], name: &mut String, f: &mut impl FnMut(&str)) {
    let length = name.len();
    match pieces {
        [] => f(name),
        [Piece::Text(text), rest @ ..] => {
            name.push_str(text);
            expand(rest, name, f);
        }
        [Piece::Numbers(ranges), rest @ ..] => {
            for range in ranges {
                for number in range.first..=range.last {
                    name.push_str(&padded(number, range.width));
                    expand(rest, name, f);
                    name.truncate(length);
                }
            }
        }
    }
    name.truncate(length);
}

fn padded(number: u64, width: usize) -> String {
    alloc::format!("{number:0width$}")
}

/// A position in one host's text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn fail<T>(&self, problem: HostProblem) -> Result<T, HostListError> {
        Err(HostListError { column: self.text[..self.at].chars().count() + 1, problem })
    }

    /// Takes `[::1]` or `user@[::1]`, if that is what comes.
    fn ipv6(&mut self) -> Result<Option<String>, HostListError> {
        let user = self.rest().find("@[").map_or("", |at| &self.text[..=at]);
        let Some(inside) = self.text[user.len()..].strip_prefix('[') else { return Ok(None) };
        let Some((address, _)) = inside.split_once(']') else { return Ok(None) };
        if !address.contains(':') {
            return Ok(None);
        }
        if !user.is_empty() {
            check_name(&alloc::format!("{user}0"), 1)?;
        }
        let (ip, zone) = address.split_once('%').unwrap_or((address, "0"));
        if ip.parse::<Ipv6Addr>().is_err() || zone.is_empty() || !zone.chars().all(is_name_char) {
            self.at = user.len() + 1;
            return self.fail(HostProblem::Ipv6(address.to_string()));
        }
        self.at = user.len() + address.len() + 2;
        Ok(Some(alloc::format!("{user}{address}")))
    }

    /// Takes text and brackets up to a colon or the end.
    fn pieces(&mut self) -> Result<Vec<Piece>, HostListError> {
        let mut pieces = Vec::new();
        while let Some(next) = self.rest().chars().next() {
            match next {
                ':' => break,
                '[' => pieces.push(Piece::Numbers(self.numbers()?)),
                ']' => return self.fail(HostProblem::Unopened),
                _ => pieces.push(Piece::Text(self.text_piece())),
            }
        }
        Ok(pieces)
    }

    fn text_piece(&mut self) -> String {
        let end = self.rest().find(['[', ']', ':']).unwrap_or(self.rest().len());
        let piece = self.rest()[..end].to_string();
        self.at += end;
        piece
    }

    fn numbers(&mut self) -> Result<Vec<NumberRange>, HostListError> {
        let Some(end) = self.rest().find(']') else { return self.fail(HostProblem::Unclosed) };
        let inside = &self.rest()[1..end];
        self.at += 1;
        let mut ranges = Vec::new();
        for part in inside.split(',') {
            ranges.push(self.range(part)?);
            self.at += part.len() + 1;
        }
        Ok(ranges)
    }

    fn range(&self, part: &str) -> Result<NumberRange, HostListError> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = NumberRange {
            first: self.number(first)?,
            last: self.number(last)?,
            width: first.len(),
        };
        if range.last < range.first {
            return self.fail(HostProblem::Backwards(first.to_string(), last.to_string()));
        }
        Ok(range)
    }

    fn number(&self, text: &str) -> Result<u64, HostListError> {
        match parse_digits(text) {
            Some(number) => Ok(number),
            None => self.fail(HostProblem::Number(text.to_string())),
        }
    }

    /// Takes `:SLOTS`, or nothing at the end.
    fn slots(&mut self) -> Result<Option<u32>, HostListError> {
        let Some(text) = self.rest().strip_prefix(':') else {
            return if self.rest().is_empty() {
                Ok(None)
            } else {
                self.fail(HostProblem::Trailing(self.rest().to_string()))
            };
        };
        if text.contains(':') {
            self.at = 0;
            return self.fail(HostProblem::BareIpv6);
        }
        self.at += 1;
        match parse_digits(text).and_then(|slots| u32::try_from(slots).ok()) {
            Some(slots @ 1..=SLOTS_MAX) => Ok(Some(slots)),
            Some(_) | None => self.fail(HostProblem::Slots(text.to_string())),
        }
    }
}

fn parse_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number && text.len() <= DIGITS_MAX).then(|| text.parse().ok()).flatten()
}

/// Folds neighbours that differ in one number and agree in slots.
fn fold<'a>(hosts: impl Iterator<Item = (&'a str, Option<u32>)>) -> String {
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
    let (user, address) = match name.rsplit_once('@') {
        Some((user, address)) => (user, address),
        None => return Cow::Owned(alloc::format!("[{name}]")),
    };
    Cow::Owned(alloc::format!("{user}@[{address}]"))
}
