//! What the ways in which all tasks of a job tell each other a value take: a fence and as many gets, or an allgather.
//!
//! Each is run in a session of its own, less what the same session takes without any. The tasks of one node alone get
//! all values: these never leave it, but where the fence has left the values where they came by.

use std::process::ExitCode;
use std::time::Duration;

use model::{Rank, Time};
use sim::{Calibration, Report, Script, Session, Step};

use crate::options::Options;
use crate::{caught, say};

/// A page with its key, on its way.
const PAGE_BYTES: u64 = 1_016;

/// A task's value is as long as its card.
const VALUE_BYTES: u32 = 51;

/// What tasks have to do meanwhile takes longer than any exchange, and is not counted.
const WORK: Duration = Duration::from_secs(10);

pub(crate) fn compare(options: &Options) -> Result<ExitCode, String> {
    if options.log.is_some() || options.seeds.is_some() {
        return Err("exchange runs sessions of its own: leave --log and --seeds out".into());
    }
    let begin = || Script::new().then(Step::PmiInit);
    let run = |script: Script| ran(&options.session_of(script.then(Step::PmiFinalize))?);
    if let Some(pages) = options.pages {
        let put = (0..pages).map(Step::PutPage).fold(begin(), Script::then);
        let ran = |script: Script| {
            ran(&options.session_of(script.then(Step::PmiFinalize))?.push_max(u64::MAX))
        };
        let (without, fence) = (ran(put.clone())?, ran(put.then(Step::Fence))?);
        let kinds = ["Enter", "EnterPart", "Release", "ReleasePart"];
        say(&told("fence of pages", &without, &fence, kinds))?;
        let bytes = u64::from(options.tasks() * pages) * PAGE_BYTES;
        let [links, doubling] = doubling(options.agents(), bytes, &options.machines()?);
        let [links, doubling] = [links, doubling].map(|time| time.as_secs_f64() * 1e3);
        let words = "by recursive doubling, of agents that know where all listen";
        say(&format!("{words}: {doubling:.2} ms, and {links:.2} ms for its links\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let without = run(begin())?;
    let fence = run(begin().then(Step::Fence))?;
    say(&told("empty fence", &without, &fence, ["Enter", "Release"]))?;
    if options.has_cards() {
        let met = || begin().then(Step::PutCard).then(Step::Fence);
        let fence = run(met())?;
        say(&told("fence", &without, &fence, ["Enter", "Release"]))?;
        let got = with_gets(options, met(), u64::MAX)?;
        say(&told("fence and gets", &without, &got, ["Enter", "Release"]))?;
        let held = ran(&options.session_of(met().then(Step::PmiFinalize))?.push_max(0))?;
        say(&told("held fence", &without, &held, ["Enter", "Held"]))?;
        let fetched = with_gets(options, met(), 0)?;
        let kinds = ["Enter", "Held", "Fetch", "Fetched"];
        say(&told("held fence and gets", &without, &fetched, kinds))?;
        let allgather = Step::Allgather { least: VALUE_BYTES, most: VALUE_BYTES };
        let gathered = run(begin().then(allgather.clone()))?;
        let kinds = ["AllgatherEnter", "AllgatherRelease"];
        say(&told("allgather", &without, &gathered, kinds))?;
        let begun = begin().then(Step::BeginAllgather { least: VALUE_BYTES, most: VALUE_BYTES });
        let (worked, begun) = (run(begin().wait(WORK))?, run(begun.wait(WORK).then(allgather))?);
        say(&told("allgather, begun before work", &worked, &begun, kinds))?;
        let put = || begin().then(Step::PutCard);
        let begun = put().then(Step::BeginFence).wait(WORK).then(Step::Fence);
        let (worked, begun) = (run(put().wait(WORK))?, run(begun)?);
        say(&told("fence, begun before work", &worked, &begun, ["Enter", "Release"]))?;
        let times = took(&without, &got).as_secs_f64() / took(&without, &gathered).as_secs_f64();
        say(&format!("an allgather is {times:.2} times as fast as a fence and gets\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What links for recursive doubling take, and the exchange: in each round agents in pairs send each other all that they
/// have, over a link of their own. Those beyond a power of two bring what they have to another first, and get all in the
/// end. Nothing is drawn at random, and all agents do the same, so that this is what a simulation would find.
fn doubling(agents: u32, bytes_each: u64, machines: &Calibration) -> [Duration; 2] {
    let [latency, handshake, message] =
        [machines.link.latency_us.median(), machines.cpu.handshake_us, machines.cpu.message_us]
            .map(|us| Duration::from_secs_f64(us / 1e6));
    let bandwidth = machines.link.bandwidth_bytes_per_s;
    let sends = |bytes: u64| {
        let nanos = bandwidth.map_or(0, |rate| bytes * 1_000_000_000 / rate);
        latency + 2 * message + Duration::from_nanos(nanos)
    };
    let rounds = agents.ilog2();
    let most_each = bytes_each * u64::from(agents).div_ceil(1 << rounds);
    let doubled: Duration = (0..rounds).map(|round| sends(most_each << round)).sum();
    let is_odd = !agents.is_power_of_two();
    let others = if is_odd {
        sends(bytes_each) + sends(bytes_each * u64::from(agents))
    } else {
        Duration::ZERO
    };
    // A connection is there after a round trip, and proven after another.
    let links = 4 * latency + (rounds + u32::from(is_odd)) * handshake;
    [links, doubled + others]
}

/// A fence, after which each task of the first node gets the card of every task.
fn with_gets(options: &Options, met: Script, push_max: u64) -> Result<Report, String> {
    let (tasks, all) = (options.tasks(), options.agents() * options.tasks());
    let gets = (0..all).map(Step::CheckCard).fold(met.clone(), Script::then);
    let session = options.session_of(met.then(Step::PmiFinalize))?.push_max(push_max);
    let gets = gets.then(Step::PmiFinalize);
    let first = (0..tasks).map(Rank);
    ran(&first.fold(session, |session, rank| session.task(rank, gets.clone())))
}

fn ran(session: &Session) -> Result<Report, String> {
    caught(|| session.try_run()).map_err(|failure| failure.to_string())
}

fn told<const KINDS: usize>(
    name: &str,
    without: &Report,
    with: &Report,
    kinds: [&str; KINDS],
) -> String {
    let messages: u64 = kinds.iter().map(|kind| with.sent(kind)).sum();
    let bytes: u64 = kinds.iter().filter_map(|kind| with.bytes.get(kind)).sum();
    let ms = took(without, with).as_secs_f64() * 1e3;
    format!("{name}: {ms:.2} ms, {messages} messages, {bytes} bytes on all links\n")
}

fn took(without: &Report, with: &Report) -> Duration {
    let at = |report: &Report| report.ended_at.unwrap_or(Time::ZERO);
    at(with) - at(without)
}
