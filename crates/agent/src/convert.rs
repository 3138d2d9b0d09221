//! Between the pure crates' words and `os`'s, which do not know each other.

use std::time::Duration;

use bootstrap::{FailureKind, StartError};
use model::{ExitStatus, Signal, Usage};
use os::ResolveError;
use rustix::io::Errno;
use wire::ShellFailureKind;

/// How a process ended, as messages say it.
pub(crate) fn status(status: os::ExitStatus) -> ExitStatus {
    match status {
        os::ExitStatus::Exited(code) => ExitStatus::Exited(code),
        os::ExitStatus::Signaled { signal, core_dumped } => {
            ExitStatus::Signaled { signal: model_signal(signal), core: core_dumped }
        }
    }
}

/// What a process used, as messages say it.
pub(crate) fn usage(usage: os::process::Usage) -> Usage {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Usage {
        user_us: us(usage.user),
        system_us: us(usage.system),
        rss_max_kib: usage.rss_max_kib,
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
    }
}

/// A signal as messages say it. Linux has 64 of them.
pub(crate) fn model_signal(signal: os::Signal) -> Signal {
    Signal(u8::try_from(signal.0).unwrap_or(u8::MAX))
}

/// A signal as the kernel wants it.
pub(crate) fn os_signal(signal: Signal) -> os::Signal {
    os::Signal(i32::from(signal.0))
}

/// The error number of the step that failed.
pub(crate) fn spawn_errno(error: &os::SpawnError) -> i32 {
    let source = match error {
        os::SpawnError::Clone(source)
        | os::SpawnError::Session(source)
        | os::SpawnError::Descriptors(source)
        | os::SpawnError::Directory { source, .. }
        | os::SpawnError::Exec { source, .. } => source,
    };
    source.raw_os_error().unwrap_or_default()
}

/// The error number of what kept a helper from running.
pub(crate) fn start_errno(error: &StartError) -> i32 {
    match error {
        StartError::Resolve(error) => resolve_errno(error),
        StartError::ZeroByte(_) => Errno::INVAL.raw_os_error(),
        StartError::Pipes { source, .. } => source.raw_os_error().unwrap_or_default(),
        StartError::Spawn { source, .. } => spawn_errno(source),
    }
}

/// The error number that `execve` would have given.
pub(crate) fn resolve_errno(error: &ResolveError) -> i32 {
    match error {
        ResolveError::NotFound { .. } | ResolveError::Missing { .. } => Errno::NOENT.raw_os_error(),
        ResolveError::NotExecutable { .. } => Errno::ACCESS.raw_os_error(),
        ResolveError::Directory { .. } => Errno::ISDIR.raw_os_error(),
        ResolveError::Other { source, .. } => source.raw_os_error().unwrap_or_default(),
    }
}

/// What a remote shell failed of, as messages say it.
pub(crate) fn failure_kind(kind: FailureKind) -> ShellFailureKind {
    match kind {
        FailureKind::Busy => ShellFailureKind::Busy,
        FailureKind::Refused => ShellFailureKind::Refused,
        FailureKind::Unreachable => ShellFailureKind::Unreachable,
        FailureKind::UnknownHost => ShellFailureKind::UnknownHost,
        FailureKind::Auth => ShellFailureKind::Auth,
        FailureKind::HostKey => ShellFailureKind::HostKey,
        FailureKind::NoBinary => ShellFailureKind::NoBinary,
        FailureKind::NotExecutable => ShellFailureKind::NotExecutable,
        FailureKind::AgentKilled(signal) => ShellFailureKind::AgentKilled(model_signal(signal)),
        FailureKind::Killed(_) | FailureKind::Other(_) => ShellFailureKind::Other,
    }
}
