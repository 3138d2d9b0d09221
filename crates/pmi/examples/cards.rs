//! What the cards of MPI libraries would take on their way if a fence coded them: `cargo run --release -p pmi --example
//! cards`.
//!
//! `tests/data/cards` holds what ranks of one host each have put into the first fence of `MPI_Init`, a key and a value a
//! line, in order of rank. Printed is what one more rank takes: as it is now; with values that are equal to an earlier one
//! said once; with what a pair shares with the one before it left out, from the front and from the back; and packed by LZ4,
//! as the head does on their way down. The last line is how long that takes on this machine.

#![expect(clippy::disallowed_methods, reason = "measures what the machine does")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program for who works on this")]

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use bytes::BytesMut;
use lz4_flex::block::{compress, decompress};
use pmi::Pairs;

const FILES: [&str; 3] = ["mpich-5-ofi", "intel-2021-ofi", "mpich-5-ucx"];

type Card = (String, String);

fn main() {
    let (plain, equal, shared, coded) = ("as it is", "equal once", "shared left out", "LZ4");
    println!("{:<16} {plain:>9} {equal:>11} {shared:>16} {coded:>6}", "bytes of a rank");
    for name in FILES {
        let cards = read(name);
        let ranks = cards.iter().map(|(key, _)| rank_of(key)).collect::<HashSet<_>>().len();
        let (half, all) = (of_ranks(&cards, ranks / 2), cards);
        // The first ranks bring what the others share.
        let each = |bytes: fn(&[Card]) -> usize| (bytes(&all) - bytes(&half)) / (ranks - ranks / 2);
        let sizes = [plain_bytes, equal_once, shared_left_out, lz4];
        let [plain, equal, shared, coded] = sizes.map(each);
        println!("{name:<16} {plain:>9} {equal:>11} {shared:>16} {coded:>6}");
    }
    let bytes = encoded(&read("mpich-5-ucx"));
    let packed = compress(&bytes);
    let to_pack = nanos_a_byte(&bytes, || compress(&bytes));
    let to_unpack = nanos_a_byte(&bytes, || decompress(&packed, bytes.len()).unwrap());
    println!("LZ4 takes {to_pack:.2} ns a byte to pack, and {to_unpack:.2} to unpack");
}

fn read(name: &str) -> Vec<Card> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cards").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut cards: Vec<Card> = text
        .lines()
        .map(|line| line.split_once(' ').map(|(key, value)| (key.into(), value.into())).unwrap())
        .collect();
    cards.sort_by_key(|(key, _)| rank_of(key));
    cards
}

/// `-allgather-1-RANK`, perhaps with `-seg-…` behind it, or `bc-RANK`.
fn rank_of(key: &str) -> u32 {
    let key = key.split_once("-seg-").map_or(key, |(key, _)| key);
    key.rsplit('-').next().unwrap().parse().unwrap()
}

fn of_ranks(cards: &[Card], ranks: usize) -> Vec<Card> {
    let first = cards.iter().filter(|(key, _)| (rank_of(key) as usize) < ranks);
    first.cloned().collect()
}

fn encoded(cards: &[Card]) -> Vec<u8> {
    let mut out = BytesMut::new();
    for (key, value) in cards {
        Pairs::append(&mut out, b"", key.as_bytes(), value.as_bytes());
    }
    out.to_vec()
}

fn plain_bytes(cards: &[Card]) -> usize {
    encoded(cards).len()
}

/// A value that was there before is a number of two bytes.
fn equal_once(cards: &[Card]) -> usize {
    let mut seen = HashSet::new();
    let again = cards.iter().filter(|(_, value)| !seen.insert(value.as_str()));
    let saved: usize = again.map(|(_, value)| value.len().saturating_sub(2)).sum();
    plain_bytes(cards) - saved
}

/// Key and value each say in two bytes how much of their front and of their back is that of the one before.
fn shared_left_out(cards: &[Card]) -> usize {
    let rest = |one: &str, before: &str| {
        let (one, before) = (one.as_bytes(), before.as_bytes());
        let most = one.len().min(before.len());
        let front = one.iter().zip(before).take_while(|(a, b)| a == b).count();
        let back = one.iter().rev().zip(before.iter().rev()).take_while(|(a, b)| a == b).count();
        2 + one.len() - (front + back.min(most - front))
    };
    let pair = |pair: &[Card]| {
        let [before, one] = pair else { return 0 };
        3 + rest(&one.0, &before.0) + rest(&one.1, &before.1)
    };
    cards.windows(2).map(pair).sum()
}

fn lz4(cards: &[Card]) -> usize {
    compress(&encoded(cards)).len()
}

fn nanos_a_byte(bytes: &[u8], mut work: impl FnMut() -> Vec<u8>) -> f64 {
    const TIMES: usize = 1_000;
    let start = Instant::now();
    for _ in 0..TIMES {
        std::hint::black_box(work());
    }
    start.elapsed().as_secs_f64() * 1e9 / (TIMES * bytes.len()) as f64
}
