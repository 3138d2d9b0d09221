//! Sessions of random shape and with random faults, for seeds by the hundred.
//!
//! Whatever a session can be given is drawn here, each part from a stream of its own, and faults in
//! `random_faults.rs`. What is never drawn: many more agents, since periods of heartbeats grow with
//! children and a session shall be over soon (`tests/scale.rs` and `tests/job.rs` have thousands); and tasks that hang
//! where nothing is to end them.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{AgentId, IdSet, Rank, Signal};
use wire::{ShellFailureKind, Stream};

use crate::calibration::{Cpu, SlowHosts};
use crate::distribution::Distribution;
use crate::fault::ShellPlan;
use crate::launch::Launch;
use crate::random::Random;
use crate::random_faults::with_faults;
use crate::script::{Grouping, Script, Spawned, Step};
use crate::session::Session;

const TREES: [&str; 10] = [
    "flat",
    "chain",
    "kary:2",
    "kary:5",
    "binomial",
    "two-level",
    "greedy",
    "greedy:100,30",
    "route:kary:2",
    "adaptive",
];

/// Error numbers: there is no such file, and it may not be run.
const ERRNOS: [i32; 2] = [2, 13];

impl Session {
    /// The session that follows from a seed: its size, tree, costs, scripts and up to 8 faults.
    pub fn random(seed: u64) -> Session {
        let stream = |purpose| Random::new(seed, purpose);
        let shape = &mut stream(1);
        let n = u32::try_from(shape.between(1, 40)).unwrap_or(1);
        let session = Session::of(n).seed(seed).tree(shape.pick::<&str>(&TREES));
        let session = with_missing(session, &mut stream(11), n);
        let session = with_later(session, &mut stream(17));
        let session = with_tasks(session, &mut stream(2), n);
        let session = with_spawns(session, &mut stream(16));
        let session = with_programs(session, &mut stream(12));
        let session = with_dialects(session, &mut stream(14));
        let session = with_parameters(session, &mut stream(9));
        let session = with_links(session, &mut stream(10), n);
        let session = with_machines(session, &mut stream(7));
        let session = with_differing_hosts(session, &mut stream(6), n);
        let session = with_route(session, &mut stream(13));
        let session = with_push_limit(session, &mut stream(16));
        let session = with_failing_tasks(session, &mut stream(5), n);
        let session = with_bad_shells(session, &mut stream(3), n);
        let session = with_barriers(session, &mut stream(15), n);
        let session = with_lacking_hosts(session, &mut stream(11), n);
        let session = with_faults(session, &mut stream(4), n);
        let session = with_shell_links(session, &mut stream(11), n);
        if stream(8).once_in(8) { session.encoded() } else { session }
    }
}

/// Spares, and who may be missing.
fn with_missing(session: Session, random: &mut Random, n: u32) -> Session {
    let spares = if random.once_in(3) { random_number(random, 0, (n - 1).min(4)) } else { 0 };
    let session = session.spares(spares);
    let session = if random.once_in(3) { session.fixed() } else { session };
    if random.once_in(3) {
        let nodes_min = random_number(random, 1, session.planned());
        session.on_missing_continue(nodes_min)
    } else {
        session
    }
}

/// In one of four sessions whose first job stays where it was planned, hosts that get an agent when a spawn needs it.
fn with_later(session: Session, random: &mut Random) -> Session {
    let most = session.planned() - 1;
    if session.is_movable() || most == 0 || !random.once_in(4) {
        return session;
    }
    session.later(random_number(random, 1, most.min(8)))
}

/// How many tasks there are, what they do, and what they read.
fn with_tasks(session: Session, random: &mut Random, n: u32) -> Session {
    let session = if random.once_in(4) {
        let mut counts: Vec<u32> = (0..n).map(|_| random_number(random, 0, 3)).collect();
        // Tasks are created some at a time.
        let crowd = if random.once_in(4) { 30 } else { 1 };
        counts[position(random_number(random, 0, session.planned() - 1))] += crowd;
        session.tasks_on(&counts)
    } else {
        session.tasks(random_number(random, 1, 3))
    };
    let has_input = random.once_in(3);
    let input_bytes = if random.once_in(6) { 2_000_000 } else { 300_000 };
    let reads = has_input && random.once_in(2);
    let meets = !reads && random.once_in(8);
    let script = if meets { meetings(random) } else { random_script(random, reads) };
    let session = session.script(script);
    let reader = random_rank(random, session.n_tasks());
    session.reader(reader).input(if has_input { random.below(input_bytes) } else { 0 })
}

