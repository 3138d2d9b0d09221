//! A task that does what tasks should not do. Its arguments are steps, performed in order; see [`STEPS`].

mod pmi;

use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use testkit::{FloodLine, Fnv, die_of_signal, ignore_signal, send_signal};

use pmi::Pmi;

const STEPS: &str = "\
on:RANKS               the steps behind it are of these ranks alone, as in `on:0,2`; of all behind `on:`
exit:STATUS            exit
signal:N               die of a signal
ignore:N               ignore a signal from here on
stop                   stop (SIGSTOP); go on when continued
nap:SECONDS            stop (SIGSTOP); a child lets it go on so long after that
say:TEXT               write a line to stdout
warn:TEXT              write a line to stderr
partial:TEXT           write to stdout without a line end
flood:N:BYTES:MODE     write N lines of BYTES bytes to stdout; MODE is `line` (a write for each) or
                       `block` (writes of 4096 bytes, wherever lines end)
flood-stderr:N:BYTES:MODE
blast:MIB              write so many MiB to stdout, without checksums
sleep:SECONDS          sleep
hang                   sleep for ever
restless:TIMES         be replaced by this program anew, so many times
daemon[:STEP]          leave a double-forked child in its own session that ignores SIGHUP, SIGINT and SIGTERM, and
                       sleeps for ever, or does STEP
leak-stdout:SECONDS    leave a child that holds stdout open for so long
copy-stdin             copy stdin to stdout; then write its length and checksum to stderr
count-stdin            read stdin; then write its length and checksum to stdout
close-stdin            close stdin
pmi-init               initialise PMI, with get_maxes and get_my_kvsname
pmi-barrier            enter the PMI barrier, and leave it
pmi-finalize           finalize PMI
pmi-abort:CODE         send a PMI abort, and go on
pmi-send:TEXT          send bytes to the PMI server, and wait for nothing; `\\n` is a line end
pmi-ask:TEXT           send a line to it, and write its answer to stdout
pmi-put:KEY:BYTES      put a value of so many bytes, and write what is answered to stdout
pmi-value:KEY:MIB      send the front of a put whose value has so many MiB
pmi-frame:TEXT         send a message of PMI-2 with its length in front
pmi-noise:SEED:BYTES   send so many bytes that mean nothing
pmi-puts:NUMBER        put so many keys of this rank, many at a time
pmi-gets:NUMBER        get so many keys of the next rank, many at a time, and check their values
pmi-late:NUMBER        ask for a value so often, and read the answers once the server takes no more
pmi-close              close the connection
pmi-stranger:TEXT      connect to PMI_PORT besides, send bytes, and wait for the end of that
show ...               write the working directory, all arguments and the environment, escaped, one a line;
                       no step follows
";

fn main() -> ExitCode {
    let mut task = Task { pmi: Pmi::default() };
    let mut is_meant = true;
    for arg in std::env::args_os().skip(1) {
        let step = arg.to_string_lossy();
        if let Some(ranks) = step.strip_prefix("on:") {
            is_meant = ranks.is_empty() || ranks.split(',').any(|rank| rank == own_rank());
        }
        if !is_meant || step.starts_with("on:") {
            continue;
        }
        if step == "show" {
            return finish(show());
        }
        if let Err(error) = task.perform(&step) {
            return finish(Err(io::Error::other(format!("{step}: {error}"))));
        }
    }
    ExitCode::SUCCESS
}

fn finish(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "misbehave: {error}");
            ExitCode::from(99)
        }
    }
}

fn own_rank() -> String {
    std::env::var("PMI_RANK").or_else(|_| std::env::var("PMI_ID")).unwrap_or_default()
}

struct Task {
    pmi: Pmi,
}

impl Task {
    fn perform(&mut self, step: &str) -> io::Result<()> {
        let (name, arg) = step.split_once(':').unwrap_or((step, ""));
        match name {
            "exit" => std::process::exit(number(arg)?),
            "signal" => die_of_signal(number(arg)?),
            "ignore" => ignore_signal(number(arg)?),
            "stop" => die_of_signal(SIGSTOP),
            "nap" => nap(arg),
            "wake" => wake(number(arg)?),
            "say" => write_all(io::stdout(), &format!("{arg}\n")),
            "warn" => write_all(io::stderr(), &format!("{arg}\n")),
            "partial" => write_all(io::stdout(), arg),
            "flood" => flood(io::stdout().lock(), arg),
            "blast" => blast(number(arg)?),
            "flood-stderr" => flood(io::stderr().lock(), arg),
            "sleep" => sleep(number(arg)?),
            "hang" => sleep(u64::MAX),
            "restless" => be_restless(number(arg)?),
            "daemon" => leave_daemon(if arg.is_empty() { "hang" } else { arg }),
            "daemon-middle" => be_daemon_middle(arg),
            "leak-stdout" => leak_stdout(arg),
            "copy-stdin" => copy_stdin(),
            "count-stdin" => count_stdin(),
            "close-stdin" => close_stdin(),
            _ if name.starts_with("pmi-") => self.pmi.perform(name, arg),
            _ => Err(no_such_step()),
        }
    }
}

fn no_such_step() -> io::Error {
    io::Error::other(format!("no such step; these are:\n{STEPS}"))
}

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

