//! Rows as they are measured, and the table of all of them at the end.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use testbed::command;

use crate::quantity::Quantity;
use crate::quiet::Quiet;
use crate::settings::Settings;

/// A number, or why there is none.
pub(crate) type Measured = Result<Quantity, String>;

/// What is demanded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// Ours is at most so much of what it is compared with.
    RatioAtMost(f64),
    /// Ours is at least so much of what it is compared with.
    RatioAtLeast(f64),
    /// Ours differs from what it is compared with by at most this part of it.
    Within(f64),
    /// Ours is at most this.
    AtMost(Quantity),
    /// Nothing: the row informs.
    None,
}

/// One line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) title: String,
    /// Convoke's number.
    pub(crate) ours: Measured,
    /// What it is compared with, by name.
    pub(crate) other: Option<(String, Measured)>,
    /// What a program that does nothing else reaches, by name.
    pub(crate) floor: Option<(String, Measured)>,
    /// What is demanded.
    pub(crate) bar: Bar,
}

/// The table of a benchmark.
#[derive(Debug)]
pub(crate) struct Report {
    name: String,
    settings: Settings,
    setting: String,
    quiet: Quiet,
    /// What the cells of ours, of the other and of the floor are headed by.
    headings: [&'static str; 3],
    rows: Vec<Row>,
    notes: Vec<String>,
}

/// Prints a line for who watches. A closed output is no reason to stop measuring.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

impl Report {
    /// A table without rows. `peers` are the programs that are compared with.
    pub(crate) fn new(name: &str, settings: Settings, peers: &str) -> anyhow::Result<Report> {
        let setting = format!("{}; {peers}; {}", machine(), today()?);
        let quiet = Quiet::begin();
        say(&format!("bench {name}: {setting}; {quiet}"));
        let headings = ["Convoke", "compared with", "floor"];
        let (name, rows, notes) = (name.to_owned(), Vec::new(), Vec::new());
        Ok(Report { name, settings, setting, quiet, headings, rows, notes })
    }

    /// How much to measure.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Looks whether anything runs beside the measurement.
    pub(crate) fn look(&mut self) {
        self.quiet.look();
    }

