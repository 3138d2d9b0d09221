//! A pure PMI-1 client that goes to the protocol's limits, and meets others in groups.
//!
//! Each rank puts a value of 1,023 bytes under a key of 63, the longest that servers announce, and is refused one byte
//! more of either. It gets everybody's after a barrier. Then it meets every other rank, half of the ranks, and its
//! neighbour, each time with a card that only a barrier of that group brings. It prints a line when all is well.

use std::io::{self, Write};
use std::process::ExitCode;

use testkit::PmiConnection;

/// The longest key and value: one byte less than `get_maxes` answers, since clients count a NUL.
const KEY_BYTES: usize = 63;
const VALUE_BYTES: usize = 1023;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pmi-check: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut pmi = PmiConnection::from_env()?;
    let kvsname = pmi.init()?;
    exchange_the_longest(&mut pmi, &kvsname)?;
    let (rank, size) = (pmi.rank, pmi.size);
    let halves: Vec<u32> = (0..size).filter(|other| other % 2 == rank % 2).collect();
    let first = rank - rank % 2;
    let pair: Vec<u32> = (first..size.min(first + 2)).collect();
    for (tag, group) in [(1, halves), (2, (0..size).rev().collect()), (3, pair)] {
        meet(&mut pmi, &kvsname, tag, &group)?;
    }
    pmi.barrier()?;
    pmi.finalize()?;
    writeln!(io::stdout(), "rank {rank} of {size}: well")
}

fn exchange_the_longest(pmi: &mut PmiConnection, kvsname: &str) -> io::Result<()> {
    let (key, value) = (longest(pmi.rank, 'k', KEY_BYTES), longest(pmi.rank, 'v', VALUE_BYTES));
    pmi.put(kvsname, &key, &value)?;
    for (key, value) in [(format!("{key}k"), "v"), ("short".to_owned(), &*format!("{value}v"))] {
        let request = format!("cmd=put kvsname={kvsname} key={key} value={value}");
        let reply = pmi.ask(&request)?;
        check(reply.starts_with("cmd=put_result rc=-1"), reply)?;
    }
    pmi.barrier()?;
    for rank in 0..pmi.size {
        let found = pmi.get(kvsname, &longest(rank, 'k', KEY_BYTES))?;
        check(found == longest(rank, 'v', VALUE_BYTES), found)?;
    }
    Ok(())
}

/// Text of so many bytes that differs by rank.
fn longest(rank: u32, fill: char, bytes: usize) -> String {
    format!("{rank}-{}", String::from(fill).repeat(bytes)).chars().take(bytes).collect()
}

/// Meets a group of several, and finds the cards of all its ranks.
fn meet(pmi: &mut PmiConnection, kvsname: &str, tag: u32, group: &[u32]) -> io::Result<()> {
    if group.len() < 2 {
        return Ok(());
    }
    pmi.put(kvsname, &format!("card-{tag}-{}", pmi.rank), &format!("of-{}", pmi.rank))?;
    let ranks: Vec<String> = group.iter().map(u32::to_string).collect();
    let request = format!("cmd=barrier_in group={}:{tag}", ranks.join(","));
    let reply = pmi.expect(&request, "barrier_out")?;
    check(reply == format!("cmd=barrier_out tag={tag}"), reply)?;
    for rank in group {
        let found = pmi.get(kvsname, &format!("card-{tag}-{rank}"))?;
        check(found == format!("of-{rank}"), found)?;
    }
    Ok(())
}

fn check(is_right: bool, found: &str) -> io::Result<()> {
    if is_right { Ok(()) } else { Err(io::Error::other(format!("unexpected: `{found}`"))) }
}
