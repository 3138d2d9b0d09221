//! The exit statuses of the command that no engine decides; `manual::STATUSES` tells them all.

pub(crate) use engine::exit_code::INTERNAL;

/// The command line, the host file or the placement cannot be used.
pub(crate) const USAGE: u8 = 2;
