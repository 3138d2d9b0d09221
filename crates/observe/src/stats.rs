//! The table of `--stats`: what was sent, and how long each phase took.

use std::fmt::Write;
use std::time::Duration;

use model::Time;
use wire::{Exchanged, Reads, Stats};

use crate::{Timeline, seconds};

/// The phases, in the order of [`Stats::messages`].
const PHASES: [&str; 5] = ["join", "route", "launch", "run", "teardown"];

/// Counts of the whole tree, and times as the head saw them.
///
/// The head cannot see when the last task was created, so launch and run share a time.
pub fn stats_table(stats: &Stats, timeline: &Timeline) -> String {
    let times = times(timeline);
    let mut text = format!("{:<9} {:>10} {:>10} {:>14}\n", "phase", "time", "messages", "bytes");
    for (index, phase) in PHASES.iter().enumerate() {
        let time = times[index].map(seconds).unwrap_or_default();
        let (messages, bytes) = (stats.messages[index], stats.bytes[index]);
        if *phase == "route" && messages == 0 {
            continue; // the job's messages go along the spawn tree
        }
        // Writing to a String does not fail.
        let _ = writeln!(text, "{phase:<9} {time:>10} {messages:>10} {bytes:>14}");
    }
    let join_max = seconds(Duration::from_micros(stats.join_us_max));
    let Stats { agents, links_max, retries, .. } = stats;
    let _ = writeln!(
        text,
        "{agents} processes, at most {links_max} links each, {retries} starts retried, slowest \
         join {join_max}"
    );
    if stats.shell_links > 0 {
        let _ = writeln!(text, "{} links over remote shells", stats.shell_links);
    }
    if stats.deliveries > 0 {
        let _ = writeln!(text, "the program was sent to {} hosts that lacked it", stats.deliveries);
    }
    if stats.exchanged != Exchanged::default() {
        let Exchanged { messages, bytes } = stats.exchanged;
        let _ = writeln!(
            text,
            "what tasks exchanged over PMI took {messages} of these messages, and {bytes} bytes"
        );
    }
    if stats.reads != Reads::default() {
        let _ = writeln!(text, "{}", told_reads(stats.reads));
    }
    text
}

/// Where tasks have found the values that no fence had pushed.
fn told_reads(Reads { own, way, head, missing }: Reads) -> String {
    let all = own.saturating_add(way).saturating_add(head).saturating_add(missing);
    let percent = |part: u64| u128::from(part) * 100 / u128::from(all.max(1));
    format!(
        "{all} reads of values on demand: {}% found on the own host, {}% on the way up, {}% at \
         the head, {missing} nowhere",
        percent(own),
        percent(way),
        percent(head)
    )
}

fn times(timeline: &Timeline) -> [Option<Duration>; 5] {
    let between = |from: Option<Time>, to: Option<Time>| Some(to?.since(from?));
    let &Timeline { all_joined, job_done, over, .. } = timeline;
    [
        between(Some(Time::ZERO), all_joined),
        None,
        None,
        between(all_joined, job_done),
        between(job_done, over),
    ]
}

#[cfg(test)]
mod tests {
    use model::{IdSet, JobId};
    use proto::Event;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_phase() {
        let mut timeline = Timeline::default();
        timeline.on_event(Time::from_nanos(300_000_000), &Event::AllJoined(IdSet::range(1, 2)));
        timeline.on_event(Time::from_nanos(1_300_000_000), &Event::JobDone(JobId(0)));
        timeline.on_event(Time::from_nanos(1_310_000_000), &Event::Over);
        let stats = Stats {
            agents: 5,
            messages: [16, 0, 4, 900, 8],
            bytes: [1234, 0, 80, 1_000_000, 96],
            links_max: 3,
            retries: 1,
            deliveries: 2,
            join_us_max: 250_000,
            exchanged: Exchanged { messages: 16, bytes: 4321 },
            reads: Reads { own: 30, way: 50, head: 117, missing: 3 },
            ..Stats::default()
        };
        insta::assert_snapshot!(stats_table(&stats, &timeline), @r"
        phase           time   messages          bytes
        join          0.30 s         16           1234
        launch                        4             80
        run           1.00 s        900        1000000
        teardown     10.0 ms          8             96
        5 processes, at most 3 links each, 1 starts retried, slowest join 0.25 s
        the program was sent to 2 hosts that lacked it
        what tasks exchanged over PMI took 16 of these messages, and 4321 bytes
        200 reads of values on demand: 15% found on the own host, 25% on the way up, 58% at the head, 3 nowhere
        ");
    }
}
