//! The parts of a host's name: `user@host/port`.
//!
//! A name is kept as one text, as the user wrote it, so that it is told in messages and travels as
//! any other; whoever reaches the host takes it apart. The port follows a slash, since the number
//! behind a colon is that of the slots.

use core::fmt;

/// A name in its parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostName<'a> {
    /// Whom to log in as, if not as ssh has it.
    pub user: Option<&'a str>,
    /// The host: a name or an address, IPv6 without brackets.
    pub host: &'a str,
    /// The port of its remote shell, if not the usual one.
    pub port: Option<u16>,
}

impl<'a> HostName<'a> {
    /// Takes a name apart.
    pub fn of(name: &'a str) -> HostName<'a> {
        let (user, rest) = match name.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, name),
        };
        let with_port =
            rest.rsplit_once('/').and_then(|(host, port)| Some((host, parse_port(port)?)));
        let (host, port) = with_port.map_or((rest, None), |(host, port)| (host, Some(port)));
        HostName { user, host, port }
    }
}

impl fmt::Display for HostName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, "/{port}"))
    }
}

/// A port that somebody can listen at.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0)
}
