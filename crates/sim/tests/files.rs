//! Output in files: whole, where it is to be, and a disk that is full ends the job.

use std::time::Duration;

use engine::exit_code::NOT_WRITTEN;
use model::{AgentId, Rank};
use sim::{Report, Script, Session, Step};
use wire::{JobFault, Stream};

const TREES: [&str; 4] = ["flat", "chain", "kary:2", "adaptive"];

#[test]
fn all_output_is_in_its_files_at_the_head_or_on_the_nodes() {
    for tree in TREES {
        for local in [false, true] {
            for tee in [false, true] {
                let report = session(tree).files(local, tee).run();
                assert_eq!(report.file_bytes, BYTES, "{tree}, local {local}, tee {tee}");
                assert_eq!(report.output_bytes, if tee { BYTES } else { 0 });
                assert_eq!(report.code, Some(0));
            }
        }
    }
}

#[test]
fn files_on_the_nodes_cost_the_tree_nothing() {
    for tree in TREES {
        let report = session(tree).files(true, false).run();
        assert_eq!(report.sent("Output"), 0, "{tree}");
    }
}

#[test]
fn a_full_disk_at_the_head_ends_the_job_and_is_named() {
    for room in [0, 1_000, BYTES / 2] {
        let report = endless().files(false, false).disk(AgentId::HEAD, room).run();
        assert_eq!(writer(&report), AgentId::HEAD);
    }
}

#[test]
fn a_full_disk_of_any_node_ends_the_job_and_is_named() {
    for agent in 1..=N {
        let report = endless().files(true, false).disk(AgentId(agent), 100_000).run();
        assert_eq!(writer(&report), AgentId(agent));
    }
}

#[test]
fn a_disk_that_is_full_at_the_very_end_is_told_of_too() {
    let report = session("chain").files(false, false).disk(AgentId::HEAD, BYTES - 1).run();
    assert_eq!(report.code, Some(NOT_WRITTEN));
}

#[test]
fn a_task_that_fails_loses_nothing_of_what_it_wrote_to_files() {
    for local in [false, true] {
        let fails = Script::new().output(200_000).exit(7);
        let report = session("kary:2").task(Rank(3), fails).files(local, false).run();
        assert_eq!(report.code, Some(7));
    }
}

const N: u32 = 7;

/// What all tasks of [`session`] write.
const BYTES: u64 = 2 * N as u64 * 103_077;

fn session(tree: &str) -> Session {
    let script = Script::new().output(100_000).then(Step::Output(Stream::Stderr, 3_000));
    let script = script.wait(Duration::from_millis(3)).output(77).exit(0);
    Session::of(N).tree(tree).tasks(2).script(script)
}

fn endless() -> Session {
    let script = Script::new().output(5_000_000).then(Step::Hang);
    Session::of(N).tree("kary:2").script(script).ends_within(Duration::from_secs(5))
}

/// Who could not write.
fn writer(report: &Report) -> AgentId {
    assert_eq!(report.code, Some(NOT_WRITTEN), "{:?}", report.outcome);
    let [JobFault::Output { agent, errno: 28, .. }, ..] = report.outcome.faults[..] else {
        panic!("{:?}", report.outcome)
    };
    agent
}