/// In one of two sessions whose first job stays where it was planned, jobs that tasks spawn. Each node has room for as
/// many tasks as there may be at once, or all have together where some are to be added.
fn with_spawns(session: Session, random: &mut Random) -> Session {
    if session.is_movable() || !random.once_in(2) {
        return session;
    }
    let begin = || Script::new().then(Step::PmiInit).then(Step::PutCard).then(Step::Fence);
    let pause = |random: &mut Random| Duration::from_millis(random.below(2_000));
    let end = |script: Script| script.then(Step::Fence).then(Step::PmiFinalize);
    let scripts = [
        end(begin().then(Step::CheckCard(1)).then(Step::CheckParentCard)).output(100),
        Script::new().wait(pause(random)).output(random.below(100_000)),
        end(begin().then(Step::Spawn(Spawned::Script(1), 1)).wait(pause(random))),
    ];
    let times = random.between(1, 4);
    let script = (0..times).fold(met(Script::new()), |script, _| {
        let tasks = random_number(random, 1, 3);
        let program = match random.below(8) {
            0 => Spawned::Missing,
            1 => Spawned::Uncreatable,
            _ => Spawned::Script(random.between(0, 2) as usize),
        };
        let pause = if random.once_in(2) { pause(random) } else { Duration::ZERO };
        script.then(Step::Spawn(program, tasks)).wait(pause)
    });
    let room = (16 * session.planned()).div_ceil(session.n);
    session.script(end(script)).spawned(&scripts, room)
}

/// In one session of four, up to three more programs, some with a single task.
fn with_programs(session: Session, random: &mut Random) -> Session {
    let n_tasks = session.n_tasks();
    if n_tasks == 1 || !random.once_in(4) {
        return session;
    }
    let first_ranks =
        (0..random.between(1, 3)).map(|_| Rank(random_number(random, 1, n_tasks - 1)));
    let distinct: BTreeSet<Rank> = first_ranks.collect();
    session.programs_from(&distinct.into_iter().collect::<Vec<_>>())
}

/// How tasks reach the server, and what they speak with it.
fn with_dialects(session: Session, random: &mut Random) -> Session {
    let session = if random.once_in(4) { session.with_pmi_port() } else { session };
    if random.once_in(3) { session.pmi2_every(random_number(random, 1, 3)) } else { session }
}

/// In one session of two, fences push little or nothing.
fn with_push_limit(session: Session, random: &mut Random) -> Session {
    if random.once_in(2) { session } else { session.push_max(random.below(1_000)) }
}

/// In one session of two, a routing tree that is not the spawn tree, perhaps with redundant links; some
/// agents nobody reaches.
fn with_route(session: Session, random: &mut Random) -> Session {
    const ROUTES: [&str; 6] = ["kary:1", "kary:2", "kary:5", "kary:16", "binomial", "direct"];
    if session.grows() || random.once_in(2) {
        return session;
    }
    let session = session.route(random.pick::<&str>(&ROUTES));
    let session = if random.once_in(3) { session.contacts_on_demand() } else { session };
    let session = session.redundancy(*random.pick(&[0, 1, 3]));
    if !random.once_in(4) {
        return session;
    }
    let deaf = (0..random.below(5)).map(|_| random_number(random, 0, 20)).collect();
    session.deaf(deaf)
}

/// Limits and times that a user or a site can set.
fn with_parameters(session: Session, random: &mut Random) -> Session {
    let ms = Duration::from_millis;
    let bulk_max = if random.once_in(5) { random_number(random, 2, 16) } else { 1 };
    let window = random_number(random, 1, 20);
    let start_timeout_ms = if random.once_in(4) { 1_500 } else { 30_000 };
    let retries_max = if random.once_in(4) { random_number(random, 0, 2) } else { 5 };
    let heartbeat_ms = *random.pick(&[500, 2_500, 2_500, 6_000]);
    let link_timeout_ms = *random.pick(&[3_000, 6_500, 6_500, 15_000]);
    let marks = random.once_in(4);
    let session = session.spec(|spec| {
        (spec.bulk_max, spec.window, spec.marks) = (bulk_max, window, marks);
        (spec.start_timeout_ms, spec.retries_max) = (start_timeout_ms, retries_max);
        (spec.heartbeat_ms, spec.link_timeout_ms) = (heartbeat_ms, link_timeout_ms);
    });
    let session = session.grace(*random.pick(&[ms(0), ms(1_000), ms(1_000), ms(4_000)]));
    let session = if random.once_in(5) { session.on_failure_continue() } else { session };
    let join_timeout = random.once_in(5).then(|| ms(random.below(5_000)));
    let session = join_timeout.map_or(session.clone(), |time| session.join_timeout(time));
    let timeout = random.once_in(6).then(|| ms(random.below(30_000)));
    let session = timeout.map_or(session.clone(), |time| session.timeout(time));
    let batch = random.once_in(4).then(|| random_number(random, 1, 8));
    session.spec(|spec| spec.batch = batch)
}

