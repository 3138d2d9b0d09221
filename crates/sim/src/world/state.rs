//! What is there at one moment, in words.

use std::fmt::Write;

use super::World;
use crate::process::Process;

impl World<'_> {
    /// The state of all processes that run, of their links, tasks and shells.
    pub(super) fn state(&self) -> String {
        let mut text = format!(
            "after step {} at {} ns: {} of {} processes run, {} links, {} shells, {} things are \
             to happen, next at {}\n",
            self.steps,
            self.now.as_nanos(),
            self.running,
            self.processes.len(),
            self.links.iter().filter(|link| link.is_closed != [true; 2]).count(),
            self.shells.iter().filter(|shell| !shell.is_over).count(),
            self.queue.len(),
            self.queue.next_time().map_or("never".into(), |time| format!("{} ns", time.as_nanos())),
        );
        for process in &self.processes {
            self.describe(&mut text, process);
        }
        for violation in &self.checker.violations {
            text += &format!("violation: {violation}\n");
        }
        text
    }

    fn describe(&self, text: &mut String, process: &Process) {
        // Writing to a string does not fail.
        let _ = write!(text, "agent {}: ", process.agent);
        if let Some(end) = process.end {
            let _ = writeln!(text, "ended, {end:?}");
            return;
        }
        let links: Vec<u64> = process.links.iter().map(|link| link.0).collect();
        let wake = process.engine.poll_timeout().map(|time| time.as_nanos());
        let _ = writeln!(text, "links {links:?}, wakes at {wake:?} ns");
        for (rank, task) in &process.tasks {
            let ended = task.ended;
            let _ =
                writeln!(text, "  rank {rank}: waits for {:?}, ended {ended:?}", task.waits_for);
        }
    }
}
