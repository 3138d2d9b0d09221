//! Keys and configuration for real sshds and for the clients that talk to them.
//!
//! All of it lives in the testbed's own file system. The client configuration replaces the
//! system-wide file within the testbed, so that a plain `ssh n3` works there, with host keys
//! checked, while nobody's `~/.ssh` is read for keys or written to.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::testbed::RUN_DIR;
use crate::{TestbedError, command};

/// How a host's sshd is to behave.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sshd {
    /// Lets the testbed's user key in.
    Willing,
    /// Lets it in as often as an sshd does that nobody has configured: from ten connections on that
    /// are not authenticated yet, it drops some.
    Usual,
    /// Shows a host key that no client knows.
    WrongHostKey,
    /// Knows no user key, and asks for no password: permission is denied.
    NoUserKey,
    /// Knows no user key, and asks for a password.
    AsksPassword,
    /// Admits one connection that is not authenticated yet, refuses all others, and writes each of
    /// those down.
    OneStartup,
}

impl Sshd {
    /// Options that come before the configuration file, so that they win.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Sshd::Willing | Sshd::Usual => &[],
            Sshd::WrongHostKey => &["-o", "HostKey=/run/testbed/unknown_key"],
            Sshd::NoUserKey => &["-o", "AuthorizedKeysFile=none"],
            Sshd::AsksPassword => &[
                "-o",
                "AuthorizedKeysFile=none",
                "-o",
                "PasswordAuthentication=yes",
                "-o",
                "PermitRootLogin=yes",
            ],
            Sshd::OneStartup => &["-o", "LogLevel=VERBOSE"],
        }
    }

    /// Its `MaxStartups`. It is no part of the configuration file, since of this option the last
    /// value wins.
    pub(crate) fn max_startups(self) -> &'static str {
        match self {
            Sshd::Willing | Sshd::WrongHostKey | Sshd::NoUserKey | Sshd::AsksPassword => {
                "MaxStartups=1000:30:2000"
            }
            Sshd::Usual => "MaxStartups=10:30:100",
            Sshd::OneStartup => "MaxStartups=1:100:1",
        }
    }
}

/// Writes keys and configuration below `dir`, which is [`RUN_DIR`] as seen from outside.
pub(crate) fn write_files(dir: &Path) -> Result<(), TestbedError> {
    write_keys(dir)?;
    make_key(&dir.join("unknown_key"))?;
    let client = format!("Host *\n    User root\n{}", client_options(RUN_DIR));
    write(&dir.join("ssh_config"), &client)?;
    write(&dir.join("sshd_config"), &format!("Port 22\n{}", server_config(RUN_DIR)))
}

/// Writes the keys of the hosts and of the user below `dir`, and what each side knows of the other.
pub(crate) fn write_keys(dir: &Path) -> Result<(), TestbedError> {
    make_key(&dir.join("user_key"))?;
    make_key(&dir.join("host_key"))?;
    let host_key = read(&dir.join("host_key.pub"))?;
    write(&dir.join("known_hosts"), &format!("* {host_key}"))?;
    write(&dir.join("authorized_keys"), &read(&dir.join("user_key.pub"))?)
}

/// Reads a file of the testbed.
pub(crate) fn read(path: &Path) -> Result<String, TestbedError> {
    fs::read_to_string(path).map_err(|source| TestbedError::File {
        doing: "read",
        path: path.to_owned(),
        source,
    })
}

/// Writes a file of the testbed in place, since some of them are mounted elsewhere.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), TestbedError> {
    fs::write(path, text).map_err(|source| TestbedError::File {
        doing: "write",
        path: path.to_owned(),
        source,
    })
}

fn make_key(path: &Path) -> Result<(), TestbedError> {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "testbed", "-f"]).arg(path);
    command::check("making an ssh key", &mut keygen).map(drop)
}

/// The options of all clients, with the files in `dir`.
pub(crate) fn client_options(dir: &str) -> String {
    format!(
        "\x20   IdentityFile {dir}/user_key\n\
         \x20   IdentitiesOnly yes\n\
         \x20   GlobalKnownHostsFile {dir}/known_hosts\n\
         \x20   UserKnownHostsFile {dir}/known_hosts\n\
         \x20   StrictHostKeyChecking yes\n"
    )
}

/// The configuration that all sshds share, but for [`Sshd::options`], [`Sshd::max_startups`] and
/// where they listen, with the files in `dir`.
///
/// The home directory is the testbed's, so that no login runs what a user has in `~/.bashrc`: that
/// takes time, and what it locks stays locked when a test kills it.
pub(crate) fn server_config(dir: &str) -> String {
    format!(
        "HostKey {dir}/host_key\n\
         AuthorizedKeysFile {dir}/authorized_keys\n\
         UsePAM no\n\
         UseDNS no\n\
         PermitRootLogin prohibit-password\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         PrintMotd no\n\
         SetEnv HOME={dir}\n"
    )
}