/// Links over shells, all or some, in one session of four that can have them: a bulk command has no
/// streams. Nor are they drawn where the head may be stopped, which a cut shell does not outlive.
fn with_shell_links(session: Session, random: &mut Random, n: u32) -> Session {
    if session.spec.bulk_max > 1 || session.stops() || !random.once_in(4) {
        return session;
    }
    let all = random.once_in(2);
    let over = (1..=n).filter(|_| all || random.once_in(2));
    session.over_shells(over.collect())
}

/// What starts, links, keepers and the reader of the output take.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn with_links(session: Session, random: &mut Random, n: u32) -> Session {
    let latency = Duration::from_micros(random.below(200_000));
    let gap = Duration::from_micros(random.below(20_000));
    let link_us_max = if random.once_in(4) { 50_000 } else { 5_000 };
    let link_us = random.below(link_us_max);
    let is_jittery = random.once_in(4);
    let bandwidth = random.once_in(3).then_some(1_000_000);
    let keeper = if random.once_in(4) { random.below(1_000) } else { 20 };
    let reader = random.once_in(3).then_some(500_000);
    let median = link_us as f64;
    // The end of the head goes down the tree, a link a level.
    let orphan_time = Duration::from_secs(2) + n * Duration::from_micros(2 * link_us);
    let session = session.calibrate(|machines| {
        machines.launch = Launch::constant(latency, gap);
        machines.link.latency_us = if is_jittery && link_us > 0 {
            Distribution::LogNormal { median, sigma: 0.5 }
        } else {
            Distribution::constant(median)
        };
        machines.link.bandwidth_bytes_per_s = bandwidth;
    });
    let session = session.orphans_end_within(orphan_time);
    session.costs(|costs| {
        (costs.keeper, costs.reader) = (Duration::from_millis(keeper), reader);
    })
}

/// Machines that are busy, uneven or crowded, in one session of three.
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn with_machines(session: Session, random: &mut Random) -> Session {
    if !random.once_in(3) {
        return session;
    }
    session.calibrate(|machines| {
        let cores = u32::try_from(random.between(1, 4)).unwrap_or(1);
        let is_shared = random.once_in(4);
        let mut us = |max| random.below(max) as f64;
        let (parse_us, spawn_us, exec_us) = (us(1_000), us(5_000), us(5_000));
        let (handshake_us, message_us) = (us(3_000), us(300));
        machines.cpu =
            Cpu { cores, is_shared, parse_us, spawn_us, exec_us, handshake_us, message_us };
        machines.accept.backlog = if random.once_in(3) { 8 } else { 4_096 };
        let median = machines.launch.latency().as_secs_f64() * 1e3;
        let gap_ms = Distribution::constant(machines.launch.gap().as_secs_f64() * 1e3);
        let latency_ms = match random.below(3) {
            0 => Distribution::constant(median),
            1 => Distribution::LogNormal { median, sigma: 0.7 },
            _ => Distribution::HeavyTail { min: median / 2.0, scale: median / 2.0, shape: 1.2 },
        };
        machines.launch = Launch::LatencyAndGap { latency_ms, gap_ms };
        if random.once_in(3) {
            machines.slow = Some(SlowHosts { fraction: 0.2, factor: 8.0 });
        }
    })
}

