//! Host lists as users write them: `a,b:2,n[01-16]`, after flux RFC 29.
//!
//! `[…]` holds numbers and ranges, whose zero padding is kept; several brackets in one name
//! multiply, the last one fastest. A host may be preceded by `USER@` and followed by `/PORT`, that of
//! its remote shell, and by `:SLOTS`. `^HOST` takes hosts out again, wherever in the list they stand.
//! An IPv6 address stands in brackets of its own, `[::1]:2`; it is told from a range by its
//! colons, and kept without the brackets.
//!
//! One node runs one agent, so a name that is given twice is one node with the slots added, at
//! its first position. Names are compared as they are written. A name can never look like an
//! option to the command that it is handed to, and the number of names is bounded before any of
//! them exists.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::host_name::{HostName, parse_port};

mod fold;

use fold::fold;

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
    /// Its name, as [`HostName`] takes it apart: with `user@` and `/port` if the user wrote them,
    /// without the brackets of an IPv6 address.
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
    #[error("unexpected `{0}` after the host; slots are written `host:4` or `slots=4`")]
    Trailing(String),
    /// An option that hosts do not have.
    #[error("`{0}` is not known of a host; `slots`, `max_slots`, `user` and `port` are")]
    Option(String),
    /// An option that is there already.
    #[error("`{0}` is said twice of the host")]
    Twice(&'static str),
    /// No name of a user.
    #[error("`{0}` cannot be a user's name")]
    User(String),
    /// No number of a port.
    #[error("`{0}` is not a port from 1 to 65535; a port is written `host/2222` or `port=2222`")]
    Port(String),
    /// A limit that is none.
    #[error("max_slots={1} is less than the {0} slots")]
    Limit(u32, u32),
    /// Open MPI's `+e` and `+n3`.
    #[error("`{0}` is relative to other hosts, which is not done; write the host's name")]
    Relative(String),
    /// A host taken out that is not there.
    #[error("`^{0}` takes out a host that is not listed")]
    NotListed(String),
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
            let known = &mut self.nodes[index];
            let (before, more) = (known.slots.unwrap_or(1), node.slots.unwrap_or(1));
            known.slots = Some(before.saturating_add(more));
            if known.slots_max.is_some() || node.slots_max.is_some() {
                let limit = known.slots_max.unwrap_or(before);
                known.slots_max = Some(limit.saturating_add(node.slots_max.unwrap_or(more)));
            }
        } else {
            self.index_of.insert(node.name.clone(), self.nodes.len());
            self.nodes.push(node);
        }
    }

    /// Reads one host with its ranges and slots, as a line of a host file has it, and adds it.
    pub(crate) fn add_text(
        &mut self,
        text: &str,
        options: &HostOptions<'_>,
    ) -> Result<(), HostListError> {
        let fail = |problem| Err(HostListError { column: 1, problem });
        if text.starts_with('+') {
            return fail(HostProblem::Relative(text.to_string()));
        }
        let pattern = Pattern::parse(text)?;
        let (slots, slots_max) = match options.both_slots(pattern.slots) {
            Ok(slots) => slots,
            Err(problem) => return fail(problem),
        };
        let known = self.nodes.len() as u64;
        if pattern.count().saturating_add(known) > HOSTS_MAX {
            return fail(HostProblem::TooMany);
        }
        let mut twice = None;
        pattern.for_each_name(|name| match options.full_name(name) {
            Ok(name) => self.add(Node { name, slots, slots_max }),
            Err(option) => twice = Some(option),
        });
        twice.map_or(Ok(()), |option| fail(HostProblem::Twice(option)))
    }

    /// Takes nodes out that are called as one of `others`, and returns the names of those that
    /// take out none. A host's name without user and port takes out whatever is on it.
    pub fn exclude(&mut self, others: &HostList) -> Vec<String> {
        let mut used: BTreeSet<usize> = BTreeSet::new();
        self.nodes.retain(|node| {
            let called = [node.name.as_str(), HostName::of(&node.name).host];
            let index_of = |name: &str| others.index_of.get(name).copied();
            let out: Vec<usize> = called.into_iter().filter_map(index_of).collect();
            used.extend(&out);
            out.is_empty()
        });
        self.index_of = (0..).zip(&self.nodes).map(|(i, node)| (node.name.clone(), i)).collect();
        let unused = others.nodes.iter().enumerate().filter(|(index, _)| !used.contains(index));
        unused.map(|(_, node)| node.name.clone()).collect()
    }
}

/// What a host file says of a host behind its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostOptions<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) port: Option<u16>,
    pub(crate) slots: Option<u32>,
    pub(crate) slots_max: Option<u32>,
}

