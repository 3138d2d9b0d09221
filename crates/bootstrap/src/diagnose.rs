//! What a remote shell's end means: whether it is worth another try, and what to tell the user.
//!
//! `ssh` has one status, 255, for all its own failures, so its words must be read. The texts are
//! those of OpenSSH 7 to 10. The agent's own status comes through as it is.

use std::fmt;

use os::keeper::KILLED_WORDS;
use os::{ExitStatus, Signal};

use crate::Bootstrapper;

/// Why a shell did not bring up its agent, or lost it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShellFailure {
    /// The cause, as far as it can be told.
    pub kind: FailureKind,
    /// The last lines that the shell said, fit to be printed; may be empty.
    pub words: String,
}

/// The causes that are told apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// The server hung up before it knew who we are: too many at once (`MaxStartups`). Try again.
    Busy,
    /// Nothing listens there.
    Refused,
    /// No route to it, or no answer.
    Unreachable,
    /// Its name has no address.
    UnknownHost,
    /// The server does not accept us, or wants to be told a password.
    Auth,
    /// The server is not who it was.
    HostKey,
    /// The agent's program is not there.
    NoBinary,
    /// The agent's program is there, and may not be executed.
    NotExecutable,
    /// A signal killed the agent there; its keeper says so.
    AgentKilled(Signal),
    /// A signal ended the shell here.
    Killed(Signal),
    /// Some other status, perhaps the agent's own.
    Other(u8),
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Busy => f.write_str("connection closed during the key exchange"),
            FailureKind::Refused => f.write_str("connection refused"),
            FailureKind::Unreachable => f.write_str("host unreachable"),
            FailureKind::UnknownHost => f.write_str("unknown host"),
            FailureKind::Auth => f.write_str("permission denied"),
            FailureKind::HostKey => f.write_str("host key not accepted"),
            FailureKind::NoBinary => f.write_str("no agent program there"),
            FailureKind::NotExecutable => f.write_str("agent program not executable there"),
            FailureKind::AgentKilled(signal) => write!(f, "agent killed there by {signal}"),
            FailureKind::Killed(signal) => write!(f, "killed by {signal}"),
            FailureKind::Other(status) => write!(f, "exited with status {status}"),
        }
    }
}

/// Understands how `bootstrapper`'s command ended, given the end of its standard error.
pub fn diagnose(bootstrapper: &Bootstrapper, status: ExitStatus, stderr: &[u8]) -> ShellFailure {
    let text = String::from_utf8_lossy(stderr);
    let kind = match (agent_killed(bootstrapper, &text), status) {
        (Some(signal), _) => FailureKind::AgentKilled(signal),
        (None, ExitStatus::Signaled { signal, .. }) => FailureKind::Killed(signal),
        (None, ExitStatus::Exited(status)) => of_exit(bootstrapper, status, &text),
    };
    ShellFailure { kind, words: words(stderr) }
}

/// The signal that killed the agent, if its keeper says that one did. Of a bulk start's agents it
/// could be any.
fn agent_killed(bootstrapper: &Bootstrapper, text: &str) -> Option<Signal> {
    match bootstrapper {
        Bootstrapper::Ssh { .. } | Bootstrapper::Shell(_) | Bootstrapper::Local => {
            let signal = |line: &str| line.strip_prefix(KILLED_WORDS)?.trim_end().parse().ok();
            text.lines().rev().find_map(signal).map(Signal)
        }
        Bootstrapper::LocalBulk => None,
    }
}

/// `ssh`'s own status for everything that went wrong before or around the remote command.
const SSH_FAILED: u8 = 255;

fn of_exit(bootstrapper: &Bootstrapper, status: u8, text: &str) -> FailureKind {
    let of_connection = match bootstrapper {
        Bootstrapper::Ssh { .. } if status == SSH_FAILED => of_connection(text),
        // It may run ssh inside and turn its status into any other but success.
        Bootstrapper::Shell(_) if status != 0 => of_connection(text),
        Bootstrapper::Ssh { .. }
        | Bootstrapper::Shell(_)
        | Bootstrapper::Local
        | Bootstrapper::LocalBulk => None,
    };
    of_connection.or_else(|| of_program(status, text)).unwrap_or(FailureKind::Other(status))
}

