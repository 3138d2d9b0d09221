//! Exchanges that go over an edge in parts, on one member. Node n is agent n + 1, and has one task.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use engine::{Effect, Input, LinkId};
use model::{IdSet, PairName, Rank};
use pmi::{Pairs, Values};
use wire::{Collective, Message, Part, Payload};

use crate::member::{JOB, Member, PARENT, is_abandon, job_on_each, running};

/// More than a part, by itself.
const LARGE: usize = 70_000;

/// Agent 1 with rank 0, and with agents 2 and 3 below it; agent 4 is elsewhere.
fn inner_agent() -> Member {
    Member::inner_agent_with(IdSet::range(2, 3))
}

fn say(agent: &mut Member, line: &str) {
    let data = Bytes::from(format!("{line}\n"));
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
}

fn pair(key: &str, bytes: usize) -> Bytes {
    let mut pair = BytesMut::new();
    Pairs::append(&mut pair, b"", key.as_bytes(), &vec![b'v'; bytes]);
    pair.freeze()
}

fn values(rank: u32, bytes: usize) -> Bytes {
    let mut values = Values::of(4);
    values.insert(Rank(rank), vec![b'v'; bytes].into()).expect("it is the only one");
    values.encode()
}

fn part(of: Collective, is_last: bool, payload: &Bytes) -> Part {
    Part { of, number: 0, is_last, payload: payload.clone().into() }
}

fn enter_part(of: Collective, is_last: bool, payload: &Bytes) -> Message {
    Message::EnterPart(JOB, part(of, is_last, payload))
}

fn release_part(of: Collective, is_last: bool, payload: &Bytes) -> Message {
    Message::ReleasePart(JOB, part(of, is_last, payload))
}

fn enter(payload: &Bytes) -> Message {
    Message::Enter { job: JOB, fence: 0, payload: payload.clone() }
}

fn fetch(key: &str) -> Message {
    let name = PairName { space: vec![], key: key.as_bytes().to_vec() };
    Message::Fetch(JOB, Box::new(name))
}

/// An agent that has entered a fence, and has sent its own pair, and that of rank 1 in parts.
fn agent_in_a_fence() -> Member {
    let mut agent = inner_agent();
    let large = pair("card-1", LARGE);
    agent.message(LinkId(2), enter_part(Collective::Fence, false, &large));
    agent.message(LinkId(2), enter_part(Collective::Fence, true, &Bytes::new()));
    agent.message(LinkId(3), enter(&pair("card-2", 5)));
    say(&mut agent, "cmd=put kvsname=kvs_0 key=card-0 value=vvvvv");
    say(&mut agent, "cmd=barrier_in");
    let small = [pair("card-0", 5), pair("card-2", 5)].concat().into();
    let expected = [false, true].map(|is_last| {
        enter_part(Collective::Fence, is_last, if is_last { &small } else { &large })
    });
    assert_eq!(agent.sent(), expected);
    agent
}

#[test]
fn a_part_goes_up_before_the_others_have_entered_and_the_rest_with_the_last() {
    agent_in_a_fence();
}

#[test]
fn what_tasks_here_bring_goes_up_in_parts_before_those_below_have_entered() {
    let mut agent = inner_agent();
    for number in 0..200 {
        say(&mut agent, &format!("cmd=put kvsname=kvs_0 key=k{number} value={:01000}", number));
    }
    say(&mut agent, "cmd=barrier_in");
    let sent = agent.sent();
    let parts: Vec<&Part> = sent
        .iter()
        .filter_map(|it| if let Message::EnterPart(_, part) = it { Some(part) } else { None })
        .collect();
    assert_eq!(parts.len(), 3);
    assert!(parts.iter().all(|part| !part.is_last && Pairs::check(part.payload.plain()).is_ok()));
    for child in 2..=3 {
        agent.message(LinkId(child), enter(&Bytes::new()));
    }
    let sent = agent.sent();
    let [Message::EnterPart(_, last)] = &sent[..] else { panic!("{sent:?}") };
    assert!(last.is_last);
    let pairs: usize =
        parts.iter().chain([&last]).map(|it| Pairs::check(it.payload.plain()).unwrap()).sum();
    assert_eq!(pairs, 200);
}

