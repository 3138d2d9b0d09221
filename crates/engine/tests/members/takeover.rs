//! Take-over: what a spawn child was to start when it fails or is lost before the launch.

use std::time::Duration;

use engine::{Effect, Input, LinkEnd, LinkId, Start, StartId};
use model::{AgentId, ExitStatus, IdSet, Tree};
use wire::{
    AgentLoss, JobFault, LossCause, Message, ShellFailureKind, StartCause, StartFailure, Welcome,
};

use crate::member::{JOB, Member, PARENT, is_launch, is_stop, launch, messages, running};

pub(crate) const PLANNED: [&str; 8] =
    ["flat", "chain", "kary:3", "binomial", "two-level", "greedy", "scela:8", "route:kary:3"];

/// An agent that is to start 2 to `n`.
pub(crate) fn parent(tree: &str, n: u32) -> Member {
    Member::agent_with(
        1,
        tree.parse().expect("the name of a tree"),
        IdSet::range(2, n),
        crate::member::job(1, 0),
    )
}

/// The child's agent is killed, and its shell says so.
fn is_killed(member: &mut Member, child: u32, start: &Start) -> Vec<Effect> {
    let link = LinkId(u64::from(child));
    member.input(Input::LinkDown { link, end: LinkEnd::Closed, words: String::new() });
    member.shell_ends(start.start, ShellFailureKind::Other);
    member.effects()
}

fn loss(effects: &[Effect]) -> AgentLoss {
    let lost = |message| if let Message::Lost(loss) = message { Some(loss) } else { None };
    messages(effects).into_iter().find_map(lost).expect("a loss is told")
}

pub(crate) fn welcome(sent: &[Message]) -> &Welcome {
    let Message::Welcome(welcome) = &sent[0] else { panic!("no welcome: {sent:?}") };
    welcome
}

#[test]
fn a_parent_starts_itself_what_a_child_that_fails_was_to_start_each_agent_once_by_its_name() {
    for tree in PLANNED {
        for n in 2..=30 {
            let mut parent = parent(tree, n);
            let mut started = Vec::new();
            let mut effects = parent.effects();
            while let Some(effect) = effects.pop() {
                if let Effect::Start(start) = effect {
                    started.extend(start.agents);
                    parent.shell_ends(start.start, ShellFailureKind::Auth);
                    effects.extend(parent.effects());
                } else if let Effect::Send { message: Message::StartFailed(failures), .. } = effect
                {
                    assert_eq!((failures.len(), failures[0].agents.len()), (1, 1), "{tree} of {n}");
                }
            }
            started.sort();
            let all = (2..=n).map(|agent| (AgentId(agent), format!("n{agent}")));
            assert_eq!(started, all.collect::<Vec<_>>(), "{tree} of {n}");
        }
    }
}

#[test]
fn a_parent_takes_over_all_that_a_lost_child_was_given_but_for_what_had_failed() {
    for tree in PLANNED.into_iter().chain(["adaptive"]) {
        for n in 2..=20 {
            let mut parent = parent(tree, n);
            let start = parent.starts().remove(0);
            let child = start.agents[0].0.0;
            let below = welcome(&parent.child_joins(child)).below.clone();
            let failed: IdSet = below.first().into_iter().collect();
            let failures = failed.first().map(|agent| failure(agent, child)).into_iter().collect();
            parent.message(LinkId(child.into()), Message::StartFailed(failures));
            parent.joined(child, IdSet::range(child, child).union(&below.difference(&failed)));
            parent.effects();
            let effects = is_killed(&mut parent, child, &start);
            let loss = loss(&effects);
            let again = below.difference(&failed);
            assert_eq!((loss.agents, &loss.again), (IdSet::range(child, child), &again));
            let started = effects.iter().filter_map(|effect| {
                if let Effect::Start(start) = effect { Some(start.agents.clone()) } else { None }
            });
            let first = started.flatten().next();
            if tree != "adaptive" {
                let name = again.first().map(|agent| (AgentId(agent), format!("n{agent}")));
                assert_eq!(first, name, "{tree} of {n}");
            }
        }
    }
}

#[test]
fn work_that_was_given_later_is_taken_back_too_and_handed_out_again() {
    let second = Duration::from_secs(1);
    let mut parent = parent("adaptive", 30);
    let start = parent.starts().remove(0);
    parent.now = parent.now + second;
    parent.child_joins(2);
    parent.message(LinkId(2), Message::MoreWork(1));
    parent.effects();
    let effects = is_killed(&mut parent, 2, &start);
    let again = loss(&effects).again;
    assert!(again.len() > 1, "{again}");
    parent.pass(5 * second);
    let started: IdSet = parent.started().into_iter().map(|agent| agent.0).collect();
    assert_eq!(again.difference(&started), IdSet::new());
}

#[test]
fn of_children_that_are_found_silent_together_none_is_given_what_another_leaves() {
    let mut head = Member::head(6, |config| config.tree = Tree::adaptive());
    head.pass(Duration::from_millis(25));
    let children = head.started();
    assert!(children.len() > 1);
    for child in &children {
        head.child_joins(child.0);
        head.message(LinkId(child.0.into()), Message::MoreWork(1));
    }
    head.effects();
    head.now = head.now + Duration::from_secs(600);
    head.pass(Duration::ZERO);
    let sent = head.sent();
    assert_eq!(head.outcome().losses.len(), children.len());
    assert!(!sent.iter().any(|message| matches!(message, Message::Work(_))), "{sent:?}");
}

