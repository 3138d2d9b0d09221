//! Durations as users write them: `30`, `30s`, `500ms`, `2m`, `1h`, `1.5s`.

use std::time::Duration;

/// A text that is no duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is no duration such as 30, 30s, 500ms, 2m or 1h")]
pub(crate) struct DurationError(String);

/// A year; more would be a mistake, and not fit into messages.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// Reads a duration; a bare number is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.to_owned());
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let seconds = number.parse::<f64>().map_err(|_| error())? * scale;
    if seconds > SECONDS_MAX {
        return Err(error());
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_or_is_seconds() {
        for (text, ms) in [
            ("30", 30_000),
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1.5s", 1500),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "s", "-1", "1 s", "1d", "1e9", "99999999h", "1.2.3"] {
            assert_eq!(parse(text), Err(DurationError(text.into())), "{text}");
        }
    }
}
