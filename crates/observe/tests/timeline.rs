//! Timelines of simulated sessions, as files.

use std::time::Duration;

use model::{AgentId, Time};
use observe::{Timeline, TimelineFormat, WaitKind, critical_path};
use sim::{Session, ShellPlan};

#[test]
fn a_small_session_has_this_trace() {
    let timeline = timeline_of(&Session::of(2).tree("chain"));
    let text = TimelineFormat::Json.text(&timeline, &names(2), "");
    let lines = text.replace("},{", "},\n{");
    insta::assert_snapshot!(lines);
}

#[test]
fn the_join_waits_for_the_host_that_is_slow() {
    let timeline = timeline_of(&one_slow());
    let path = critical_path(&timeline);
    let longest = path.iter().max_by_key(|wait| wait.to.since(wait.from)).unwrap();
    assert_eq!((longest.agent, longest.kind), (AgentId(17), WaitKind::Shell));
    assert_eq!(longest.line(&names(40)), "n17: 5.11 s waiting for its shell");
}

#[test]
fn the_critical_path_is_without_a_gap_from_the_first_start_to_the_last_join() {
    for tree in ["flat", "chain", "kary:3", "binomial", "greedy"] {
        let timeline = timeline_of(&Session::of(50).tree(tree).spec(|spec| spec.window = 4));
        let path = critical_path(&timeline);
        assert_eq!(path.first().map(|wait| wait.from), Some(Time::ZERO), "{tree}");
        assert_eq!(path.last().map(|wait| wait.to), timeline.all_joined, "{tree}");
        for pair in path.windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "{tree}: {pair:?}");
        }
    }
}

#[test]
fn a_host_that_never_comes_up_is_what_the_join_waited_for() {
    let session = Session::of(9).tree("kary:2").shell(AgentId(6), &[ShellPlan::Hangs]);
    let timeline = timeline_of(&session.join_timeout(Duration::from_secs(4)));
    let path = critical_path(&timeline);
    assert!(path.iter().any(|wait| wait.agent == AgentId(6) && wait.kind == WaitKind::Shell));
}

#[test]
fn names_of_hosts_are_text_and_nothing_else() {
    let evil = "</script><img src=x onerror=alert(1)>'\"&{{data}}";
    let names = vec![evil.to_owned(); 3];
    let text = TimelineFormat::Html.text(&timeline_of(&Session::of(3)), &names, evil);
    assert!(!text.contains("<img"), "{text}");
    assert_eq!(text.matches("</script>").count(), 2);
    assert_eq!(text.matches("<script").count(), 2);
}

#[test]
fn a_page_fetches_nothing() {
    let text = TimelineFormat::Html.text(&timeline_of(&Session::of(3)), &names(3), "three");
    let without_namespace = text.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", "src=", "@import", "url(", "fetch("] {
        assert!(!without_namespace.contains(word), "{word}");
    }
}

fn one_slow() -> Session {
    let slow = ShellPlan::Slow(Duration::from_secs(5));
    Session::of(40).tree("kary:3").shell(AgentId(17), &[slow])
}

fn timeline_of(session: &Session) -> Timeline {
    let report = session.clone().spec(|spec| spec.marks = true).run();
    let mut timeline = Timeline::default();
    for (at, event) in &report.events {
        timeline.on_event(*at, event);
    }
    timeline
}

fn names(n: u32) -> Vec<String> {
    (1..=n).map(|node| format!("n{node}")).collect()
}
