//! Tasks have others started while they run.

use std::time::Duration;

use model::{AgentId, JobId, Rank};
use sim::{Script, Session, Spawned, Step, When};

const TREES: [&str; 4] = ["flat", "chain", "kary:2", "binomial"];

fn begin() -> Script {
    Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence)
}

fn end(script: Script) -> Script {
    script.then(Step::Fence).then(Step::PmiFinalize)
}

/// Tasks of `n` nodes that have `tasks` others started, which read the cards of each other and of their parents.
fn spawning(n: u32, tree: &str, tasks: u32) -> Session {
    let child = end(begin().then(Step::CheckCard(1)).then(Step::CheckParentCard)).output(100);
    let parent = end(begin().then(Step::Spawn(Spawned::Script(0), tasks)));
    Session::of(n).tree(tree).script(parent).spawned(&[child], 4)
}

#[test]
fn tasks_of_a_spawned_job_meet_and_read_their_parents_cards_for_every_number_of_nodes() {
    for tree in TREES {
        for n in 1..=20 {
            for tasks in [1, 3, 4 * n] {
                let report = spawning(n, tree, tasks).pmi2_every(2).run();
                assert_eq!(report.code, Some(0), "{tree} {n}, {tasks}");
                assert_eq!(report.output_bytes, u64::from(100 * tasks), "{tree} {n}, {tasks}");
            }
        }
    }
}

#[test]
fn each_spawned_task_has_a_record_beside_those_of_its_parents_for_every_number_of_nodes() {
    for tree in TREES {
        for n in (1..=16).chain([31, 64]) {
            let tasks = 4 * n - 1;
            let report = spawning(n, tree, tasks).records().run();
            assert_eq!(report.outcome.records.len(), n as usize, "{tree} {n}");
            let jobs: Vec<_> = report.outcome.spawned.iter().collect();
            let [(JobId(1), job)] = jobs[..] else { panic!("{tree} {n}: {jobs:?}") };
            let mut ranks: Vec<Rank> = job.records.iter().map(|record| record.rank).collect();
            ranks.sort();
            assert_eq!(ranks, (0..tasks).map(Rank).collect::<Vec<_>>(), "{tree} {n}");
            assert_eq!(job.statuses.len(), u64::from(tasks), "{tree} {n}");
            assert_eq!((job.spawner, job.map.len()), ((JobId::FIRST, Rank(0)), tasks));
        }
    }
    assert_eq!(spawning(3, "flat", 5).run().outcome.spawned.iter().count(), 0, "none is wanted");
}

#[test]
fn output_of_spawned_tasks_goes_to_files_where_that_of_the_first_job_goes() {
    for (local, tee) in [(false, false), (false, true), (true, false), (true, true)] {
        for n in (1..=16).chain([31]) {
            let tasks = 4 * n - 1;
            let report = spawning(n, "kary:2", tasks).files(local, tee).run();
            let bytes = u64::from(100 * tasks);
            assert_eq!(report.code, Some(0), "{n}");
            assert_eq!(report.file_bytes, bytes, "{n}");
            assert_eq!(report.output_bytes, if tee { bytes } else { 0 }, "{n}");
        }
    }
}

#[test]
fn what_is_spawned_goes_along_the_routing_tree_where_there_is_one() {
    for route in ["kary:1", "kary:2", "binomial", "direct"] {
        for n in [1, 2, 5, 12] {
            let report = spawning(n, "flat", 2 * n).route(route).run();
            assert_eq!(report.code, Some(0), "{route} {n}");
        }
    }
}

#[test]
fn many_spawned_one_after_another_end_well_and_so_does_one_that_a_spawned_task_spawns() {
    let spawn = |script: Script, number| script.then(Step::Spawn(Spawned::Script(number), 1));
    let scripts = [Script::new().output(10), end(spawn(begin(), 0))];
    let parent = end((0..20).fold(begin(), |script, number| spawn(script, number % 2)));
    let report = Session::of(3).tree("chain").script(parent).spawned(&scripts, 40).run();
    assert_eq!((report.code, report.output_bytes), (Some(0), 10 * 20));
}

#[test]
fn a_job_that_cannot_run_ends_alone_whatever_of_it_runs_already() {
    for bad in [Spawned::Missing, Spawned::Uncreatable] {
        for n in [1, 2, 7] {
            let script = begin().then(Step::Spawn(bad, 3 * n)).then(Step::Spawn(bad, 1));
            let script = end(script.then(Step::Spawn(Spawned::Script(0), 1)));
            let child = Script::new().wait(Duration::from_secs(5)).output(10);
            let report = Session::of(n).script(script).spawned(&[child], 4).run();
            assert_eq!((report.code, report.output_bytes), (Some(0), 10), "{bad:?} {n}");
        }
    }
}

#[test]
fn the_room_of_a_job_that_could_not_be_started_is_there_for_who_tries_again_at_once() {
    for tree in TREES {
        for bad in [Spawned::Missing, Spawned::Uncreatable] {
            for n in (1..=16).chain([31, 64]) {
                let all = 4 * n;
                let script = begin().then(Step::Spawn(bad, all));
                let script = end(script.then(Step::Spawn(Spawned::Script(0), all)));
                let child = Script::new().wait(Duration::from_secs(5)).output(10);
                let report = Session::of(n).tree(tree).script(script).spawned(&[child], 4).run();
                let came = (report.code, report.output_bytes);
                assert_eq!(came, (Some(0), u64::from(10 * all)), "{tree} {bad:?} {n}");
            }
        }
    }
}

/// Two jobs have tasks on each node. Whatever step it is at which an agent is lost, everything ends.
#[test]
fn the_loss_of_an_agent_at_any_step_ends_all_jobs() {
    let whole = spawning(3, "chain", 6).run();
    for step in (0..whole.steps).step_by(7) {
        for agent in [1, 2, 3] {
            let report = spawning(3, "chain", 6).crash(AgentId(agent), When::Step(step)).run();
            assert!(report.code.is_some(), "step {step}, agent {agent}");
        }
    }
}
