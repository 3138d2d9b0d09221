//! Allgathers: everybody's values in order of rank, what they cost, and who is not waited for.

use std::time::Duration;

use model::{AgentId, Order, Rank, Route, Time};
use sim::{Fault, Report, Script, Session, Step, When};

mod every_step;

use every_step::{at_every_step_of, hurt};

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "greedy", "adaptive"];

const ALIKE: Step = Step::Allgather { least: 50, most: 50 };
const BEGIN_ALIKE: Step = Step::BeginAllgather { least: 50, most: 50 };
const MIXED: Step = Step::Allgather { least: 0, most: 9 };

fn script(steps: impl IntoIterator<Item = Step>) -> Script {
    let begin = Script::new().then(Step::PmiInit);
    steps.into_iter().fold(begin, Script::then).then(Step::PmiFinalize)
}

fn sent(report: &Report) -> [u64; 2] {
    ["AllgatherEnter", "AllgatherRelease"].map(|kind| report.sent(kind))
}

#[test]
fn all_learn_what_all_bring_for_one_message_an_edge_either_way_for_every_number_of_nodes() {
    for tree in TREES {
        for n in 1..=64 {
            let session = Session::of(n).tree(tree).tasks(1 + n % 3);
            let report = session.script(script([ALIKE, MIXED])).pmi2_every(2).run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            assert_eq!(sent(&report), [u64::from(2 * n); 2], "{tree} {n}");
        }
    }
}

#[test]
fn ranks_that_are_dealt_to_uneven_nodes_in_turn_stand_in_order_all_the_same() {
    for tree in TREES {
        for counts in [&[3, 1, 2][..], &[1, 4, 2, 3, 1], &[1, 2, 3, 4, 5, 6, 7]] {
            let session = Session::of(counts.len() as u32).tree(tree).tasks_on(counts);
            let report = session.ranked(Order::Nodes).script(script([MIXED, ALIKE])).run();
            assert_eq!(report.code, Some(0), "{tree} {counts:?}");
        }
    }
}

#[test]
fn fences_rings_and_allgathers_take_turns_in_any_order() {
    let both = script([Step::PutCard, MIXED, Step::Fence, Step::Ring, ALIKE, Step::CheckCard(1)]);
    for tree in TREES {
        let session = Session::of(9).tree(tree).tasks(2).script(both.clone());
        assert_eq!(session.clone().run().code, Some(0), "{tree}");
        assert_eq!(
            session.spec(|spec| spec.route = Some(Route::Kary(3))).run().code,
            Some(0),
            "{tree}"
        );
    }
}

#[test]
fn who_has_ended_brings_nothing_and_is_not_waited_for() {
    for tree in TREES {
        for rank in [0, 4, 8] {
            let gone = script([ALIKE]);
            let session = Session::of(9).tree(tree).script(script([ALIKE, MIXED, MIXED]));
            let report = session.task(Rank(rank), gone).run();
            assert_eq!(report.code, Some(0), "{tree} without {rank}");
        }
    }
}

#[test]
fn a_task_that_fails_while_others_wait_for_its_value_ends_the_job_with_its_status() {
    for tree in TREES {
        let fails = Script::new().then(Step::PmiInit).wait(Duration::from_secs(1)).exit(3);
        let session = Session::of(7).tree(tree).tasks(2).script(script([ALIKE]));
        let report = session.task(Rank(5), fails).run();
        assert_eq!(report.code, Some(3), "{tree}");
        assert!(sent(&report)[1] == 0, "{tree}: somebody was let out");
    }
}

#[test]
fn an_allgather_entered_twice_is_the_fault_of_its_task_alone() {
    let twice = "26    cmd=allgather;value=twice;";
    let rest = format!("{twice}{twice}");
    let enters = Script::new().then(Step::PmiInit).then(Step::Pmi(rest, None)).then(Step::Hang);
    let session = Session::of(5).tree("kary:2").script(script([ALIKE])).task(Rank(3), enters);
    let report = session.run();
    let told = format!("{:?}", report.outcome.faults);
    assert!(told.contains("rank: Rank(3)") && told.contains("waiting in already"), "{told}");
}

#[test]
fn an_agent_lost_at_any_step_of_an_allgather_ends_the_session_and_nobody_hangs() {
    for tree in ["kary:2", "chain"] {
        let session = Session::of(5).tree(tree).tasks(2).script(script([MIXED, ALIKE]));
        for agent in [AgentId(1), AgentId(5)] {
            at_every_step_of(&session, Fault::Crash(agent), 120, |report, struck| {
                hurt(report, struck);
            });
        }
    }
}

#[test]
fn a_task_killed_at_any_step_of_an_allgather_ends_the_job_and_nobody_hangs() {
    let session = Session::of(3).tree("kary:2").tasks(2).script(script([MIXED, ALIKE]));
    let usual = session.run();
    for step in 0..usual.steps {
        let fault = Fault::KillTask(Rank(3));
        let session = session.clone().fault(When::Step(step), fault);
        if let Err(failure) = session.try_run() {
            panic!("{failure}\nafter step {step}");
        }
    }
}

