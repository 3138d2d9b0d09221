//! The ways to bring up an agent, and the command that each of them runs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use model::HostName;

use crate::{ShellTemplate, boot, bulk, here, quote};

/// The hidden subcommand, and only argument, of an agent.
pub const AGENT_SUBCOMMAND: &str = "__agent";

/// A way to bring up agents: what the user's `--launcher` names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Bootstrapper {
    /// The OpenSSH client, with the user's configuration and these arguments of theirs.
    Ssh {
        /// From `--ssh-arg`.
        args: Vec<String>,
    },
    /// Anything that runs a command on a host.
    Shell(ShellTemplate),
    /// The agent itself, on this machine, whatever the host is called.
    Local,
    /// One command that starts many agents on this machine, without standard input: what `srun`
    /// does on many.
    LocalBulk,
}

/// A command to run here that brings up agents.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Command {
    /// What to execute: a path, or a name to look up in our `PATH`.
    pub program: OsString,
    /// All its arguments, the program's name first.
    pub argv: Vec<OsString>,
    /// Added to our own environment.
    pub env_add: Vec<(OsString, OsString)>,
    /// What to write to its standard input, which then stays open for the agent's life; `None`
    /// when it gets none.
    pub stdin: Option<Vec<u8>>,
}

/// Why there is no command.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CommandError {
    /// It would be taken for an option or mean something to a shell.
    #[error("`{0}` cannot be a host's name")]
    BadHost(String),
    /// A custom shell would reach another port than the user said.
    #[error("host `{0}` has a port, and the shell command does not say where `{{port}}` goes")]
    NoPlaceForPort(String),
    /// A custom shell asks for what the host does not say.
    #[error("the shell command needs `{{{1}}}`, and host `{0}` says none")]
    NotSaid(String, &'static str),
}

impl Bootstrapper {
    /// Whether one command can start several agents.
    pub fn is_bulk(&self) -> bool {
        match self {
            Bootstrapper::LocalBulk => true,
            Bootstrapper::Ssh { .. } | Bootstrapper::Shell(_) | Bootstrapper::Local => false,
        }
    }

    /// What to use for `host` on the machine called `hostname`: our own host needs no shell,
    /// except under a custom one, which may know the name for something else.
    pub fn for_host(&self, host: &str, hostname: &str) -> &Bootstrapper {
        match self {
            Bootstrapper::Ssh { .. } if here::is_here(host, hostname) => &Bootstrapper::Local,
            Bootstrapper::Ssh { .. }
            | Bootstrapper::Shell(_)
            | Bootstrapper::Local
            | Bootstrapper::LocalBulk => self,
        }
    }

    /// How error messages call the process that it runs here, which lives as long as its agents.
    pub fn name(&self) -> &'static str {
        match self {
            Bootstrapper::Ssh { .. } | Bootstrapper::Shell(_) => "remote shell",
            Bootstrapper::Local => "agent program",
            Bootstrapper::LocalBulk => "bulk launcher (`convoke __bulk`)",
        }
    }

    /// Whether there can be a command for `host`, whoever runs it.
    ///
    /// # Errors
    /// What keeps it from being reached.
    pub fn check_host(&self, host: &str) -> Result<(), CommandError> {
        if !is_host_name(host) {
            return Err(CommandError::BadHost(host.to_owned()));
        }
        match self {
            Bootstrapper::Shell(template) => template.check(host),
            Bootstrapper::Ssh { .. } | Bootstrapper::Local | Bootstrapper::LocalBulk => Ok(()),
        }
    }

    /// The command that starts an agent on each of `hosts`: one host, unless this is a bulk
    /// bootstrapper. `program` is the agent's absolute path there; `payload` is for its boot
    /// channel, and the same for all.
    ///
    /// # Errors
    /// A name that cannot be a host's.
    pub fn command(
        &self,
        hosts: &[&str],
        program: &OsStr,
        payload: &[u8],
    ) -> Result<Command, CommandError> {
        assert!(!hosts.is_empty() && (self.is_bulk() || hosts.len() == 1));
        hosts.iter().try_for_each(|host| self.check_host(host))?;
        let host = hosts[0];
        let argv = match self {
            Bootstrapper::Ssh { args } => ssh_argv(args, host, &remote_command(program)),
            Bootstrapper::Shell(template) => {
                os_strings(template.fill(host, &remote_command(program)))
            }
            Bootstrapper::Local => vec![program.to_owned(), AGENT_SUBCOMMAND.into()],
            Bootstrapper::LocalBulk => {
                vec![program.to_owned(), bulk::SUBCOMMAND.into(), hosts.len().to_string().into()]
            }
        };
        let line = boot::line(payload);
        let (env_add, stdin) = if self.is_bulk() {
            (vec![(bulk::BOOT_VARIABLE.into(), OsString::from_vec(line))], None)
        } else {
            (Vec::new(), Some(line))
        };
        Ok(Command { program: argv[0].clone(), argv, env_add, stdin })
    }
}

/// The path of the running program, which is the agent's on a node with the same file system.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn own_program() -> io::Result<OsString> {
    Ok(std::fs::read_link("/proc/self/exe")?.into_os_string())
}

