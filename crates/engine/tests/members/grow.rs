//! Hosts without tasks that get an agent when a job that a task asks for needs them.

use bytes::Bytes;
use engine::{Effect, LinkId};
use model::{AgentId, IdSet, Slots};
use wire::{JobSpec, Message, ShellFailureKind};

use crate::member::{JOB, Member, job_on_each, running};
use crate::spawn::{CALLER, refusal, request};

/// A head with one node, and with two slots on each of two more that get an agent when they are needed.
fn growing_head() -> Member {
    let mut head = running(1, |config| {
        config.job = JobSpec { universe_size: Some(6), ..job_on_each(1) };
        config.muster.slots = vec![Slots::of(2)];
        config.later = ["n2", "n3"].map(|name| (name.to_string(), Slots::of(2))).to_vec();
    });
    head.effects();
    head
}

#[test]
fn a_job_that_needs_another_host_has_it_started_and_goes_there_once_it_has_joined() {
    let mut head = growing_head();
    let two = Box::new(request(&[("a", 2)]));
    head.message(LinkId(1), Message::SpawnRequest(JOB, CALLER, two));
    assert_eq!(head.started(), [AgentId(2)], "one slot is here, one is enough there");
    let sent = head.child_joins(2);
    let jobs = sent.iter().filter(|message| matches!(message, Message::Job(_)));
    assert_eq!(jobs.count(), 1, "the one that agents join with: {sent:?}");
    head.joined(2, IdSet::range(2, 2));
    let sent = head.sent();
    assert!(matches!(&sent[..], [Message::Spawn(_), ..]), "{sent:?}");
    exchanges_of_first(&mut head);
}

/// A fence of the first job, of whose end the agent that was added hears nothing.
#[track_caller]
fn exchanges_of_first(head: &mut Member) {
    head.message(LinkId(1), Message::Enter { job: JOB, fence: 0, payload: Bytes::new() });
    let effects = head.effects();
    let links: Vec<&Vec<LinkId>> = effects.iter().filter_map(links_of_release).collect();
    assert_eq!(links, [&vec![LinkId(1)]], "{effects:?}");
}

fn links_of_release(effect: &Effect) -> Option<&Vec<LinkId>> {
    let Effect::Send { links, message: Message::Release { .. } } = effect else { return None };
    Some(links)
}

#[test]
fn a_host_that_does_not_come_up_is_told_to_who_asked_and_is_not_tried_again() {
    let mut head = growing_head();
    let asks_for_two = |head: &mut Member| {
        let two = Box::new(request(&[("a", 2)]));
        head.message(LinkId(1), Message::SpawnRequest(JOB, CALLER, two));
    };
    asks_for_two(&mut head);
    let start = head.only_start();
    assert_eq!(start.agents, [(AgentId(2), "n2".to_string())]);
    head.shell_ends(start.start, ShellFailureKind::Auth);
    assert_eq!(refusal(&head.sent()), "no agent came up on `n2`");
    asks_for_two(&mut head);
    assert_eq!(head.only_start().agents, [(AgentId(3), "n3".to_string())]);
    assert_eq!(head.outcome().code, 0);
}
