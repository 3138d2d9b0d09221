//! Between the pure crates' words and `os`'s, which do not know each other.

use model::{ExitStatus, Signal};

/// How a process ended, as messages say it.
pub(crate) fn status(status: os::ExitStatus) -> ExitStatus {
    match status {
        os::ExitStatus::Exited(code) => ExitStatus::Exited(code),
        os::ExitStatus::Signaled { signal, core_dumped } => {
            ExitStatus::Signaled { signal: model_signal(signal), core: core_dumped }
        }
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
