//! Standard input for every task: each gets every byte, and each link carries it once.

use std::time::Duration;

use model::Rank;
use sim::{Script, Session, Step};

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "greedy", "adaptive"];

#[test]
fn every_task_gets_every_byte_whatever_the_tree() {
    for tree in TREES {
        for (n, tasks) in [(1, 1), (1, 40), (2, 17), (9, 3), (40, 1)] {
            for bytes in [1, 400_000] {
                let session = Session::of(n).tree(tree).tasks(tasks).script(reads());
                let report = session.all_read().input(bytes).run();
                let all = u64::from(n * tasks) * bytes;
                assert_eq!(report.input_bytes, all, "{tree} {n}x{tasks}, {bytes} bytes");
                assert_eq!(report.code, Some(0));
            }
        }
    }
}

#[test]
fn each_link_carries_each_byte_once() {
    let sent = |n, tree| {
        let session = Session::of(n).tree(tree).tasks(5).script(reads()).all_read();
        session.input(2_000_000).run().sent("Input")
    };
    let pieces = sent(1, "flat");
    for tree in ["flat", "chain", "kary:3", "binomial"] {
        assert_eq!(sent(20, tree), 20 * pieces, "{tree}");
    }
}

#[test]
fn nodes_without_tasks_pass_it_on_and_do_not_hold_it() {
    for tasks in [&[0, 0, 2, 0, 1][..], &[0, 0, 0, 0, 0, 0, 0, 0, 1], &[1]] {
        let session = Session::of(9).tree("chain").tasks_on(tasks).script(reads());
        let report = session.all_read().input(400_000).run();
        assert_eq!(report.input_bytes, 400_000 * u64::from(tasks.iter().sum::<u32>()));
    }
}

#[test]
fn a_task_that_reads_late_holds_the_others_and_one_that_ends_does_not() {
    for tree in TREES {
        for reader in [0, 4, 8] {
            let late = Script::new().wait(Duration::from_secs(20)).then(Step::ReadStdin);
            let session = Session::of(9).tree(tree).script(reads()).all_read().input(400_000);
            let held = session.clone().task(Rank(reader), late).run();
            assert_eq!(held.input_bytes, 9 * 400_000, "{tree}");
            assert!(held.ended_at.unwrap().as_nanos() > 20_000_000_000);
            let left = session.task(Rank(reader), Script::new().exit(0)).run();
            assert_eq!(left.input_bytes, 8 * 400_000, "{tree}");
            assert!(left.ended_at.unwrap().as_nanos() < 20_000_000_000);
        }
    }
}

#[test]
fn input_that_nobody_reads_holds_nobody() {
    let script = Script::new().wait(Duration::from_secs(1)).exit(0);
    for n in [1, 9] {
        let session = Session::of(n).tree("kary:2").tasks(3).script(script.clone());
        let report = session.all_read().input(5_000_000).run();
        assert_eq!(report.code, Some(0));
    }
}

fn reads() -> Script {
    Script::new().then(Step::ReadStdin)
}
