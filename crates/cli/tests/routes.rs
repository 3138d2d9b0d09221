//! Real agents whose job's messages take another way than the spawn tree.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use support::convoke::{Convoke, Ended};
use support::stand::on_hosts;
use testkit::fixture;

const ROUTES: [&str; 4] = ["kary:2", "kary:1", "binomial", "direct"];

/// A run on eight hosts, seven of them below the first.
fn routed(route: &str) -> Convoke {
    let hosts = "a,b,c,d,e,f,g,h";
    on_hosts("routes", hosts, "").words("--tree kary:1 --stats --route").arg(route)
}

/// Messages that went out while the members took their places.
fn route_messages(ended: &Ended) -> u32 {
    let line = ended.stderr.lines().find(|line| line.starts_with("route ")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn mpi_cards_and_fences_go_along_every_route() {
    for route in ROUTES {
        let ended = routed(route).arg(fixture("pmi-client")).arg("all").run().with_status(0);
        assert!(ended.text().starts_with("rank0 "), "{route}: {}", ended.text());
    }
}

#[test]
fn cards_that_are_not_pushed_are_fetched_along_every_route_and_counted() {
    for route in ROUTES {
        for dialect in ["--pmi1", "--pmi2"] {
            let run = routed(route).words("--push-max 0").arg(fixture("pmi-client")).arg("all");
            let ended = run.arg(dialect).run().with_status(0);
            assert!(ended.text().starts_with("rank0 "), "{route}: {}", ended.text());
            let reads =
                ended.stderr.lines().find(|line| line.contains("reads of values on demand"));
            assert!(reads.is_some_and(|line| line.ends_with(" 0 nowhere")), "{}", ended.stderr);
        }
    }
}

#[test]
fn standard_input_and_output_go_along_every_route_whole() {
    let lines: String = (0..50_000).map(|line| format!("{line}\n")).collect();
    for route in ROUTES {
        let run = routed(route).words("--stdin 7 sh -c").arg("test $PMI_RANK != 7 || cat");
        let ended = run.input(lines.as_bytes()).run().with_status(0);
        assert!(ended.text() == lines, "{route}");
    }
}

#[test]
fn each_member_tells_once_that_it_has_its_place_and_opens_the_link_that_it_lacks() {
    // In a chain of eight, the head's first child has that link; the others each open one.
    for (route, opened) in [("direct", 7), ("kary:1", 0)] {
        let ended = routed(route).arg("true").run().with_status(0);
        assert_eq!(route_messages(&ended), 2 * 8 + opened, "{route}: {}", ended.stderr);
    }
}

#[test]
fn redundant_links_are_opened_behind_the_launch_and_change_nothing_of_a_job() {
    for route in ROUTES {
        let run = routed(route).words("--redundancy 2").arg(fixture("pmi-client")).arg("all");
        let ended = run.run().with_status(0);
        assert!(ended.text().starts_with("rank0 "), "{route}: {}", ended.text());
    }
    let ended = routed("direct").words("--redundancy 2 true").run().with_status(0);
    assert_eq!(route_messages(&ended), 2 * 8 + 7, "{}", ended.stderr);
}

#[test]
fn a_task_that_fails_ends_the_job_over_every_route_with_its_status() {
    for route in ROUTES {
        let run = routed(route).words("sh -c").arg("test $PMI_RANK = 5 && exit 9; sleep 60");
        let ended = run.run().with_status(9);
        assert!(ended.stderr.contains("task 5 on f exited with status 9"), "{}", ended.stderr);
    }
}
