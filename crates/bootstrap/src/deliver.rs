//! How an agent's program comes to a host that lacks it: down the shell that starts the agent.
//!
//! The remote command runs the program that lies where the user says. Where there is none, it becomes
//! a shell that reads one line of standard input and does what it says: `deliver.sh` looks for
//! the program in a cache, and asks for it when it is not there. A program that finds itself to be of
//! another build than it was told becomes that same shell. So builds of different age get along: all
//! that one expects of another is `READ_AND_RUN`.
//!
//! The script and the boot line are sent at once; at a [`Request::Program`](crate::Request) the
//! [`Program::announcement`] with the program behind it, and at a `Request::Boot` the boot line
//! again. A program that is in place skips the script as it skips what login scripts print, so
//! all that it costs there is a test of the shell that runs anyway.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ring::digest::{Context, SHA256};

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
    /// Reads the running program once, for its sum.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or the file cannot be read.
    pub fn own() -> io::Result<Program> {
        Program::of(File::open("/proc/self/exe")?)
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

    /// What is sent before it: how long it is, and its sum.
    pub fn announcement(&self) -> Vec<u8> {
        format!("{} {}\n", self.bytes, self.sum).into_bytes()
    }
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
        let announcement = Program::of(file).unwrap().announcement();
        assert_eq!(announcement, format!("3 {sum}\n").into_bytes());
    }
}
