//! The only place of the testbed that starts processes.
//!
//! It uses the standard library's `Command`: the testbed is small, short-lived and dynamically
//! linked, so what makes that type unfit for an agent does not matter here.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use crate::TestbedError;

/// Starts `command`, whose end the caller waits for.
#[expect(clippy::disallowed_methods, reason = "test tooling outside the shipped binary")]
pub fn start(command: &mut Command) -> Result<Child, TestbedError> {
    command.spawn().map_err(|source| TestbedError::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })
}

/// Runs `command` with nothing on its input, and returns what it wrote and how it ended.
pub fn capture(command: &mut Command) -> Result<Output, TestbedError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = start(command)?;
    finish(command, child)
}

/// Runs `command`, and fails with `what` and the command's own words if it fails.
pub fn check(what: &str, command: &mut Command) -> Result<String, TestbedError> {
    succeeded(what, capture(command)?)
}

/// Like [`check`], with `input` on the command's standard input.
pub fn check_with_input(
    what: &str,
    command: &mut Command,
    input: &str,
) -> Result<String, TestbedError> {
    let child = start_with_input(command, input)?;
    succeeded(what, finish(command, child)?)
}

/// Starts `command` and hands it `input`, which must fit a pipe or be read without output.
pub fn start_with_input(command: &mut Command, input: &str) -> Result<Child, TestbedError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that ends without reading says why by its status.
        drop(stdin.write_all(input.as_bytes()));
    }
    Ok(child)
}

/// Waits for a child of [`start_with_input`], and fails like [`check`].
pub fn finish_checked(what: &str, command: &Command, child: Child) -> Result<(), TestbedError> {
    succeeded(what, finish(command, child)?).map(drop)
}

fn finish(command: &Command, child: Child) -> Result<Output, TestbedError> {
    child.wait_with_output().map_err(|source| TestbedError::System {
        doing: format!("wait for `{}`", command.get_program().to_string_lossy()),
        source,
    })
}

fn succeeded(what: &str, output: Output) -> Result<String, TestbedError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(TestbedError::Tool {
        what: what.to_owned(),
        said: format!("{}, {}", output.status, stderr.trim()),
    })
}
