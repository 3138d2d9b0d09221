//! What can go wrong when hosts are made or hurt: always the machine's or the caller's fault.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why the testbed could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// Namespaces need privileges.
    #[error("a testbed of namespaces needs root")]
    NotRoot,
    /// There is no OpenSSH server to be the hosts.
    #[error("no `{0}`: install an OpenSSH server (Debian's package is `openssh-server`)")]
    NoSshd(&'static str),
    /// A network of this size does not fit one bridge.
    #[error("a testbed has room for 1 to {max} hosts, not for {asked}")]
    HostCount {
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        max: usize,
    },
    /// No host of this testbed has the name.
    #[error("the testbed has no host `{0}`")]
    UnknownHost(String),
    /// The host was killed, so nothing can be done with it.
    #[error("host `{0}` is dead")]
    DeadHost(String),
    /// A request to a testbed in the background makes no sense.
    #[error("no such request: `{request}`; there are: {known}")]
    UnknownRequest {
        /// What was asked.
        request: String,
        /// What can be asked.
        known: &'static str,
    },
    /// A tool could not be started.
    #[error("start `{program}`")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A tool ended with a failure.
    #[error("{what} failed: {said}")]
    Tool {
        /// What it was to do.
        what: String,
        /// Its status and its own words.
        said: String,
    },
    /// A file of the testbed could not be read or written.
    #[error("{doing} `{path}`")]
    File {
        /// Verb, such as "write".
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A system call failed.
    #[error("{doing}")]
    System {
        /// What was attempted.
        doing: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something did not happen in time.
    #[error("{what} within {limit_ms} ms: it did not happen")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        limit_ms: u128,
    },
}

impl TestbedError {
    /// The error and what caused it, on one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }
}
