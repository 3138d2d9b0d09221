//! Why nodes did not come up, in words, and what the user can do.

use std::collections::BTreeMap;

use model::{AgentId, IdSet};
use wire::{ShellFailureKind, StartCause, StartFailure};

use super::members::Level;
use super::{Cause, ELAPSED, Report, errno_text, killed_text, millis, status_text};

impl Report<'_> {
    pub(super) fn start_failures(&mut self, level: Level, failures: &[StartFailure]) {
        if failures.is_empty() {
            return;
        }
        let all = failures.iter().fold(IdSet::new(), |all, failure| all.union(&failure.agents));
        let (count, of) = (all.len(), self.names.len());
        let names = self.fold(&all);
        self.line(format!("{level}: could not start an agent on {count} of {of} nodes: {names}"));
        let twice = tried_twice(failures);
        let causes = failures.iter().map(|failure| self.cause(failure, &twice)).collect();
        self.causes(causes);
        for hint in hints(failures) {
            self.line(format!("hint: {hint}"));
        }
    }

    fn cause(&self, failure: &StartFailure, twice: &IdSet) -> Cause {
        let text = match failure.cause {
            StartCause::Shell(kind, status) => {
                let shell = self.program.shell;
                format!("{}the {shell} {} after {ELAPSED}", kind_text(kind), status_text(status))
            }
            StartCause::NoShell(errno) => {
                format!("the {} could not be run: {}", self.program.shell, errno_text(errno))
            }
            StartCause::Silent => format!("no answer within {ELAPSED}"),
            StartCause::Deadline => "not up when the time to join was over".to_owned(),
        };
        let text = match failure.attempts {
            0 | 1 => text,
            attempts => format!("{text}, tried {attempts} times"),
        };
        let elapsed = millis(failure.elapsed_ms);
        let (agents, words) = (failure.agents.clone(), failure.words.clone());
        let is_of_two = agents.difference(twice) != agents;
        let by = if is_of_two { IdSet::range(failure.by.0, failure.by.0) } else { IdSet::new() };
        let below = IdSet::new();
        Cause { agents, below, by, text, words, shortest: elapsed, longest: elapsed }
    }

    /// Who could not start somebody, after its name.
    pub(super) fn from(&self, by: &IdSet) -> String {
        let others = by.difference(&IdSet::range(AgentId::HEAD.0, AgentId::HEAD.0));
        match (by.contains(AgentId::HEAD.0), others.is_empty()) {
            (false, true) => String::new(),
            (true, true) => " (from here)".to_owned(),
            (true, false) => format!(" (from {} and from here)", self.fold(&others)),
            (false, false) => format!(" (from {})", self.fold(&others)),
        }
    }
}

/// Those whom their parents could not start and the head neither.
fn tried_twice(failures: &[StartFailure]) -> IdSet {
    let by = |is_head: bool| {
        let of = failures.iter().filter(|failure| (failure.by == AgentId::HEAD) == is_head);
        of.fold(IdSet::new(), |all, failure| all.union(&failure.agents))
    };
    let (here, elsewhere) = (by(true), by(false));
    here.intersection(&elsewhere)
}

/// What the user can do, each once.
fn hints(failures: &[StartFailure]) -> Vec<&'static str> {
    let found = failures.iter().filter_map(|failure| match failure.cause {
        StartCause::Shell(kind, _) => hint(kind).map(|hint| (hint, ())),
        StartCause::Silent => Some((
            "try the remote shell by hand: it must not ask anything, nor its start-up files read standard \
             input (`ssh -o BatchMode=yes HOST true`)",
            (),
        )),
        StartCause::NoShell(_) | StartCause::Deadline => None,
    });
    found.collect::<BTreeMap<_, ()>>().into_keys().collect()
}

fn hint(kind: ShellFailureKind) -> Option<&'static str> {
    match kind {
        ShellFailureKind::Busy => Some(
            "a smaller `--window`, or a larger MaxStartups of sshd, avoids refused connections",
        ),
        ShellFailureKind::Auth => {
            Some("ssh must let you in without a password: a key and an agent that holds it")
        }
        ShellFailureKind::HostKey => {
            Some("if the host was reinstalled, `ssh-keygen -R HOST` forgets its old key")
        }
        ShellFailureKind::NoBinary | ShellFailureKind::NotExecutable => {
            Some("`--agent-path` says where this program is on the hosts")
        }
        ShellFailureKind::Refused
        | ShellFailureKind::Unreachable
        | ShellFailureKind::UnknownHost
        | ShellFailureKind::AgentKilled(_)
        | ShellFailureKind::Other => None,
    }
}

/// What a remote shell's words say, before its status.
fn kind_text(kind: ShellFailureKind) -> String {
    let text = match kind {
        ShellFailureKind::AgentKilled(signal) => {
            return format!("the agent there {}: ", killed_text(signal));
        }
        ShellFailureKind::Busy => "too many connections: ",
        ShellFailureKind::Refused => "connection refused: ",
        ShellFailureKind::Unreachable => "unreachable: ",
        ShellFailureKind::UnknownHost => "unknown host: ",
        ShellFailureKind::Auth => "not let in: ",
        ShellFailureKind::HostKey => "unexpected host key: ",
        ShellFailureKind::NoBinary => "no agent program there: ",
        ShellFailureKind::NotExecutable => "the agent program cannot be run: ",
        ShellFailureKind::Other => "",
    };
    text.to_owned()
}
