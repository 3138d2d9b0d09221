//! The shape of the routing tree, as the user names it. `engine::route` works with it.

use alloc::string::{String, ToString};
use core::fmt;
use core::num::ParseIntError;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who passes a job's messages on to whom. The members are numbered in the order of their ids, the
/// head first, from 0.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub enum Route {
    /// The parent of number i is number ⌊(i − 1) / K⌋: each has at most K children. 0 counts as 1.
    Kary(u16),
    /// The parent of number i is i without its lowest bit that is set.
    Binomial,
    /// The head is everybody's parent.
    Direct,
}

/// A text that names no route.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RouteError {
    /// The first word is unknown.
    #[error("route `{0}` is none of same, kary:K, binomial, direct")]
    Unknown(String),
    /// A shape that has no parameters was given some.
    #[error("route `{0}` takes no parameters")]
    Parameters(String),
    /// The number after `kary:` is missing or no number.
    #[error("route kary: `{text}` is not a number of children from 1 to 65535")]
    Children {
        /// What was read as a number.
        text: String,
        /// What is wrong with it; absent for 0.
        #[source]
        source: Option<ParseIntError>,
    },
}

impl Route {
    /// Reads what a user says, `same` included: `None` is the spawn tree.
    pub fn parse_or_same(text: &str) -> Result<Option<Route>, RouteError> {
        if text == "same" { Ok(None) } else { text.parse().map(Some) }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Route::Kary(children) => write!(f, "kary:{children}"),
            Route::Binomial => f.write_str("binomial"),
            Route::Direct => f.write_str("direct"),
        }
    }
}

impl FromStr for Route {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<Route, RouteError> {
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        match (name, parameters) {
            ("binomial", None) => Ok(Route::Binomial),
            ("direct", None) => Ok(Route::Direct),
            ("kary", children) => parse_kary(children.unwrap_or_default()),
            ("same" | "binomial" | "direct", Some(_)) => {
                Err(RouteError::Parameters(name.to_string()))
            }
            (_, _) => Err(RouteError::Unknown(text.to_string())),
        }
    }
}

fn parse_kary(text: &str) -> Result<Route, RouteError> {
    let wrong = |source| RouteError::Children { text: text.to_string(), source };
    match text.parse() {
        Ok(0) => Err(wrong(None)),
        Ok(children) => Ok(Route::Kary(children)),
        Err(source) => Err(wrong(Some(source))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_comes_back_from_its_name() {
        for route in [Route::Kary(1), Route::Kary(65_535), Route::Binomial, Route::Direct] {
            assert_eq!(route.to_string().parse(), Ok(route));
            assert_eq!(Route::parse_or_same(&route.to_string()), Ok(Some(route)));
        }
        assert_eq!(Route::parse_or_same("same"), Ok(None));
    }

    #[test]
    fn a_text_that_names_no_route_says_what_would() {
        let words = |text| Route::parse_or_same(text).unwrap_err().to_string();
        let known = "is none of same, kary:K, binomial, direct";
        assert_eq!(words("ring"), alloc::format!("route `ring` {known}"));
        assert_eq!(words("direct:3"), "route `direct` takes no parameters");
        for text in ["kary", "kary:", "kary:0", "kary:65536", "kary:x"] {
            assert!(words(text).ends_with("is not a number of children from 1 to 65535"), "{text}");
        }
    }
}
