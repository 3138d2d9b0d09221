//! Jobs that run though hosts are missing: one whose cable is pulled, one whose sshd refuses, one
//! whose sshd says nothing. The user is told which and why, and the status is the job's.

use std::time::Duration;

use insta::assert_snapshot;

use crate::World;
use crate::support::convoke::Ended;

/// Hosts n0 to n5, of which three cannot be reached.
fn three_of_six() -> World {
    let world = World::up(6);
    world.bed.cut("n1").unwrap();
    world.bed.stop_sshd("n2").unwrap();
    world.bed.mute_sshd("n3").unwrap();
    world
}

/// Runs `echo` on all hosts with these options.
#[track_caller]
fn run(world: &World, test: &str, options: &str) -> Ended {
    let run = world.convoke(test).words("--retries 0 --hosts n[0-5]").words(options);
    world.end(run.args(["sh", "-c", "echo $PMI_RANK of $PMI_SIZE on $(uname -n)"]))
}

#[test]
fn with_continue_the_job_runs_on_the_others_and_each_missing_host_has_its_own_cause() {
    let world = three_of_six();
    let ended = run(&world, "continue", "--on-missing continue --join-timeout 8s").with_status(0);
    assert_eq!(ended.sorted_lines(), ["0 of 3 on n0", "1 of 3 on n4", "2 of 3 on n5"]);
    assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
    assert_snapshot!(ended.words());
}

#[test]
fn with_continue_a_job_that_fails_on_the_others_has_its_own_status() {
    let world = three_of_six();
    let run = world.convoke("status").words("--retries 0 --hosts n[0-5] --join-timeout 8s");
    let ended = world.end(run.words("--on-missing continue").args(["sh", "-c", "exit 3"]));
    let words = ended.with_status(3).stderr;
    assert!(words.contains("n[1-3]") && words.contains("exited with status 3"), "{words}");
}

#[test]
fn with_fewer_hosts_than_the_user_wants_nothing_runs() {
    let world = three_of_six();
    let options = "--on-missing continue --min-nodes 4 --join-timeout 8s";
    let ended = run(&world, "min-nodes", options).with_status(252);
    assert_eq!(ended.text(), "");
    assert_snapshot!(ended.words());
}

/// One of the spares is silent, and is not waited for until its time is up.
#[test]
fn spares_stand_in_for_hosts_of_the_job_and_a_silent_spare_holds_nobody_up() {
    let world = three_of_six();
    let ended = run(&world, "spares", "--spares 3").with_status(0);
    assert_eq!(ended.sorted_lines(), ["0 of 3 on n0", "1 of 3 on n4", "2 of 3 on n5"]);
    assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
    // How long others are waited for follows from how long these took.
    let words = "could not start an agent on 2 of 6 nodes: n[1-2]";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}

#[test]
fn with_too_few_spares_nothing_runs() {
    let world = three_of_six();
    let ended = run(&world, "few-spares", "--spares 2 --join-timeout 8s").with_status(252);
    assert_eq!(ended.text(), "");
    assert_snapshot!(ended.words());
}

/// Two of them, so that both are told at once: the sshd of one accepts nobody, the other's has
/// accepted and says nothing.
#[test]
fn silent_hosts_are_named_within_a_short_time_to_join_and_one_that_does_not_accept_is_told_apart() {
    let world = World::up(3);
    world.bed.clog_sshd("n1").unwrap();
    world.bed.mute_sshd("n2").unwrap();
    for seconds in [1, 4, 8] {
        let run = world.convoke("clogged").arg(format!("--join-timeout={seconds}s"));
        let ended = world.end(run.words("--hosts n[0-2] hostname")).with_status(252);
        let late = |host| format!("  {host}: not up when the time to join was over\n");
        let told_apart =
            [late("n1") + "    convoke: the connection has not been answered\n", late("n2")];
        let said = ended.stderr.split_once("2 of 3 nodes: n[1-2]\n").unwrap().1;
        assert!(told_apart.iter().all(|words| said.contains(words)), "{}", ended.stderr);
        assert_eq!(said.matches("convoke: ").count(), 1, "{}", ended.stderr);
        assert!(ended.took < Duration::from_secs(seconds + 4), "{:?}", ended.took);
    }
}