    /// Heads the cells of ours, of the other and of the floor where they hold something else.
    pub(crate) fn head(&mut self, headings: [&'static str; 3]) {
        self.headings = headings;
    }

    /// Adds a row, and prints it.
    pub(crate) fn add(&mut self, row: Row) {
        say(&row.line());
        self.rows.push(row);
    }

    /// Adds a sentence below the table.
    pub(crate) fn note(&mut self, text: String) {
        say(&text);
        self.notes.push(text);
    }

    /// Writes the table, unless only some rows were asked for.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let text = self.markdown();
        say(&text);
        if self.settings.only.is_some() {
            return Ok(());
        }
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
        let path = dir.join(format!("{}.md", self.name));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    fn markdown(&self) -> String {
        let quick = if self.settings.quick { " (quick)" } else { "" };
        let mut text =
            format!("# bench {}{quick}\n\n{}; {}.\n\n", self.name, self.setting, self.quiet);
        let [ours, other, floor] = self.headings;
        text += &format!("| what | {ours} | {other} | {floor} | ratio | bar | verdict |\n");
        text += "| --- | --- | --- | --- | --- | --- | --- |\n";
        for row in &self.rows {
            text += &row.line();
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }
}

impl Row {
    fn line(&self) -> String {
        let mut line = format!("| {} | {} |", self.title, shown(&self.ours));
        for cell in [&self.other, &self.floor] {
            let text = cell.as_ref().map_or("–".to_owned(), |(name, measured)| {
                format!("{name}: {}", shown(measured))
            });
            line += &format!(" {text} |");
        }
        let ratio = self.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        line + &format!(" {ratio} | {} | {} |", self.bar, self.verdict())
    }

    fn ratio(&self) -> Option<f64> {
        ratio(&self.ours, &self.other.as_ref()?.1)
    }

    fn verdict(&self) -> String {
        match self.is_met_by(&self.ours) {
            _ if matches!(self.bar, Bar::None) => "–".to_owned(),
            Some(true) => "met".to_owned(),
            Some(false) => self.beside_floor().unwrap_or_else(|| self.missed()),
            None => "**not measured**".to_owned(),
        }
    }

    /// Says too when each median lies within the range of the other's runs.
    fn missed(&self) -> String {
        let within = || {
            let Bar::RatioAtMost(most) = self.bar else { return None };
            let ours = self.ours.as_ref().ok()?;
            let other = self.other.as_ref()?.1.as_ref().ok()?;
            let (least_of_ours, _) = ours.range?;
            let (_, most_of_other) = other.range?;
            Some(least_of_ours <= most * other.value && ours.value <= most * most_of_other)
        };
        let spread = if within() == Some(true) { ", by less than runs differ" } else { "" };
        format!("**not met**{spread}")
    }

    /// What to say of a bar that the floor itself does not meet. Its program may be behind ours, by
    /// chance: then its time is not the least that can be, and forbids nothing.
    fn beside_floor(&self) -> Option<String> {
        let (_, floor) = self.floor.as_ref().filter(|_| !matches!(self.bar, Bar::Within(_)))?;
        let ratio = ratio(&self.ours, floor)?;
        if self.is_met_by(floor) != Some(false) {
            return None;
        }
        let is_behind = match self.bar {
            Bar::RatioAtLeast(_) => ratio <= 1.0,
            Bar::AtMost(_) | Bar::RatioAtMost(_) | Bar::Within(_) | Bar::None => ratio >= 1.0,
        };
        Some(match is_behind {
            true => format!("the floor forbids it: {ratio:.2} of the floor"),
            false => format!("the floor misses it too, and is not faster: {ratio:.2} of the floor"),
        })
    }

    /// Whether `measured` would meet the bar.
    fn is_met_by(&self, measured: &Measured) -> Option<bool> {
        let of_other = || ratio(measured, &self.other.as_ref()?.1);
        match self.bar {
            Bar::None => None,
            Bar::AtMost(most) => measured.as_ref().ok().map(|ours| ours.value <= most.value),
            Bar::RatioAtMost(most) => of_other().map(|ratio| ratio <= most),
            Bar::RatioAtLeast(least) => of_other().map(|ratio| ratio >= least),
            Bar::Within(part) => of_other().map(|ratio| (ratio - 1.0).abs() <= part),
        }
    }
}

/// Nothing where one is not known, or there is nothing to divide by.
fn ratio(ours: &Measured, other: &Measured) -> Option<f64> {
    let (ours, other) = (ours.as_ref().ok()?.value, other.as_ref().ok()?.value);
    (other != 0.0).then(|| ours / other)
}

impl std::fmt::Display for Bar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bar::RatioAtMost(most) => write!(f, "≤ {most}"),
            Bar::RatioAtLeast(least) => write!(f, "≥ {least}"),
            Bar::Within(part) => write!(f, "1 ± {part}"),
            Bar::AtMost(most) => write!(f, "≤ {most}"),
            Bar::None => f.write_str("–"),
        }
    }
}

fn shown(measured: &Measured) -> String {
    match measured {
        Ok(quantity) => quantity.to_string(),
        Err(why) => why.clone(),
    }
}

fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{count} processors ({model}), Linux {}", kernel.trim())
}

