//! Take-over between real hosts: what a host was to start comes up without it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use testbed::RUN_DIR;

use crate::World;
use crate::support::watch::wait_until;

/// Less than the 30 s after which a start is given up.
const SOON: Duration = Duration::from_secs(20);

/// A login that goes no further, for as long as somebody waits for it.
const LOGIN_FOR_EVER: &str = "#!/bin/sh\nexec cat >/dev/null\n";

/// One that goes on after this command.
fn login_after(command: &str) -> String {
    format!("#!/bin/sh\n{command}\nexec /bin/sh \"$@\"\n")
}

/// Has who logs in on a host get a shell with this text.
fn set_login(world: &World, host: &str, text: &str) {
    let name = format!("login-{host}");
    world.write(&name, text);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(world.bed.run_dir().join(&name), executable).unwrap();
    world.bed.set_login_shell(host, &format!("{RUN_DIR}/{name}")).unwrap();
}

/// The spare stands in for the slow one, and the two that this was to start run the job.
#[test]
fn what_a_host_was_to_start_comes_up_while_its_login_takes_for_ever() {
    let world = World::up(6);
    set_login(&world, "n0", LOGIN_FOR_EVER);
    let run = world.convoke("slow").words("--hosts n[0-5] --tree kary:2 --spares 1 hostname");
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), ["n1", "n2", "n3", "n4", "n5"]);
    assert!(ended.stderr.contains("1 of 6 nodes: n0"), "{}", ended.stderr);
    assert!(ended.took < SOON, "{:?}", ended.took);
}

#[test]
fn what_a_host_was_to_start_comes_up_when_its_cable_is_pulled_in_the_join() {
    let world = World::up(4);
    let marker = format!("{RUN_DIR}/n1-logs-in");
    set_login(&world, "n1", &login_after(&format!("touch {marker}; sleep 3")));
    let run = world.convoke("cut").words("--hosts n[0-3] --tree chain --on-missing continue");
    let running = run.arg("hostname").start();
    let is_there = || world.bed.run_dir().join("n1-logs-in").exists();
    assert!(wait_until(SOON, is_there), "n0 has come up, and starts n1");
    world.bed.cut("n0").unwrap();
    let ended = running.finish().with_status(0);
    assert_eq!(ended.sorted_lines(), ["n1", "n2", "n3"]);
    assert!(ended.stderr.contains("lost node n0: "), "{}", ended.stderr);
}

#[test]
fn a_host_that_its_parent_alone_does_not_reach_is_started_by_the_front_end() {
    let world = World::up(3);
    world.bed.part("n0", "n1").unwrap();
    let run = world.convoke("parted").words("--hosts n[0-2] --tree chain --stats hostname");
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), ["n0", "n1", "n2"]);
    // Once more by its parent, then by the front end.
    assert!(ended.stderr.contains("2 starts retried"), "{}", ended.stderr);
    assert!(ended.took < SOON, "{:?}", ended.took);
}

#[test]
fn a_host_that_nobody_reaches_is_told_of_with_what_its_parent_and_the_front_end_found() {
    let world = World::up(3);
    world.bed.part("n0", "n1").unwrap();
    world.bed.stop_sshd("n1").unwrap();
    let run = world.convoke("unreached").words("--hosts n[0-2] --tree chain hostname");
    let ended = world.end(run).with_status(252);
    let words = ["n1 (from n0): unreachable: ", "n1 (from here): connection refused: "];
    assert!(words.iter().all(|words| ended.stderr.contains(words)), "{}", ended.stderr);
    assert!(ended.took < SOON, "{:?}", ended.took);
}
