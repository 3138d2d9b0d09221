//! The page of a timeline in a browser that nobody sees: its script runs, and what it shows is true.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use model::AgentId;
use observe::{Timeline, TimelineFormat};
use sim::{Session, ShellPlan};

/// A browser that has not shown a page by then has a reason that waiting does not mend.
const SECONDS_MAX: &str = "60";

const BROWSER: &str = "/usr/bin/chromium";

#[test]
fn the_page_names_the_host_that_was_slowed_by_five_seconds_and_draws_every_agent() {
    let dom = dom_of(&page_of_one_slow());
    let path = between(&dom, "id=\"critical-path\"", "</ol>");
    assert!(path.contains("n17: 5.11 s waiting for its shell"), "{path}");
    let tree = between(&dom, "id=\"tree\"", "</div>");
    for node in 1..=40 {
        assert!(tree.contains(&format!(">n{node}</text>")), "n{node} is not drawn");
    }
    assert!(tree.contains("n17: shell, 5.11 s"), "its bar says it too");
}

fn page_of_one_slow() -> String {
    let slow = ShellPlan::Slow(Duration::from_secs(5));
    let session = Session::of(40).tree("kary:3").shell(AgentId(17), &[slow]);
    let report = session.spec(|spec| spec.marks = true).run();
    let mut timeline = Timeline::default();
    for (at, event) in &report.events {
        timeline.on_event(*at, event);
    }
    let names: Vec<String> = (1..=40).map(|node| format!("n{node}")).collect();
    TimelineFormat::Html.text(&timeline, &names, "one slow host")
}

/// What the browser makes of a page.
fn dom_of(page: &str) -> String {
    assert!(Path::new(BROWSER).exists(), "there is no {BROWSER}: run `cargo xtask setup`");
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("page.html");
    std::fs::write(&file, page).expect("a page");
    let output = browser(dir.path(), &format!("file://{}", file.display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[expect(clippy::disallowed_methods, reason = "a test's own helper")]
fn browser(dir: &Path, url: &str) -> std::process::Output {
    let profile = format!("--user-data-dir={}", dir.join("profile").display());
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ];
    // `timeout` is the parent of the browser, and kills it if it must.
    Command::new("timeout")
        .args(["--kill-after=5", SECONDS_MAX, BROWSER])
        .args(flags)
        .args([&profile, url])
        .env("TMPDIR", dir) // where it now and then leaves a file
        .output()
        .expect("timeout(1) runs")
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let rest = &text[text.find(from).unwrap_or_else(|| panic!("no {from} in {text}"))..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}
