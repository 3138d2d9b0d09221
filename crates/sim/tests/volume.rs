//! Exchanges that are too large for one message: they go over each edge in parts, and take the time of their bytes once
//! and not once a level.

use std::time::Duration;

use model::{AgentId, Rank, Time};
use proto::Event;
use sim::{Fault, Report, Script, Session, Step, When};

mod every_step;

use every_step::{at_every_step_of, hurt};

const TREES: [&str; 6] = ["flat", "chain", "kary:2", "binomial", "greedy", "adaptive"];

/// What a page takes on its way: its key, its value of 1,000 bytes, and their lengths.
const PAGE_BYTES: u64 = 1_016;

/// Every task puts as many pages, all meet, and each checks some of what others have put.
fn pages(count: u32) -> Script {
    let begin = Script::new().then(Step::PmiInit);
    let put = (0..count).map(Step::PutPage).fold(begin, Script::then).then(Step::Fence);
    let some = [(0, 0), (1, count / 2), (7, count - 1)];
    let checks = some.map(|(distance, page)| Step::CheckPage(distance, page));
    let checked = checks.into_iter().fold(put, Script::then);
    checked.then(Step::Fence).then(Step::PmiFinalize)
}

fn values(bytes: u32) -> Script {
    let allgather = Step::Allgather { least: bytes - 1, most: bytes };
    Script::new()
        .then(Step::PmiInit)
        .then(allgather.clone())
        .then(allgather)
        .then(Step::PmiFinalize)
}

fn sent(report: &Report) -> [u64; 4] {
    ["EnterPart", "ReleasePart", "Enter", "Release"].map(|kind| report.sent(kind))
}

#[test]
fn pages_of_all_tasks_arrive_whole_for_every_number_of_nodes_tree_and_dialect() {
    for tree in TREES {
        for n in (1..=16).chain([31, 64]) {
            let session = Session::of(n).tree(tree).pmi2_every(2).script(pages(160 / n + 1));
            let report = session.encoded().run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            let [_, down, ..] = sent(&report);
            assert!(down >= 2 * u64::from(n), "{tree} {n}: {:?}", sent(&report));
        }
    }
}

/// A page is packed to less than two fifths, its last part excepted.
#[test]
fn pages_go_down_packed_where_the_head_has_many_children() {
    for n in [2, 5, 6, 16, 64] {
        let per_task = 2_000 / n;
        let report = Session::of(n).tree("flat").script(pages(per_task)).run();
        let whole = u64::from(n) * u64::from(n * per_task) * PAGE_BYTES;
        let bytes = report.bytes["ReleasePart"];
        let is_packed = bytes < whole / 5 * 2;
        assert!(is_packed == (n >= 6) && (is_packed || bytes >= whole), "{n}: {bytes} of {whole}");
    }
}

#[test]
fn values_of_all_tasks_arrive_whole_for_every_number_of_nodes_and_every_tree() {
    for tree in TREES {
        for n in (1..=16).chain([31, 64]) {
            let (tasks, bytes) = (n * (1 + n % 3), (200_000 / n).min(60_000));
            let script = values(bytes);
            let session = Session::of(n).tree(tree).tasks(1 + n % 3).script(script);
            let report = session.encoded().run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            // A part ends with the value that fills it.
            let is_large = tasks * bytes > (64 << 10) + 60_000;
            assert_eq!(report.sent("ReleasePart") > 0, is_large, "{tree} {n}");
        }
    }
}

/// A part ends with the pair that fills it.
#[test]
fn there_are_as_many_parts_down_each_edge_as_the_pages_fill_and_small_fences_are_one_message() {
    const PART: u64 = 64 << 10;
    for n in (1..=16).chain([31, 64, 100, 300]) {
        let per_task = 1_200 / n + 1;
        let report = Session::of(n).tree("flat").script(pages(per_task)).run();
        let [_, down, _, release] = sent(&report);
        let edges = u64::from(n);
        assert_eq!(release, edges, "{n}: the second fence brings nothing");
        let bytes = u64::from(n * per_task) * PAGE_BYTES;
        let parts = down / edges;
        // Parts are those of single nodes where these have more than one.
        let (least, most) = (bytes / (PART + PAGE_BYTES), bytes / PART + edges.min(bytes / PART));
        assert!((least..=most + 1).contains(&parts), "{n}: {parts} parts of {bytes} bytes");
        assert_eq!(down % edges, 0, "{n}");
    }
}

