//! The ways to bring up an agent, and the command that each of them runs.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use model::HostName;

use crate::{ShellTemplate, boot, bulk, deliver, here, quote};

/// The hidden subcommand of an agent. An agent that is in place is told the build that it is to be.
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

/// The program that agents are processes of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentProgram {
    /// Its absolute path on the hosts.
    pub path: OsString,
    /// What to do where it is not there, or of another build; `None`: nothing.
    pub fallback: Option<Fallback>,
}

/// Which program to look for in a host's cache, and to send there when it asks for it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fallback {
    /// Its build, in letters that mean nothing to a shell.
    pub build: String,
    /// The machine that it runs on, as `uname -m` says it.
    pub machine: String,
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
    /// What to write at a [`Request::Boot`](crate::Request); `None` when there can be none.
    pub after_delivery: Option<Vec<u8>>,
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

    /// Whether a shell on the host runs the command.
    pub fn is_remote(&self) -> bool {
        match self {
            Bootstrapper::Ssh { .. } | Bootstrapper::Shell(_) => true,
            Bootstrapper::Local | Bootstrapper::LocalBulk => false,
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
    /// bootstrapper. `payload` is for its boot channel, and the same for all. Only remote shells
    /// have a use for a program's fallback.
    ///
    /// # Errors
    /// A name that cannot be a host's.
    pub fn command(
        &self,
        hosts: &[&str],
        program: &AgentProgram,
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
            Bootstrapper::Local => vec![program.path.clone(), AGENT_SUBCOMMAND.into()],
            Bootstrapper::LocalBulk => {
                vec![program.path.clone(), bulk::SUBCOMMAND.into(), hosts.len().to_string().into()]
            }
        };
        let fallback = program.fallback.as_ref().filter(|_| self.is_remote());
        let script = fallback.map(|it| deliver::line(&it.build, &it.machine));
        let line = boot::line(payload);
        let after_delivery = fallback.map(|_| line.clone());
        let (env_add, stdin) = if self.is_bulk() {
            (vec![(bulk::BOOT_VARIABLE.into(), OsString::from_vec(line))], None)
        } else {
            (Vec::new(), Some([script.unwrap_or_default(), line].concat()))
        };
        Ok(Command { program: argv[0].clone(), argv, env_add, stdin, after_delivery })
    }

    /// The command that has a host's shell do what one line of its standard input says
    /// ([`deliver::cleaning`]).
    ///
    /// # Errors
    /// A name that cannot be a host's.
    pub fn script_command(&self, host: &str, line: Vec<u8>) -> Result<Command, CommandError> {
        self.check_host(host)?;
        let argv = match self {
            Bootstrapper::Ssh { args } => ssh_argv(args, host, &read_and_run()),
            Bootstrapper::Shell(template) => os_strings(template.fill(host, &read_and_run())),
            Bootstrapper::Local | Bootstrapper::LocalBulk => {
                ["/bin/sh", "-c", deliver::READ_AND_RUN].map(OsString::from).to_vec()
            }
        };
        let (program, env_add) = (argv[0].clone(), Vec::new());
        Ok(Command { program, argv, env_add, stdin: Some(line), after_delivery: None })
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
fn remote_command(program: &AgentProgram) -> Vec<u8> {
    let path = quote(program.path.as_bytes());
    let run: Vec<u8> = [b"exec", &path[..], AGENT_SUBCOMMAND.as_bytes()].join(&b' ');
    let Some(Fallback { build, .. }) = &program.fallback else { return run };
    let build = build.as_bytes();
    let words: [&[u8]; 9] =
        [b"test -f", &path, b"-a -x", &path, b"&&", &run, build, b";", &read_and_run()];
    words.join(&b' ')
}

/// For the login shell: to become one that does what the next line says.
fn read_and_run() -> Vec<u8> {
    [&b"exec /bin/sh -c "[..], &quote(deliver::READ_AND_RUN.as_bytes()), b" convoke"].concat()
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
    use std::ffi::OsStr;

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
    fn a_program_with_a_fallback_is_run_where_it_is_and_told_its_build() {
        let fallback = Some(Fallback { build: "c0ffee".into(), machine: "x86_64".into() });
        let program = AgentProgram { path: "/opt/convoke".into(), fallback };
        let shell = Bootstrapper::Shell(ShellTemplate::parse("rsh {host}").unwrap());
        let command = shell.command(&["n1"], &program, b"ab").unwrap();
        let expected = "rsh n1 test -f /opt/convoke -a -x /opt/convoke && exec /opt/convoke __agent \
                        c0ffee ; exec /bin/sh -c 'IFS= read -r s && eval \"$(printf %b \"$s\")\"' convoke";
        assert_eq!(joined(&command), expected);
        assert_eq!(command.after_delivery, Some(boot::line(b"ab")));
        let stdin = String::from_utf8(command.stdin.unwrap()).unwrap();
        let (script, boot) = stdin.split_once('\n').unwrap();
        assert!(script.starts_with(r"build=c0ffee\nmachine=x86_64\numask 077\n"), "{script}");
        assert_eq!(boot, "CONVOKE-BOOT-1 6162\n");

        let local = Bootstrapper::Local.command(&["n1"], &program, b"ab").unwrap();
        assert_eq!(joined(&local), "/opt/convoke __agent");
        assert_eq!((local.after_delivery, local.stdin), (None, Some(boot.into())));
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
            let refused = ssh.command(&[bad], &program("/c"), b"");
            assert_eq!(refused, Err(CommandError::BadHost(bad.to_owned())));
        }
        for good in ["n1", "user@n1.example.org", "10.0.0.1", "fe80::1%eth0"] {
            ssh.command(&[good], &program("/c"), b"").unwrap();
        }
    }

    fn command(bootstrapper: &Bootstrapper, hosts: &[&str]) -> Command {
        bootstrapper.command(hosts, &program("/opt/my apps/convoke"), b"ab").unwrap()
    }

    fn program(path: &str) -> AgentProgram {
        AgentProgram { path: path.into(), fallback: None }
    }

    fn joined(command: &Command) -> String {
        command.argv.join(OsStr::new(" ")).into_string().unwrap()
    }
}
