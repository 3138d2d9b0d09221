//! How many tasks a spawn may start: `soft` of MPI-4.1 §11.8.4, a list of Fortran triplets such as `1,2:10:2`.
//!
//! `a` is one number, `a:b` all from `a` to `b`, and `a:b:c` every `c`-th of those, downwards where `c` is negative.
//! What is less than one permits nothing here: a job has at least one task.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::FromStr;

/// A set of numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SoftCounts(Vec<Triplet>);

/// A text that is no such list.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SoftCountsError {
    /// Something that is no number.
    #[error("`{0}` is not a number of tasks, such as 4")]
    Number(String),
    /// A triplet with a part too many.
    #[error("`{0}` has more than three parts: FIRST:LAST:STEP is the longest form")]
    Parts(String),
    /// A step that does not lead from the first number to the last.
    #[error(
        "`{0}` does not come from its first number to its last: give a step, as in 2:10:2 or 10:2:-2"
    )]
    Step(String),
}

/// Every `step`-th number from `lowest` to `highest`, both included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Triplet {
    lowest: i64,
    highest: i64,
    /// At least 1.
    step: i64,
}

impl SoftCounts {
    /// The largest of them that is at least 1 and at most `limit`.
    pub fn largest_at_most(&self, limit: u32) -> Option<u32> {
        self.0.iter().filter_map(|triplet| triplet.largest_at_most(limit)).max()
    }

    /// The smallest of them that is at least 1.
    pub fn smallest(&self) -> Option<u32> {
        self.0.iter().filter_map(Triplet::smallest).min()
    }
}

impl Triplet {
    fn new(first: i64, last: i64, step: i64) -> Option<Triplet> {
        let is_towards = step != 0 && (first == last || (first < last) == (step > 0));
        if !is_towards {
            return None;
        }
        // What is beyond 32 bits is no number of tasks, and neither is what is negative.
        let steps = (last - first) / step;
        let end = first + steps * step;
        Some(Triplet { lowest: first.min(end), highest: first.max(end), step: step.abs() })
    }

    fn largest_at_most(&self, limit: u32) -> Option<u32> {
        let most = self.highest.min(limit.into());
        let steps = (most - self.lowest).checked_div(self.step).filter(|_| most >= self.lowest)?;
        u32::try_from(self.lowest + steps * self.step).ok().filter(|count| *count > 0)
    }

    fn smallest(&self) -> Option<u32> {
        let short = (1 - self.lowest).max(0);
        let steps = short / self.step + i64::from(short % self.step > 0);
        let count = self.lowest + steps * self.step;
        u32::try_from(count).ok().filter(|_| count <= self.highest)
    }
}

impl FromStr for SoftCounts {
    type Err = SoftCountsError;

    fn from_str(text: &str) -> Result<SoftCounts, SoftCountsError> {
        text.split(',').map(triplet).collect::<Result<_, _>>().map(SoftCounts)
    }
}

fn triplet(text: &str) -> Result<Triplet, SoftCountsError> {
    let numbers: Vec<i64> = text.split(':').map(number).collect::<Result<_, _>>()?;
    let triplet = match numbers[..] {
        [only] => Triplet::new(only, only, 1),
        [first, last] => Triplet::new(first, last, 1),
        [first, last, step] => Triplet::new(first, last, step),
        _ => return Err(SoftCountsError::Parts(text.to_string())),
    };
    triplet.ok_or_else(|| SoftCountsError::Step(text.to_string()))
}

/// A number of 32 bits, with a sign, perhaps between blanks.
fn number(text: &str) -> Result<i64, SoftCountsError> {
    let number = text.trim_matches(' ');
    number.parse::<i32>().map(i64::from).map_err(|_| SoftCountsError::Number(number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of them up to `limit`, found one by one.
    fn all(text: &str, limit: u32) -> Vec<u32> {
        let soft: SoftCounts = text.parse().unwrap();
        (1..=limit).filter(|count| soft.largest_at_most(*count) == Some(*count)).collect()
    }

    #[test]
    fn each_form_of_a_triplet_stands_for_the_set_that_the_standard_says() {
        for (text, expected) in [
            ("4", &[4][..]),
            ("3:6", &[3, 4, 5, 6]),
            ("0:3", &[1, 2, 3]),
            ("2:9:3", &[2, 5, 8]),
            ("9:2:-3", &[3, 6, 9]),
            ("-5:5:4", &[3]),
            ("5:-5:-4", &[1, 5]),
            ("7:7:-2", &[7]),
            ("2:10:2,7", &[2, 4, 6, 7, 8, 10]),
            ("7,10:2:-2", &[2, 4, 6, 7, 8, 10]),
            (" 1, 2 : 3 ,+6", &[1, 2, 3, 6]),
            ("-3,0", &[]),
            ("20:40", &[]),
        ] {
            assert_eq!(all(text, 12), expected, "{text}");
            let soft: SoftCounts = text.parse().unwrap();
            assert_eq!(soft.smallest().filter(|it| *it <= 12), expected.first().copied(), "{text}");
        }
    }

    #[test]
    fn the_largest_up_to_a_limit_is_in_the_set_whatever_the_limit() {
        for text in ["1,2,4,8,16", "0:2147483647", "2147483647:-2147483648:-7", "3:17:7,16"] {
            let soft: SoftCounts = text.parse().unwrap();
            for limit in [0, 1, 2, 3, 5, 16, 17, 1_000, u32::MAX] {
                let found = soft.largest_at_most(limit);
                assert!(found.is_none_or(|it| it > 0 && it <= limit), "{text} {limit}: {found:?}");
                assert_eq!(found.is_some(), soft.smallest().is_some_and(|it| it <= limit));
                let again = found.and_then(|found| soft.largest_at_most(found));
                assert_eq!(again, found, "{text} {limit}");
            }
        }
    }

    #[test]
    fn what_is_no_list_of_triplets_is_refused_by_name() {
        for (text, words) in [
            ("", "`` is not a number"),
            ("1,,2", "`` is not a number"),
            ("1,two", "`two` is not a number"),
            ("1:", "`` is not a number"),
            ("3000000000", "`3000000000` is not a number"),
            ("1:2:3:4", "`1:2:3:4` has more than three parts"),
            ("1:5:0", "`1:5:0` does not come"),
            ("1:5:-1", "`1:5:-1` does not come"),
            ("5:1", "`5:1` does not come"),
        ] {
            let error = text.parse::<SoftCounts>().unwrap_err().to_string();
            assert!(error.starts_with(words), "{text}: {error}");
        }
    }
}
