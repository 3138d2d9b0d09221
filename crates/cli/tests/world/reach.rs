//! How a node is reached: addresses that lead nowhere, names that differ, networks of one kind, and
//! firewalls. Where a way can be missing altogether, a second test says what is told then.

use std::time::Duration;

use testbed::{Family, HEAD};

use crate::World;

/// What a start may take that has to find out that an address swallows what it is sent.
const FOUND_OUT: Duration = Duration::from_secs(15);

#[test]
fn an_address_that_every_host_has_leads_nobody_to_itself() {
    let world = World::up(3);
    on_all(&world, |host| world.bed.add_docker0(host).unwrap());
    runs(&world, "docker0", "--tree chain");
}

#[test]
fn where_every_address_refuses_links_run_over_shells() {
    let world = World::up(3);
    world.bed.hosts().iter().for_each(|host| world.bed.allow_only_ssh(host).unwrap());
    let words = runs(&world, "refused", "--tree kary:1 --stats -v");
    assert!(words.contains("3 links over remote shells"), "{words}");
    assert!(words.contains("n0 reaches no address here: its link runs over its shell"), "{words}");
}

#[test]
fn where_no_address_answers_links_run_over_shells_after_a_while() {
    let world = World::up(3);
    world.bed.allow_only_ssh(HEAD).unwrap();
    let run = world.convoke("swallowed").words("--hosts n[0-2] --tree flat --stats hostname");
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), ["n0", "n1", "n2"]);
    assert!(ended.stderr.contains("3 links over remote shells"), "{}", ended.stderr);
    assert!(ended.took < FOUND_OUT, "{:?}", ended.took);
}

#[test]
fn links_that_must_be_tcp_name_each_address_that_refused() {
    let world = World::up(2);
    world.bed.allow_only_ssh("n1").unwrap();
    let run = world.convoke("tcp-refused").words("--hosts n[0-1] --tree flat --link tcp hostname");
    let ended = world.end(run).with_status(252);
    assert!(ended.stderr.contains("10.77.0.1:"), "{}", ended.stderr);
    assert!(ended.stderr.contains("n1"), "{}", ended.stderr);
    assert!(ended.took < FOUND_OUT, "{:?}", ended.took);
}

#[test]
fn a_job_over_shells_has_its_input_and_output_whole_and_its_status() {
    let world = World::up(2);
    let text: String = (0..200_000).map(|n| format!("{n}\n")).collect();
    let script = "cat; echo done >&2; exit $((3 * PMI_RANK))";
    let run = world
        .convoke("bytes")
        .words("--hosts n[0-1] --link shell --tree chain --on-failure continue sh -c");
    let ended = world.end(run.arg(script).input(text.clone())).with_status(3);
    assert!(ended.stdout == text.as_bytes(), "{} bytes", ended.stdout.len());
    assert_eq!(ended.stderr.matches("done\n").count(), 2, "{}", ended.stderr);
}

#[test]
fn a_network_of_ipv6_alone_is_enough() {
    let world = World::up(3);
    world.bed.resolve_to(Family::V6).unwrap();
    on_all(&world, |host| world.bed.take_family(host, Family::V4).unwrap());
    let words = runs(&world, "v6", "--tree chain --stats");
    assert!(!words.contains("over remote shells"), "{words}");
}

#[test]
fn hosts_of_either_family_reach_a_head_of_both() {
    let world = World::up(2);
    world.bed.take_family("n0", Family::V6).unwrap();
    world.bed.take_family("n1", Family::V4).unwrap();
    let lines = "10.77.0.1 head\n10.77.0.2 n0\nfd77::3 n1\n";
    world.bed.set_hosts_file(HEAD, lines).unwrap();
    let words = runs(&world, "lopsided", "--tree flat --stats");
    assert!(!words.contains("over remote shells"), "{words}");
}

#[test]
fn hosts_with_no_family_in_common_are_told_by_name() {
    let world = World::up(2);
    world.bed.take_family("n1", Family::V4).unwrap();
    let run = world.convoke("apart").words("--hosts n[0-1] --tree flat hostname");
    let ended = world.end(run).with_status(252);
    assert!(ended.stderr.contains("n1: "), "{}", ended.stderr);
    assert!(ended.took < FOUND_OUT, "{:?}", ended.took);
}

