//! Whether `execve` takes a command's arguments and variables: it says only that they are too long,
//! and not before a task is created.

use bytes::Bytes;
use rustix::process::{Resource, getrlimit};

use crate::command::name_of;

/// The longest string, its terminating zero included (`MAX_ARG_STRLEN`, 32 pages: execve(2)).
const STRING_BYTES_MAX: usize = 128 << 10;

/// The most and the least that all may take, whatever the limit of the stack, a quarter of which it
/// is in between (execve(2)).
const TOTAL_BYTES_MAX: u64 = 6 << 20;
const TOTAL_BYTES_MIN: u64 = 128 << 10;

/// What is left for the program's path and the task's own variables.
const OWN_BYTES: u64 = 8 << 10;

/// Something that is too long.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum TooLong {
    /// One string.
    #[error("{name} takes {bytes} bytes, and Linux takes {STRING_BYTES_MAX} at most")]
    String { name: String, bytes: usize },
    /// All of them.
    #[error(
        "arguments and environment take {bytes} bytes, {largest} {largest_bytes} of them, and \
         {room} are left there: a quarter of the stack's limit (`ulimit -s`), and 6 MiB at most"
    )]
    Total { bytes: u64, room: u64, largest: String, largest_bytes: usize },
}

/// Checks a command against the limits of this process, which tasks inherit.
pub(crate) fn check(argv: &[Bytes], env: &[&Bytes]) -> Result<(), TooLong> {
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    check_within(argv, env, (stack / 4).clamp(TOTAL_BYTES_MIN, TOTAL_BYTES_MAX) - OWN_BYTES)
}

fn check_within(argv: &[Bytes], env: &[&Bytes], room: u64) -> Result<(), TooLong> {
    let arguments = (0..).zip(argv).map(|(at, text)| (format!("argument {at}"), text.len() + 1));
    let strings = arguments.chain(env.iter().map(|text| (shown_name(text), text.len() + 1)));
    let mut total = 0;
    let mut largest = (String::new(), 0);
    for (name, bytes) in strings {
        if bytes > STRING_BYTES_MAX {
            return Err(TooLong::String { name, bytes });
        }
        total += (bytes + size_of::<usize>()) as u64;
        if bytes > largest.1 {
            largest = (name, bytes);
        }
    }
    let (largest, largest_bytes) = largest;
    match total > room {
        true => Err(TooLong::Total { bytes: total, room, largest, largest_bytes }),
        false => Ok(()),
    }
}

/// The name of a variable, made safe to show.
fn shown_name(variable: &[u8]) -> String {
    let name = name_of(variable);
    format!("`{}`", name.get(..72).unwrap_or(name).escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, bytes: usize) -> Bytes {
        format!("{name}={}", "x".repeat(bytes - name.len() - 2)).into()
    }

    #[test]
    fn a_string_has_128_kib_and_not_one_byte_more() {
        let check = |bytes| check_within(&[], &[&variable("LONG", bytes)], u64::MAX);
        assert_eq!(check(STRING_BYTES_MAX), Ok(()));
        let error = check(STRING_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.to_string(), "`LONG` takes 131073 bytes, and Linux takes 131072 at most");
    }

    #[test]
    fn the_total_counts_with_its_pointers_and_names_the_largest() {
        let argv = [Bytes::from_static(b"program")];
        let (a, b) = (variable("A", 100), variable("B", 300));
        let env = [&a, &b];
        assert_eq!(check_within(&argv, &env, 432), Ok(()));
        let words = check_within(&argv, &env, 431).unwrap_err().to_string();
        assert!(words.starts_with("arguments and environment take 432 bytes, `B` 300"), "{words}");
    }
}
