//! Members of an adaptive tree: when they start others, and how work is handed out.

use engine::{Effect, Input, LinkId};
use model::{AgentId, IdSet, Tree};
use wire::{Message, Work};

use crate::member::{Member, PARENT, is_abandon, messages};

#[test]
fn an_adaptive_head_starts_one_child_a_gap_until_it_is_told_better() {
    let mut head = Member::head(17, |config| config.tree = Tree::adaptive());
    assert_eq!(head.started(), [AgentId(1)]);
    assert_eq!(head.sleep(), Tree::ASSUMED_GAP);
    assert_eq!(head.started(), [AgentId(2)]);
}

#[test]
fn an_adaptive_head_starts_few_children_at_once() {
    for n in 1..=16 {
        let mut head = Member::head(n, |config| config.tree = Tree::adaptive());
        assert!(head.started().into_iter().eq((1..=n).map(AgentId)), "{n}");
    }
}

#[test]
fn an_adaptive_head_that_is_told_starts_the_next_child_when_its_host_is_free() {
    let mut head = Member::head(3, |config| {
        (config.tree, config.reports_started) = (Tree::adaptive(), true);
    });
    let start = head.only_start();
    head.input(Input::Started(start.start));
    assert_eq!(head.started(), [AgentId(2)]);
}

#[test]
fn a_child_gets_one_host_with_its_welcome_and_more_when_it_asks() {
    let mut head = Member::head(30, |config| config.tree = Tree::adaptive());
    head.sleep();
    assert_eq!(head.started(), [AgentId(1), AgentId(2)]);
    let sent = head.child_joins(1);
    assert!(matches!(&sent[0], Message::Welcome(welcome) if welcome.names == "n3"), "{sent:?}");
    head.message(LinkId(1), Message::MoreWork(1));
    let sent = head.sent();
    assert!(matches!(&sent[..], [Message::Work(work)] if work.names == "n[4-7]"), "{sent:?}");
}

#[test]
fn an_agent_that_has_nobody_left_to_start_asks_once() {
    let mut agent = Member::agent(1, Tree::adaptive(), IdSet::range(2, 2), 0);
    agent.effects();
    assert_eq!(agent.sleep(), Tree::ASSUMED_GAP);
    assert_eq!(agent.sent(), [Message::MoreWork(1)]);
    agent.child_joins(2);
    assert!(!agent.sent().iter().any(|message| matches!(message, Message::MoreWork(_))));
    let work = Work { below: IdSet::range(7, 8), names: "n[7-8]".into() };
    agent.message(PARENT, Message::Work(Box::new(work)));
    let effects = agent.effects();
    assert!(
        matches!(&effects[0], Effect::Start(start) if start.agents[0].1 == "n7"),
        "{effects:?}"
    );
    let given = Work { below: IdSet::range(8, 8), names: "n8".into() };
    assert_eq!(messages(&effects)[0], Message::Work(Box::new(given)), "the child waits");
}

#[test]
fn a_request_for_work_in_a_planned_tree_is_misbehaviour() {
    let mut head = Member::head(2, |_| {});
    head.child_joins(1);
    head.message(LinkId(1), Message::MoreWork(1));
    assert!(head.effects().contains(&Effect::Close(LinkId(1))));
}

#[test]
fn work_that_does_not_fit_its_names_ends_the_agent() {
    for tree in [Tree::adaptive(), Tree::Flat] {
        let mut agent = Member::agent(1, tree, IdSet::new(), 0);
        let work = Work { below: IdSet::range(7, 8), names: "n7".into() };
        agent.message(PARENT, Message::Work(Box::new(work)));
        assert!(agent.effects().iter().any(is_abandon));
    }
}