/// From what is certain to what is also said at the end of other failures.
const CONNECTION_TEXTS: [(FailureKind, &[&str]); 6] = [
    (FailureKind::HostKey, &["Host key verification failed", "HOST IDENTIFICATION HAS CHANGED"]),
    (
        FailureKind::Auth,
        &[
            "Permission denied (",
            "Permission denied, please try again",
            "Too many authentication failures",
            "No more authentication methods",
            "a password is required",
            "assword:",
        ],
    ),
    (FailureKind::UnknownHost, &["Could not resolve hostname", "Name or service not known"]),
    (FailureKind::Refused, &["Connection refused"]),
    (
        FailureKind::Busy,
        &[
            "kex_exchange_identification:",
            "ssh_exchange_identification:",
            "timed out during banner exchange",
            "Exceeded MaxStartups",
            "Not allowed at this time",
        ],
    ),
    (
        FailureKind::Unreachable,
        &["No route to host", "Network is unreachable", "timed out", "Host is down"],
    ),
];

/// Said alone when the server hangs up between its banner and the end of the key exchange.
const HUNG_UP: [&str; 2] = ["Connection closed by ", "Connection reset by "];

fn of_connection(text: &str) -> Option<FailureKind> {
    let says = |texts: &[&str]| texts.iter().any(|part| text.contains(part));
    let certain = CONNECTION_TEXTS.iter().find(|(_, texts)| says(texts)).map(|(kind, _)| *kind);
    certain.or_else(|| says(&HUNG_UP).then_some(FailureKind::Busy))
}

/// POSIX shells say it by status (XCU 2.8.2); `csh` exits with 1 and says it in words.
fn of_program(status: u8, text: &str) -> Option<FailureKind> {
    match status {
        127 => Some(FailureKind::NoBinary),
        126 => Some(FailureKind::NotExecutable),
        1 if text.contains("Command not found.") => Some(FailureKind::NoBinary),
        1 if text.contains(": Permission denied.") => Some(FailureKind::NotExecutable),
        _ => None,
    }
}

const WORDS_LINES_MAX: usize = 8;
const WORDS_BYTES_MAX: usize = 2048;

/// The last lines that are not blank nor a keeper's for us, with everything escaped that could move a cursor.
fn words(stderr: &[u8]) -> String {
    let start = stderr.len().saturating_sub(WORDS_BYTES_MAX);
    let text = String::from_utf8_lossy(&stderr[start..]);
    let is_told = |line: &&str| !line.trim().is_empty() && !line.starts_with(KILLED_WORDS);
    let lines: Vec<&str> = text.lines().filter(is_told).collect();
    let last = &lines[lines.len().saturating_sub(WORDS_LINES_MAX)..];
    let printable: Vec<String> = last.iter().map(|line| printable(line.trim_end())).collect();
    let mut words = printable.join("\n");
    // Escapes are longer than what they stand for, and the end says most.
    while words.len() > WORDS_BYTES_MAX {
        let excess = words.len() - WORDS_BYTES_MAX;
        words.drain(..words.ceil_char_boundary(excess));
    }
    words
}

fn printable(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars() {
        match c {
            '\t' => text.push(' '),
            c if c.is_control() || is_invisible(c) => text.extend(c.escape_default()),
            c => text.push(c),
        }
    }
    text
}

