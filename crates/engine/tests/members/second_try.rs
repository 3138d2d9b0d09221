//! A start that failed below: the head tries it once itself.

use std::time::Duration;

use engine::{Effect, HeadConfig, Input, LinkEnd, LinkId, StartId};
use model::{AgentId, ExitStatus, IdSet, Signal, Tree};
use wire::{Message, ShellFailureKind, StartCause, StartFailure};

use crate::member::{Member, is_launch};
use crate::takeover::welcome;

const KINDS: [ShellFailureKind; 7] = [
    ShellFailureKind::Busy,
    ShellFailureKind::Refused,
    ShellFailureKind::Unreachable,
    ShellFailureKind::UnknownHost,
    ShellFailureKind::Auth,
    ShellFailureKind::HostKey,
    ShellFailureKind::Other,
];

/// A head whose only child is to start 2 to `n`, and has come up.
fn head(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
    let mut head = Member::head(n, |config| {
        config.tree = Tree::Chain;
        change(config);
    });
    head.child_joins(1);
    head.joined(1, IdSet::range(1, 1));
    head.effects();
    head
}

/// Agent 1 tells why it could not start these, each alone.
fn fail(head: &mut Member, agents: impl IntoIterator<Item = u32>, cause: StartCause) {
    let failures = agents.into_iter().map(|agent| failure(IdSet::range(agent, agent), cause));
    head.message(LinkId(1), Message::StartFailed(failures.collect()));
}

fn failure(agents: IdSet, cause: StartCause) -> StartFailure {
    let words = "ssh: no such luck".into();
    StartFailure { agents, cause, words, elapsed_ms: 10, attempts: 2, by: AgentId(1) }
}

fn refused() -> StartCause {
    StartCause::Shell(ShellFailureKind::Refused, ExitStatus::Exited(255))
}

/// Who is told of as failed, and by whom.
fn told(head: &Member) -> Vec<(IdSet, AgentId)> {
    let failures = head.outcome().start_failures.iter();
    failures.map(|failure| (failure.agents.clone(), failure.by)).collect()
}

#[test]
fn the_head_starts_once_and_by_its_name_whoever_failed_below_for_a_cause_that_may_be_the_parents() {
    let of_kind = |kind| StartCause::Shell(kind, ExitStatus::Exited(255));
    for cause in KINDS.map(of_kind).into_iter().chain([StartCause::NoShell(2), StartCause::Silent])
    {
        for (n, agent) in (2..=12).flat_map(|n| (2..=n).map(move |agent| (n, agent))) {
            let mut head = head(n, |_| {});
            fail(&mut head, [agent], cause);
            let start = head.only_start();
            assert_eq!(start.agents, [(AgentId(agent), format!("n{agent}"))]);
            assert_eq!(told(&head), []);
            head.shell_ends(start.start, ShellFailureKind::Busy);
            assert_eq!(head.starts(), [], "one time");
            let only = IdSet::range(agent, agent);
            assert_eq!(told(&head), [(only.clone(), AgentId(1)), (only, AgentId::HEAD)]);
        }
    }
}

#[test]
fn one_who_comes_up_from_the_head_is_a_leaf_and_a_member_like_others() {
    let mut head = Member::head(7, |config| config.tree = Tree::Kary(2));
    head.child_joins(1);
    head.child_joins(5);
    head.effects();
    fail(&mut head, [2], refused());
    assert_eq!(head.started(), [AgentId(2)]);
    let sent = head.child_joins(2);
    assert!(welcome(&sent).below.is_empty());
    assert_eq!(welcome(&sent).own_name, "n2");
    head.joined(1, [1, 3, 4].into_iter().collect());
    head.joined(5, IdSet::range(5, 7));
    head.pass(Duration::from_millis(20));
    assert!(!head.effects().iter().any(is_launch), "2 has not joined");
    head.joined(2, IdSet::range(2, 2));
    head.pass(Duration::from_millis(20));
    assert!(head.effects().iter().any(is_launch));
}

