//! Random faults of random sessions: which, when, and on whom.
//!
//! Half of the time faults are spread over the session; else they fall together, or on one agent, so
//! that what one of them begins meets the other. Left out is what no promise can be made about:
//!
//! - An agent that hangs for good on a host that is cut off for good: nobody can end it.
//! - An agent that hangs for good and has lost its keeper: nobody else on its host ends it.
//! - Silence while the user has stopped the front end, which then tells nothing; so an agent does not
//!   hang then either.
//! - A head that hangs for good. It is the user's to end, and that is a crash of the head.

use std::time::Duration;

use model::{AgentId, IdSet, Signal};
use wire::Stream;

use crate::fault::{Fault, TwinOf, Way, When};
use crate::random::Random;
use crate::random_session::{random_agent, random_rank};
use crate::session::Session;

/// Steps within which faults fall: sessions have between some tens and some ten thousands.
const STEPS_MAX: [u64; 4] = [100, 1_000, 3_000, 12_000];

/// Steps within which faults fall that fall together.
const NEAR: u64 = 40;

/// When the faults of a session fall.
enum Times {
    /// All after the same step.
    Once(u64),
    /// All within some steps from this one on.
    Near(u64),
    /// Anywhere among so many steps, or at any time.
    Anywhere(u64),
}

impl Times {
    fn random(random: &mut Random) -> Times {
        let max = *random.pick(&STEPS_MAX);
        match random.below(4) {
            0 => Times::Once(random.below(max)),
            1 => Times::Near(random.below(max)),
            _ => Times::Anywhere(max),
        }
    }

    fn next(&self, random: &mut Random) -> When {
        match *self {
            Times::Once(step) => When::Step(step),
            Times::Near(step) => When::Step(step + random.below(NEAR)),
            Times::Anywhere(_) if random.once_in(4) => {
                When::At(Duration::from_millis(random.below(20_000)))
            }
            Times::Anywhere(max) => When::Step(random.below(max)),
        }
    }
}

pub(crate) fn with_faults(mut session: Session, random: &mut Random, n: u32) -> Session {
    let n_tasks = session.n_tasks();
    let count_max = if random.once_in(8) { 9 } else { 4 };
    let victim = random.once_in(4).then(|| random_agent(random, n));
    let faults: Vec<Fault> = (0..random.below(count_max))
        .map(|_| {
            let agent = victim.unwrap_or_else(|| random_agent(random, n));
            random_fault(random, agent, n, n_tasks)
        })
        .collect();
    let stops = faults.contains(&Fault::UserSignal(Signal::TSTP));
    let cuts = faults.iter().any(never_heals);
    let hung: IdSet = faults.iter().filter_map(never_runs).map(|agent| agent.0).collect();
    let times = Times::random(random);
    for fault in faults {
        let when = times.next(random);
        let hushes = stops && matches!(fault, Fault::Hush(_) | Fault::HalfOpen(..));
        let is_unkept = matches!(fault, Fault::KillKeeper(agent) if hung.contains(agent.0));
        let is_out_of_reach =
            hushes || is_unkept || (stops || cuts) && matches!(fault, Fault::Hang(_));
        if !is_out_of_reach {
            session = session.fault(when, fault);
        }
    }
    session
}

fn never_heals(fault: &Fault) -> bool {
    matches!(fault, Fault::Cut(_) | Fault::Hush(_) | Fault::HalfLost(..) | Fault::HalfOpen(..))
}

/// The agent of which a process does not run any more from then on.
fn never_runs(fault: &Fault) -> Option<AgentId> {
    if let Fault::Hang(agent) | Fault::Twin(agent, TwinOf::Mute) = *fault {
        Some(agent)
    } else {
        None
    }
}

fn random_fault(random: &mut Random, agent: AgentId, n: u32, n_tasks: u32) -> Fault {
    let way = *random.pick(&[Way::Up, Way::Down]);
    let twin_of = *random.pick(&[TwinOf::Newest, TwinOf::Earlier, TwinOf::Mute]);
    match random.below(32) {
        0 | 1 => Fault::Crash(agent),
        2 => Fault::KillKeeper(agent),
        3 | 4 => Fault::KillShell(agent),
        5 => Fault::HangShell(agent),
        6 => Fault::Cut(agent),
        7 => Fault::Hush(agent),
        8 => Fault::HalfLost(agent, way),
        9 => Fault::HalfOpen(agent, way),
        10 | 11 => Fault::CutFor(agent, random_ms(random, 25_000)),
        12 | 13 => Fault::Partition(random_side(random, n), random_ms(random, 25_000)),
        14 => Fault::SlowLink(agent, random_ms(random, 200)),
        15 => Fault::Slow(agent, random_ms(random, 50)),
        16 | 17 => Fault::Pause(agent, random_ms(random, 20_000)),
        18 => Fault::Hang(agent),
        19 | 20 => Fault::Twin(agent, twin_of),
        21 => Fault::KillTask(random_rank(random, n_tasks)),
        22 => Fault::HangTask(random_rank(random, n_tasks), random_ms(random, 60_000)),
        23 | 24 => random_head_fault(random),
        25 => Fault::CutRoute(agent),
        26 => Fault::BreakRoute(agent),
        _ => random_user(random),
    }
}

/// What happens to the head.
fn random_head_fault(random: &mut Random) -> Fault {
    match random.below(5) {
        0 | 1 => Fault::Crash(AgentId::HEAD),
        2 => Fault::KillKeeper(AgentId::HEAD),
        3 => Fault::Pause(AgentId::HEAD, random_ms(random, 40_000)),
        _ => Fault::Slow(AgentId::HEAD, random_ms(random, 10)),
    }
}

/// What the user does.
fn random_user(random: &mut Random) -> Fault {
    const ENDS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
    match random.below(8) {
        0..=3 => Fault::UserSignal(*random.pick(&ENDS)),
        4 => Fault::UserSignal(*random.pick(&[Signal::USR1, Signal::USR2])),
        5 => Fault::UserSignal(Signal::TSTP),
        _ => Fault::CloseOutput(*random.pick(&[Stream::Stdout, Stream::Stderr])),
    }
}

fn random_ms(random: &mut Random, max: u64) -> Duration {
    Duration::from_millis(random.below(max))
}

/// A range of agents, or some, now and then with the head: one side of a partition.
fn random_side(random: &mut Random, n: u32) -> IdSet {
    let (one, other) = (random_agent(random, n), random_agent(random, n));
    let mut side = if random.once_in(2) {
        IdSet::range(one.0.min(other.0), one.0.max(other.0))
    } else {
        [one.0, other.0, random_agent(random, n).0].into_iter().collect()
    };
    if random.once_in(4) {
        side.insert(AgentId::HEAD.0);
    }
    side
}
