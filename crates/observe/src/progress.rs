//! The line that shows how many agents have joined, and who is late.
//!
//! It appears when bringing them up takes longer than a glance, and is redrawn in place, so it is
//! for a terminal only.

use std::time::Duration;

use model::{IdSet, Time, fold_names};
use proto::Event;

/// Before this, a line would only flicker.
const FIRST: Duration = Duration::from_millis(500);

/// From one drawing to the next.
const REDRAW: Duration = Duration::from_millis(200);

/// Ends what was drawn: back to the line's start, and clear it.
const CLEAR: &str = "\r\x1b[K";

/// The progress of one session's start.
#[derive(Clone, Debug)]
pub struct Progress {
    names: Vec<String>,
    columns: usize,
    joined: IdSet,
    next_at: Option<Time>,
    is_drawn: bool,
}

impl Progress {
    /// Progress towards agents on the nodes `names`, for a terminal of so many columns.
    pub fn new(names: Vec<String>, columns: usize) -> Progress {
        let next_at = Some(Time::ZERO + FIRST);
        Progress { names, columns, joined: IdSet::new(), next_at, is_drawn: false }
    }

    /// Notes an event. Returns what to print, perhaps nothing.
    pub fn on_event(&mut self, event: &Event) -> String {
        if let Event::AgentsJoined(ids) = event {
            self.joined = self.joined.union(ids);
            return String::new();
        }
        let is_end = matches!(
            event,
            Event::AllJoined(_) | Event::Stopping(_) | Event::JobDone(_) | Event::Over
        );
        if is_end { self.end() } else { String::new() }
    }

    /// Clears the line for something else; it comes back unless the start is over.
    pub fn clear(&mut self) -> String {
        if std::mem::take(&mut self.is_drawn) { CLEAR.to_owned() } else { String::new() }
    }

    /// When to call [`Progress::on_time`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next_at
    }

    /// Draws the line when it is time to. Returns what to print.
    pub fn on_time(&mut self, now: Time) -> String {
        if self.next_at.is_none_or(|at| at > now) {
            return String::new();
        }
        self.next_at = Some(now + REDRAW);
        self.is_drawn = true;
        let line: String = self.line().chars().take(self.columns.saturating_sub(1)).collect();
        format!("{CLEAR}{line}")
    }

    fn end(&mut self) -> String {
        self.next_at = None;
        self.clear()
    }

    fn line(&self) -> String {
        let numbered = (1..).zip(&self.names);
        let late = numbered.filter(|(agent, _)| !self.joined.contains(*agent));
        let late = fold_names(late.map(|(_, name)| name.as_str()));
        let (joined, all) = (self.joined.len(), self.names.len());
        format!("starting agents: {joined} of {all} joined, waiting for {late}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_line_appears_after_a_while_names_who_is_late_and_goes() {
        let names = ["n1", "n2", "n3", "n4"].map(String::from).to_vec();
        let mut progress = Progress::new(names, 80);
        assert_eq!(progress.on_time(at_ms(100)), "");
        progress.on_event(&Event::AgentsJoined(IdSet::range(2, 2)));
        assert_eq!(progress.poll_timeout(), Some(at_ms(500)));
        assert_eq!(
            progress.on_time(at_ms(500)),
            "\r\x1b[Kstarting agents: 1 of 4 joined, waiting for n[1,3-4]"
        );
        assert_eq!(progress.on_event(&Event::AllJoined(IdSet::range(1, 2))), "\r\x1b[K");
        assert_eq!(progress.poll_timeout(), None);
    }

    #[test]
    fn a_start_that_is_quick_prints_nothing() {
        let mut progress = Progress::new(vec!["n1".into()], 80);
        assert_eq!(progress.on_event(&Event::AllJoined(IdSet::range(1, 2))), "");
    }

    #[test]
    fn the_line_is_no_longer_than_the_terminal_is_wide() {
        let mut progress = Progress::new(vec!["a-long-name".into()], 20);
        assert_eq!(progress.on_time(at_ms(500)), "\r\x1b[Kstarting agents: 0 ");
    }
}
