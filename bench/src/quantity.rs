//! A measured number and its unit.

use std::fmt;
use std::time::Duration;

/// What a number counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unit {
    /// Seconds, the only unit of time that is stored.
    Seconds,
    /// 10⁶ bytes.
    Megabytes,
    /// 10⁶ bytes a second.
    MegabytesPerSecond,
    /// Per second.
    PerSecond,
    /// Plain.
    Count,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// The number.
    pub(crate) value: f64,
    /// What it counts.
    pub(crate) unit: Unit,
    /// The smallest and the largest of the runs that it is the median of.
    pub(crate) range: Option<(f64, f64)>,
}

impl Quantity {
    /// A number of `unit`.
    pub(crate) const fn new(value: f64, unit: Unit) -> Quantity {
        Quantity { value, unit, range: None }
    }

    /// The median of some runs, unless there are none.
    pub(crate) fn median(values: &[f64], unit: Unit) -> Option<Quantity> {
        let least = values.iter().copied().min_by(f64::total_cmp)?;
        let most = values.iter().copied().max_by(f64::total_cmp)?;
        Some(Quantity { value: median(values)?, unit, range: Some((least, most)) })
    }
}

impl From<Duration> for Quantity {
    fn from(time: Duration) -> Quantity {
        Quantity::new(time.as_secs_f64(), Unit::Seconds)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        if let Some((least, most)) = self.range.filter(|(least, most)| least < most) {
            let [value, least, most] = [value, least, most].map(|v| Quantity::new(v, self.unit));
            return write!(f, "{value} ({least} to {most})");
        }
        match self.unit {
            Unit::Seconds if value.abs() < 0.1 => write!(f, "{:.2} ms", value * 1000.0),
            Unit::Seconds if value.abs() < 1.0 => write!(f, "{:.0} ms", value * 1000.0),
            Unit::Seconds => write!(f, "{value:.2} s"),
            Unit::Megabytes => write!(f, "{value:.1} MB"),
            Unit::MegabytesPerSecond => write!(f, "{value:.0} MB/s"),
            Unit::PerSecond => write!(f, "{value:.2} /s"),
            Unit::Count => write!(f, "{value:.0}"),
        }
    }
}

/// The middle of the values; the mean of the two middle ones if their number is even.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().saturating_sub(1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_value() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_median_tells_the_smallest_and_the_largest_run() {
        let shown = |runs: &[f64]| Quantity::median(runs, Unit::Seconds).unwrap().to_string();
        assert_eq!(shown(&[0.3, 0.2, 0.7]), "300 ms (200 ms to 700 ms)");
        assert_eq!(shown(&[0.3, 0.3, 0.3]), "300 ms");
    }

    #[test]
    fn times_are_shown_with_three_digits_or_so() {
        let shown = |seconds: f64| Quantity::new(seconds, Unit::Seconds).to_string();
        assert_eq!([shown(0.0123), shown(0.123), shown(12.3)], ["12.30 ms", "123 ms", "12.30 s"]);
    }
}