/// What all tasks do. Where they read, one finds the user's input, and the others nothing.
fn random_script(random: &mut Random, reads: bool) -> Script {
    let script = if reads { Script::new().then(Step::ReadStdin) } else { Script::new() };
    let step = match random.below(9) {
        0 => return script,
        1 => return mpi(script),
        2 => return script.output(random.below(200_000)).then(Step::Output(Stream::Stderr, 100)),
        3 => return mpi(script).output(random.below(5_000)).then(Step::LeaveStray),
        4 => Step::Wait(Duration::from_millis(random.below(60_000))),
        5 => return fences(script, random),
        6 => Step::Output(Stream::Stderr, random.below(100_000)),
        7 => return names(script),
        _ => return script.then(Step::IgnoreTerm).then(Step::ReadStdin).output(1_000),
    };
    mpi(script).then(step).output(10)
}

fn mpi(script: Script) -> Script {
    met(script)
        .then(Step::CheckCard(1))
        .then(Step::CheckCard(2))
        .then(Step::Fence)
        .then(Step::PmiFinalize)
}

/// As in all of these scripts, others find behind the first fence what this task has put and published.
fn names(script: Script) -> Script {
    met(script)
        .then(Step::LookUp(1))
        .then(Step::LookUp(2))
        .then(Step::Fence)
        .then(Step::Unpublish)
        .then(Step::PmiFinalize)
}

fn met(script: Script) -> Script {
    known(script).then(Step::Fence)
}

fn known(script: Script) -> Script {
    script.then(Step::PmiInit).then(Step::PutCard).then(Step::Publish)
}

/// Fences with something between them.
fn fences(script: Script, random: &mut Random) -> Script {
    let script = (0..random.between(1, 4)).fold(known(script), |script, _| {
        let pause = Duration::from_millis(random.below(2_000));
        let pages = if random.once_in(2) { random_number(random, 0, 9) } else { 0 };
        let script = (0..pages).map(Step::PutPage).fold(script, Script::then);
        script.then(Step::Fence).output(random.below(2_000)).wait(pause)
    });
    script.then(Step::PmiFinalize)
}

/// Barriers of random groups, up to three at once, between those of all.
fn meetings(random: &mut Random) -> Script {
    let begin = Script::new().then(Step::PmiInit).then(Step::PutCard);
    let script = (0..random.between(1, 4)).fold(begin, |script, _| {
        let groupings: Vec<Grouping> =
            (0..random.between(1, 3)).map(|_| random_grouping(random)).collect();
        let groups = groupings.iter().copied().zip(1..).collect();
        let script =
            script.wait(Duration::from_millis(random.below(2_000))).then(Step::Meet(groups));
        let script = groupings.into_iter().map(Step::CheckMember).fold(script, Script::then);
        let script = if random.once_in(3) { script.then(Step::Fence) } else { script };
        let script = if random.once_in(3) { script.then(Step::Ring) } else { script };
        if random.once_in(3) { script.then(allgather(random)) } else { script }
    });
    script.then(Step::PmiFinalize)
}

fn allgather(random: &mut Random) -> Step {
    let most = if random.once_in(4) { 9_000 } else { 300 };
    let least = random_number(random, 0, most);
    Step::Allgather { least, most: least + random_number(random, 0, 3) }
}

fn random_grouping(random: &mut Random) -> Grouping {
    let number = random_number(random, 2, 20);
    if random.once_in(2) { Grouping::Modulo(number) } else { Grouping::Rows(number) }
}

/// Hosts on which a start takes another time, and drivers that tell when it is over.
fn with_differing_hosts(session: Session, random: &mut Random, n: u32) -> Session {
    let session = if random.once_in(2) { session } else { session.told() };
    (0..random.below(4)).fold(session, |session, _| {
        session.gap(random_agent(random, n), Duration::from_micros(random.below(200_000)))
    })
}

/// Up to three tasks that fail somewhere on their way, and programs that are not there.
fn with_failing_tasks(mut session: Session, random: &mut Random, n: u32) -> Session {
    let n_tasks = session.n_tasks();
    let meets = session.script_of_all().meets();
    if random.once_in(3) {
        for _ in 0..random.between(1, 3) {
            let rank = random_rank(random, n_tasks);
            let script = failing_script(random, session.has_timeout(), meets);
            session = session.task(rank, script);
        }
    }
    if random.once_in(16) {
        session = session.no_spawn_of(random_rank(random, n_tasks), *random.pick(&ERRNOS));
    }
    if random.once_in(16) {
        session = session.no_program_on(random_agent(random, n), *random.pick(&ERRNOS));
    }
    session
}

