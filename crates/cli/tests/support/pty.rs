//! A terminal that a test sits at.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The keyboard's and the screen's end of a terminal.
pub(crate) struct Pty {
    controller: File,
}

impl Pty {
    /// A terminal, and the end that is a program's standard input.
    pub(crate) fn open() -> (Pty, OwnedFd) {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let controller = openpt(flags).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        (Pty { controller: controller.into() }, end)
    }

    /// Types `text`.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.controller.write_all(text.as_bytes()).unwrap();
    }
}
