//! Contestants in turns, so that whatever drifts on the machine hits all of them alike.

use std::collections::BTreeMap;

use crate::jobs::Launcher;
use crate::quantity::{Quantity, Unit, median};
use crate::report::{self, Measured, Report};

/// What each contestant's runs gave.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    runs: BTreeMap<Launcher, Vec<Vec<f64>>>,
    failures: BTreeMap<Launcher, String>,
}

impl Turns {
    /// Measures each contestant once a round. `measure` returns some numbers, always as many. A
    /// contestant that fails is not asked again.
    pub(crate) fn take(
        report: &mut Report,
        rounds: usize,
        contestants: &[Launcher],
        mut measure: impl FnMut(Launcher) -> anyhow::Result<Vec<f64>>,
    ) -> Turns {
        let mut turns = Turns::default();
        for _ in 0..rounds {
            for &launcher in contestants {
                if turns.failures.contains_key(&launcher) {
                    continue;
                }
                match measure(launcher) {
                    Ok(numbers) => turns.runs.entry(launcher).or_default().push(numbers),
                    Err(error) => {
                        report::say(&format!("  {launcher} failed: {error:#}"));
                        turns.failures.insert(launcher, format!("failed: {error:#}"));
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
        self.failures.extend(other.failures);
    }

    /// The median of the number at `index`.
    pub(crate) fn median(&self, launcher: Launcher, index: usize, unit: Unit) -> Measured {
        if let Some(failure) = self.failures.get(&launcher) {
            return Err(failure.clone());
        }
        let runs = self.runs.get(&launcher).map(Vec::as_slice).unwrap_or_default();
        let values: Vec<f64> = runs.iter().filter_map(|run| run.get(index).copied()).collect();
        let value = median(&values).ok_or_else(|| "not measured".to_owned())?;
        Ok(Quantity::new(value, unit))
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
