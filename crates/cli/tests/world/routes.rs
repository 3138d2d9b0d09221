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