#[test]
fn what_failed_or_was_lost_after_the_time_to_join_is_not_taken_over() {
    for joins in [false, true] {
        let mut parent = parent("chain", 5);
        let start = parent.starts().remove(0);
        if joins {
            parent.child_joins(2);
        }
        parent.message(PARENT, Message::JoinDeadline);
        parent.effects();
        let effects = if joins {
            is_killed(&mut parent, 2, &start)
        } else {
            parent.shell_ends(start.start, ShellFailureKind::Other);
            parent.effects()
        };
        match &messages(&effects)[..] {
            [Message::Lost(loss)] => {
                assert_eq!((&loss.agents, &loss.again), (&IdSet::range(2, 5), &IdSet::new()));
            }
            [Message::StartFailed(failures)] => {
                let told: Vec<_> = failures.iter().map(|f| (f.cause, f.agents.clone())).collect();
                let expected = [IdSet::range(2, 2), IdSet::range(3, 5)];
                assert_eq!(told, expected.map(|agents| (StartCause::Deadline, agents)));
            }
            other => panic!("{other:?}"),
        }
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start(_))));
    }
}

#[test]
fn an_order_to_launch_ends_the_starts_of_what_was_taken_over() {
    let mut parent = parent("chain", 5);
    let start = parent.starts().remove(0);
    parent.child_joins(2);
    is_killed(&mut parent, 2, &start);
    parent.message(PARENT, launch());
    assert!(parent.effects().iter().any(|effect| matches!(effect, Effect::KillShell(_))));
    parent.pass(Duration::from_secs(60));
    assert_eq!(parent.starts(), []);
}

#[test]
fn the_head_waits_once_more_for_those_that_are_started_again() {
    let mut head = Member::head(3, |config| {
        config.tree = Tree::Chain;
        config.muster.nodes_min = Some(1);
        config.job.is_movable = true;
    });
    head.child_joins(1);
    head.joined(1, [1, 3].into_iter().collect());
    head.message(LinkId(1), lost(2, &[2], &[3]));
    assert!(!head.effects().iter().any(is_launch), "3 is not there");
    head.joined(1, IdSet::range(3, 3));
    head.pass(Duration::from_millis(20));
    assert!(head.effects().iter().any(is_launch));
    assert_eq!(head.outcome().members, [1, 3].into_iter().collect());
    assert_eq!(head.outcome().losses[0].agents, IdSet::range(2, 2));
}

#[test]
fn any_number_of_silent_parents_one_after_the_other_use_up_nobodys_time_to_join() {
    for n in 2..=12 {
        let mut head = Member::head(n, |config| {
            config.tree = Tree::Chain;
            config.session.retries_max = 0;
            config.muster.nodes_min = Some(1);
            config.job.is_movable = true;
        });
        for silent in 1..n {
            assert_eq!(head.started(), [AgentId(silent)], "of {n}");
            head.pass(Duration::from_secs(30));
            let shell = StartId(u64::from(silent) - 1);
            head.shell_ends(shell, ShellFailureKind::Other);
        }
        head.child_joins(n);
        head.joined(n, IdSet::range(n, n));
        assert!(head.effects().iter().any(is_launch), "{n}");
        assert_eq!(head.outcome().start_failures.len(), (n - 1) as usize);
    }
}

#[test]
fn a_node_that_comes_up_twice_and_lacks_the_program_is_told_of_once() {
    let mut head = Member::head(2, |config| config.tree = Tree::Chain);
    head.child_joins(1);
    let fault = JobFault::Program { agent: AgentId(2), app: 0, errno: 2, words: "none".into() };
    for _ in 0..2 {
        head.message(LinkId(1), Message::JobFault(JOB, Box::new(fault.clone())));
    }
    assert_eq!(head.outcome().faults, [fault]);
}

#[test]
fn a_head_that_has_launched_counts_those_as_lost_that_were_about_to_be_started_again() {
    let mut head = running(4, |config| config.tree = Tree::Chain);
    head.message(LinkId(1), lost(2, &[2], &[3, 4]));
    assert!(head.effects().iter().any(is_stop));
    assert_eq!(head.outcome().losses[0].agents, IdSet::range(2, 4));
}

#[test]
fn what_has_joined_and_is_started_again_is_told_to_have_joined_when_it_has() {
    let mut parent = parent("chain", 9);
    parent.child_joins(2);
    parent.joined(2, IdSet::range(2, 2));
    parent.joined(2, IdSet::range(3, 5));
    parent.effects();
    parent.message(LinkId(2), lost(4, &[4], &[5]));
    parent.pass(Duration::from_millis(20));
    let joined = parent
        .sent()
        .into_iter()
        .filter_map(|message| if let Message::Joined(ids) = message { Some(ids) } else { None });
    assert!(joined.fold(IdSet::new(), |all, ids| all.union(&ids)).contains(3));
    parent.joined(2, IdSet::range(5, 5));
    parent.pass(Duration::from_millis(20));
    assert!(parent.sent().contains(&Message::Joined(IdSet::range(5, 5))));
}

fn failure(agent: u32, by: u32) -> StartFailure {
    StartFailure {
        agents: IdSet::range(agent, agent),
        cause: StartCause::Shell(ShellFailureKind::Auth, ExitStatus::Exited(255)),
        words: String::new(),
        elapsed_ms: 10,
        attempts: 1,
        by: AgentId(by),
    }
}

fn lost(agent: u32, agents: &[u32], again: &[u32]) -> Message {
    let set = |ids: &[u32]| ids.iter().copied().collect::<IdSet>();
    let (agents, again, words) = (set(agents), set(again), String::new());
    let (agent, cause) = (AgentId(agent), LossCause::LinkClosed);
    Message::Lost(AgentLoss { agent, agents, again, cause, words })
}
