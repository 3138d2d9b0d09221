//! Fences: calls in, effects out.

use bytes::Bytes;
use model::AgentId;
use proto::{Fence, FenceEffect, FenceError};

#[test]
fn a_fence_is_entered_once_all_have_entered_and_left_once_the_parent_says_so() {
    let mut fence = Fence::new(true, [AgentId(4), AgentId(5)]);
    fence.on_child_enter(AgentId(5), 0, bytes("e")).unwrap();
    fence.on_local_enter(bytes("l"));
    assert_eq!(effects(&mut fence), []);
    fence.on_child_enter(AgentId(4), 0, bytes("d")).unwrap();
    assert_eq!(effects(&mut fence), [FenceEffect::Enter(0, bytes("lde"))]);

    fence.on_release(0, bytes("all")).unwrap();
    assert_eq!(effects(&mut fence), [FenceEffect::Release(0, bytes("all"))]);
    fence.on_local_enter(bytes("m"));
    fence.on_child_enter(AgentId(4), 1, bytes("")).unwrap();
    fence.on_child_enter(AgentId(5), 1, bytes("")).unwrap();
    assert_eq!(effects(&mut fence), [FenceEffect::Enter(1, bytes("m"))]);
}

#[test]
fn those_whose_tasks_have_ended_are_not_waited_for() {
    let mut fence = Fence::new(true, [AgentId(4)]);
    fence.on_local_enter(bytes("l"));
    fence.on_child_end(AgentId(4));
    assert_eq!(effects(&mut fence), [FenceEffect::Enter(0, bytes("l"))]);
    fence.on_release(0, bytes("l")).unwrap();
    fence.on_local_end();
    assert_eq!(effects(&mut fence), [FenceEffect::Release(0, bytes("l"))]);
}

#[test]
fn nobody_enters_a_fence_for_tasks_that_have_all_ended() {
    let mut fence = Fence::new(true, [AgentId(4)]);
    fence.on_local_end();
    fence.on_child_end(AgentId(4));
    assert_eq!(effects(&mut fence), []);
}

#[test]
fn an_agent_without_tasks_of_its_own_waits_for_its_children_only() {
    let mut fence = Fence::new(false, [AgentId(1)]);
    fence.on_child_enter(AgentId(1), 0, bytes("d")).unwrap();
    assert_eq!(effects(&mut fence), [FenceEffect::Enter(0, bytes("d"))]);
    fence.on_release(0, bytes("d")).unwrap();
    fence.on_child_enter(AgentId(1), 1, bytes("f")).unwrap();
    assert_eq!(
        effects(&mut fence),
        [FenceEffect::Release(0, bytes("d")), FenceEffect::Enter(1, bytes("f"))]
    );
}

#[test]
fn a_peer_that_breaks_the_protocol_is_an_error_not_a_panic() {
    let mut fence = Fence::new(true, [AgentId(4)]);
    let unexpected = |child, fence| Err(FenceError::UnexpectedEnter { child, fence });
    assert_eq!(fence.on_child_enter(AgentId(9), 0, bytes("")), unexpected(AgentId(9), 0));
    assert_eq!(fence.on_child_enter(AgentId(4), 1, bytes("")), unexpected(AgentId(4), 1));
    fence.on_child_enter(AgentId(4), 0, bytes("")).unwrap();
    assert_eq!(fence.on_child_enter(AgentId(4), 0, bytes("")), unexpected(AgentId(4), 0));
    assert_eq!(fence.on_release(0, bytes("")), Err(FenceError::EarlyRelease(0)));
    assert_eq!(effects(&mut fence), []);
}

fn effects(fence: &mut Fence) -> Vec<FenceEffect> {
    std::iter::from_fn(|| fence.poll_effect()).collect()
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}
