//! Fences above the limit: values stay where they came by, and whoever reads them has them fetched.

use model::{AgentId, Rank, Route};
use sim::{Fault, Report, Script, Session, Step, When};
use wire::Reads;

mod every_step;

use every_step::{at_every_step_of, hurt};

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "greedy", "adaptive"];

fn script(steps: impl IntoIterator<Item = Step>) -> Script {
    let begin = Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence);
    let met = steps.into_iter().fold(begin, Script::then);
    met.then(Step::Fence).then(Step::PmiFinalize)
}

/// Every task reads the cards of all.
fn reads_all(n: u32) -> Script {
    script((0..n).map(Step::CheckCard))
}

fn put(value: &str) -> Step {
    let line = format!("cmd=put kvsname=kvs_0 key=k value={value}");
    Step::Pmi(line, Some("cmd=put_result rc=0".into()))
}

fn get(value: &str) -> Step {
    let answer = format!("cmd=get_result rc=0 value={value}");
    Step::Pmi("cmd=get kvsname=kvs_0 key=k".into(), Some(answer))
}

fn sent(report: &Report) -> [u64; 4] {
    ["Release", "Held", "Fetch", "Fetched"].map(|kind| report.sent(kind))
}

fn reads(report: &Report) -> Reads {
    report.outcome.stats.reads
}

/// In a chain every agent has what all below it have put.
#[test]
fn a_read_goes_up_to_the_first_agent_that_has_the_pair_and_no_further() {
    for n in 2..=32 {
        for distance in 1..n {
            let session = Session::of(n).tree("chain").push_max(0).script(script([]));
            let reader = script([Step::CheckCard(distance)]);
            let report = session.task(Rank(n - 1), reader).run();
            assert_eq!(report.code, Some(0));
            let (edges, links) = (u64::from(n), u64::from(n - distance));
            assert_eq!(sent(&report), [edges, edges, links, links], "{n} {distance}");
        }
    }
}

/// Each edge carries each value that is not below it once, however many read it there.
#[test]
fn where_all_read_all_every_edge_carries_every_value_from_elsewhere_once() {
    const MESSAGE: u64 = 32;
    for n in 1..=24 {
        for (tree, edges_and_values) in [("flat", n * (n - 1)), ("chain", n * (n - 1) / 2)] {
            let session = Session::of(n).tree(tree).push_max(0).script(reads_all(n));
            let report = session.run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            let fetched = u64::from(edges_and_values);
            assert_eq!(sent(&report)[2..], [fetched; 2], "{tree} {n}");
            let Reads { own, way, head, missing } = reads(&report);
            assert_eq!(own + way + head, u64::from(n * n), "{tree} {n}");
            assert_eq!(missing, 0);
            if tree == "flat" {
                assert_eq!(own, u64::from(n));
                let values = |rank: u32| 51 + format!("card-{rank}").len() as u64;
                let each: u64 = (0..n).map(values).sum();
                let expected = u64::from(n - 1) * each + fetched * MESSAGE;
                assert_eq!(report.bytes.get("Fetched").copied().unwrap_or(0), expected);
            }
        }
    }
}

#[test]
fn tasks_read_each_other_over_every_tree_and_route_and_each_number_of_nodes() {
    for tree in TREES {
        for n in 1..=20 {
            let session = Session::of(n).tree(tree).tasks(1 + n % 3).pmi2_every(2).push_max(0);
            let session = session.script(script([1, 2, 5].map(Step::CheckCard)));
            assert_eq!(session.clone().run().code, Some(0), "{tree} {n}");
            let routed = session.spec(|spec| spec.route = Some(Route::Kary(3)));
            assert_eq!(routed.encoded().run().code, Some(0), "{tree} {n} routed");
        }
    }
}

