//! The signals of `--forward-signals`.

use model::{Signal, SignalError};

/// Signals to pass on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SignalList(pub(crate) Vec<Signal>);

/// Reads `USR1,RTMIN+3,40`, `all` or `none`.
pub(crate) fn parse(text: &str) -> Result<SignalList, String> {
    match text {
        "none" => Ok(SignalList(Vec::new())),
        "all" => {
            let all = (1..=64).map(Signal).filter(|signal| signal.is_for_programs());
            Ok(SignalList(all.collect()))
        }
        list => list.split(',').map(parse_one).collect::<Result<_, _>>().map(SignalList),
    }
}

fn parse_one(text: &str) -> Result<Signal, String> {
    let signal: Signal = text.parse().map_err(|error: SignalError| error.to_string())?;
    if signal.is_for_programs() {
        Ok(signal)
    } else {
        Err(format!("{signal} cannot be forwarded: it has its own meaning for the command"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_of_names_and_numbers_that_mean_nothing_to_the_command() {
        let of = |numbers: &[u8]| SignalList(numbers.iter().map(|n| Signal(*n)).collect());
        assert_eq!(parse("USR1,sigalrm,RTMIN+3,64"), Ok(of(&[10, 14, 37, 64])));
        assert_eq!(parse("none"), Ok(of(&[])));
        assert_eq!(parse("all").unwrap().0.len(), 9 + 31);
        for text in ["KILL", "9", "USR1,TERM", "", "USR1,", "USR9"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
