//! Barriers of groups on one member. Node n is agent n + 1, and has one task.

use std::time::Duration;

use bytes::Bytes;
use engine::{Effect, Input, LinkId};
use model::{ExitStatus, IdSet, Rank, RankGroup, StatusRuns};
use wire::{JobFault, JobSpec, Message, Stream};

use crate::member::{JOB, Member, PARENT, is_abandon, is_launch, job};

fn group(ranks: &[u32]) -> Box<RankGroup> {
    Box::new(RankGroup { ranks: ranks.iter().copied().collect(), tag: 7 })
}

fn says(agent: &mut Member, line: &'static str) {
    let data = Bytes::from_static(line.as_bytes());
    agent.input(Input::TaskPmi { job: JOB, rank: Rank(0), data });
}

fn enter(ranks: &[u32]) -> Message {
    Message::GroupEnter { job: JOB, group: group(ranks), payload: Bytes::new() }
}

fn release(ranks: &[u32]) -> Message {
    Message::GroupRelease { job: JOB, group: group(ranks), payload: Bytes::new() }
}

fn done(rank: u32, status: ExitStatus) -> Message {
    let mut statuses = StatusRuns::default();
    statuses.insert(Rank(rank), status);
    Message::Done { job: JOB, statuses, by_order: false }
}

fn let_out() -> Effect {
    let data = Bytes::from_static(b"cmd=barrier_out tag=7\n");
    Effect::PmiSend { job: JOB, rank: Rank(0), data }
}

#[test]
fn a_barrier_turns_around_at_the_agent_that_has_all_of_its_group() {
    let mut agent = Member::inner_agent();
    says(&mut agent, "cmd=barrier_in group=0,1:7\n");
    assert_eq!(agent.effects(), []);
    agent.message(LinkId(2), enter(&[0, 1]));
    assert_eq!(
        agent.effects(),
        [Effect::Send { links: vec![LinkId(2)], message: release(&[0, 1]) }]
    );
    assert_eq!(agent.sleep(), Duration::ZERO);
    assert_eq!(agent.effects(), [let_out()]);
}

#[test]
fn a_barrier_of_others_goes_up_and_none_of_this_agents_children_hears_of_it() {
    let mut agent = Member::inner_agent();
    says(&mut agent, "cmd=barrier_in group=3,0:7\n");
    assert_eq!(agent.sent(), [enter(&[0, 3])]);
    agent.message(PARENT, release(&[0, 3]));
    assert_eq!(agent.effects(), [let_out()]);
}

#[test]
fn who_is_missing_is_asked_once_after_a_while() {
    let mut agent = Member::inner_agent();
    says(&mut agent, "cmd=barrier_in group=0,1,2:7\n");
    let asked = Message::GroupAwaited(JOB, group(&[0, 1, 2]));
    assert_eq!(agent.effects(), []);
    agent.pass(Duration::from_millis(999));
    assert!(!agent.sent().contains(&asked));
    agent.pass(Duration::from_millis(1));
    assert!(agent.sent().contains(&asked));
    agent.message(PARENT, asked);
    assert_eq!(agent.sent(), [], "they were asked already");
    agent.message(LinkId(2), enter(&[0, 1, 2]));
    assert_eq!(agent.sent(), [enter(&[0, 1, 2])]);
}

#[test]
fn who_is_asked_answers_for_a_task_that_has_ended_without_entering() {
    let mut agent = Member::inner_agent();
    agent.exits(0, ExitStatus::SUCCESS);
    agent.effects();
    agent.message(PARENT, Message::GroupAwaited(JOB, group(&[0, 3])));
    assert_eq!(agent.sent(), [enter(&[0, 3])]);
    agent.message(PARENT, release(&[0, 3]));
    assert_eq!(agent.effects(), []);
}

#[test]
fn who_is_asked_answers_at_once_where_all_below_have_ended_and_nobody_is_here() {
    let mut agent = Member::inner_agent();
    agent.message(LinkId(2), done(1, ExitStatus::SUCCESS));
    agent.message(PARENT, Message::GroupAwaited(JOB, group(&[1, 3])));
    assert_eq!(agent.sent(), [enter(&[1, 3])]);
}

