//! A modelled remote shell: `testbed-shell [OPTIONS] HOST COMMAND...`.
//!
//! It stands for ssh where the shape of a tree is measured and not the cost of a key exchange.
//! Before the latency the launching host is busy for the gap, one launch at a time, by a lock file
//! of the *source* host; then it sleeps the latency, begins a session, as sshd does for each command,
//! takes the target's name in a UTS namespace of its own (as root; others only see it in
//! `CONVOKE_TESTBED_HOST`), and becomes `/bin/sh -c COMMAND`.
//! All modelled time is spent asleep in this one process, so the processors pay for real work only.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use testbed::clock;

const USAGE: &str = "usage: testbed-shell [--latency-ms L] [--gap-ms G --dir DIR] [--slow HOST:MS] \
[--fail HOST:STATUS:TEXT] [--hang HOST] [--ask HOST] [--noise] HOST COMMAND...";

/// The name of the host that a process runs on, for those who may not change the real one.
const HOST_VARIABLE: &str = "CONVOKE_TESTBED_HOST";

/// Options that come before those of the command line, separated by spaces: for launchers that
/// know of no options but pass `-x HOST COMMAND...`, as to ssh.
const OPTIONS_VARIABLE: &str = "CONVOKE_TESTBED_SHELL";

/// What ssh exits with when it fails itself.
const SHELL_FAILED: u8 = 255;

/// What to model, and what to run.
#[derive(Debug, Default)]
struct Model {
    latency: Duration,
    gap: Duration,
    dir: PathBuf,
    /// Says what login scripts say, before anything else.
    noise: bool,
    manner: Manner,
    host: String,
    command: String,
}

/// How the target host behaves.
#[derive(Debug, Default)]
enum Manner {
    /// Runs the command.
    #[default]
    Answers,
    /// Says something and exits.
    Fails { status: u8, text: String },
    /// Never says anything.
    Hangs,
    /// Wants a password, and takes none.
    Asks,
}

fn main() -> ExitCode {
    let options = std::env::var(OPTIONS_VARIABLE).unwrap_or_default();
    let options = options.split_whitespace().map(str::to_owned);
    let model = match parse(options.chain(std::env::args().skip(1))) {
        Ok(model) => model,
        Err(wrong) => return complain(&format!("testbed-shell: {wrong}\n{USAGE}")),
    };
    match model.run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => complain(&format!("testbed-shell: {}: {error}", model.host)),
    }
}

impl Model {
    /// Behaves as the target host does. Returns only if the command is not run.
    fn run(&self) -> io::Result<u8> {
        self.pass_gap()?;
        clock::sleep(self.latency);
        if self.noise {
            writeln!(io::stdout(), "Welcome to {}! You have new mail.", self.host)?;
            writeln!(io::stderr(), "stty: standard input: Inappropriate ioctl for device")?;
        }
        match &self.manner {
            Manner::Answers => Err(self.exec()),
            Manner::Fails { status, text } => {
                writeln!(io::stderr(), "{text}")?;
                Ok(*status)
            }
            Manner::Hangs => loop {
                clock::sleep(Duration::from_secs(3600));
            },
            Manner::Asks => self.ask(),
        }
    }

    /// Occupies the source host: the next launch from there waits for the lock.
    fn pass_gap(&self) -> io::Result<()> {
        if self.gap.is_zero() {
            return Ok(());
        }
        let lock = File::create(self.dir.join(format!("gap-{}", source_host()?)))?;
        lock.lock()?;
        clock::sleep(self.gap);
        Ok(())
    }

    /// Becomes the command. Returns only on failure.
    fn exec(&self) -> io::Error {
        // A launcher may have begun one for it.
        let _ = rustix::process::setsid();
        if rustix::process::geteuid().is_root()
            && let Err(error) = testbed::take_private_hostname(&self.host)
        {
            return error;
        }
        Command::new("/bin/sh").args(["-c", &self.command]).env(HOST_VARIABLE, &self.host).exec()
    }

    /// Asks for a password on standard error, and waits on the terminal or on standard input.
    fn ask(&self) -> io::Result<u8> {
        write!(io::stderr(), "root@{}'s password: ", self.host)?;
        match File::open("/dev/tty") {
            Ok(terminal) => drop(BufReader::new(terminal).read_line(&mut String::new())?),
            Err(_) => drop(io::stdin().read_to_end(&mut Vec::new())?),
        }
        writeln!(io::stderr(), "Permission denied, please try again.")?;
        Ok(SHELL_FAILED)
    }
}

/// The host that this shell is run on.
fn source_host() -> io::Result<String> {
    match std::env::var(HOST_VARIABLE) {
        Ok(name) => Ok(name),
        Err(_) => Ok(fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_owned()),
    }
}

/// Reads the options, then the host, then the command, whose words are joined as ssh joins them.
fn parse(arguments: impl Iterator<Item = String>) -> Result<Model, String> {
    let mut arguments = arguments.peekable();
    let mut model = Model::default();
    let mut manners = Vec::new();
    while let Some(option) = arguments.next_if(|argument| argument.starts_with('-')) {
        // No X11 forwarding, as Hydra asks of ssh.
        if option == "-x" {
            continue;
        }
        if option == "--noise" {
            model.noise = true;
            continue;
        }
        let value = arguments.next().ok_or(format!("{option} needs a value"))?;
        match option.as_str() {
            "--latency-ms" => model.latency = milliseconds(&value)?,
            "--gap-ms" => model.gap = milliseconds(&value)?,
            "--dir" => model.dir = value.into(),
            "--slow" | "--fail" | "--hang" | "--ask" => manners.push((option, value)),
            _ => return Err(format!("no option `{option}`")),
        }
    }
    model.host = arguments.next().ok_or("no host given")?;
    model.command = arguments.collect::<Vec<_>>().join(" ");
    manners.iter().try_for_each(|(option, value)| apply_manner(&mut model, option, value))?;
    Ok(model)
}

/// Applies an option that is about one host, if it is about ours.
fn apply_manner(model: &mut Model, option: &str, value: &str) -> Result<(), String> {
    let (host, rest) = value.split_once(':').unwrap_or((value, ""));
    if host != model.host {
        return Ok(());
    }
    match option {
        "--slow" => model.latency += milliseconds(rest)?,
        "--hang" => model.manner = Manner::Hangs,
        "--ask" => model.manner = Manner::Asks,
        _ => {
            let (status, text) = rest.split_once(':').unwrap_or((rest, ""));
            let status = status.parse().map_err(|_| format!("`{status}` is no exit status"))?;
            model.manner = Manner::Fails { status, text: text.to_owned() };
        }
    }
    Ok(())
}

/// Whole or decimal milliseconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number of milliseconds"))?;
    Duration::try_from_secs_f64(number / 1000.0).map_err(|_| format!("`{text}` is no duration"))
}

fn complain(text: &str) -> ExitCode {
    // If even standard error is gone, the status is all there is left to say.
    drop(writeln!(io::stderr(), "{text}"));
    ExitCode::from(SHELL_FAILED)
}
