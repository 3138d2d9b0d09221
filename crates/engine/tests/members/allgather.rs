//! Allgathers on one member. Node n is agent n + 1, and has one task.

use bytes::Bytes;
use engine::{Effect, Input, LinkEnd, LinkId};
use model::{ExitStatus, Rank, StatusRuns};
use pmi::Values;
use wire::Message;

use crate::member::{JOB, Member, PARENT, is_abandon};

fn brings_its_value(agent: &mut Member) {
    let data = Bytes::from_static(b"29    cmd=allgather;value=task 0;;;");
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
}

fn values(of: &[(u32, &'static [u8])]) -> Bytes {
    let mut values = Values::of(9);
    for (rank, value) in of {
        values.insert(Rank(*rank), Bytes::from_static(value)).expect("ranks differ");
    }
    values.encode()
}

fn enter(number: u32, of: &[(u32, &'static [u8])]) -> Message {
    Message::AllgatherEnter(JOB, number, values(of))
}

fn release(number: u32, of: &[(u32, &'static [u8])]) -> Message {
    Message::AllgatherRelease(JOB, number, values(of))
}

const ALL: [(u32, &[u8]); 4] = [(0, b"task 0;"), (1, b"task 1;"), (2, b"2"), (3, b"3")];

#[test]
fn the_values_of_a_subtree_go_up_as_one_and_those_of_all_go_down_before_the_tasks_get_them() {
    let mut agent = Member::inner_agent();
    for number in 0..3 {
        agent.message(LinkId(2), enter(number, &ALL[1..2]));
        assert_eq!(agent.sent(), []);
        brings_its_value(&mut agent);
        assert_eq!(agent.sent(), [enter(number, &ALL[..2])]);
        agent.message(PARENT, release(number, &ALL));
        let down = Effect::Send { links: vec![LinkId(2)], message: release(number, &ALL) };
        assert_eq!(agent.effects(), [down]);
        agent.sleep();
        let told = "89    cmd=allgather-response;rc=0;first=0;count=4;more=FALSE;\
                    values=7:task 0;;7:task 1;;1:21:3;";
        let data = Bytes::from_static(told.as_bytes());
        assert_eq!(agent.effects(), [Effect::PmiSend { job: JOB, rank: Rank(0), data }]);
    }
}

/// As those of the client library do.
#[test]
fn a_task_that_reads_snapshots_gets_many_values_in_memory() {
    let mut agent = Member::inner_agent();
    let asks = Bytes::from_static(b"34    cmd=fullinit;pmirank=0;snapshot=1;");
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data: asks });
    brings_its_value(&mut agent);
    agent.message(LinkId(2), enter(0, &ALL[1..2]));
    agent.effects();
    agent.message(PARENT, release(0, &[(0, b"task 0;"), (1, b"task 1;"), (2, &[b'x'; 1 << 16])]));
    agent.sleep();
    let effects = agent.effects();
    let Some(Effect::PmiSendInMemory { job: JOB, replies, data }) = effects.last() else {
        panic!("{effects:?}")
    };
    let reply = format!("cmd=allgather-response;rc=0;snapshot={};", data.len());
    let reply = format!("{:<6}{reply}", reply.len());
    assert_eq!(replies[..], [(Rank(0), Bytes::from(reply))]);
    assert!(data.ends_with(b";values=0:;"));
}

#[test]
fn a_child_whose_tasks_have_ended_brings_nothing_and_is_not_waited_for() {
    let mut agent = Member::inner_agent();
    brings_its_value(&mut agent);
    let mut statuses = StatusRuns::default();
    statuses.insert(Rank(1), ExitStatus::SUCCESS);
    agent.message(LinkId(2), Message::Done { job: JOB, statuses, by_order: false });
    assert!(agent.sent().contains(&enter(0, &ALL[..1])));
}

#[test]
fn a_child_that_brings_what_is_no_value_of_its_tasks_is_closed() {
    let garbled = Message::AllgatherEnter(JOB, 0, Bytes::from_static(&[0, 1, 9, b'x']));
    for (is_late, message) in [
        (false, garbled),
        (false, enter(1, &ALL[1..2])),
        (false, enter(0, &[(4, b"behind the last")])),
        (true, enter(0, &ALL[..1])),
    ] {
        let mut agent = Member::inner_agent();
        if is_late {
            brings_its_value(&mut agent);
        }
        agent.message(LinkId(2), message);
        let effects = agent.effects();
        assert!(effects.contains(&Effect::Close(LinkId(2))), "{effects:?}");
    }
}

#[test]
fn a_child_that_has_brought_the_value_of_a_task_here_is_no_panic() {
    let mut agent = Member::inner_agent();
    agent.message(LinkId(2), enter(0, &ALL[..1]));
    brings_its_value(&mut agent);
    assert!(agent.effects().iter().any(is_abandon));
}

#[test]
fn a_parent_that_releases_what_is_no_allgather_here_or_has_no_values_is_left() {
    let garbled = Message::AllgatherRelease(JOB, 0, Bytes::from_static(&[0, 1, 9, b'x']));
    for (is_entered, message) in
        [(false, release(0, &ALL)), (true, release(1, &ALL)), (true, garbled)]
    {
        let mut agent = Member::inner_agent();
        agent.message(LinkId(2), enter(0, &ALL[1..2]));
        if is_entered {
            brings_its_value(&mut agent);
        }
        agent.message(PARENT, message);
        if is_entered {
            agent.pass(std::time::Duration::ZERO);
        }
        let effects = agent.effects();
        assert!(effects.iter().any(is_abandon), "{effects:?}");
    }
}

/// The head lets nobody go on once it has heard of a loss.
#[test]
fn a_child_lost_within_an_allgather_is_told_before_the_others_go_on_without_it() {
    let mut agent = Member::inner_agent();
    brings_its_value(&mut agent);
    let words = "reset".to_owned();
    agent.input(Input::LinkDown { link: LinkId(2), end: LinkEnd::Cut, words });
    agent.pass(std::time::Duration::from_secs(2));
    let sent = agent.sent();
    let lost = sent.iter().position(|message| matches!(message, Message::Lost(_)));
    let entered = sent.iter().position(|message| *message == enter(0, &ALL[..1]));
    assert!(lost.is_some() && lost < entered, "{sent:?}");
}