/// A task that fails somewhere on its way; it hangs only where something is to end it. Where the
/// others are in barriers of groups it enters no barrier: two that each wait for the other would
/// be the program's fault.
fn failing_script(random: &mut Random, is_limited: bool, meets: bool) -> Script {
    let script = if meets { Script::new() } else { random_script(random, false) };
    let script = script.wait(Duration::from_millis(random.below(1_000)));
    let init = Script::new().then(Step::PmiInit);
    match random.below(7) {
        0 => script.exit(u8::try_from(random.between(1, 255)).unwrap_or(1)),
        1 => script.then(Step::Die(*random.pick(&[Signal::SEGV, Signal::KILL, Signal::TERM]))),
        2 => init.then(Step::Abort(*random.pick(&[7, 0, -1, 256]))),
        3 => init.exit(0),
        4 if meets => init.then(Step::PutCard).then(Step::PmiFinalize).exit(*random.pick(&[0, 9])),
        4 => met(Script::new()).exit(*random.pick(&[0, 9])),
        5 if is_limited => script.then(Step::Hang),
        _ => init.then(Step::Pmi("cmd=nonsense".into(), None)),
    }
}

fn with_bad_shells(mut session: Session, random: &mut Random, n: u32) -> Session {
    if random.once_in(2) {
        return session;
    }
    for _ in 0..random.below(4) {
        let plans: Vec<ShellPlan> = if random.once_in(4) {
            (0..random.between(1, 4)).map(|_| random_plan(random)).collect()
        } else {
            let plan = random_plan(random);
            (0..random.between(1, 3)).map(|_| plan).collect()
        };
        session = session.shell(random_agent(random, n), &plans);
    }
    session
}

/// In one session of four, some agents that can't start some others, as the head can.
fn with_barriers(session: Session, random: &mut Random, n: u32) -> Session {
    if !random.once_in(4) {
        return session;
    }
    let side = |random: &mut Random| {
        let (one, other) = (random_agent(random, n).0, random_agent(random, n).0);
        IdSet::range(one.min(other), one.max(other))
    };
    let (from, to, plan) = (side(random), side(random), random_plan(random));
    // In a chain each of them costs the time of a start.
    let is_silent = matches!(plan, ShellPlan::Hangs | ShellPlan::Mute);
    session.barrier(from, if is_silent { to.slice(0, 8) } else { to }, plan)
}

/// Hosts without the agents' program, in one session of four.
fn with_lacking_hosts(session: Session, random: &mut Random, n: u32) -> Session {
    if !random.once_in(4) {
        return session;
    }
    let percent = *random.pick(&[20, 50, 100]);
    let lacking = (1..=n).filter(|_| random.below(100) < percent).collect();
    let bytes = random.between(1, 3_000_000);
    session.lacking(lacking, bytes, *random.pick(&[300_000, 3_000_000, 100_000_000]))
}

/// How one run of a shell goes wrong; most often in a way that is worth another try.
fn random_plan(random: &mut Random) -> ShellPlan {
    const KINDS: [ShellFailureKind; 8] = [
        ShellFailureKind::Refused,
        ShellFailureKind::Unreachable,
        ShellFailureKind::UnknownHost,
        ShellFailureKind::Auth,
        ShellFailureKind::HostKey,
        ShellFailureKind::NoBinary,
        ShellFailureKind::NotExecutable,
        ShellFailureKind::Other,
    ];
    match random.below(12) {
        0 | 1 => ShellPlan::Fails(*random.pick(&KINDS)),
        2 => ShellPlan::NotRun(2),
        3 => ShellPlan::Hangs,
        4 => ShellPlan::EndsEarly,
        5 => ShellPlan::Mute,
        6 | 7 => ShellPlan::Slow(Duration::from_millis(random.below(5_000))),
        _ => ShellPlan::Fails(ShellFailureKind::Busy),
    }
}

pub(crate) fn random_agent(random: &mut Random, n: u32) -> AgentId {
    AgentId(random_number(random, 1, n))
}

pub(crate) fn random_rank(random: &mut Random, n_tasks: u32) -> Rank {
    Rank(random_number(random, 0, n_tasks - 1))
}

fn random_number(random: &mut Random, low: u32, high: u32) -> u32 {
    u32::try_from(random.between(low.into(), high.into())).unwrap_or(low)
}

fn position(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where costs alone can make somebody late, fewer rules hold.
    #[test]
    fn nearly_all_random_sessions_keep_time() {
        let late = (0..2_000).filter(|&seed| !Session::random(seed).keeps_time()).count();
        assert!(late < 60, "{late} of 2,000 do not");
    }
}
