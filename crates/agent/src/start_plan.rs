//! How agents are started, as every agent of a session must know it.
//!
//! The engine carries it as bytes that it does not understand (`SessionSpec::bootstrap`): words
//! that end in a zero byte, which no word of a command line can contain.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use bootstrap::{Bootstrapper, ShellTemplate, TemplateError};

/// The bootstrapper that the user chose, and where an agent's program is on a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StartPlan {
    /// The bootstrapper.
    pub launcher: Launcher,
    /// The agent's absolute path.
    pub program: OsString,
    /// Whether hosts that lack it get it down the shell.
    pub deliver: bool,
    /// What links run over.
    pub link: LinkChoice,
}

/// What the link from an agent to its parent runs over.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LinkChoice {
    /// TCP, or the streams of its remote shell where no address of the parent answers.
    #[default]
    Auto,
    /// TCP.
    Tcp,
    /// The streams of its remote shell.
    Shell,
}

/// A bootstrapper by the user's words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Launcher {
    /// OpenSSH's client with these arguments.
    Ssh(Vec<String>),
    /// A command with places for the host and what to run there.
    Shell(String),
    /// The agent itself, on this machine.
    Local,
    /// One command for many agents, on this machine.
    LocalBulk,
}

/// The word for it.
const DELIVERED: &[u8] = b"deliver";

/// Bytes that are no plan.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Not in this program's form.
    #[error("bootstrapper of {0} bytes is garbled")]
    Garbled(usize),
    /// The shell's command cannot be used.
    #[error("understand the shell command")]
    Template(#[source] TemplateError),
}

impl StartPlan {
    /// The bytes for `SessionSpec::bootstrap`.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, arguments): (&str, &[String]) = match &self.launcher {
            Launcher::Ssh(arguments) => ("ssh", arguments),
            Launcher::Shell(template) => ("shell", std::slice::from_ref(template)),
            Launcher::Local => ("local", &[]),
            Launcher::LocalBulk => ("local-bulk", &[]),
        };
        let link = self.link.word().as_bytes();
        let delivery = if self.deliver { DELIVERED } else { b"" };
        let words = [kind.as_bytes(), self.program.as_bytes(), delivery, link];
        let words = words.into_iter().chain(arguments.iter().map(String::as_bytes));
        words.flat_map(|word| word.iter().copied().chain([0])).collect()
    }

    /// Reads what [`StartPlan::encode`] wrote.
    ///
    /// # Errors
    /// When it was something else.
    pub fn decode(bytes: &[u8]) -> Result<StartPlan, PlanError> {
        let garbled = || PlanError::Garbled(bytes.len());
        let words = bytes.strip_suffix(&[0]).ok_or_else(garbled)?;
        let mut words = words.split(|byte| *byte == 0);
        let (kind, program) = words.next().zip(words.next()).ok_or_else(garbled)?;
        let deliver = words.next().ok_or_else(garbled)? == DELIVERED;
        let link = words.next().and_then(LinkChoice::from_word).ok_or_else(garbled)?;
        let arguments = words.map(|word| String::from_utf8(word.to_vec()).map_err(|_| garbled()));
        let arguments: Vec<String> = arguments.collect::<Result<_, _>>()?;
        let launcher = match (kind, arguments.as_slice()) {
            (b"ssh", _) => Launcher::Ssh(arguments),
            (b"shell", [template]) => Launcher::Shell(template.clone()),
            (b"local", []) => Launcher::Local,
            (b"local-bulk", []) => Launcher::LocalBulk,
            (_, _) => return Err(garbled()),
        };
        Ok(StartPlan { launcher, program: OsString::from_vec(program.to_vec()), deliver, link })
    }

    /// The bootstrapper itself.
    ///
    /// # Errors
    /// When the shell's command cannot be used.
    pub fn bootstrapper(&self) -> Result<Bootstrapper, PlanError> {
        Ok(match &self.launcher {
            Launcher::Ssh(args) => Bootstrapper::Ssh { args: args.clone() },
            Launcher::Shell(text) => {
                Bootstrapper::Shell(ShellTemplate::parse(text).map_err(PlanError::Template)?)
            }
            Launcher::Local => Bootstrapper::Local,
            Launcher::LocalBulk => Bootstrapper::LocalBulk,
        })
    }
}

impl LinkChoice {
    const ALL: [LinkChoice; 3] = [LinkChoice::Auto, LinkChoice::Tcp, LinkChoice::Shell];

    fn word(self) -> &'static str {
        match self {
            LinkChoice::Auto => "auto",
            LinkChoice::Tcp => "tcp",
            LinkChoice::Shell => "shell",
        }
    }

    fn from_word(word: &[u8]) -> Option<LinkChoice> {
        LinkChoice::ALL.into_iter().find(|choice| choice.word().as_bytes() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_comes_back_from_its_bytes() {
        for launcher in [
            Launcher::Ssh(vec!["-p".into(), "22".into(), String::new()]),
            Launcher::Ssh(Vec::new()),
            Launcher::Shell("rsh {host} {cmd}".into()),
            Launcher::Local,
            Launcher::LocalBulk,
        ] {
            for (link, deliver) in LinkChoice::ALL.into_iter().zip([true, false, true]) {
                let program = "/opt/my apps/convoke".into();
                let plan = StartPlan { launcher: launcher.clone(), program, deliver, link };
                assert_eq!(StartPlan::decode(&plan.encode()), Ok(plan));
            }
        }
    }

    #[test]
    fn other_bytes_are_no_plan() {
        for bytes in [
            &b""[..],
            b"\0",
            b"ssh\0",
            b"ssh\0/c\0",
            b"ssh\0/c\0\0udp\0",
            b"shell\0/c\0\0tcp\0",
            b"rsh\0/c\0\0tcp\0",
        ] {
            assert_eq!(StartPlan::decode(bytes), Err(PlanError::Garbled(bytes.len())));
        }
    }
}