fn number<T: std::str::FromStr>(arg: &str) -> io::Result<T> {
    arg.parse().map_err(|_| io::Error::other("not a number in range"))
}

fn write_all(mut out: impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[expect(clippy::disallowed_methods, reason = "a task that sleeps is what the test needs")]
fn sleep(seconds: u64) -> io::Result<()> {
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

/// The child waits until this is stopped, so that it is continued behind that.
fn nap(seconds: &str) -> io::Result<()> {
    let mut child = start(&format!("wake:{seconds}"), Stdio::null())?;
    die_of_signal(SIGSTOP)?;
    child.wait().map(drop)
}

fn wake(seconds: u64) -> io::Result<()> {
    let parent = std::os::unix::process::parent_id();
    let is_stopped = || -> io::Result<bool> {
        let stat = std::fs::read_to_string(format!("/proc/{parent}/stat"))?;
        Ok(stat.rsplit(") ").next().is_some_and(|state| state.starts_with('T')))
    };
    while !is_stopped()? {
        std::thread::yield_now();
    }
    sleep(seconds)?;
    send_signal(parent, SIGCONT)
}

/// Blocks of C's standard output when it is no terminal.
const BLOCK_BYTES: usize = 4096;

fn flood(mut out: impl Write, arg: &str) -> io::Result<()> {
    let [lines, bytes, mode] = arg.split(':').collect::<Vec<_>>()[..] else {
        return Err(io::Error::other("needs N:BYTES:MODE"));
    };
    let (lines, bytes) = (number(lines)?, number(bytes)?);
    let rank = std::env::var("PMI_RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0);
    let block_bytes = if mode == "line" { bytes } else { BLOCK_BYTES };
    let mut text = String::new();
    for index in 0..lines {
        FloodLine { rank, index }.append(&mut text, bytes);
        while text.len() >= block_bytes {
            write_all(&mut out, &text[..block_bytes])?;
            text.drain(..block_bytes);
        }
    }
    write_all(&mut out, &text)
}

/// The same letters over and over, as fast as the reader takes them.
fn blast(mebibytes: u64) -> io::Result<()> {
    const CHUNK_BYTES: usize = 1 << 16;
    let chunk = "a line of a file that is much too long for a terminal window...\n".repeat(1 << 10);
    let mut out = rustix::stdio::stdout().try_clone_to_owned().map(std::fs::File::from)?;
    for _ in 0..mebibytes << 4 {
        out.write_all(&chunk.as_bytes()[..CHUNK_BYTES])?;
    }
    Ok(())
}

/// Starts this program again with one step, and nothing of its own standard streams but what `streams` leaves.
#[expect(clippy::disallowed_methods, reason = "fixtures are small, and need no fast spawn")]
fn start(step: &str, stdout: Stdio) -> io::Result<std::process::Child> {
    Command::new(std::env::current_exe()?)
        .arg(step)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
}

/// Returns when the daemon runs and its parent is gone.
fn leave_daemon(step: &str) -> io::Result<()> {
    start(&format!("daemon-middle:{step}"), Stdio::null())?.wait().map(drop)
}

/// The process between a task and its daemon. What it sets, the daemon inherits.
fn be_daemon_middle(step: &str) -> io::Result<()> {
    rustix::process::setsid()?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        ignore_signal(signal)?;
    }
    start(step, Stdio::null()).map(drop)
}

/// The same process, with one program after another.
fn be_restless(times: u32) -> io::Result<()> {
    match times.checked_sub(1) {
        Some(left) => {
            Err(Command::new(std::env::current_exe()?).arg(format!("restless:{left}")).exec())
        }
        None => Ok(()),
    }
}

fn leak_stdout(seconds: &str) -> io::Result<()> {
    start(&format!("sleep:{seconds}"), Stdio::inherit()).map(drop)
}

fn copy_stdin() -> io::Result<()> {
    let summary = drain_stdin(io::stdout().lock())?;
    write_all(io::stderr(), &summary)
}

fn count_stdin() -> io::Result<()> {
    let summary = drain_stdin(io::sink())?;
    write_all(io::stdout(), &summary)
}

/// Reads stdin to its end, and returns a line with its length and checksum.
fn drain_stdin(mut out: impl Write) -> io::Result<String> {
    let mut buffer = vec![0; 1 << 16];
    let (mut total, mut sum) = (0, Fnv::EMPTY);
    loop {
        let bytes = io::stdin().lock().read(&mut buffer)?;
        if bytes == 0 {
            out.flush()?;
            return Ok(format!("stdin bytes={total} fnv={:016x}\n", sum.value()));
        }
        total += bytes;
        sum = sum.and(&buffer[..bytes]);
        out.write_all(&buffer[..bytes])?;
    }
}

/// Puts something else in the place of stdin, so that its pipe or terminal has one reader less.
fn close_stdin() -> io::Result<()> {
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(nothing)?;
    Ok(())
}

fn show() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let cwd = std::env::current_dir()?;
    writeln!(out, "cwd {}", cwd.as_os_str().as_bytes().escape_ascii())?;
    for arg in std::env::args_os() {
        writeln!(out, "arg {}", arg.as_bytes().escape_ascii())?;
    }
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.as_bytes().escape_ascii(), value.as_bytes().escape_ascii());
        writeln!(out, "env {name}={value}")?;
    }
    out.flush()
}
