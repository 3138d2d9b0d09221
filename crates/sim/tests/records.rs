//! The record of each task: there for all when asked for, in pieces, and bounded where it may be large.

use std::time::Duration;

use model::{ExitStatus, Rank, Signal};
use sim::{Report, Script, Session, Step};
use wire::{Stream, TaskRecord};

const TREES: [&str; 4] = ["flat", "chain", "kary:2", "adaptive"];

#[test]
fn every_task_of_every_tree_has_one_record_that_tells_its_process_its_end_and_its_use() {
    for tree in TREES {
        for (n, tasks) in [(1, 1), (1, 300), (9, 3), (40, 1)] {
            let script = Script::new().output(100).wait(Duration::from_secs(2)).exit(0);
            let session = Session::of(n).tree(tree).tasks(tasks).script(script);
            let report = session.records().run();
            let records = by_rank(&report);
            assert_eq!(records.len(), (n * tasks) as usize, "{tree} {n}x{tasks}");
            for (rank, record) in (0..).zip(&records) {
                assert_eq!((record.rank, record.pid), (Rank(rank), 1000 + rank));
                assert_eq!(record.status, ExitStatus::SUCCESS);
                assert_eq!(record.usage.rss_max_kib, 1000 + u64::from(rank));
                let wall = Duration::from_micros(record.wall_us);
                assert!(wall >= Duration::from_secs(2), "{record:?}");
                assert!(wall < Duration::from_secs(3), "{record:?}");
                assert!(record.last_words.is_empty(), "it has not failed");
            }
        }
    }
}

#[test]
fn nobody_sends_a_record_unasked() {
    let report = Session::of(9).tree("kary:2").task(Rank(4), Script::new().exit(3)).run();
    assert_eq!(report.sent("Records"), 0);
    assert!(report.outcome.records.is_empty());
}

#[test]
fn a_subtree_sends_its_records_in_few_messages() {
    for tree in ["chain", "kary:2", "binomial"] {
        let n = 200;
        let report = Session::of(n).tree(tree).script(Script::new()).records().run();
        assert_eq!(report.outcome.records.len(), 200);
        assert_eq!(report.sent("Records"), u64::from(n), "{tree}: one for each edge");
    }
}

#[test]
fn a_task_that_fails_is_told_with_its_last_words_and_those_that_are_ended_for_it_without() {
    let words = Script::new().then(Step::Output(Stream::Stderr, 10_000));
    let fails = words.clone().wait(Duration::from_secs(1)).then(Step::Die(Signal::SEGV));
    let report = Session::of(5)
        .tree("chain")
        .script(words.then(Step::Hang))
        .task(Rank(3), fails)
        .records()
        .run();
    let records = by_rank(&report);
    let talkers: Vec<Rank> =
        records.iter().filter(|it| !it.last_words.is_empty()).map(|it| it.rank).collect();
    assert_eq!(talkers, [Rank(3)]);
    assert!(records[3].last_words.len() <= 4096);
    let segv = ExitStatus::Signaled { signal: Signal::SEGV, core: false };
    assert_eq!(records[3].status, segv);
    assert_eq!(records.len(), 5);
}

#[test]
fn the_last_words_of_all_are_bounded_however_many_fail() {
    let fails = Script::new().then(Step::Output(Stream::Stderr, 8_000)).exit(1);
    let session = Session::of(100).tree("kary:4").tasks(8).on_failure_continue().records();
    let all = (0..800).map(Rank);
    let report = all.fold(session, |session, rank| session.task(rank, fails.clone())).run();
    let words: usize = report.outcome.records.iter().map(|it| it.last_words.len()).sum();
    assert!(words > 0 && words <= 1 << 20, "{words} bytes");
    assert_eq!(report.outcome.records.len(), 800);
}

fn by_rank(report: &Report) -> Vec<TaskRecord> {
    let mut records = report.outcome.records.clone();
    records.sort_by_key(|record| record.rank);
    records
}
