//! Routing trees between real hosts, and around a host that others cannot call.

use std::time::Duration;

use testkit::fixture;

use crate::World;
use crate::support::ring::{check_ring, ring};

const HOSTS: [&str; 5] = ["n0", "n1", "n2", "n3", "n4"];

#[test]
fn an_mpi_program_runs_along_every_route_whoever_started_whom() {
    let world = World::up(HOSTS.len());
    for (tree, route) in
        [("flat", "kary:1"), ("kary:1", "kary:2"), ("kary:1", "binomial"), ("kary:2", "direct")]
    {
        let run = world.convoke(&format!("route-{route}")).words("--hosts n[0-4]:2 --tree");
        let ended = world.end(run.arg(tree).arg("--route").arg(route).arg(ring(5))).with_status(0);
        check_ring(&ended, 10, &HOSTS);
    }
}

/// In the chain of the route, n1 is to call n0, n2 to call n1, and so on.
#[test]
fn who_can_not_be_called_is_reached_along_the_spawn_tree() {
    let world = World::up(HOSTS.len());
    world.bed.allow_only_ssh("n1").unwrap();
    let run = world.convoke("deaf").words("--hosts n[0-4]:2 --tree flat --route kary:1");
    let ended = world.end(run.arg(fixture("pmi-check"))).with_status(0);
    assert_eq!(ended.text().matches(": well\n").count(), 10, "{}", ended.text());
    // Less than one that swallows calls may take.
    assert!(ended.took < Duration::from_secs(15), "{:?}", ended.took);
}

/// In the chain of the route, n2 has called n1, and with its redundant link n0.
#[test]
fn what_a_host_says_goes_on_by_its_redundant_link_and_then_along_the_spawn_tree() {
    let world = World::up(HOSTS.len());
    let run = world.convoke("redundancy").words("--hosts n[0-4] --tree flat --route kary:1");
    let run = run.words("--redundancy 1 --label sh -c");
    let mut running = run.arg("for i in $(seq 120); do echo $i; sleep 0.1; done").start();
    for (peer, said) in [("n1", "10"), ("n0", "50")] {
        let line = format!("[2] {said}\n");
        running.wait_for_output(said, |text| String::from_utf8_lossy(text).contains(&line));
        break_link(&world, "n2", peer);
    }
    let ended = running.finish().with_status(0);
    for rank in 0..5 {
        let own = format!("[{rank}] ");
        let lines: Vec<String> = ended
            .text()
            .lines()
            .filter_map(|it| it.strip_prefix(&own).map(str::to_owned))
            .collect();
        let all: Vec<String> = (1..=120).map(|number| number.to_string()).collect();
        assert_eq!(lines, all, "of rank {rank}");
    }
}

/// Ends a connection that one host has made to another, at both ends.
fn break_link(world: &World, from: &str, to: &str) {
    let address = world.bed.address(to).unwrap();
    let script = format!("ss -HtnK state established dst {address}; ss -Htn dst {address}");
    let ended = world.on(from, &script);
    assert_eq!(ended.lines().count(), 1, "one link from {from} to {to}, and it ends: {ended}");
}