#[test]
fn a_host_may_call_itself_something_else() {
    let world = World::up(2);
    world.bed.rename("n0", "login-7.internal").unwrap();
    assert_eq!(world.on("n0", "hostname"), "login-7.internal");
    let run = world.convoke("renamed").words("--hosts n[0-1] --tree chain hostname");
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), ["login-7.internal", "n1"]);
}

#[test]
fn a_host_need_not_find_its_own_name_nor_its_parents() {
    let world = World::up(2);
    world.bed.set_hosts_file("n0", "10.77.0.3 n1\n").unwrap();
    world.bed.set_hosts_file("n1", "127.0.0.1 localhost\n").unwrap();
    runs(&world, "nameless", "--tree chain");
}

#[test]
fn a_child_whose_name_its_parent_does_not_find_is_started_by_the_head() {
    let world = World::up(2);
    world.bed.set_hosts_file("n0", "127.0.0.1 localhost\n").unwrap();
    let run = world.convoke("unknown-child").words("--hosts n[0-1] --tree chain hostname");
    assert_eq!(world.end(run).with_status(0).sorted_lines(), ["n0", "n1"]);
    let run = world.convoke("nobodys").words("--hosts n0,nobodys --tree chain hostname");
    let ended = world.end(run).with_status(252);
    assert!(ended.stderr.contains("unknown host"), "{}", ended.stderr);
    assert!(ended.stderr.contains("Could not resolve hostname nobodys"), "{}", ended.stderr);
}

#[test]
fn nodes_behind_a_jump_host_are_reached_over_it() {
    let world = World::up(3);
    world.bed.jump_over("n0").unwrap();
    let words = runs(&world, "jump", "--tree flat --stats");
    assert!(words.contains("2 links over remote shells"), "{words}");
}

#[test]
fn a_node_behind_two_jump_hosts_is_reached_over_both() {
    let world = World::up(3);
    world.bed.jump_over("n0").unwrap();
    let run = world.convoke("jumps").words("--ssh-arg=-J --ssh-arg=n0,n1 --hosts n2 --stats");
    let ended = world.end(run.arg("hostname")).with_status(0);
    assert_eq!(ended.text(), "n2\n");
    assert!(ended.stderr.contains("1 links over remote shells"), "{}", ended.stderr);
}

#[test]
fn the_last_of_two_jump_hosts_that_refuses_is_named() {
    let world = World::up(3);
    world.bed.jump_over("n0").unwrap();
    world.bed.stop_sshd("n1").unwrap();
    let run =
        world.convoke("no-jumps").words("--ssh-arg=-J --ssh-arg=n0,n1 --retries 0 --hosts n2");
    let ended = world.end(run.arg("hostname")).with_status(252);
    assert!(ended.stderr.contains("Connection refused"), "{}", ended.stderr);
    assert!(ended.took < FOUND_OUT, "{:?}", ended.took);
}

#[test]
fn a_jump_host_that_refuses_is_named() {
    let world = World::up(2);
    world.bed.jump_over("n0").unwrap();
    world.bed.stop_sshd("n0").unwrap();
    let ended = world.end(world.convoke("no-jump").words("--hosts n1 hostname")).with_status(252);
    assert!(
        ended.stderr.contains("connect to host n0 port 22: Connection refused"),
        "{}",
        ended.stderr
    );
    assert!(ended.took < FOUND_OUT, "{:?}", ended.took);
}

fn on_all(world: &World, odd: impl Fn(&str)) {
    [HEAD].into_iter().chain(world.bed.hosts().iter().map(String::as_str)).for_each(odd);
}

/// Runs a job on all hosts with these options, which must succeed; returns its words.
#[track_caller]
fn runs(world: &World, test: &str, options: &str) -> String {
    let run =
        world.convoke(test).words(options).args(["--hosts", &world.bed.host_list(), "hostname"]);
    let ended = world.end(run).with_status(0);
    assert_eq!(ended.sorted_lines(), world.bed.hosts());
    ended.stderr
}
