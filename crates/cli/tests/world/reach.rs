//! How a node is reached: addresses that lead nowhere, names that differ, and networks of one kind.

use crate::World;

/// What containers leave on every host of a cluster: an interface with the same address everywhere.
const TWIN: &str = "ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && \
                    ip link set docker0 up";

#[test]
fn an_address_that_every_host_has_leads_nobody_to_itself() {
    let world = World::up(3);
    for host in ["head", "n0", "n1", "n2"] {
        world.on(host, TWIN);
    }
    let run = world.convoke("docker0").words("--hosts n[0-2] --tree chain hostname");
    assert_eq!(world.end(run).with_status(0).sorted_lines(), ["n0", "n1", "n2"]);
}