/// Less what the session takes without it.
fn takes(n: u32, tree: &str, pages: u32, change: impl Fn(Session) -> Session) -> Duration {
    let run = |pages: u32| {
        let begin = Script::new().then(Step::PmiInit);
        let put = (0..pages).map(Step::PutPage).fold(begin, Script::then);
        let session =
            Session::of(n).tree(tree).script(put.then(Step::Fence).then(Step::PmiFinalize));
        let session = session.links_take(Duration::from_millis(1)).push_max(u64::MAX);
        change(session).run().ended_at.expect("it ends")
    };
    // Putting a page takes the task some time, too, which is there without bandwidth as well.
    run(pages) - run(0)
}

#[test]
fn a_large_fence_takes_the_time_of_its_bytes_once_either_way_and_a_part_for_each_level() {
    const RATE: u64 = 10_000_000;
    for depth in [1, 2, 4, 8, 16, 32] {
        let (pages, n) = (1_000_u32.div_ceil(depth), depth);
        let bandwidth = |session: Session| {
            session.calibrate(|machines| machines.link.bandwidth_bytes_per_s = Some(RATE))
        };
        let time = takes(n, "chain", pages, bandwidth) - takes(n, "chain", pages, |it| it);
        let of_bytes = |bytes: u64| Duration::from_secs_f64(bytes as f64 / RATE as f64);
        let whole = of_bytes(u64::from(pages * n) * PAGE_BYTES);
        let part = of_bytes(67_000);
        let most = 2 * whole + 2 * depth * part + Duration::from_millis(5);
        assert!(time > whole.mul_f64(1.9), "{depth}: {time:?} of {whole:?}");
        assert!(time < most, "{depth}: {time:?}, at most {most:?}");
    }
}

#[test]
fn a_large_fence_is_held_as_a_whole_and_its_pages_are_found_where_they_came_by() {
    for tree in TREES {
        for n in [1, 2, 5, 16, 31] {
            let session = Session::of(n).tree(tree).push_max(100_000).script(pages(200 / n + 1));
            let report = session.run();
            assert_eq!(report.code, Some(0), "{tree} {n}");
            assert_eq!(report.sent("ReleasePart"), 0, "{tree} {n}");
            assert_eq!(report.sent("Held"), u64::from(n), "{tree} {n}");
        }
    }
}

/// Links break at moments from the launch to the end of the last fence.
#[test]
fn large_fences_pass_over_every_route_and_around_links_that_break_within_them() {
    const MOMENTS: u32 = 12;
    for (route, redundancy) in [("kary:2", 0), ("kary:2", 1), ("direct", 1), ("binomial", 0)] {
        let script = pages(40).then(Step::Wait(Duration::from_secs(1)));
        let session = Session::of(7).tree("chain").script(script);
        let session = session.route(route).redundancy(redundancy).calibrate(|machines| {
            machines.link.bandwidth_bytes_per_s = Some(2_000_000);
        });
        let usual = session.run();
        let at = |is_it: fn(&Event) -> bool| usual.time_of(is_it).expect("it happens");
        let launched = at(|event| matches!(event, Event::Launched(_))).since(Time::ZERO);
        let ended = usual.ended_at.expect("it ends").since(Time::ZERO);
        for moment in 0..MOMENTS {
            let time = launched + (ended - launched) * moment / MOMENTS;
            for agent in [3, 6].map(AgentId) {
                let fault = Fault::BreakRoute(agent);
                let report = session.clone().fault(When::At(time), fault).run();
                assert_eq!(report.code, Some(0), "{route} {time:?} {:?}", report.outcome);
            }
        }
    }
}

#[test]
fn an_agent_lost_at_any_step_of_a_large_exchange_ends_the_session_and_nobody_hangs() {
    for tree in ["kary:2", "chain"] {
        for script in [pages(14), values(30_000)] {
            let session = Session::of(5).tree(tree).script(script);
            for agent in [AgentId(1), AgentId(5)] {
                at_every_step_of(&session, Fault::Crash(agent), 120, |report, struck| {
                    hurt(report, struck);
                });
            }
        }
    }
}

/// What is to end the tasks does not wait for what waits for a slow link: two megabytes, which take twenty seconds up
/// and then as long on each of two links down.
#[test]
fn an_order_overtakes_the_parts_of_an_exchange() {
    let session = Session::of(2).tree("chain").push_max(u64::MAX).script(pages(1_000));
    let session = session.calibrate(|machines| {
        machines.link.bandwidth_bytes_per_s = Some(100_000);
    });
    for at in [25, 30, 35].map(Duration::from_secs) {
        let session = session.clone().fault(When::At(at), Fault::KillTask(Rank(0)));
        let report = session.run();
        assert!(report.code == Some(137) && report.sent("ReleasePart") > 30, "{at:?}");
        let end = report.ended_at.expect("it ends").since(Time::ZERO);
        assert!(end < at + Duration::from_secs(3), "{at:?}: {end:?}");
    }
}