#[test]
fn what_is_the_hosts_own_fault_is_told_at_once() {
    let own = [
        ShellFailureKind::NoBinary,
        ShellFailureKind::NotExecutable,
        ShellFailureKind::AgentKilled(Signal::SEGV),
    ];
    let own = own.map(|kind| StartCause::Shell(kind, ExitStatus::Exited(127)));
    for cause in own.into_iter().chain([StartCause::Deadline]) {
        let mut head = head(4, |_| {});
        fail(&mut head, [3], cause);
        assert_eq!(head.starts(), []);
        assert_eq!(told(&head), [(IdSet::range(3, 3), AgentId(1))]);
    }
}

#[test]
fn those_that_fail_together_wait_for_the_window() {
    for (n, window) in (2..=30).flat_map(|n| [1, 2, 7].map(|window| (n, window))) {
        let mut head = head(n, |config| config.session.window = window);
        fail(&mut head, 2..=n, refused());
        let mut in_flight = head.starts();
        let mut tried = vec![];
        while let Some(start) = in_flight.pop() {
            assert!(in_flight.len() < window as usize, "{n}");
            tried.extend(start.agents);
            head.shell_ends(start.start, ShellFailureKind::Refused);
            in_flight.extend(head.starts());
        }
        assert_eq!((tried.len(), told(&head).len()), ((n - 1) as usize, 2 * (n - 1) as usize));
    }
}

#[test]
fn silent_ones_are_tried_as_far_as_there_is_room_at_once() {
    let mut head = head(9, |config| config.session.window = 3);
    fail(&mut head, 2..=9, StartCause::Silent);
    assert_eq!(head.started(), [2, 3, 4].map(AgentId));
    assert_eq!(told(&head), [5, 6, 7, 8, 9].map(|agent| (IdSet::range(agent, agent), AgentId(1))));
}

#[test]
fn nobody_is_tried_who_is_there_is_unknown_or_is_one_of_many_or_when_the_time_is_over() {
    let untried = |agents: IdSet, when: &dyn Fn(&mut Member), change: &dyn Fn(&mut HeadConfig)| {
        let mut head = head(4, change);
        when(&mut head);
        head.effects();
        let failures = vec![failure(agents, refused())];
        head.message(LinkId(1), Message::StartFailed(failures));
        assert_eq!(head.starts(), []);
    };
    let never = |_: &mut Member| {};
    let usual = |_: &mut HeadConfig| {};
    untried(IdSet::range(1, 1), &never, &usual);
    untried(IdSet::range(77, 77), &never, &usual);
    untried(IdSet::range(2, 4), &never, &usual);
    untried(IdSet::new(), &never, &usual);
    untried(IdSet::range(2, 2), &never, &|config| config.session.bulk_max = 8);
    untried(IdSet::range(2, 2), &never, &|config| config.children_max = 1);
    let over = |head: &mut Member| head.pass(Duration::from_secs(241));
    untried(IdSet::range(2, 2), &over, &usual);
}

#[test]
fn an_agent_that_is_no_head_tries_nobody_again_and_has_the_head_told() {
    let mut agent = crate::takeover::parent("chain", 5);
    agent.child_joins(2);
    agent.effects();
    let failures = vec![failure(IdSet::range(4, 4), refused())];
    agent.message(LinkId(2), Message::StartFailed(failures.clone()));
    assert_eq!(agent.sent(), [Message::StartFailed(failures)]);
}

/// Its parent is lost; who was started by the head is not started again.
#[test]
fn one_that_the_head_has_taken_is_nobody_elses_any_more() {
    let mut head = head(5, |_| {});
    fail(&mut head, [3], refused());
    head.child_joins(3);
    head.effects();
    let link = LinkId(1);
    head.input(Input::LinkDown { link, end: LinkEnd::Closed, words: String::new() });
    head.shell_ends(StartId(0), ShellFailureKind::Other);
    assert_eq!(head.outcome().losses[0].again, [2, 4, 5].into_iter().collect());
    assert_eq!(head.started(), [AgentId(2)]);
}

#[test]
fn a_session_that_ends_before_the_head_knows_better_tells_what_the_parent_found() {
    let mut head = head(4, |_| {});
    fail(&mut head, [3], refused());
    head.input(Input::UserSignal(Signal::INT));
    assert!(head.effects().iter().any(|effect| matches!(effect, Effect::KillShell(_))));
    assert_eq!(told(&head), [(IdSet::range(3, 3), AgentId(1))]);
}
