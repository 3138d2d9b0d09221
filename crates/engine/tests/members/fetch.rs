//! Reads of pairs that a fence has left where they came by, on one member. Node n is agent n + 1, and has one task.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::{Effect, Input, LinkEnd, LinkId};
use model::{ExitStatus, IdSet, JobId, PairName, Rank, StatusRuns};
use pmi::Pairs;
use wire::Message;

use crate::member::{JOB, Member, PARENT, is_abandon, job_on_each, running};

/// Agent 1 with rank 0, and with agents 2 and 3 below it; agent 4 is elsewhere.
fn inner_agent() -> Member {
    Member::inner_agent_with(IdSet::range(2, 3))
}

/// The same after fence 0, whose values are held.
fn holding_agent() -> Member {
    let mut agent = inner_agent();
    enter_all(&mut agent, 0);
    agent.message(PARENT, Message::Held(JOB, 0, false));
    agent.pass(Duration::ZERO);
    agent.effects();
    agent
}

fn enter_all(agent: &mut Member, fence: u32) {
    for child in 2..=3 {
        let name = format!("card-{}", child - 1);
        let payload = pairs(&[(&name, "below")]);
        agent.message(LinkId(child), Message::Enter { job: JOB, fence, payload });
    }
    say(agent, "cmd=put kvsname=kvs_0 key=card-0 value=own");
    say(agent, "cmd=barrier_in");
}

fn say(agent: &mut Member, line: &str) {
    let data = Bytes::from(format!("{line}\n"));
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
}

fn get(agent: &mut Member, key: &str) {
    say(agent, &format!("cmd=get kvsname=kvs_0 key={key}"));
}

fn pairs(of: &[(&str, &str)]) -> Bytes {
    let mut pairs = BytesMut::new();
    for (key, value) in of {
        Pairs::append(&mut pairs, b"", key.as_bytes(), value.as_bytes());
    }
    pairs.freeze()
}

fn name(key: &str) -> Box<PairName> {
    Box::new(PairName { space: vec![], key: key.as_bytes().to_vec() })
}

fn fetch(key: &str) -> Message {
    Message::Fetch(JOB, name(key))
}

fn fetched(key: &str, value: Option<&'static str>) -> Message {
    Message::Fetched(JOB, name(key), value.map(|value| Bytes::from_static(value.as_bytes())))
}

/// What the task here is told, and what is sent over which links.
fn told(agent: &mut Member) -> (Vec<String>, Vec<(Vec<LinkId>, Message)>) {
    let (mut replies, mut sent) = (vec![], vec![]);
    for effect in agent.effects() {
        if let Effect::PmiSend { data, .. } = effect {
            replies.push(String::from_utf8_lossy(&data).trim().to_owned());
        } else if let Effect::Send { links, message } = effect {
            sent.push((links, message));
        } else {
            panic!("{effect:?}");
        }
    }
    (replies, sent)
}

fn value(text: &str) -> String {
    format!("cmd=get_result rc=0 value={text}")
}

const UP: [LinkId; 1] = [PARENT];

#[test]
fn the_end_of_a_fence_that_is_held_goes_down_without_values_and_a_read_finds_those_from_below() {
    let mut agent = inner_agent();
    enter_all(&mut agent, 0);
    agent.effects();
    agent.message(PARENT, Message::Held(JOB, 0, false));
    let down = (vec![LinkId(2), LinkId(3)], Message::Held(JOB, 0, false));
    assert_eq!(told(&mut agent), (vec![], vec![down]));
    agent.pass(Duration::ZERO);
    agent.effects();
    for (key, found) in [("card-0", "own"), ("card-1", "below"), ("card-2", "below")] {
        get(&mut agent, key);
        assert_eq!(told(&mut agent), (vec![value(found)], vec![]));
        agent.message(LinkId(3), fetch(key));
        let answer = (vec![LinkId(3)], fetched(key, Some(found)));
        assert_eq!(told(&mut agent), (vec![], vec![answer]));
    }
}

#[test]
fn all_who_wait_for_a_pair_wait_for_one_request_and_later_ones_find_its_answer_here() {
    let mut agent = holding_agent();
    agent.message(LinkId(2), fetch("card-3"));
    assert_eq!(told(&mut agent), (vec![], vec![(UP.into(), fetch("card-3"))]));
    agent.message(LinkId(3), fetch("card-3"));
    get(&mut agent, "card-3");
    assert_eq!(told(&mut agent), (vec![], vec![]));
    agent.message(PARENT, fetched("card-3", Some("far")));
    let down = (vec![LinkId(2), LinkId(3)], fetched("card-3", Some("far")));
    assert_eq!(told(&mut agent), (vec![value("far")], vec![down]));
    get(&mut agent, "card-3");
    agent.message(LinkId(2), fetch("card-3"));
    let down = (vec![LinkId(2)], fetched("card-3", Some("far")));
    assert_eq!(told(&mut agent), (vec![value("far")], vec![down]));
}

#[test]
fn a_child_that_has_heard_of_a_fences_end_is_served_by_an_agent_that_has_only_handed_it_on() {
    let mut agent = inner_agent();
    enter_all(&mut agent, 0);
    agent.message(PARENT, Message::Held(JOB, 0, false));
    agent.effects();
    agent.message(LinkId(2), fetch("card-2"));
    let sent = agent.sent();
    assert_eq!(sent, [fetched("card-2", Some("below"))]);
}

