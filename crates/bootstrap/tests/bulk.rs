//! The bulk launcher in a process of its own, as it always is.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bootstrap::bulk;
use os::ExitStatus;

fn main() {
    every_agent_gets_its_index_and_the_first_failure_is_the_status();
    a_program_that_is_missing_is_an_error();
}

fn every_agent_gets_its_index_and_the_first_failure_is_the_status() {
    let dir = tempfile::tempdir().unwrap();
    let script = "cd \"${0%/*}\"; echo \"$1\" > $CONVOKE_BULK_INDEX; \
                  read -r x && exit 9; test $CONVOKE_BULK_INDEX != 5 || exit 4";
    let agent = program(dir.path(), script);
    assert_eq!(bulk::run(agent.as_os_str(), 20).unwrap(), ExitStatus::Exited(4));
    for index in 0..20 {
        let said = std::fs::read_to_string(dir.path().join(index.to_string())).unwrap();
        assert_eq!(said, "__agent\n");
    }
}

fn a_program_that_is_missing_is_an_error() {
    let error = bulk::run("/no/such".as_ref(), 3).unwrap_err();
    assert_eq!(error.to_string(), "start agent 0");
}

fn program(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("agent");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
