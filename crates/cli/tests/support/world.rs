//! Hosts with a network and a real sshd each, which are namespaces of this machine.

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testbed::{HEAD, RUN_DIR, Testbed};

use super::convoke::{Convoke, Ended, convoke_path};
use super::watch::wait_until;

/// One testbed at a time: its processes share the processors.
static ALONE: Mutex<()> = Mutex::new(());

/// How soon after the end of a command its agents are gone, on a busy machine.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Hosts that are this test's alone.
pub(crate) struct World {
    pub(crate) bed: Testbed,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    /// Makes hosts `n0`, `n1` and so on, when no other test has any.
    pub(crate) fn up(hosts: usize) -> World {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        World { bed: Testbed::up(hosts).unwrap(), _alone }
    }

    /// `convoke run` on the head, without a host list.
    pub(crate) fn convoke(&self, test: &str) -> Convoke {
        self.program(test, &convoke_path().to_string_lossy()).arg("run")
    }

    /// A program on the head that runs `convoke` somehow.
    pub(crate) fn program(&self, test: &str, program: &str) -> Convoke {
        Convoke::wrapped(test, self.bed.command(HEAD, program).unwrap())
    }

    /// Runs it to its end, and checks that no agent is left anywhere.
    #[track_caller]
    pub(crate) fn end(&self, run: Convoke) -> Ended {
        let ended = run.run();
        let is_gone = || self.bed.find("__agent").unwrap().is_empty();
        assert!(wait_until(GONE_WITHIN, is_gone), "agents are left; {}", ended.stderr);
        ended
    }

    /// Runs a shell script on a host, which must succeed; returns what it wrote.
    #[track_caller]
    pub(crate) fn on(&self, host: &str, script: &str) -> String {
        let Output { status, stdout, stderr } = self.bed.run(host, script).unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "on {host}: {script}: {said}");
        String::from_utf8_lossy(&stdout).trim_end().to_owned()
    }

    /// Writes a file in [`RUN_DIR`], which is the home directory of who logs in; returns its path on
    /// the hosts.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.bed.run_dir().join(name), text).unwrap();
        PathBuf::from(RUN_DIR).join(name)
    }
}
