//! Runs a bootstrap command as a helper: in a session of its own, so that `^C` at the terminal
//! does not reach it, with one socket as standard input and output and a pipe for its complaints.
//!
//! One socket for both ways costs us one descriptor for every agent's whole life, where two pipes
//! would cost two.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use os::stream::{self, Pipe, WriteOutcome};
use os::{Pid, ResolveError, Signal, SpawnError, SpawnSpec};

use crate::Command;

/// A bootstrap command that runs. Our ends of its streams do not block.
///
/// When the process has ended, take what its streams hold and close them; do not wait for their
/// end, since something that it left behind may hold them.
#[derive(Debug)]
pub struct Helper {
    /// The process. Its end is a sign that the agent has ended too.
    pub pid: Pid,
    /// Its standard input and output. Keep it open as long as the agent shall live, and read what
    /// [`RequestReader`](crate::RequestReader) understands; `None` for bulk bootstrappers.
    pub streams: Option<OwnedFd>,
    /// What is to be written to `streams` yet, once there is room; nearly always nothing.
    pub unsent: Vec<u8>,
    /// Read it all along; what it says is for [`diagnose`](fn@crate::diagnose).
    pub stderr: OwnedFd,
}

/// Why a helper could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("find the program that starts agents")]
    Resolve(#[source] ResolveError),
    /// An argument or a variable has a zero byte in it.
    #[error("a zero byte in `{0}`")]
    ZeroByte(String),
    /// Descriptors have run out.
    #[error("make pipes for `{program}`")]
    Pipes {
        /// For whom.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The system did not start it.
    #[error("start `{program}`")]
    Spawn {
        /// What.
        program: String,
        /// Why.
        #[source]
        source: SpawnError,
    },
}

/// Used when there is no `PATH`; what `sh` uses.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Starts `command`, allowed `descriptors_max` descriptors if that is not as many as we, and writes
/// as much of its standard input as fits.
///
/// # Errors
/// See [`StartError`]; nothing runs then.
pub fn start(command: &Command, descriptors_max: Option<u64>) -> Result<Helper, StartError> {
    let program = find(&command.program)?;
    let argv = c_strings(&command.argv)?;
    let env = c_strings(&environment(&command.env_add))?;
    let name = || command.program.to_string_lossy().into_owned();
    let streams = Streams::new(command.stdin.is_some())
        .map_err(|source| StartError::Pipes { program: name(), source })?;
    let mut spec = SpawnSpec::new(
        &program,
        argv.iter().map(CString::as_c_str).collect(),
        env.iter().map(CString::as_c_str).collect(),
    );
    let both = Some(streams.theirs.as_fd());
    spec.fds = [both, both, Some(streams.stderr.write.as_fd())];
    spec.new_session = true;
    spec.descriptors_max = descriptors_max;
    spec.parent_death_signal = Some(Signal::TERM); // a local agent then ends in good order
    let pid = os::spawn(&spec).map_err(|source| StartError::Spawn { program: name(), source })?;
    let mut helper = Helper {
        pid,
        streams: streams.ours,
        unsent: command.stdin.clone().unwrap_or_default(),
        stderr: streams.stderr.read,
    };
    helper.send();
    Ok(helper)
}

impl Helper {
    /// Writes more of what is unsent. Call when `streams` is writable, until `unsent` is empty.
    pub fn send(&mut self) {
        let Some(streams) = &self.streams else { return };
        while !self.unsent.is_empty() {
            match stream::write(streams, &self.unsent) {
                Ok(WriteOutcome::Data(n)) => drop(self.unsent.drain(..n)),
                Ok(WriteOutcome::WouldBlock) => return,
                // Its end, which follows, says more than this.
                Ok(WriteOutcome::Closed) | Err(_) => self.unsent.clear(),
            }
        }
    }
}

struct Streams {
    /// What it has as standard input and output: a socket, or nothing.
    theirs: OwnedFd,
    /// The socket's other end.
    ours: Option<OwnedFd>,
    stderr: Pipe,
}

impl Streams {
    fn new(is_heard: bool) -> io::Result<Streams> {
        let stderr = stream::pipe()?;
        stream::set_nonblocking(&stderr.read)?;
        if is_heard {
            let (theirs, ours) = stream::socket_pair()?;
            stream::set_nonblocking(&ours)?;
            return Ok(Streams { theirs, ours: Some(ours), stderr });
        }
        let theirs = File::options().read(true).write(true).open("/dev/null")?.into();
        Ok(Streams { theirs, ours: None, stderr })
    }
}

fn find(program: &OsStr) -> Result<CString, StartError> {
    let path_list = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let path = os::which(program, &path_list, &dir).map_err(StartError::Resolve)?;
    c_string(path.as_os_str())
}

/// Ours, with `added` in the place of variables of the same names.
pub(crate) fn environment(added: &[(OsString, OsString)]) -> Vec<OsString> {
    let ours = std::env::vars_os().filter(|(name, _)| added.iter().all(|(other, _)| other != name));
    let all = ours.chain(added.iter().cloned());
    all.map(|(name, value)| [name, value].join(OsStr::new("="))).collect()
}

pub(crate) fn c_strings(strings: &[OsString]) -> Result<Vec<CString>, StartError> {
    strings.iter().map(|string| c_string(string)).collect()
}

fn c_string(string: &OsStr) -> Result<CString, StartError> {
    let zero = |_| StartError::ZeroByte(string.to_string_lossy().into_owned());
    CString::new(OsStr::as_bytes(string).to_vec()).map_err(zero)
}
