//! Standard input of real jobs for every task at once.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

#[expect(dead_code, reason = "each file of tests uses its own part")]
mod support;

use support::stand::on_hosts;
use testkit::Fnv;

#[test]
fn every_task_reads_every_byte() {
    let run = on_hosts("stdin-all", "n[1-4]", "").words("-n 8 --ppn 2 --stdin all");
    let bytes: Vec<u8> =
        (0..10_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let sum = Fnv::of(&bytes).value();
    let text = run.misbehave(["count-stdin"]).input(bytes).run().with_status(0).text();
    assert_eq!(text, format!("stdin bytes=10000000 fnv={sum:016x}\n").repeat(8));
}

#[test]
fn tasks_that_close_their_input_or_end_do_not_hold_those_that_read() {
    let run = on_hosts("stdin-some", "a,b,c", "").words("-n 3 --stdin all");
    let script = "case $PMI_RANK in 0) exec <&-; sleep 1;; 1) exit 0;; *) wc -c;; esac";
    let ended = run.args(["sh", "-c", script]).input(vec![b'x'; 5_000_000]).run().with_status(0);
    assert_eq!(ended.text().trim(), "5000000");
}

#[test]
fn a_reader_that_is_neither_a_rank_nor_a_word_is_refused() {
    let ended =
        on_hosts("stdin-word", "a", "").words("-n 1 --stdin each true").run().with_status(2);
    assert!(ended.stderr.contains("neither a rank, nor `all` or `none`"), "{}", ended.stderr);
}