#[test]
fn parts_come_down_as_they_are_and_the_tasks_are_let_out_behind_the_last() {
    let mut agent = agent_in_a_fence();
    let all = ["card-0", "card-1", "card-2", "card-3"].map(|key| pair(key, 5));
    for (index, payload) in all.iter().enumerate() {
        let message = release_part(Collective::Fence, index == 3, payload);
        agent.message(PARENT, message.clone());
        let links = vec![LinkId(2), LinkId(3)];
        assert_eq!(agent.effects(), [Effect::Send { links, message }]);
        if index < 3 {
            agent.pass(Duration::from_secs(1));
            say(&mut agent, "cmd=get kvsname=kvs_0 key=card-3");
            let data =
                Bytes::from_static(b"cmd=get_result rc=1 msg=key_card-3_not_found value=unknown\n");
            assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
        }
    }
    agent.sleep();
    let data = Bytes::from_static(b"cmd=barrier_out tag=0\n");
    assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
    for key in ["card-0", "card-3"] {
        say(&mut agent, &format!("cmd=get kvsname=kvs_0 key={key}"));
        let data = Bytes::from_static(b"cmd=get_result rc=0 value=vvvvv\n");
        assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
    }
}

#[test]
fn what_has_gone_up_in_parts_is_found_here_where_the_fence_is_held() {
    let mut agent = agent_in_a_fence();
    agent.message(PARENT, Message::Held(JOB, 0, false));
    agent.effects();
    agent.message(LinkId(3), fetch("card-1"));
    let sent = agent.sent();
    let [Message::Fetched(_, _, Some(value))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(value.len(), LARGE);
}

#[test]
fn a_head_that_has_all_parts_pushes_them_or_has_them_held_by_what_they_are_together() {
    let parts = ["card-0", "card-1", "card-2"].map(|key| pair(key, LARGE));
    let bytes: usize = parts.iter().map(Bytes::len).sum();
    for push_bytes_max in [bytes as u64 - 1, bytes as u64] {
        let mut head = running(3, |config| {
            config.job = job_on_each(3);
            config.push_bytes_max = push_bytes_max;
        });
        head.message(LinkId(1), enter_part(Collective::Fence, false, &parts[0]));
        head.message(LinkId(2), enter(&Bytes::new()));
        head.message(LinkId(1), enter_part(Collective::Fence, true, &parts[1]));
        head.message(LinkId(3), enter_part(Collective::Fence, true, &parts[2]));
        let links: Vec<LinkId> = (1..=3).map(LinkId).collect();
        let sent = |message| Effect::Send { links: links.clone(), message };
        let expected = if push_bytes_max < bytes as u64 {
            vec![sent(Message::Held(JOB, 0, false))]
        } else {
            let parts = (1..).zip(&parts);
            let down =
                parts.map(|(number, part)| release_part(Collective::Fence, number == 3, part));
            down.map(sent).collect()
        };
        assert_eq!(head.effects(), expected);
    }
}

#[test]
fn a_head_with_many_children_packs_all_parts_but_the_last_and_keeps_its_own() {
    let parts = ["card-0", "card-1", "card-2"].map(|key| pair(key, LARGE));
    let is_packed = |payload: &Payload| payload.coded().len() < payload.plain().len();
    for children in [5, 6, 16] {
        let mut head = running(children, |config| config.job = job_on_each(children));
        for child in 1..children {
            head.message(LinkId(child.into()), enter(&Bytes::new()));
        }
        let last = LinkId(children.into());
        for (number, payload) in (1..).zip(&parts) {
            head.message(last, enter_part(Collective::Fence, number == 3, payload));
        }
        let effects = head.effects();
        assert_eq!(effects.len(), 3);
        for (number, (effect, payload)) in (1..).zip(effects.iter().zip(&parts)) {
            let Effect::Send { message: Message::ReleasePart(JOB, part), .. } = effect else {
                panic!("{effect:?}")
            };
            assert_eq!(part.is_last, number == 3);
            assert_eq!(is_packed(&part.payload), children >= 6 && number < 3);
            assert_eq!(part.payload.plain(), payload);
        }
        head.message(LinkId(1), fetch("card-1"));
        let sent = head.sent();
        let [Message::Fetched(_, _, Some(value))] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!(value.len(), LARGE);
    }
}

#[test]
fn a_packed_part_is_passed_on_as_it_is_and_read_here() {
    let mut agent = agent_in_a_fence();
    let cards = pair("card-3", LARGE);
    let mut part = part(Collective::Fence, false, &cards);
    part.payload.pack();
    let message = Message::ReleasePart(JOB, part);
    agent.message(PARENT, message.clone());
    let links = vec![LinkId(2), LinkId(3)];
    assert_eq!(agent.effects(), [Effect::Send { links, message }]);
    agent.message(PARENT, release_part(Collective::Fence, true, &pair("card-4", 5)));
    agent.sleep();
    agent.effects();
    say(&mut agent, "cmd=get kvsname=kvs_0 key=card-4");
    let data = Bytes::from_static(b"cmd=get_result rc=0 value=vvvvv\n");
    assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
    agent.message(LinkId(3), fetch("card-3"));
    let sent = agent.sent();
    let [Message::Fetched(_, _, Some(value))] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(value.len(), LARGE);
}

#[test]
fn values_of_an_allgather_go_up_as_they_come_and_the_head_joins_them() {
    let (first, last) = (values(1, LARGE), values(2, 5));
    let mut agent = inner_agent();
    agent.message(LinkId(2), enter_part(Collective::Allgather, false, &first));
    assert_eq!(agent.sent(), [enter_part(Collective::Allgather, false, &first)]);
    agent.message(LinkId(2), enter_part(Collective::Allgather, true, &Bytes::new()));
    agent.message(LinkId(3), enter_part(Collective::Allgather, true, &last));
    let own = Bytes::from_static(b"26    cmd=allgather;value=vvvvv;");
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data: own });
    let mut rest = Values::of(4);
    [values(0, 5), last].iter().for_each(|it| rest.merge(it).unwrap());
    assert_eq!(agent.sent(), [enter_part(Collective::Allgather, true, &rest.encode())]);

    let mut head = running(1, |config| config.job = job_on_each(4));
    for (rank, is_last) in [(3, false), (0, false), (2, true)] {
        let payload = values(rank, LARGE);
        head.message(LinkId(1), enter_part(Collective::Allgather, is_last, &payload));
    }
    let sent = head.sent();
    let mut all = Values::of(4);
    for (index, message) in sent.iter().enumerate() {
        let Message::ReleasePart(_, part) = message else { panic!("{message:?}") };
        assert_eq!(part.is_last, index + 1 == sent.len());
        all.merge(part.payload.plain()).unwrap();
    }
    let lengths: Vec<usize> = all.iter().map(<[u8]>::len).collect();
    assert_eq!((sent.len(), lengths), (3, vec![LARGE, 0, LARGE, LARGE]));
}

