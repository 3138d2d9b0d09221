//! Contestants in turns, so that whatever drifts on the machine hits all of them alike.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::jobs::Launcher;
use crate::quantity::{Quantity, Unit};
use crate::report::{self, Measured, Report};

/// After so many failures, a contestant is not asked again.
const FAILURES_MAX: usize = 3;

/// Who takes part: launchers, or settings of ours by their names.
pub(crate) trait Contestant: Copy + Ord + Display {
    /// Whether it is measured where it does not fail; ours may not fail once.
    fn may_fail(self) -> bool;
}

impl Contestant for Launcher {
    fn may_fail(self) -> bool {
        self != Launcher::Convoke
    }
}

impl Contestant for &str {
    fn may_fail(self) -> bool {
        false
    }
}

/// What each contestant's runs gave.
#[derive(Debug)]
pub(crate) struct Turns<C = Launcher> {
    runs: BTreeMap<C, Vec<Vec<f64>>>,
    failures: BTreeMap<C, Vec<String>>,
}

impl<C: Contestant> Turns<C> {
    /// Measures each contestant once a round. `measure` returns some numbers, always as many.
    pub(crate) fn take(
        report: &mut Report,
        rounds: usize,
        contestants: &[C],
        mut measure: impl FnMut(C) -> anyhow::Result<Vec<f64>>,
    ) -> Turns<C> {
        let mut turns = Turns { runs: BTreeMap::new(), failures: BTreeMap::new() };
        for _ in 0..rounds {
            for &contestant in contestants {
                let failures = turns.failures.get(&contestant);
                if failures.is_some_and(|failures| failures.len() == FAILURES_MAX) {
                    continue;
                }
                match measure(contestant) {
                    Ok(numbers) => turns.runs.entry(contestant).or_default().push(numbers),
                    Err(error) => {
                        report::say(&format!("  {contestant} failed: {error:#}"));
                        let failure = format!("failed: {error:#}");
                        turns.failures.entry(contestant).or_default().push(failure);
                    }
                }
                report.look();
            }
        }
        turns
    }

    /// Adds more contestants' or more runs.
    pub(crate) fn join(&mut self, other: Turns<C>) {
        for (contestant, runs) in other.runs {
            self.runs.entry(contestant).or_default().extend(runs);
        }
        for (contestant, failures) in other.failures {
            self.failures.entry(contestant).or_default().extend(failures);
        }
    }

    /// The median of the number at `index`. One that may not fail and did has none, nor has one that
    /// failed more often than not.
    pub(crate) fn median(&self, contestant: C, index: usize, unit: Unit) -> Measured {
        let runs = self.runs.get(&contestant).map(Vec::as_slice).unwrap_or_default();
        let failures = self.failures.get(&contestant).map(Vec::as_slice).unwrap_or_default();
        if let Some(failure) = failures.first()
            && (!contestant.may_fail() || failures.len() > runs.len())
        {
            return Err(failure.clone());
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(index).copied()).collect();
        Quantity::median(&values, unit).ok_or_else(|| "not measured".to_owned())
    }

    /// The median time at `index`.
    pub(crate) fn seconds(&self, contestant: C, index: usize) -> Measured {
        self.median(contestant, index, Unit::Seconds)
    }
}

impl Turns {
    /// The faster of both Hydras, and which.
    pub(crate) fn faster_hydra(&self, index: usize) -> (Launcher, Measured) {
        let (four, five) =
            (self.seconds(Launcher::Hydra4, index), self.seconds(Launcher::Hydra5, index));
        match (&four, &five) {
            (Ok(a), Ok(b)) if b.value < a.value => (Launcher::Hydra5, five),
            (Err(_), Ok(_)) => (Launcher::Hydra5, five),
            (Ok(_), _) | (Err(_), Err(_)) => (Launcher::Hydra4, four),
        }
    }
}
