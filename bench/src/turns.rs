//! Contestants in turns, so that whatever drifts on the machine hits all of them alike.

use std::collections::BTreeMap;

use crate::jobs::Launcher;
use crate::quantity::{Quantity, Unit};
use crate::report::{self, Measured, Report};

/// After so many failures, a contestant is not asked again.
const FAILURES_MAX: usize = 3;

/// What each contestant's runs gave.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    runs: BTreeMap<Launcher, Vec<Vec<f64>>>,
    failures: BTreeMap<Launcher, Vec<String>>,
}

impl Turns {
    /// Measures each contestant once a round. `measure` returns some numbers, always as many.
    pub(crate) fn take(
        report: &mut Report,
        rounds: usize,
        contestants: &[Launcher],
        mut measure: impl FnMut(Launcher) -> anyhow::Result<Vec<f64>>,
    ) -> Turns {
        let mut turns = Turns::default();
        for _ in 0..rounds {
            for &launcher in contestants {
                let failures = turns.failures.get(&launcher);
                if failures.is_some_and(|failures| failures.len() == FAILURES_MAX) {
                    continue;
                }
                match measure(launcher) {
                    Ok(numbers) => turns.runs.entry(launcher).or_default().push(numbers),
                    Err(error) => {
                        report::say(&format!("  {launcher} failed: {error:#}"));
                        let failure = format!("failed: {error:#}");
                        turns.failures.entry(launcher).or_default().push(failure);
                    }
                }
                report.look();
            }
        }
        turns
    }

    /// Adds more contestants' or more runs.
    pub(crate) fn join(&mut self, other: Turns) {
        for (launcher, runs) in other.runs {
            self.runs.entry(launcher).or_default().extend(runs);
        }
        for (launcher, failures) in other.failures {
            self.failures.entry(launcher).or_default().extend(failures);
        }
    }

    /// The median of the number at `index`. Convoke may not fail once; a peer that fails now and then
    /// is measured where it does not.
    pub(crate) fn median(&self, launcher: Launcher, index: usize, unit: Unit) -> Measured {
        let runs = self.runs.get(&launcher).map(Vec::as_slice).unwrap_or_default();
        let failures = self.failures.get(&launcher).map(Vec::as_slice).unwrap_or_default();
        if let Some(failure) = failures.first()
            && (launcher == Launcher::Convoke || failures.len() > runs.len())
        {
            return Err(failure.clone());
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(index).copied()).collect();
        Quantity::median(&values, unit).ok_or_else(|| "not measured".to_owned())
    }

    /// The median time at `index`.
    pub(crate) fn seconds(&self, launcher: Launcher, index: usize) -> Measured {
        self.median(launcher, index, Unit::Seconds)
    }

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
