//! `convoke clean`: removes the programs that were sent to hosts, or to this one, and cached there.
//!
//! Each host's shell runs a script; no agent is started, since it would have to be sent first.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bootstrap::{Bootstrapper, Helper, ShellTemplate, diagnose};
use os::stream::{self, ReadOutcome};
use os::{ExitStatus, Interest, Poller, Signal, machine, process};

use crate::args::{CleanArgs, WINDOW};
use crate::exit_code;
use crate::streams::{print, say};

/// How long a host may say nothing.
const SILENT_MAX: Duration = Duration::from_secs(30);

/// Removes what is cached, and says what that was. Fails when a host cannot be asked.
pub(crate) fn clean(args: &CleanArgs) -> u8 {
    let (hosts, bootstrapper) = match (hosts(args), bootstrapper(args)) {
        (Ok(hosts), Ok(bootstrapper)) => (hosts, bootstrapper),
        (Err(words), _) | (_, Err(words)) => {
            say(&format!("error: {words}\n"));
            return exit_code::USAGE;
        }
    };
    let hostname = machine::hostname();
    let mut code = 0;
    for some in hosts.chunks(WINDOW as usize) {
        let begin = |host: &String| {
            let bootstrapper = bootstrapper.for_host(host, &hostname);
            (host.clone(), begin(bootstrapper, host))
        };
        let begun: Vec<_> = some.iter().map(begin).collect();
        for (host, helper) in begun {
            match helper.and_then(|(bootstrapper, helper)| end(bootstrapper, helper)) {
                Ok(said) => {
                    let lines = said.lines().map(|line| format!("{host}: {line}\n"));
                    code = code.max(print(&lines.collect::<String>()));
                }
                Err(words) => {
                    say(&format!("error: clean {host}: {words}\n"));
                    code = engine::exit_code::NOT_STARTED;
                }
            }
        }
    }
    code
}

fn hosts(args: &CleanArgs) -> Result<Vec<String>, String> {
    let allocation = alloc::allocate(args.hosts.as_deref(), args.reach.hostfile.as_deref())
        .map_err(|error| agent::error_chain(&error))?;
    Ok(allocation.nodes.into_iter().map(|node| node.name).collect())
}

fn bootstrapper(args: &CleanArgs) -> Result<Bootstrapper, String> {
    let reach = &args.reach;
    match &reach.shell {
        // Nothing but this host: no shell is needed whatever it is called.
        None if args.hosts.is_none() && reach.hostfile.is_none() => Ok(Bootstrapper::Local),
        None => Ok(Bootstrapper::Ssh { args: reach.ssh_arg.clone() }),
        Some(text) => {
            let template = ShellTemplate::parse(text);
            template.map(Bootstrapper::Shell).map_err(|error| agent::error_chain(&error))
        }
    }
}

fn begin<'a>(
    bootstrapper: &'a Bootstrapper,
    host: &str,
) -> Result<(&'a Bootstrapper, Helper), String> {
    let command = bootstrapper.script_command(host, bootstrap::deliver::cleaning());
    let command = command.map_err(|error| agent::error_chain(&error))?;
    let helper = bootstrap::start(&command, None).map_err(|error| agent::error_chain(&error))?;
    Ok((bootstrapper, helper))
}

/// Waits for what a host says, to its end.
fn end(bootstrapper: &Bootstrapper, helper: Helper) -> Result<String, String> {
    let said = helper.streams.as_ref().map(read_to_end).transpose();
    let errors = read_to_end(&helper.stderr);
    let (Ok(said), Ok(errors)) = (said, errors) else {
        let _ = process::kill_group(helper.pid, Signal::KILL); // gone is fine
        return Err(format!("no answer within {} s", SILENT_MAX.as_secs()));
    };
    let status = wait(&helper).map_err(|error| agent::error_chain(&error))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&said.unwrap_or_default()).into_owned());
    }
    let failure = diagnose(bootstrapper, status, &errors);
    Err(format!("{}\n{}", failure.kind, failure.words).trim_end().to_owned())
}

fn wait(helper: &Helper) -> std::io::Result<ExitStatus> {
    let pidfd = process::pidfd(helper.pid)?;
    wait_readable(&pidfd)?;
    Ok(process::try_wait(&pidfd)?.unwrap_or(ExitStatus::Exited(0)))
}

fn read_to_end(fd: &OwnedFd) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream::read(fd, &mut buffer)? {
            ReadOutcome::Data(n) => bytes.extend_from_slice(&buffer[..n]),
            ReadOutcome::WouldBlock => wait_readable(fd)?,
            ReadOutcome::Eof => return Ok(bytes),
        }
    }
}

fn wait_readable(fd: impl AsFd) -> std::io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(fd, 0, Interest::READ).map_err(std::io::Error::other)?;
    let mut ready = Vec::new();
    poller.wait(Some(SILENT_MAX), &mut ready)?;
    if ready.is_empty() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}