/// Without a terminal, without forwarding, and never asking: a question would wait for ever.
/// Connections that the user already shares are used, but none is opened to be shared: it would
/// die with us, and others' sessions with it.
///
/// What the user says of one host comes before what is said of all: of `-l` and `-p`, `ssh` keeps
/// the first, too.
///
/// As `-o` rather than as flags, and behind the user's, since `ssh` keeps the first value of an
/// option but the last of a flag: so the user's choice stands.
const SSH_OPTIONS: [&str; 5] = [
    "-oBatchMode=yes",
    "-oRequestTTY=no",
    "-oForwardX11=no",
    "-oForwardAgent=no",
    "-oControlMaster=no",
];

fn ssh_argv(args: &[String], host: &str, command: &[u8]) -> Vec<OsString> {
    let HostName { user, host, port } = HostName::of(host);
    let user = user.map(|user| ["-l".into(), user.into()]);
    let port = port.map(|port| ["-p".into(), port.to_string().into()]);
    let of_host = user.into_iter().chain(port).flatten();
    let theirs = args.iter().map(OsString::from);
    let ours = SSH_OPTIONS.iter().map(OsString::from);
    let end = ["--".into(), host.into(), OsString::from_vec(command.to_vec())];
    [OsString::from("ssh")]
        .into_iter()
        .chain(of_host)
        .chain(theirs)
        .chain(ours)
        .chain(end)
        .collect()
}

/// For the login shell there, whichever it is; `exec` so that no shell stays between.
fn remote_command(program: &OsStr) -> Vec<u8> {
    let words: [&[u8]; 3] = [b"exec", &quote(program.as_bytes()), AGENT_SUBCOMMAND.as_bytes()];
    words.join(&b' ')
}

/// Names, addresses of both families, `user@` in front and a port behind: nothing that a shell or an option
/// parser could take for something else.
fn is_host_name(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:@%[]/+".contains(&byte);
    !host.is_empty() && !host.starts_with('-') && host.bytes().all(allowed)
}

fn os_strings(words: Vec<Vec<u8>>) -> Vec<OsString> {
    words.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_the_user_come_before_ours() {
        let args = vec!["-p".to_owned(), "2222".to_owned(), "-A".to_owned()];
        let command = command(&Bootstrapper::Ssh { args }, &["n1"]);
        let expected = "ssh -p 2222 -A -oBatchMode=yes -oRequestTTY=no -oForwardX11=no \
                        -oForwardAgent=no -oControlMaster=no -- n1 exec '/opt/my apps/convoke' __agent";
        assert_eq!(joined(&command), expected);
        assert_eq!(command.stdin.unwrap(), b"CONVOKE-BOOT-1 6162\n");
        assert_eq!(command.env_add, []);
    }

    #[test]
    fn what_is_said_of_a_host_comes_before_what_is_said_of_all() {
        let args = vec!["-p".to_owned(), "2222".to_owned()];
        let line =
            |host: &str| joined(&command(&Bootstrapper::Ssh { args: args.clone() }, &[host]));
        assert!(line("me@n1/22").starts_with("ssh -l me -p 22 -p 2222 -oBatchMode=yes"));
        assert!(line("me@n1/22").contains(" -- n1 exec"));
        assert!(line("fe80::1%eth0/22").contains("-p 22 -p 2222"));
    }

    #[test]
    fn a_bulk_command_starts_many_without_standard_input() {
        let command = command(&Bootstrapper::LocalBulk, &["a", "b", "c"]);
        assert_eq!(joined(&command), "/opt/my apps/convoke __bulk 3");
        assert_eq!(command.stdin, None);
        assert_eq!(command.env_add, [("CONVOKE_BOOT".into(), "CONVOKE-BOOT-1 6162\n".into())]);
    }

    #[test]
    fn our_own_host_needs_no_shell_except_under_a_custom_one() {
        let ssh = Bootstrapper::Ssh { args: Vec::new() };
        let shell = Bootstrapper::Shell(ShellTemplate::parse("rsh {host}").unwrap());
        assert_eq!(ssh.for_host("n1", "n1.cluster"), &Bootstrapper::Local);
        assert_eq!(ssh.for_host("n2", "n1.cluster"), &ssh);
        assert_eq!(shell.for_host("n1", "n1"), &shell);
    }

    #[test]
    fn a_host_that_looks_like_something_else_is_refused() {
        let ssh = Bootstrapper::Ssh { args: Vec::new() };
        for bad in ["", "-oProxyCommand=x", "a;b", "a b", "$(x)", "a\n"] {
            let refused = ssh.command(&[bad], OsStr::new("/c"), b"");
            assert_eq!(refused, Err(CommandError::BadHost(bad.to_owned())));
        }
        for good in ["n1", "user@n1.example.org", "10.0.0.1", "fe80::1%eth0"] {
            ssh.command(&[good], OsStr::new("/c"), b"").unwrap();
        }
    }

    fn command(bootstrapper: &Bootstrapper, hosts: &[&str]) -> Command {
        bootstrapper.command(hosts, OsStr::new("/opt/my apps/convoke"), b"ab").unwrap()
    }

    fn joined(command: &Command) -> String {
        command.argv.join(OsStr::new(" ")).into_string().unwrap()
    }
}
