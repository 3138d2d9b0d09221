//! The shape of `MPI_Init` over PMI, without an MPI library around it (S4-16): what does a task spend in it?
//!
//! `pmi-init FORM [BYTES]`; all forms speak PMI-2 with our own client library. Once all have met, each rank brings a card of
//! so many bytes or of 64, does the other work of an `MPI_Init`, and then knows all cards:
//!
//! * `gets` puts it, enters a fence and gets all cards, one after the other;
//! * `allgather` gets all by one call;
//! * `ifence` and `iallgather` begin one of these before the work, and wait for it behind the end of `MPI_Init`;
//! * `empty` enters a fence to which nobody has put anything.
//!
//! Rank 0 prints two lines of microseconds by step: the median of all ranks, and the longest.

#![expect(clippy::disallowed_methods, reason = "measures what the machine does")]

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use client::{Error, Outcome, Pmi2, Request};

/// What is timed. `Init` is all that is inside `MPI_Init`, and `Total` all but the other work.
#[derive(Clone, Copy)]
enum Step {
    Put,
    Fence,
    Gets,
    Gather,
    Work,
    Wait,
    Init,
    Total,
}

const STEPS: [&str; 8] = ["put", "fence", "gets", "gather", "work", "wait", "init", "total"];

/// Nanoseconds by step.
type Times = [u128; STEPS.len()];

/// Pages that the other work is the first to touch, as a library does that registers memory with an adapter.
const WORK_PAGES: usize = 64;

const PAGE_BYTES: usize = 4096;

/// Of a card, where nothing else is asked for.
const CARD_BYTES: usize = 64;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pmi-init: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let form = std::env::args().nth(1).unwrap_or_default();
    let pmi = Pmi2::from_env()?;
    pmi.fence()?;
    let card_bytes = std::env::args()
        .nth(2)
        .map_or(CARD_BYTES, |bytes| bytes.parse().expect("the length of a card is a number"));
    let mut task = Task { pmi, card_bytes, at: Instant::now(), times: Times::default() };
    match &*form {
        "gets" => {
            task.put()?;
            task.fence()?;
            task.get_all()?;
            task.end_init();
        }
        "empty" => {
            task.fence()?;
            task.end_init();
        }
        "allgather" => {
            let values = task.pmi.allgather(&task.card(), card_bytes)?;
            task.has_done(Step::Gather);
            task.end_init();
            task.check(&values);
        }
        "ifence" => {
            task.put()?;
            let begun = task.pmi.begin_fence()?;
            task.has_done(Step::Fence);
            task.end_init();
            task.wait(begun)?;
            task.get_all()?;
        }
        "iallgather" => {
            let begun = task.pmi.begin_allgather(&task.card(), card_bytes)?;
            task.has_done(Step::Gather);
            task.end_init();
            task.wait(begun)?;
        }
        other => panic!("`{other}` is no form: see the front of pmi_init.rs"),
    }
    task.tell()?;
    task.pmi.finalize()
}

struct Task {
    pmi: Pmi2,
    card_bytes: usize,
    /// When the last step ended.
    at: Instant,
    times: Times,
}

impl Task {
    fn has_done(&mut self, step: Step) {
        let now = Instant::now();
        self.times[step as usize] += (now - self.at).as_nanos();
        self.at = now;
    }

    fn put(&mut self) -> Result<(), Error> {
        let rank = self.pmi.place().rank;
        self.pmi.put(key(rank).as_bytes(), &self.card())?;
        self.has_done(Step::Put);
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.pmi.fence()?;
        self.has_done(Step::Fence);
        Ok(())
    }

    fn get_all(&mut self) -> Result<(), Error> {
        let get = |rank: u32| {
            let found = self.pmi.get(None, Some(rank), key(rank).as_bytes())?;
            Ok(found.unwrap_or_default())
        };
        let values: Vec<Vec<u8>> = (0..self.pmi.place().size).map(get).collect::<Result<_, _>>()?;
        self.has_done(Step::Gets);
        self.check(&values);
        Ok(())
    }

    fn wait(&mut self, begun: Request) -> Result<(), Error> {
        let outcome = self.pmi.wait(begun)?;
        self.has_done(Step::Wait);
        if let Outcome::Gathered(values) = outcome {
            self.check(&values);
        }
        Ok(())
    }

    /// Does the other work; nothing of what follows is inside `MPI_Init`.
    fn end_init(&mut self) {
        let mut memory = vec![0_u8; WORK_PAGES * PAGE_BYTES];
        memory.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        std::hint::black_box(&memory);
        self.has_done(Step::Work);
        self.times[Step::Init as usize] = self.times.iter().sum();
    }

    fn card(&self) -> Vec<u8> {
        card(self.pmi.place().rank, self.card_bytes)
    }

    /// What that takes is no step's.
    fn check(&mut self, values: &[Vec<u8>]) {
        assert_eq!(values.len(), self.pmi.place().size as usize, "values");
        for (rank, value) in (0..).zip(values) {
            assert_eq!(value, &card(rank, self.card_bytes), "the value of rank {rank}");
        }
        self.at = Instant::now();
    }

    /// Rank 0 learns how long all have taken, and prints it.
    fn tell(&mut self) -> Result<(), Error> {
        let steps = [Step::Put, Step::Fence, Step::Gets, Step::Gather, Step::Wait];
        self.times[Step::Total as usize] =
            steps.iter().map(|&step| self.times[step as usize]).sum();
        let own = self.times.map(|nanos| nanos.to_string()).join(",");
        let all = self.pmi.allgather(own.as_bytes(), 1 << 10)?;
        if self.pmi.place().rank > 0 {
            return Ok(());
        }
        let mut by_step: [Vec<u128>; STEPS.len()] = Default::default();
        for times in &all {
            let text = String::from_utf8_lossy(times);
            for (times, nanos) in by_step.iter_mut().zip(text.split(',')) {
                times.push(nanos.parse().expect("a rank tells numbers"));
            }
        }
        by_step.iter_mut().for_each(|times| times.sort_unstable());
        print("median", by_step.each_ref().map(|times| times[times.len() / 2]));
        print("max", by_step.each_ref().map(|times| times[times.len() - 1]));
        Ok(())
    }
}

fn key(rank: u32) -> String {
    format!("card-{rank}")
}

fn card(rank: u32, bytes: usize) -> Vec<u8> {
    format!("{rank:08x}").repeat(bytes / 8).into_bytes()
}

fn print(label: &str, times: Times) {
    let micros = |nanos: u128| format!("{}.{}", nanos / 1000, nanos % 1000 / 100);
    let fields =
        STEPS.iter().zip(times).map(|(step, nanos)| format!(" {step}_us={}", micros(nanos)));
    let line = format!("{label}{}\n", fields.collect::<String>());
    // Who does not listen needs no times.
    let _ = io::stdout().write_all(line.as_bytes());
}