/// The date in UTC, such as `2026-11-28`.
fn today() -> anyhow::Result<String> {
    let text = command::check("asking for the date", Command::new("date").args(["-u", "+%F"]))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Unit;

    #[test]
    fn the_head_of_a_table_names_peers_date_and_columns() {
        let quiet = Quiet::default();
        let setting = format!("2 processors; Hydra 4.0.2 and 5.0.1; {}", today().unwrap());
        let (rows, notes) = (Vec::new(), Vec::new());
        let settings = Settings::default();
        let name = "io".to_owned();
        let headings = ["simulated", "compared with", "computed"];
        let text = Report { name, settings, setting, quiet, headings, rows, notes }.markdown();
        assert!(text.contains("| what | simulated | compared with | computed | ratio |"), "{text}");
        let head = text.lines().nth(2).unwrap();
        let parts: Vec<&str> = head.split("; ").collect();
        assert_eq!(parts[1], "Hydra 4.0.2 and 5.0.1", "{head}");
        let is_date = parts[2].split('-').map(str::len).eq([4, 2, 2]);
        assert!(is_date, "{head}");
    }

    fn row(ours: Measured, other: f64, bar: Bar) -> Row {
        let other = Some(("Hydra".to_owned(), Ok(Quantity::new(other, Unit::Seconds))));
        Row { title: "t".to_owned(), ours, other, floor: None, bar }
    }

    #[test]
    fn a_ratio_at_its_bar_is_met() {
        let ours = Ok(Quantity::new(2.0, Unit::Seconds));
        assert_eq!(row(ours.clone(), 4.0, Bar::RatioAtMost(0.5)).verdict(), "met");
        assert_eq!(row(ours.clone(), 4.0, Bar::RatioAtMost(0.4)).verdict(), "**not met**");
        assert_eq!(row(ours, 4.0, Bar::RatioAtLeast(0.5)).verdict(), "met");
    }

    #[test]
    fn a_bar_below_the_floor_is_said_to_be() {
        let ours = Ok(Quantity::new(2.0, Unit::Seconds));
        let mut row = row(ours, 4.0, Bar::RatioAtMost(0.4));
        row.floor = Some(("C".to_owned(), Ok(Quantity::new(1.5, Unit::Seconds))));
        assert_eq!(row.verdict(), "**not met**");
        row.floor = Some(("C".to_owned(), Ok(Quantity::new(1.7, Unit::Seconds))));
        assert_eq!(row.verdict(), "the floor forbids it: 1.18 of the floor");
    }

    #[test]
    fn a_floor_that_is_behind_us_is_not_said_to_be_the_least() {
        let of = |value: f64, unit| Ok(Quantity::new(value, unit));
        let mut time = row(of(1.68, Unit::Seconds), 4.0, Bar::RatioAtMost(0.4));
        time.floor = Some(("C".to_owned(), of(2.0, Unit::Seconds)));
        assert_eq!(time.verdict(), "the floor misses it too, and is not faster: 0.84 of the floor");
        let mut rate = row(of(3.0, Unit::PerSecond), 4.0, Bar::RatioAtLeast(0.8));
        rate.floor = Some(("C".to_owned(), of(2.5, Unit::PerSecond)));
        assert_eq!(rate.verdict(), "the floor misses it too, and is not faster: 1.20 of the floor");
        rate.floor = Some(("C".to_owned(), of(3.1, Unit::PerSecond)));
        assert_eq!(rate.verdict(), "the floor forbids it: 0.97 of the floor");
    }

    #[test]
    fn a_miss_that_is_smaller_than_the_spread_says_so() {
        let of = |runs: [f64; 3]| Ok(Quantity::median(&runs, Unit::Seconds).unwrap());
        let mut row = row(of([1.9, 2.1, 2.2]), 2.0, Bar::RatioAtMost(1.0));
        row.other = Some(("Hydra".to_owned(), of([1.8, 2.0, 2.2])));
        assert_eq!(row.verdict(), "**not met**, by less than runs differ");
        row.other = Some(("Hydra".to_owned(), of([1.7, 1.8, 1.9])));
        assert_eq!(row.verdict(), "**not met**");
    }

    #[test]
    fn what_failed_is_not_met() {
        let failed = row(Err("failed: it hung".to_owned()), 4.0, Bar::RatioAtMost(0.5));
        assert_eq!(
            failed.line(),
            "| t | failed: it hung | Hydra: 4.00 s | – | – | ≤ 0.5 | **not measured** |"
        );
    }
}
