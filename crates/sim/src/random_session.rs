//! Sessions of random shape and with random faults, for seeds by the hundred.

use std::time::Duration;

use model::{AgentId, IdSet, Rank, Signal};
use wire::{ShellFailureKind, Stream};

use crate::calibration::{Cpu, SlowHosts};
use crate::distribution::Distribution;
use crate::fault::{Fault, ShellPlan, TwinOf, Way, When};
use crate::launch::Launch;
use crate::random::Random;
use crate::script::{Script, Step};
use crate::session::Session;

const TREES: [&str; 9] = [
    "flat",
    "chain",
    "kary:2",
    "kary:5",
    "binomial",
    "two-level",
    "greedy",
    "greedy:100,30",
    "adaptive",
];

/// Steps within which faults fall; sessions of some tens of agents have a few thousand.
const FAULT_STEP_MAX: u64 = 3_000;

impl Session {
    /// The session that follows from a seed: its size, tree, costs, scripts and up to 3 faults.
    pub fn random(seed: u64) -> Session {
        let shape = &mut Random::new(seed, 1);
        let n = u32::try_from(shape.between(1, 40)).unwrap_or(1);
        let tasks = u32::try_from(shape.between(1, 3)).unwrap_or(1);
        let session = Session::of(n)
            .seed(seed)
            .tree(shape.pick::<&str>(&TREES))
            .tasks(tasks)
            .script(random_script(&mut Random::new(seed, 2)))
            .calibrate(|machines| {
                let latency = Duration::from_micros(shape.below(200_000));
                let gap = Duration::from_micros(shape.below(20_000));
                machines.launch = Launch::constant(latency, gap);
                #[expect(clippy::cast_precision_loss, reason = "a small number")]
                let link_us = shape.below(5_000) as f64;
                machines.link.latency_us = Distribution::constant(link_us);
                machines.link.bandwidth_bytes_per_s = shape.once_in(3).then_some(1_000_000);
            })
            .costs(|costs| costs.reader = shape.once_in(3).then_some(500_000))
            .input(if shape.once_in(4) { shape.below(300_000) } else { 0 });
        let session = if shape.once_in(5) {
            session.join_timeout(Duration::from_millis(shape.below(5_000)))
        } else {
            session
        };
        let bulk_max = if shape.once_in(5) { 8 } else { 1 };
        let window = u32::try_from(shape.between(1, 20)).unwrap_or(1);
        let start_timeout_ms = if shape.once_in(4) { 1_500 } else { 30_000 };
        let session = session.spec(|spec| {
            (spec.bulk_max, spec.window) = (bulk_max, window);
            spec.start_timeout_ms = start_timeout_ms;
        });
        let session = if shape.once_in(5) { session.on_failure_continue() } else { session };
        let session = with_machines(session, &mut Random::new(seed, 7));
        let session = with_differing_hosts(session, &mut Random::new(seed, 6), n);
        let session = with_failing_tasks(session, &mut Random::new(seed, 5), n * tasks);
        let session = with_bad_shells(session, &mut Random::new(seed, 3), n);
        let session = with_faults(session, &mut Random::new(seed, 4), n, n * tasks);
        if Random::new(seed, 8).once_in(8) { session.encoded() } else { session }
    }
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

fn random_script(random: &mut Random) -> Script {
    match random.below(6) {
        0 => Script::new(),
        1 => Script::mpi(),
        2 => Script::new().output(random.below(200_000)).then(Step::Output(Stream::Stderr, 100)),
        3 => Script::mpi().output(random.below(5_000)).then(Step::LeaveStray),
        4 => Script::mpi().wait(Duration::from_millis(random.below(60_000))).output(10),
        _ => Script::new().then(Step::IgnoreTerm).then(Step::ReadStdin).output(1_000),
    }
}

/// Hosts on which a start takes another time, and drivers that don't tell when it is over.
fn with_differing_hosts(session: Session, random: &mut Random, n: u32) -> Session {
    let session = if random.once_in(2) { session.blind() } else { session };
    (0..random.below(4)).fold(session, |session, _| {
        session.gap(random_agent(random, n), Duration::from_micros(random.below(200_000)))
    })
}

/// A task that fails somewhere on its way.
fn failing_script(random: &mut Random) -> Script {
    let script = random_script(random).wait(Duration::from_millis(random.below(1_000)));
    match random.below(5) {
        0 => script.exit(3),
        1 => script.then(Step::Die(Signal::SEGV)),
        2 => Script::new().then(Step::PmiInit).then(Step::Abort(7)),
        3 => Script::new().then(Step::PmiInit).exit(0),
        _ => Script::new().then(Step::PmiInit).then(Step::Pmi("cmd=nonsense".into(), None)),
    }
}

fn with_failing_tasks(session: Session, random: &mut Random, n_tasks: u32) -> Session {
    let session = if random.once_in(6) {
        session.timeout(Duration::from_millis(random.below(30_000)))
    } else {
        session
    };
    if !random.once_in(3) {
        return session;
    }
    let rank = random_rank(random, n_tasks);
    session.task(rank, failing_script(random))
}

fn with_bad_shells(mut session: Session, random: &mut Random, n: u32) -> Session {
    if random.once_in(2) {
        return session;
    }
    for _ in 0..random.below(4) {
        let busy = ShellPlan::Fails(ShellFailureKind::Busy);
        let plan = match random.below(12) {
            0 => ShellPlan::Fails(ShellFailureKind::Refused),
            1 => ShellPlan::NotRun(2),
            2 => ShellPlan::Hangs,
            3 => ShellPlan::EndsEarly,
            4 => ShellPlan::Mute,
            5 | 6 => ShellPlan::Slow(Duration::from_millis(random.below(5_000))),
            _ => busy,
        };
        let plans = vec![plan; usize::try_from(random.between(1, 3)).unwrap_or(1)];
        session = session.shell(random_agent(random, n), &plans);
    }
    session
}

fn with_faults(mut session: Session, random: &mut Random, n: u32, n_tasks: u32) -> Session {
    let faults: Vec<Fault> =
        (0..random.below(4)).map(|_| random_fault(random, n, n_tasks)).collect();
    // While the user has stopped the front end, silence tells nothing.
    let stops = faults.contains(&Fault::UserSignal(Signal::TSTP));
    let cuts = faults.iter().any(never_heals);
    let step = random.below(FAULT_STEP_MAX);
    let are_at_once = random.once_in(4);
    for fault in faults {
        let when = match random.below(4) {
            _ if are_at_once => When::Step(step),
            0 => When::At(Duration::from_millis(random.below(20_000))),
            _ => When::Step(random.below(FAULT_STEP_MAX)),
        };
        // No one can end an agent that hangs on a host that nobody reaches any more.
        let hushes = stops && matches!(fault, Fault::Hush(_) | Fault::HalfOpen(..));
        let is_out_of_reach = hushes || (stops || cuts) && matches!(fault, Fault::Hang(_));
        if !is_out_of_reach {
            session = session.fault(when, fault);
        }
    }
    session
}

fn never_heals(fault: &Fault) -> bool {
    matches!(fault, Fault::Cut(_) | Fault::Hush(_) | Fault::HalfLost(..) | Fault::HalfOpen(..))
}

fn random_fault(random: &mut Random, n: u32, n_tasks: u32) -> Fault {
    let agent = random_agent(random, n);
    let rank = random_rank(random, n_tasks);
    let seconds = |random: &mut Random, max: u64| Duration::from_millis(random.below(max * 1_000));
    match random.below(25) {
        0 | 1 => Fault::Crash(agent),
        2 => Fault::Crash(AgentId::HEAD),
        3 => Fault::KillKeeper(agent),
        4 => Fault::KillShell(agent),
        5 => Fault::KillTask(rank),
        6 => Fault::Cut(agent),
        7 => Fault::Pause(agent, seconds(random, 20)),
        8 => Fault::UserSignal(*random.pick(&[Signal::INT, Signal::TERM, Signal::USR1])),
        9 => Fault::UserSignal(Signal::TSTP),
        10 => Fault::Hush(agent),
        11 => Fault::Hang(agent),
        12 | 13 => Fault::CutFor(agent, seconds(random, 25)),
        14 | 15 => Fault::Partition(random_side(random, n), seconds(random, 25)),
        16 => Fault::HalfLost(agent, *random.pick(&[Way::Up, Way::Down])),
        24 => Fault::HalfOpen(agent, *random.pick(&[Way::Up, Way::Down])),
        17 => Fault::SlowLink(agent, Duration::from_millis(random.below(200))),
        18 | 19 => {
            Fault::Twin(agent, *random.pick(&[TwinOf::Newest, TwinOf::Earlier, TwinOf::Mute]))
        }
        20 => Fault::Slow(agent, Duration::from_millis(random.below(50))),
        21 => Fault::HangShell(agent),
        22 => Fault::HangTask(rank, seconds(random, 60)),
        _ => Fault::CloseOutput(Stream::Stdout),
    }
}

/// A range of agents, sometimes with the head: one side of a partition.
fn random_side(random: &mut Random, n: u32) -> IdSet {
    let (one, other) = (random_agent(random, n), random_agent(random, n));
    let mut side = IdSet::range(one.0.min(other.0), one.0.max(other.0));
    if random.once_in(4) {
        side.insert(AgentId::HEAD.0);
    }
    side
}

fn random_agent(random: &mut Random, n: u32) -> AgentId {
    AgentId(u32::try_from(random.between(1, u64::from(n))).unwrap_or(1))
}

fn random_rank(random: &mut Random, n_tasks: u32) -> Rank {
    Rank(u32::try_from(random.below(u64::from(n_tasks))).unwrap_or(0))
}
