//! How an agent's program comes to a host that lacks it: down the shell that starts the agent.
//!
//! The remote command runs the program that lies where the user says. Where there is none, it becomes
//! a shell that reads one line of standard input and does what it says: `deliver.sh` looks for
//! the program in a cache, and asks for it when it is not there. A program that finds itself to be of
//! another build than it was told becomes that same shell. So builds of different age get along: all
//! that one expects of another is `READ_AND_RUN`.
//!
//! The script and the boot line are sent at once; at each [`Request::Program`](crate::Request) a
//! piece of the program ([`Transfer`](crate::Transfer)); and at a `Request::Boot` the boot line again.
//! A program that is in place skips the script as it skips what login scripts print, so all that it
//! costs there is a test of the shell that runs anyway.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// What a shell runs to do what one line says, in which `printf` finds escapes.
pub(crate) const READ_AND_RUN: &str = r#"IFS= read -r s && eval "$(printf %b "$s")""#;

const SCRIPT: &str = include_str!("deliver.sh");

const CLEANING: &str = include_str!("clean.sh");

/// The line for a shell that runs `READ_AND_RUN`: brings up an agent of this build, which runs on
/// machines of this kind (`uname -m`).
pub fn line(build: &str, machine: &str) -> Vec<u8> {
    one_line(&format!("build={build}\nmachine={machine}\n{SCRIPT}"))
}

/// The line for a shell that runs `READ_AND_RUN`: removes the programs that are cached there.
pub fn cleaning() -> Vec<u8> {
    one_line(CLEANING)
}

/// A script as one line, with escapes for `printf` and without comments.
fn one_line(script: &str) -> Vec<u8> {
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let code = script.lines().map(str::trim_start).filter(is_code);
    let lines: Vec<String> = code.map(|line| line.replace('\\', r"\\")).collect();
    (lines.join(r"\n") + "\n").into_bytes()
}

/// Becomes the shell that [`line()`] is for; standard input must not have been read. Returns only when
/// that fails.
pub fn step_aside() -> io::Error {
    Command::new("/bin/sh").args(["-c", READ_AND_RUN]).exec()
}

/// The program that runs here, to be sent to others. It is what it was when this process began, also
/// where another has been put in its place.
#[derive(Debug)]
pub struct Program {
    /// The file.
    pub file: File,
    /// How long it is.
    pub bytes: u64,
    sum: String,
}

impl Program {
    /// The running program, which is of this build. It is read once for its sum, unless it runs from
    /// a cache: its sum was looked at before it was run, and is the name of where it lies.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or the file cannot be read.
    pub fn own(build: &str) -> io::Result<Program> {
        let file = File::open("/proc/self/exe")?;
        match cached_sum(&std::fs::read_link("/proc/self/exe")?, build) {
            Some(sum) => Ok(Program { bytes: file.metadata()?.len(), file, sum }),
            None => Program::of(file),
        }
    }

    /// Reads a program to its end, for its sum.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(file: File) -> io::Result<Program> {
        let mut sum = Context::new(&SHA256);
        let mut buffer = vec![0; 1 << 16];
        let mut bytes = 0;
        loop {
            match (&file).read(&mut buffer)? {
                0 => break,
                n => {
                    sum.update(&buffer[..n]);
                    bytes += n as u64;
                }
            }
        }
        let sum = sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Program { file, bytes, sum })
    }

    /// What is sent before a piece: how long it is, what comes behind it, and the program's sum.
    pub fn announcement(&self, piece: &Range<u64>) -> Vec<u8> {
        let Range { start, end } = piece;
        format!("{} {} {}\n", end - start, self.bytes - end, self.sum).into_bytes()
    }
}

/// What a cache calls the sum of the program at `path`, which is of this build.
fn cached_sum(path: &Path, build: &str) -> Option<String> {
    let entry = path.parent()?.file_name()?.to_str()?;
    let sum = entry.strip_prefix(build)?.strip_prefix('-')?;
    let is_sum = sum.len() == 2 * SHA256_OUTPUT_LEN && sum.bytes().all(|b| b.is_ascii_hexdigit());
    is_sum.then(|| sum.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_announced_with_its_length_and_its_sum() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"abc").unwrap();
        io::Seek::rewind(&mut file).unwrap();
        // FIPS 180-2, appendix B.1.
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let announcement = Program::of(file).unwrap().announcement(&(0..2));
        assert_eq!(announcement, format!("2 1 {sum}\n").into_bytes());
    }

    #[test]
    fn the_sum_of_a_cached_program_is_the_name_of_where_it_lies() {
        let sum = "0123456789abcdef".repeat(4);
        let of = |path: &str| cached_sum(Path::new(path), "c0ffee");
        assert_eq!(of(&format!("/home/x/.cache/convoke/c0ffee-{sum}/convoke")), Some(sum.clone()));
        assert_eq!(
            of(&format!("/tmp/convoke-0/c0ffee-{sum}/convoke (deleted)")),
            Some(sum.clone())
        );
        for other in ["/opt/convoke", "convoke", "/x/c0ffee-0123/convoke", "/x/c0ffee/convoke"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(of(&format!("/x/decaf0-{sum}/convoke")), None);
    }
}
