//! A pure client of PMI-1 or PMI-2: how long does it take to exchange cards, without an MPI library around it?
//!
//! `pmi-client [nbr|all] [--max] [--pmi2|--library]`; `--library` is our own client library, with PMI-1. Once all have met, each rank puts a card of 64 bytes, enters a barrier, and
//! gets the cards of its two neighbours, or of all ranks. Rank 0 prints its own times; with `--max` also, for each
//! step, the longest time of all ranks, which they tell each other through PMI.

#![expect(clippy::disallowed_methods, reason = "measures what the machine does")]

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use testkit::PmiConnection;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pmi-client: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let has = |word| args.iter().any(|arg| arg == word);
    let gets_all = has("all");
    let start = Instant::now();
    let mut pmi = if has("--library") { Pmi::library()? } else { Pmi::plain(has("--pmi2"))? };
    meet(&mut pmi)?;
    let init = start.elapsed().as_nanos();

    let mut times = exchange(&mut pmi, gets_all)?;
    times[Step::Init as usize] = init;
    if pmi.rank() == 0 {
        print("rank0", &times)?;
    }
    if has("--max") {
        print_longest(&mut pmi, times)?;
    }
    pmi.finalize()
}

/// Waits for all others. A server may answer a fence of PMI-2 at once, and hold back gets instead: what has come from
/// another node, or from the other half of this one, has come behind the fence.
fn meet(pmi: &mut Pmi) -> io::Result<()> {
    let (rank, size) = (pmi.rank(), pmi.size());
    pmi.put(&format!("here-{rank}"), "here")?;
    pmi.barrier()?;
    pmi.get(&format!("here-{}", (rank + size / 2) % size)).map(drop)
}

/// The way to the server, and the name of the job's space.
enum Pmi {
    Plain(PmiConnection, String),
    Library(Box<client::Pmi1>, Vec<u8>),
}

impl Pmi {
    fn plain(is_pmi2: bool) -> io::Result<Pmi> {
        let mut pmi = PmiConnection::from_env()?;
        let name = if is_pmi2 { pmi.init_pmi2()? } else { pmi.init()? };
        Ok(Pmi::Plain(pmi, name))
    }

    fn library() -> io::Result<Pmi> {
        let pmi = client::Pmi1::from_env().map_err(io::Error::other)?;
        let name = pmi.name().map_err(io::Error::other)?;
        Ok(Pmi::Library(Box::new(pmi), name))
    }

    fn rank(&self) -> u32 {
        match self {
            Pmi::Plain(pmi, _) => pmi.rank,
            Pmi::Library(pmi, _) => pmi.rank(),
        }
    }

    fn size(&self) -> u32 {
        match self {
            Pmi::Plain(pmi, _) => pmi.size,
            Pmi::Library(pmi, _) => pmi.size(),
        }
    }

    fn put(&mut self, key: &str, value: &str) -> io::Result<()> {
        match self {
            Pmi::Plain(pmi, name) => pmi.put(name, key, value),
            Pmi::Library(pmi, name) => {
                pmi.put(name, key.as_bytes(), value.as_bytes()).map_err(io::Error::other)
            }
        }
    }

    fn get(&mut self, key: &str) -> io::Result<String> {
        match self {
            Pmi::Plain(pmi, name) => pmi.get(name, key).map(str::to_owned),
            Pmi::Library(pmi, name) => {
                let value = pmi.get(name, key.as_bytes()).map_err(io::Error::other)?;
                String::from_utf8(value).map_err(io::Error::other)
            }
        }
    }

    fn barrier(&mut self) -> io::Result<()> {
        match self {
            Pmi::Plain(pmi, _) => pmi.barrier(),
            Pmi::Library(pmi, _) => pmi.barrier().map_err(io::Error::other),
        }
    }

    fn finalize(&mut self) -> io::Result<()> {
        match self {
            Pmi::Plain(pmi, _) => pmi.finalize(),
            Pmi::Library(pmi, _) => pmi.finalize().map_err(io::Error::other),
        }
    }
}

/// What is timed. The total is of put, barrier and gets.
#[derive(Clone, Copy)]
enum Step {
    Init,
    Put,
    Barrier,
    Gets,
    Total,
}

const STEPS: [&str; 5] = ["init", "put", "barrier", "gets", "total"];

/// Nanoseconds by step.
type Times = [u128; STEPS.len()];

fn exchange(pmi: &mut Pmi, gets_all: bool) -> io::Result<Times> {
    let (rank, size) = (pmi.rank(), pmi.size());
    let neighbours = [(rank + 1) % size, (rank + size - 1) % size];
    let wanted: Vec<u32> = if gets_all { (0..size).collect() } else { neighbours.to_vec() };
    let (key, value) = (key(rank), card(rank));

    let start = Instant::now();
    pmi.put(&key, &value)?;
    let put = start.elapsed().as_nanos();
    pmi.barrier()?;
    let barrier = start.elapsed().as_nanos();
    for peer in wanted {
        check_card(pmi, peer)?;
    }
    let total = start.elapsed().as_nanos();

    let mut times = Times::default();
    times[Step::Put as usize] = put;
    times[Step::Barrier as usize] = barrier - put;
    times[Step::Gets as usize] = total - barrier;
    times[Step::Total as usize] = total;
    Ok(times)
}

fn key(rank: u32) -> String {
    format!("card-{rank}")
}

fn card(rank: u32) -> String {
    format!("{rank:08x}").repeat(8)
}

fn check_card(pmi: &mut Pmi, peer: u32) -> io::Result<()> {
    let rank = pmi.rank();
    let found = pmi.get(&key(peer))?;
    if found != card(peer) {
        return Err(io::Error::other(format!("rank {rank} got `{found}` as card of {peer}")));
    }
    Ok(())
}

/// Tells the others how long this rank has taken; rank 0 prints the longest.
fn print_longest(pmi: &mut Pmi, times: Times) -> io::Result<()> {
    let text = times.map(|nanos| nanos.to_string()).join(",");
    pmi.put(&format!("time-{}", pmi.rank()), &text)?;
    pmi.barrier()?;
    if pmi.rank() != 0 {
        return Ok(());
    }
    let mut longest = times;
    for peer in 1..pmi.size() {
        let text = pmi.get(&format!("time-{peer}"))?;
        for (longest, nanos) in longest.iter_mut().zip(text.split(',')) {
            *longest = (*longest).max(nanos.parse().map_err(io::Error::other)?);
        }
    }
    print("max", &longest)
}

/// Prints one line, in microseconds.
fn print(label: &str, times: &Times) -> io::Result<()> {
    let micros = |nanos: &u128| format!("{}.{}", nanos / 1000, nanos % 1000 / 100);
    let fields =
        STEPS.iter().zip(times).map(|(step, nanos)| format!(" {step}_us={}", micros(nanos)));
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{label}{}", fields.collect::<String>())?;
    stdout.flush()
}