/// A card takes 66 bytes, or 67 where its rank has two digits.
#[test]
fn a_fence_up_to_the_limit_is_pushed_and_one_above_is_not() {
    for n in [1, 5, 10] {
        let bytes = u64::from(n) * (3 + 6 + 51);
        for (limit, is_pushed) in [(bytes, true), (bytes - 1, false)] {
            let report = Session::of(n).push_max(limit).script(reads_all(n)).run();
            let edges = u64::from(n);
            // The second fence brings nothing.
            let ends = if is_pushed { [2 * edges, 0] } else { [edges, edges] };
            assert_eq!(sent(&report)[..2], ends, "{n} {limit}");
            assert_eq!(is_pushed, reads(&report) == Reads::default());
        }
    }
}

#[test]
fn a_key_that_is_put_again_is_read_anew_by_all_whichever_of_its_fences_are_pushed() {
    let meets = |before: Step, value| [before, Step::Fence, get(value)];
    let waits = Step::Wait(std::time::Duration::ZERO);
    for tree in TREES {
        // The first takes 5 bytes, the next 6, the third 5 again.
        for limit in [0, 5, 6] {
            for n in [2, 3, 9] {
                let rounds = |own: [Step; 3]| {
                    let values = ["1", "22", "3"];
                    let rounds = own.into_iter().zip(values).flat_map(|(own, v)| meets(own, v));
                    let begin = Script::new().then(Step::PmiInit);
                    rounds.fold(begin, Script::then).then(Step::PmiFinalize)
                };
                let session = Session::of(n).tree(tree).push_max(limit);
                let session = session.script(rounds([waits.clone(), waits.clone(), waits.clone()]));
                let session = session.task(Rank(0), rounds([put("1"), waits.clone(), put("3")]));
                let last = rounds([waits.clone(), put("22"), waits.clone()]);
                let report = session.task(Rank(n - 1), last).run();
                assert_eq!(report.code, Some(0), "{tree} {limit} {n}: {:?}", report.outcome);
            }
        }
    }
}

#[test]
fn a_key_that_nobody_has_put_is_missing_at_the_head_for_each_who_reads_it() {
    for tree in TREES {
        let missing = Step::Pmi(
            "cmd=get kvsname=kvs_0 key=nobodys".into(),
            Some("cmd=get_result rc=1 msg=key_nobodys_not_found".into()),
        );
        let session = Session::of(7).tree(tree).push_max(0).script(script([]));
        let report = session.task(Rank(6), script([missing.clone(), missing])).run();
        assert_eq!(report.code, Some(0), "{tree}");
        assert_eq!(reads(&report), Reads { missing: 2, ..Reads::default() }, "{tree}");
    }
}

#[test]
fn tasks_that_end_without_having_read_keep_nobody_waiting() {
    for tree in TREES {
        let session =
            Session::of(9).tree(tree).push_max(0).script(script([1].map(Step::CheckCard)));
        let gone = Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence);
        let report = session.task(Rank(4), gone.then(Step::PmiFinalize)).run();
        assert_eq!(report.code, Some(0), "{tree}");
    }
}

#[test]
fn an_agent_lost_at_any_step_of_reads_ends_the_session_and_nobody_hangs() {
    for tree in ["kary:2", "chain"] {
        let session = Session::of(5).tree(tree).tasks(2).push_max(0).script(reads_all(3));
        for agent in [AgentId(1), AgentId(5)] {
            at_every_step_of(&session, Fault::Crash(agent), 120, |report, struck| {
                hurt(report, struck);
            });
        }
    }
}

#[test]
fn a_task_killed_at_any_step_of_reads_ends_the_job_and_nobody_hangs() {
    let session = Session::of(3).tree("kary:2").tasks(2).push_max(0).script(reads_all(6));
    let usual = session.run();
    for step in 0..usual.steps {
        let session = session.clone().fault(When::Step(step), Fault::KillTask(Rank(3)));
        if let Err(failure) = session.try_run() {
            panic!("{failure}\nafter step {step}");
        }
    }
}
