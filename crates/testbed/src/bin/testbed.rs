//! `testbed`: hosts on this machine, from a terminal. See `USAGE`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use testbed::{HEAD, Loopback, Options, Testbed, command, control, loopback};

const USAGE: &str = "\
Usage: testbed [--name NAME] [--loopback] COMMAND

  up N [--delay MS]          make N hosts, n0 to nN-1, and the host `head`, in the background
  exec HOST PROGRAM ARGS...  run a program on a host
  down                       take everything down
  run N [--delay MS] PROGRAM ARGS...
                             make N hosts, run a program on `head`, take everything down

Hosts are namespaces, for which root is needed. With --loopback, or without root, `run` makes names
and loopback addresses of this host and runs the program here: `ssh -F $TESTBED_SSH_CONFIG n0`.

And, to a testbed that is up:";

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&mut arguments) {
        Ok(code) => code,
        Err(error) => {
            say_error(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &mut Vec<String>) -> anyhow::Result<ExitCode> {
    let name = take_option(arguments, "--name")?.unwrap_or_else(|| "default".to_owned());
    let is_loopback = take_flag(arguments, "--loopback") || !rustix::process::geteuid().is_root();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [loopback::KEEPER, count] => keep_loopback(count),
        ["run", count, ref program @ ..] if is_loopback => run_on_loopback(count, program),
        ["up", ..] if is_loopback => bail!(
            "hosts in the background need root; `testbed run 8 $SHELL` gives you a shell beside \
             loopback hosts"
        ),
        ["up", count, ref options @ ..] => up(&name, count, options),
        ["serve", count, ref options @ ..] => serve(&name, count, options),
        ["run", count, "--delay", ms, ref program @ ..] => run_once(count, Some(ms), program),
        ["run", count, ref program @ ..] => run_once(count, None, program),
        ["exec", host, program, ref rest @ ..] => exec(&name, host, program, rest),
        [] | ["help" | "--help" | "-h", ..] => {
            say(&format!("{USAGE}\n  {}", control::VERBS.replace(" | ", "\n  ")))?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let text =
                control::request(&name, &words.join(" ")).with_context(|| words.join(" "))?;
            write!(io::stdout(), "{text}")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Starts `serve` in a session of its own, and waits for its word.
fn up(name: &str, count: &str, options: &[&str]) -> anyhow::Result<ExitCode> {
    let mut server = command::start(
        Command::new("setsid")
            .arg(std::env::current_exe()?)
            .args(["--name", name, "serve", count])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    )?;
    let mut line = String::new();
    if let Some(stdout) = server.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.trim() != "ready" {
        bail!("{}", line.trim());
    }
    let hosts = control::request(name, "hosts")?;
    say(&format!(
        "{count} hosts are up. Plain `ssh n0` works among them:\n\
         \x20   testbed exec {HEAD} ssh n0 hostname\n\
         \x20   testbed exec {HEAD} convoke run --hosts {} hostname\n\
         \x20   testbed down",
        hosts.trim()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn serve(name: &str, count: &str, options: &[&str]) -> anyhow::Result<ExitCode> {
    match prepare(name, count, options) {
        Ok((listener, bed)) => {
            say("ready")?;
            control::serve(&bed, &listener)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            say(&format!("{error:#}"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn prepare(
    name: &str,
    count: &str,
    options: &[&str],
) -> anyhow::Result<(std::os::unix::net::UnixListener, Testbed)> {
    let delay = match options {
        [] => None,
        ["--delay", ms] => Some(*ms),
        _ => bail!("`up` knows only --delay MS"),
    };
    let listener = control::listen(name).context("a testbed of this name is up already")?;
    Ok((listener, make(count, delay)?))
}

fn run_once(count: &str, delay: Option<&str>, words: &[&str]) -> anyhow::Result<ExitCode> {
    let [program, rest @ ..] = words else { bail!("`run` needs a program") };
    let bed = make(count, delay)?;
    let status = bed.start(bed.command(HEAD, program)?.args(rest))?.wait()?;
    Ok(exit_code(status))
}

fn run_on_loopback(count: &str, words: &[&str]) -> anyhow::Result<ExitCode> {
    let [program, rest @ ..] = words else { bail!("`run` needs a program") };
    if program.starts_with('-') {
        bail!("loopback hosts have no `{program}`");
    }
    let bed = Loopback::up(&std::env::current_exe()?, number(count)?)?;
    let status = command::start(bed.command(program).args(rest))?.wait()?;
    Ok(exit_code(status))
}

/// What goes wrong is said on standard output, where the owner listens.
fn keep_loopback(count: &str) -> anyhow::Result<ExitCode> {
    if let Err(error) = number(count).and_then(|hosts| Ok(loopback::keep(hosts)?)) {
        say(&format!("{error:#}"))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn make(count: &str, delay: Option<&str>) -> anyhow::Result<Testbed> {
    let bed = Testbed::with_options(&Options::new(number(count)?))?;
    if let Some(ms) = delay {
        bed.delay_all(Duration::from_millis(ms.parse()?))?;
    }
    Ok(bed)
}

fn number(count: &str) -> anyhow::Result<usize> {
    count.parse().with_context(|| format!("`{count}` is no number of hosts"))
}

fn exec(name: &str, host: &str, program: &str, rest: &[&str]) -> anyhow::Result<ExitCode> {
    let mut command = control::command(name, host, program)?;
    Ok(exit_code(command::start(command.args(rest))?.wait()?))
}

/// The program's own status, as a shell gives it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(number.and_then(|number| u8::try_from(number).ok()).unwrap_or(1))
}

fn take_option(arguments: &mut Vec<String>, option: &str) -> anyhow::Result<Option<String>> {
    if arguments.first().is_none_or(|first| first != option) {
        return Ok(None);
    }
    if arguments.len() < 2 {
        bail!("{option} needs a value");
    }
    Ok(arguments.drain(..2).nth(1))
}

fn take_flag(arguments: &mut Vec<String>, flag: &str) -> bool {
    let is_there = arguments.first().is_some_and(|first| first == flag);
    if is_there {
        arguments.remove(0);
    }
    is_there
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

fn say_error(text: &str) {
    // If even standard error is gone, the status is all there is left to say.
    drop(writeln!(io::stderr(), "{text}"));
}
