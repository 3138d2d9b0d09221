//! How a duration varies from one time to the next.
//!
//! A draw is the quantile of one random number, so that it takes exactly one from its stream, and
//! all of the mathematics is `libm`'s, which computes the same on every machine. A distribution has
//! no unit of its own: the name of the field that holds it ends in one.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// How something varies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// It does not.
    Constant {
        /// What it always is.
        value: f64,
    },
    /// As most times are that have many causes: its logarithm is normal.
    LogNormal {
        /// Half of all draws are below this.
        median: f64,
        /// The standard deviation of the natural logarithm: at 0.5, one in six is 1.65 times the
        /// median or more.
        sigma: f64,
    },
    /// Mostly short and sometimes very long (Lomax; with `min` equal to `scale`, Pareto).
    HeavyTail {
        /// No draw is below this.
        min: f64,
        /// How far above `min` most draws are.
        scale: f64,
        /// The smaller, the heavier the tail; at 1 and below there is no mean.
        shape: f64,
    },
}

/// The largest parameter: in milliseconds, a day and more.
const PARAMETER_MAX: f64 = 1e8;

/// No draw is larger, so that none overflows a time.
const DRAW_MAX: f64 = 1e9;

/// The largest sigma: at 5, one draw in a thousand is five million times the median.
const SIGMA_MAX: f64 = 5.0;

impl Distribution {
    /// What is always the same.
    pub const fn constant(value: f64) -> Distribution {
        Distribution::Constant { value }
    }

    /// Draws one.
    pub fn sample(&self, random: &mut Random) -> f64 {
        self.quantile(random.fraction())
    }

    /// What a part `p` of all draws is not above; `p` is between 0 and 1, both excluded.
    pub fn quantile(&self, p: f64) -> f64 {
        let value = match *self {
            Distribution::Constant { value } => value,
            Distribution::LogNormal { median, sigma } => {
                median * libm::exp(sigma * normal_quantile(p))
            }
            Distribution::HeavyTail { min, scale, shape } => {
                min + scale * (libm::pow(1.0 - p, -1.0 / shape) - 1.0)
            }
        };
        value.clamp(0.0, DRAW_MAX)
    }

    /// What half of all draws are not above.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Whether not all draws are the same.
    pub fn varies(&self) -> bool {
        match *self {
            Distribution::Constant { .. } => false,
            Distribution::LogNormal { median, sigma } => median * sigma > 0.0,
            Distribution::HeavyTail { scale, .. } => scale > 0.0,
        }
    }

    /// Why there can be no such distribution, if there can't.
    pub(crate) fn impossible(&self) -> Option<String> {
        let parameters = match *self {
            Distribution::Constant { value } => vec![("value", value, PARAMETER_MAX)],
            Distribution::LogNormal { median, sigma } => {
                vec![("median", median, PARAMETER_MAX), ("sigma", sigma, SIGMA_MAX)]
            }
            Distribution::HeavyTail { min, scale, shape } => vec![
                ("min", min, PARAMETER_MAX),
                ("scale", scale, PARAMETER_MAX),
                ("shape", shape, PARAMETER_MAX),
            ],
        };
        let is_wrong = |&(_, value, max): &(&str, f64, f64)| !(0.0..=max).contains(&value);
        if let Some((name, value, max)) = parameters.into_iter().find(is_wrong) {
            return Some(format!("{name} = {value} is not between 0 and {max}"));
        }
        match *self {
            Distribution::HeavyTail { shape, .. } if shape < 0.1 => {
                Some(format!("shape = {shape} is below 0.1"))
            }
            Distribution::Constant { .. }
            | Distribution::LogNormal { .. }
            | Distribution::HeavyTail { .. } => None,
        }
    }
}

/// The quantile of the standard normal distribution, by a rational function of p near the middle
/// and of the square root of a logarithm in the tails (the coefficients of Wichura's AS 241,
/// PPND7: seven digits).
fn normal_quantile(p: f64) -> f64 {
    const MIDDLE: f64 = 0.425;
    let q = p - 0.5;
    if q.abs() <= MIDDLE {
        let r = MIDDLE * MIDDLE - q * q;
        let above =
            ((59.109_374_72 * r + 159.291_132_02) * r + 50.434_271_938) * r + 3.387_132_717_9;
        let below = ((67.187_563_6 * r + 78.757_757_664) * r + 17.895_169_469) * r + 1.0;
        return q * above / below;
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let size = if r <= 5.0 {
        let r = r - 1.6;
        (((0.170_238_21 * r + 1.306_728_4) * r + 2.756_815_39) * r + 1.423_437_277_7)
            / ((0.120_211_32 * r + 0.737_001_64) * r + 1.0)
    } else {
        let r = r - 5.0;
        (((0.017_337_203 * r + 0.428_682_94) * r + 3.081_226_38) * r + 6.657_905_115)
            / ((0.012_258_202_635 * r + 0.241_978_94) * r + 1.0)
    };
    if q < 0.0 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_the_tables() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.841_344_746, 1.0),
            (0.975, 1.959_963_985),
            (0.025, -1.959_963_985),
            (0.999, 3.090_232_306),
            (1e-6, -4.753_424_309),
            (1e-12, -7.034_483_825),
        ] {
            let found = normal_quantile(p);
            assert!((found - expected).abs() < 2e-6, "{p}: {found}");
        }
    }

    #[test]
    fn draws_have_the_median_and_the_mean_of_their_distribution() {
        for (distribution, mean) in [
            (Distribution::constant(7.0), 7.0),
            (Distribution::LogNormal { median: 257.0, sigma: 0.4 }, 257.0 * libm::exp(0.08)),
            (Distribution::HeavyTail { min: 50.0, scale: 100.0, shape: 3.0 }, 50.0 + 100.0 / 2.0),
        ] {
            let random = &mut Random::new(1, 2);
            let mut draws: Vec<f64> = (0..40_000).map(|_| distribution.sample(random)).collect();
            draws.sort_by(f64::total_cmp);
            let median = draws[draws.len() / 2];
            let drawn = draws.iter().sum::<f64>() / draws.len() as f64;
            assert!((median / distribution.median() - 1.0).abs() < 0.02, "{distribution:?}");
            assert!((drawn / mean - 1.0).abs() < 0.02, "{distribution:?}");
        }
    }

    #[test]
    fn a_draw_is_the_same_to_the_last_bit_on_every_machine() {
        let random = &mut Random::new(7, 7);
        let log_normal = Distribution::LogNormal { median: 257.0, sigma: 0.4 };
        let heavy = Distribution::HeavyTail { min: 50.0, scale: 100.0, shape: 1.5 };
        let mut bits = 0_u64;
        for _ in 0..10_000 {
            for distribution in [log_normal, heavy] {
                bits = bits.rotate_left(7) ^ distribution.sample(random).to_bits();
            }
        }
        assert_eq!(bits, 0xb329_4437_3feb_1856);
    }

    #[test]
    fn what_can_not_be_is_said_to_be_impossible() {
        let heavy = |shape| Distribution::HeavyTail { min: 0.0, scale: 1.0, shape };
        for (distribution, words) in [
            (Distribution::constant(-1.0), "value = -1"),
            (Distribution::constant(f64::NAN), "value = NaN"),
            (Distribution::LogNormal { median: 1.0, sigma: 9.0 }, "sigma = 9"),
            (heavy(0.0), "shape = 0"),
            (heavy(f64::INFINITY), "shape = inf"),
        ] {
            let why = distribution.impossible().unwrap();
            assert!(why.starts_with(words), "{why}");
        }
        assert_eq!(heavy(1.0).impossible(), None);
    }
}
