//! Whether anything ran beside a measurement: this machine's other processes share its processors.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use testbed::clock;

/// Programs that keep a processor busy for long, by name.
const BUSY: [&str; 8] =
    ["cargo", "rustc", "cc1", "cc1plus", "ld", "rust-lld", "apt-get", "valgrind.bin"];

/// The load before a benchmark beyond which it counts as disturbed.
const LOAD_MAX: f64 = 0.7;

/// How often the load is looked at, and how often at most: building this has just made some, which
/// takes minutes to be forgotten.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
const LOOKS_MAX: usize = 150;

/// What else was seen to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quiet {
    load_before: f64,
    seen: BTreeMap<String, usize>,
}

impl Quiet {
    /// Waits until the load of what ran before is forgotten, but not for ever, and looks for the
    /// first time.
    pub(crate) fn begin() -> Quiet {
        (0..LOOKS_MAX).take_while(|_| load() > LOAD_MAX).for_each(|_| clock::sleep(LOOK_INTERVAL));
        let mut quiet = Quiet { load_before: load(), seen: BTreeMap::new() };
        quiet.look();
        quiet
    }

    /// Looks again. Call it between runs.
    pub(crate) fn look(&mut self) {
        let mut now = BTreeMap::new();
        for name in process_names().filter(|name| BUSY.contains(&name.as_str())) {
            *now.entry(name).or_insert(0) += 1;
        }
        for (name, count) in now {
            let most = self.seen.entry(name).or_insert(0);
            *most = count.max(*most);
        }
    }
}

impl std::fmt::Display for Quiet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.seen.is_empty() && self.load_before <= LOAD_MAX {
            return write!(f, "nothing ran beside it (load before: {:.2})", self.load_before);
        }
        write!(f, "DISTURBED: load before {:.2}", self.load_before)?;
        for (name, count) in &self.seen {
            write!(f, ", {count} {name}")?;
        }
        Ok(())
    }
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The names of all processes. `cargo` that runs this benchmark is waiting, not working.
fn process_names() -> impl Iterator<Item = String> {
    let own_parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(move |pid| Some(*pid) != own_parent)
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok())
        .map(|name| name.trim().to_owned())
}