#[test]
fn who_has_said_that_all_is_done_answers_nothing_more() {
    let mut agent = Member::inner_agent();
    agent.message(LinkId(2), done(1, ExitStatus::SUCCESS));
    agent.exits(0, ExitStatus::SUCCESS);
    for stream in [Stream::Stdout, Stream::Stderr] {
        agent.input(Input::TaskOutputEnd { job: JOB, rank: Rank(0), stream });
    }
    agent.input(Input::Swept(JOB));
    assert!(agent.sent().iter().any(|message| matches!(message, Message::Done { .. })));
    agent.message(PARENT, Message::GroupAwaited(JOB, group(&[0, 3])));
    assert_eq!(agent.sent(), []);
}

#[test]
fn nobody_goes_on_without_a_task_below_whose_failure_ends_the_job() {
    let status = ExitStatus::Exited(3);
    for fails_first in [true, false] {
        let mut agent = Member::inner_agent();
        let fault = Box::new(JobFault::Task { rank: Rank(1), status });
        let ends = [Message::JobFault(JOB, fault), done(1, status)];
        let waits = |agent: &mut Member| says(agent, "cmd=barrier_in group=0,1:7\n");
        if !fails_first {
            waits(&mut agent);
        }
        ends.into_iter().for_each(|message| agent.message(LinkId(2), message));
        if fails_first {
            waits(&mut agent);
        }
        agent.pass(Duration::from_secs(2));
        assert!(!agent.effects().contains(&let_out()));
    }
}

#[test]
fn a_barrier_of_all_does_not_wait_for_a_spare() {
    let mut head = Member::head(2, |config| {
        config.muster.spares = 1;
        config.job = JobSpec { is_movable: true, ..job(1, 1) };
    });
    head.now = head.now + Duration::from_secs(1);
    for child in [2, 1] {
        head.child_joins(child);
        head.joined(child, IdSet::range(child, child));
    }
    head.pass(Duration::from_millis(20));
    assert!(head.effects().iter().any(is_launch));
    head.message(LinkId(1), enter(&[0]));
    assert_eq!(head.sent(), [release(&[0])]);
}

#[test]
fn the_next_barrier_of_a_group_may_begin_below_before_this_one_is_over_here() {
    let mut agent = Member::inner_agent();
    says(&mut agent, "cmd=barrier_in group=0,1:7\n");
    agent.message(LinkId(2), enter(&[0, 1]));
    agent.message(LinkId(2), enter(&[0, 1]));
    agent.effects();
    agent.sleep();
    assert_eq!(agent.effects(), [let_out()]);
    says(&mut agent, "cmd=finalize\n");
    agent.exits(0, ExitStatus::SUCCESS);
    let released = Effect::Send { links: vec![LinkId(2)], message: release(&[0, 1]) };
    assert!(agent.effects().contains(&released), "the second does not wait for it");
}

#[test]
fn a_child_that_enters_what_it_must_not_is_lost_and_a_parent_is_not_obeyed() {
    for nonsense in [enter(&[0, 3]), enter(&[]), enter(&[1, 4]), release(&[0, 1])] {
        let mut agent = Member::inner_agent();
        agent.message(LinkId(2), nonsense);
        assert!(agent.effects().contains(&Effect::Close(LinkId(2))));
    }
    let twice = enter(&[0, 1]);
    let mut agent = Member::inner_agent();
    agent.message(LinkId(2), twice.clone());
    agent.message(LinkId(2), twice);
    assert!(agent.effects().contains(&Effect::Close(LinkId(2))));
    let awaited = |ranks: &[u32]| Message::GroupAwaited(JOB, group(ranks));
    for nonsense in [release(&[0, 3]), awaited(&[]), awaited(&[0, 9]), enter(&[0, 1])] {
        let mut agent = Member::inner_agent();
        agent.message(PARENT, nonsense);
        assert!(agent.effects().iter().any(is_abandon));
    }
}