/// Changes the direction of the text around it, or shows nothing.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShellTemplate;

    #[test]
    fn each_way_that_openssh_fails_is_told_apart() {
        use FailureKind::{Auth, Busy, HostKey, Other, Refused, UnknownHost, Unreachable};
        let table = [
            (
                "kex_exchange_identification: read: Connection reset by peer\r\n\
                 Connection reset by 10.0.0.7 port 22\r\n",
                Busy,
            ),
            (
                "kex_exchange_identification: Connection closed by remote host\r\n\
                 Connection closed by 10.0.0.7 port 22\r\n",
                Busy,
            ),
            ("ssh_exchange_identification: Connection closed by remote host\r\n", Busy),
            ("Connection timed out during banner exchange\r\n", Busy),
            ("Connection closed by 10.0.0.7 port 22\r\n", Busy),
            ("ssh: connect to host n017 port 22: Connection refused\r\n", Refused),
            (
                "channel 0: open failed: connect failed: Connection refused\r\n\
                 stdio forwarding failed\r\n\
                 Connection closed by UNKNOWN port 65535\r\n",
                Refused,
            ),
            ("ssh: connect to host n017 port 22: No route to host\r\n", Unreachable),
            ("ssh: connect to host n017 port 22: Connection timed out\r\n", Unreachable),
            ("ssh: connect to host n017 port 22: Network is unreachable\r\n", Unreachable),
            ("ssh: Could not resolve hostname nosuch: Name or service not known\r\n", UnknownHost),
            (
                "ssh: Could not resolve hostname n1: Temporary failure in name resolution\r\n",
                UnknownHost,
            ),
            ("root@n017: Permission denied (publickey,password).\r\n", Auth),
            (
                "Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures\r\n\
                 Disconnected from 10.0.0.7 port 22\r\n",
                Auth,
            ),
            (
                "No ED25519 host key is known for n1 and you have requested strict checking.\r\n\
              Host key verification failed.\r\n",
                HostKey,
            ),
            ("client_loop: send disconnect: Broken pipe\r\n", Other(255)),
        ];
        for (stderr, kind) in table {
            assert_eq!(of(&ssh(), 255, stderr).kind, kind, "{stderr}");
        }
    }

    #[test]
    fn the_agents_own_words_are_not_taken_for_those_of_ssh() {
        let said = "convoke: connect to parent: Connection refused\n";
        assert_eq!(of(&ssh(), 3, said).kind, FailureKind::Other(3));
        assert_eq!(of(&Bootstrapper::Local, 255, said).kind, FailureKind::Other(255));
    }

    #[test]
    fn a_missing_or_unusable_program_is_told_by_status_or_in_the_words_of_csh() {
        let table = [
            (127, "bash: line 1: /x/convoke: No such file or directory\n", FailureKind::NoBinary),
            (126, "bash: line 1: /x/convoke: Permission denied\n", FailureKind::NotExecutable),
            (1, "/x/convoke: Command not found.\n", FailureKind::NoBinary),
            (1, "/x/convoke: Permission denied.\n", FailureKind::NotExecutable),
            (1, "something else\n", FailureKind::Other(1)),
        ];
        for (status, stderr, kind) in table {
            assert_eq!(of(&ssh(), status, stderr).kind, kind, "{stderr}");
        }
    }

    #[test]
    fn a_custom_shell_may_pass_the_words_of_ssh_on_with_any_status() {
        let shell = Bootstrapper::Shell(ShellTemplate::parse("rsh {host}").unwrap());
        let refused = "ssh: connect to host n1 port 22: Connection refused\n";
        assert_eq!(of(&shell, 1, refused).kind, FailureKind::Refused);
        assert_eq!(of(&shell, 7, "").kind, FailureKind::Other(7));
    }

    #[test]
    fn a_signal_is_named() {
        let status = ExitStatus::Signaled { signal: Signal::KILL, core_dumped: false };
        assert_eq!(diagnose(&ssh(), status, b"").kind.to_string(), "killed by SIGKILL");
    }

    #[test]
    fn a_keeper_says_what_killed_its_agent_whatever_its_shell_makes_of_it() {
        let killed = FailureKind::AgentKilled(Signal::KILL);
        let said = format!("motd\r\n{KILLED_WORDS}9\r\n");
        for (bootstrapper, status) in [(ssh(), 255), (Bootstrapper::Local, 137)] {
            let failure = of(&bootstrapper, status, &said);
            assert_eq!((failure.kind, failure.words.as_str()), (killed, "motd"));
        }
        let garbled = format!("{KILLED_WORDS}nine\n");
        assert_eq!(of(&ssh(), 255, &garbled).kind, FailureKind::Other(255));
        assert_eq!(of(&Bootstrapper::LocalBulk, 137, &said).kind, FailureKind::Other(137));
    }

    #[test]
    fn words_are_few_and_printable() {
        let failure = of(&ssh(), 1, "\n\x1b[2Jhello\tthere\r\n\n\u{202e}x\n");
        assert_eq!(failure.words, "\\u{1b}[2Jhello there\n\\u{202e}x");
        let long = "é".repeat(10_000);
        assert!(of(&ssh(), 1, &long).words.len() <= WORDS_BYTES_MAX);
        let escapes = "\x1b".repeat(10_000);
        assert!(of(&ssh(), 1, &escapes).words.len() <= WORDS_BYTES_MAX);
        let lines = "line\n".repeat(100);
        assert_eq!(of(&ssh(), 1, &lines).words.lines().count(), WORDS_LINES_MAX);
    }

    fn ssh() -> Bootstrapper {
        Bootstrapper::Ssh { args: Vec::new() }
    }

    fn of(bootstrapper: &Bootstrapper, status: u8, stderr: &str) -> ShellFailure {
        diagnose(bootstrapper, ExitStatus::Exited(status), stderr.as_bytes())
    }
}
