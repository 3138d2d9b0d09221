//! Take-over between real hosts: what a host was to start comes up without it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use testbed::RUN_DIR;

use crate::World;

/// A login that goes no further, for as long as somebody waits for it.
const LOGIN_FOR_EVER: &str = "#!/bin/sh\nexec cat >/dev/null\n";

/// The spare stands in for the slow one, and the two that this was to start run the job.
#[test]
fn what_a_host_was_to_start_comes_up_while_its_login_takes_for_ever() {
    let world = World::up(6);
    world.write("slow-shell", LOGIN_FOR_EVER);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(world.bed.run_dir().join("slow-shell"), executable).unwrap();
    world.bed.set_login_shell("n0", &format!("{RUN_DIR}/slow-shell")).unwrap();
    let run = world.convoke("slow").words("--hosts n[0-5] --tree kary:2 --spares 1 hostname");
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), ["n1", "n2", "n3", "n4", "n5"]);
    assert!(ended.stderr.contains("1 of 6 nodes: n0"), "{}", ended.stderr);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}