#[test]
fn a_child_that_sends_parts_of_what_it_has_entered_or_is_not_there_is_closed() {
    for of in [Collective::Fence, Collective::Allgather] {
        for (is_late, number) in [(false, 1), (true, 0)] {
            for is_last in [false, true] {
                let mut agent = inner_agent();
                if is_late {
                    agent.message(LinkId(2), enter_part(of, true, &Bytes::new()));
                }
                let part = Part { of, number, is_last, payload: Payload::default() };
                agent.message(LinkId(2), Message::EnterPart(JOB, part));
                let effects = agent.effects();
                assert!(effects.contains(&Effect::Close(LinkId(2))), "{of:?} {effects:?}");
            }
        }
        let mut agent = inner_agent();
        agent.message(LinkId(2), release_part(of, true, &Bytes::new()));
        assert!(agent.effects().contains(&Effect::Close(LinkId(2))));
    }
}

#[test]
fn a_parent_that_releases_parts_of_what_was_not_entered_or_sends_the_wrong_way_is_left() {
    for of in [Collective::Fence, Collective::Allgather] {
        for message in [
            release_part(of, false, &Bytes::new()),
            release_part(of, true, &Bytes::new()),
            enter_part(of, false, &Bytes::new()),
        ] {
            let mut agent = inner_agent();
            agent.message(PARENT, message);
            assert!(agent.effects().iter().any(is_abandon), "{of:?}");
        }
    }
}

#[test]
fn a_head_that_is_sent_a_garbled_part_closes_its_sender_or_ends_the_session() {
    let garbled = Bytes::from_static(&[0, 1, 9, b'x']);
    for is_last in [false, true] {
        let mut head = running(2, |config| config.job = job_on_each(2));
        head.message(LinkId(1), enter_part(Collective::Allgather, is_last, &garbled));
        assert!(head.effects().contains(&Effect::Close(LinkId(1))));
        let mut head = running(1, |config| config.push_bytes_max = 0);
        head.message(LinkId(1), enter_part(Collective::Fence, is_last, &garbled));
        if !is_last {
            head.message(LinkId(1), enter_part(Collective::Fence, true, &Bytes::new()));
        }
        assert!(head.effects().iter().any(is_abandon));
    }
}