/// Less what the session takes without it.
fn takes(n: u32, step: Option<Step>) -> (Duration, Report) {
    let (with, without) = (over_slow_links(n, step), over_slow_links(n, None));
    (ended(&with) - ended(&without), with)
}

fn over_slow_links(n: u32, steps: impl IntoIterator<Item = Step>) -> Report {
    let session = Session::of(n).tree("kary:16").links_take(Duration::from_millis(1));
    session.script(script(steps)).run()
}

fn ended(report: &Report) -> Time {
    report.ended_at.expect("it ends")
}

/// S4-20, S4-22: agents go on with it while tasks compute, which do two steps of 10 µs each for it.
#[test]
fn what_tasks_begin_before_they_compute_adds_nothing_that_grows_with_their_number() {
    let work = Step::Wait(Duration::from_millis(50));
    let begun = [(Step::BeginFence, Step::Fence), (BEGIN_ALIKE, ALIKE)];
    for n in (1..=17).chain([31, 64, 100, 272, 273, 1_000]) {
        let alone = ended(&over_slow_links(n, [work.clone()]));
        for (begin, end) in begun.clone() {
            let steps = [begin, work.clone(), end.clone()];
            let added = ended(&over_slow_links(n, steps)) - alone;
            assert!(added <= Duration::from_micros(20), "{n} {end:?}: {added:?}");
            let added = ended(&over_slow_links(n, [end, work.clone()])) - alone;
            assert!(added >= Duration::from_millis(2), "{n}: {added:?}");
        }
    }
}

#[test]
fn fences_and_allgathers_take_two_messages_an_edge_and_two_latencies_a_level() {
    for (n, levels) in [(16, 1), (17, 2), (272, 2), (273, 3), (4_368, 3), (4_369, 4)] {
        let (time, report) = takes(n, Some(Step::Fence));
        assert_eq!(report.sent("Enter") + report.sent("Release"), u64::from(2 * n));
        let least = Duration::from_millis(2 * levels);
        assert!((least..least + Duration::from_millis(1)).contains(&time), "{n}: {time:?}");
        if n < 1_000 {
            let (gathered, report) = takes(n, Some(ALIKE));
            assert_eq!(sent(&report), [u64::from(n); 2]);
            assert!(gathered < least + Duration::from_millis(1), "{n}: {gathered:?}");
        }
    }
}

/// All values go down every edge, and each goes up those between its task and the head; beside them are the lengths of one
/// run.
#[test]
fn what_an_allgather_carries_is_the_values_and_a_run() {
    const MESSAGE: u64 = 32;
    for n in 1..=200 {
        let session = Session::of(n).tree("flat").script(script([ALIKE]));
        let report = session.run();
        let run_bytes = |first: u32, count: u32| {
            1 + [first, count].map(|number| u64::from(number > 127)).iter().sum::<u64>() + 2
        };
        let up: u64 = (0..n).map(|rank| MESSAGE + 50 + run_bytes(rank, 1)).sum();
        let down = u64::from(n) * (MESSAGE + u64::from(n) * 50 + run_bytes(0, n));
        assert_eq!([report.bytes["AllgatherEnter"], report.bytes["AllgatherRelease"]], [up, down]);
    }
}

#[test]
fn tasks_that_wait_for_each_other_in_different_collectives_end_the_job_and_are_named() {
    let kinds = [(Step::Fence, "fence"), (Step::Ring, "ring"), (MIXED, "allgather")];
    for tree in TREES {
        for (one, one_name) in &kinds {
            for (other, other_name) in kinds.iter().filter(|(_, name)| name != one_name) {
                for tasks in [1, 2, 3] {
                    let session = Session::of(6 / tasks).tree(tree).tasks(tasks);
                    let session = session.script(script([one.clone()]));
                    let session = session.task(Rank(4), script([other.clone()]));
                    let words = format!("{:?}", session.run().outcome.faults);
                    assert!(
                        words.contains(&format!(" wait in a {one_name}"))
                            && words.contains(&format!("ranks 4 wait in a {other_name}")),
                        "{tree} {tasks}: {words}"
                    );
                }
            }
        }
    }
}

/// It is in the allgather alone for more than a minute, while the others are in the fence.
#[test]
fn a_task_that_computes_between_what_it_begins_in_another_order_is_not_taken_for_apart() {
    let begins = Step::Pmi("24    cmd=allgather;value=3:3;".into(), None);
    let ends = Step::Pmi(String::new(), Some("cmd=allgather-response;rc=0;".into()));
    let own = Script::new().then(Step::PmiInit).then(begins).wait(Duration::from_secs(90));
    let own = own.then(Step::Fence).then(ends).then(Step::PmiFinalize);
    for tree in TREES {
        let session = Session::of(5).tree(tree).tasks(2).script(script([Step::Fence, MIXED]));
        let report = session.task(Rank(3), own.clone()).run();
        assert_eq!(report.code, Some(0), "{tree}: {:?}", report.outcome.faults);
    }
}