#[test]
fn after_a_stale_fence_nobody_but_the_head_is_believed() {
    let mut agent = holding_agent();
    get(&mut agent, "card-3");
    agent.message(PARENT, fetched("card-3", Some("old")));
    enter_all(&mut agent, 1);
    agent.message(PARENT, Message::Held(JOB, 1, true));
    agent.pass(Duration::ZERO);
    agent.effects();
    for key in ["card-0", "card-1", "card-3"] {
        agent.message(LinkId(2), fetch(key));
        assert_eq!(told(&mut agent), (vec![], vec![(UP.into(), fetch(key))]));
    }
}

#[test]
fn a_child_that_ends_or_is_lost_while_it_waits_is_not_answered_and_others_are() {
    for is_lost in [false, true] {
        let mut agent = holding_agent();
        agent.message(LinkId(2), fetch("card-3"));
        agent.message(LinkId(3), fetch("card-3"));
        if is_lost {
            let words = "reset".to_owned();
            agent.input(Input::LinkDown { link: LinkId(2), end: LinkEnd::Cut, words });
        } else {
            let mut statuses = StatusRuns::default();
            statuses.insert(Rank(1), ExitStatus::SUCCESS);
            agent.message(LinkId(2), Message::Done { job: JOB, statuses, by_order: false });
        }
        agent.effects();
        agent.message(PARENT, fetched("card-3", Some("far")));
        let links: Vec<_> = told(&mut agent).1.into_iter().flat_map(|(links, _)| links).collect();
        assert!(links.contains(&LinkId(3)), "{links:?}");
        assert!(!is_lost || !links.contains(&LinkId(2)), "{links:?}");
    }
}

#[test]
fn a_parent_that_answers_what_was_not_asked_is_left_and_an_unknown_job_is_nobodys() {
    let mut agent = holding_agent();
    agent.message(LinkId(2), Message::Fetch(JobId(9), name("card-3")));
    agent.message(PARENT, Message::Fetched(JobId(9), name("card-3"), None));
    assert_eq!(told(&mut agent), (vec![], vec![]));
    agent.message(PARENT, fetched("card-3", None));
    assert!(agent.effects().iter().any(is_abandon));
}

#[test]
fn a_child_that_holds_or_answers_and_a_parent_that_fetches_break_the_protocol() {
    for message in [Message::Held(JOB, 0, false), fetched("card-3", None)] {
        let mut agent = holding_agent();
        agent.message(LinkId(2), message);
        assert!(agent.effects().contains(&Effect::Close(LinkId(2))));
    }
    let mut agent = holding_agent();
    agent.message(PARENT, fetch("card-3"));
    assert!(agent.effects().iter().any(is_abandon));
}

/// A head of three children, after fences that have brought these pairs from the first of them.
fn head_after(push_bytes_max: u64, fences: &[&[(&str, &str)]]) -> Member {
    let mut head = running(3, |config| {
        config.job = job_on_each(3);
        config.push_bytes_max = push_bytes_max;
    });
    for (fence, brought) in (0..).zip(fences) {
        for child in 1..=3 {
            let payload = if child == 1 { pairs(brought) } else { Bytes::new() };
            head.message(LinkId(child), Message::Enter { job: JOB, fence, payload });
        }
    }
    head
}

/// What ended each of the fences.
fn ends(head: &mut Member) -> Vec<Message> {
    let mut ends = head.sent();
    ends.retain(|message| matches!(message, Message::Release { .. } | Message::Held(..)));
    ends.dedup();
    ends
}

#[test]
fn the_head_pushes_up_to_the_limit_and_says_when_a_pair_that_it_holds_has_changed() {
    let (one, other) = (&[("k", "1"), ("l", "1")][..], &[("k", "2"), ("m", "1")][..]);
    let release = |fence, of| Message::Release { job: JOB, fence, payload: pairs(of) };
    let bytes = pairs(one).len() as u64;
    let mut head = head_after(bytes, &[one, other]);
    assert_eq!(ends(&mut head), [release(0, one), release(1, other)]);
    let mut head = head_after(bytes - 1, &[one, one, other, &[], other]);
    let held = |fence, is_stale| Message::Held(JOB, fence, is_stale);
    let expected = [held(0, false), held(1, false), held(2, true), release(3, &[]), held(4, false)];
    assert_eq!(ends(&mut head), expected);
}

/// What was pushed before is forgotten elsewhere when it may have changed.
#[test]
fn the_head_answers_with_the_last_of_what_was_pushed_or_held_and_that_nobody_has_put_the_rest() {
    let (one, other) = (&[("k", "1"), ("l", "1")][..], &[("k", "2"), ("m", "1"), ("n", "1")][..]);
    let mut head = head_after(pairs(one).len() as u64, &[one, other]);
    head.pass(Duration::ZERO);
    head.effects();
    for (key, value) in [("k", Some("2")), ("l", Some("1")), ("m", Some("1")), ("o", None)] {
        head.message(LinkId(2), fetch(key));
        let answer = (vec![LinkId(2)], fetched(key, value));
        assert_eq!(told(&mut head), (vec![], vec![answer]));
    }
}

#[test]
fn a_head_that_is_sent_garbled_pairs_ends_the_session() {
    let mut head = running(1, |config| config.push_bytes_max = 0);
    let payload = Bytes::from_static(&[5]);
    head.message(LinkId(1), Message::Enter { job: JOB, fence: 0, payload });
    assert!(head.effects().iter().any(is_abandon));
}