impl HostOptions<'_> {
    /// Slots and their limit, where the host's text has `in_text`. A limit alone says both.
    fn both_slots(&self, in_text: Option<u32>) -> Result<(Option<u32>, Option<u32>), HostProblem> {
        if in_text.is_some() && self.slots.is_some() {
            return Err(HostProblem::Twice("slots"));
        }
        match (in_text.or(self.slots).or(self.slots_max), self.slots_max) {
            (Some(slots), Some(limit)) if limit < slots => Err(HostProblem::Limit(slots, limit)),
            both => Ok(both),
        }
    }

    /// The name with user and port, or which of them it has already.
    fn full_name(&self, name: &str) -> Result<String, &'static str> {
        let own = HostName::of(name);
        if own.user.is_some() && self.user.is_some() {
            return Err("user");
        }
        if own.port.is_some() && self.port.is_some() {
            return Err("port");
        }
        let (user, port) = (own.user.or(self.user), own.port.or(self.port));
        Ok(HostName { user, port, ..own }.to_string())
    }
}

/// Hosts that a text takes out again, and where in it.
#[derive(Debug, Default)]
pub(crate) struct Excluded {
    hosts: HostList,
    places: BTreeMap<String, usize>,
}

impl Excluded {
    /// Adds what stands behind `^`.
    pub(crate) fn add(&mut self, place: usize, text: &str) -> Result<(), HostListError> {
        let before = self.hosts.nodes.len();
        let at_caret = |error: HostListError| HostListError { column: error.column + 1, ..error };
        self.hosts.add_text(text, &HostOptions::default()).map_err(at_caret)?;
        let names = self.hosts.nodes[before..].iter().map(|node| node.name.clone());
        self.places.extend(names.map(|name| (name, place)));
        Ok(())
    }

    /// Takes them out, or gives the place of the first one that is not there.
    pub(crate) fn take_out_of(&self, list: &mut HostList) -> Result<(), (usize, HostProblem)> {
        let unused = list.exclude(&self.hosts).into_iter();
        let first = unused.map(|name| (self.places[&name], name)).min();
        first.map_or(Ok(()), |(place, name)| Err((place, HostProblem::NotListed(name))))
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
        let mut excluded = Excluded::default();
        let mut start = 0;
        for part in split_outside_brackets(text) {
            let blanks = part.len() - part.trim_start().len();
            let column = text[..start + blanks].chars().count();
            let part_read = match part.trim().strip_prefix('^') {
                Some(host) => excluded.add(column + 1, host),
                None => list.add_text(part.trim(), &HostOptions::default()),
            };
            part_read.map_err(|error| HostListError { column: column + error.column, ..error })?;
            start += part.len() + 1;
        }
        let missing = |(column, problem)| HostListError { column, problem };
        excluded.take_out_of(&mut list).map_err(missing)?;
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
    let name = name.rsplit_once('/').map_or(name, |(name, _)| name);
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
            Some(name) => alloc::vec![Piece::Text(name + reader.until_colon())],
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

    /// The least or the greatest port, if it cannot be one.
    fn bad_port(&self) -> Option<String> {
        let names = [Piece::least, Piece::greatest];
        let names = names.map(|pick| self.pieces.iter().map(pick).collect::<String>());
        names.iter().find_map(|name| {
            let (_, port) = name.rsplit_once('/')?;
            parse_port(port).is_none().then(|| port.to_string())
        })
    }

    /// Checks the longest and all the fixed parts of the names by one of them.
    fn check(&self, text: &str) -> Result<(), HostListError> {
        let bytes: usize = self.pieces.iter().map(Piece::bytes_max).sum();
        if bytes > HOST_NAME_BYTES_MAX {
            return Err(HostListError { column: 1, problem: HostProblem::TooLong });
        }
        if let Some(port) = self.bad_port() {
            let column = text.rfind('/').map_or(1, |at| text[..at].chars().count() + 2);
            return Err(HostListError { column, problem: HostProblem::Port(port) });
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

    fn least(&self) -> String {
        let least = |range: &NumberRange| (range.first, range.width);
        self.picked(|ranges| ranges.iter().map(least).min())
    }

    fn greatest(&self) -> String {
        let greatest = |range: &NumberRange| (range.last, range.width);
        self.picked(|ranges| ranges.iter().map(greatest).max())
    }

    fn picked(&self, pick: impl Fn(&[NumberRange]) -> Option<(u64, usize)>) -> String {
        match self {
            Piece::Text(text) => text.clone(),
            Piece::Numbers(ranges) => {
                pick(ranges).map(|(number, width)| padded(number, width)).unwrap_or_default()
            }
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

    /// Takes what comes before the slots, if there is anything.
    fn until_colon(&mut self) -> &'a str {
        let rest = self.rest();
        if !rest.starts_with('/') {
            return "";
        }
        let end = rest.find(':').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
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
