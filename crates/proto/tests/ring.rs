//! Rings: calls in, effects out.

use model::{AgentId, RingPlace, RingStretch};
use proto::{Fence, Ring, RingEffect, RingError};

/// Tasks that bring their number, both ways.
fn stretch(first: u32, count: u32) -> RingStretch {
    let bytes = |number: u32| number.to_le_bytes().to_vec();
    RingStretch { count, left: bytes(first), right: bytes(first + count - 1) }
}

fn place(first: u32, left: u32, right: u32) -> RingPlace {
    let (left, right) = (left.to_le_bytes().to_vec(), right.to_le_bytes().to_vec());
    RingPlace { first, left, right }
}

fn effects(ring: &mut Ring) -> Vec<RingEffect> {
    std::iter::from_fn(|| ring.poll_effect()).collect()
}

#[test]
fn each_part_is_told_its_number_and_its_neighbours() {
    let mut ring = Ring::new(true, [AgentId(4), AgentId(5)]);
    ring.on_child_enter(AgentId(5), 0, stretch(14, 3)).unwrap();
    ring.on_local_enter(stretch(10, 2));
    assert_eq!(effects(&mut ring), []);
    ring.on_child_enter(AgentId(4), 0, stretch(12, 2)).unwrap();
    assert_eq!(effects(&mut ring), [RingEffect::Enter(0, stretch(10, 7))]);
    ring.on_place(0, &place(10, 9, 17)).unwrap();
    let expected = [
        RingEffect::Release(place(10, 9, 12)),
        RingEffect::Tell(AgentId(4), 0, place(12, 11, 14)),
        RingEffect::Tell(AgentId(5), 0, place(14, 13, 17)),
    ];
    assert_eq!(effects(&mut ring), expected);
}

#[test]
fn one_alone_is_its_own_neighbour_again_and_again() {
    let mut ring = Ring::new(true, []);
    for number in 0..3 {
        ring.on_local_enter(stretch(0, 1));
        assert_eq!(effects(&mut ring), [RingEffect::Enter(number, stretch(0, 1))]);
        ring.on_place(number, &stretch(0, 1).close()).unwrap();
        assert_eq!(effects(&mut ring), [RingEffect::Release(place(0, 0, 0))]);
    }
}

#[test]
fn whose_tasks_have_ended_are_in_no_ring() {
    let mut ring = Ring::new(true, [AgentId(4), AgentId(5)]);
    ring.on_child_end(AgentId(4));
    ring.on_child_enter(AgentId(5), 0, stretch(1, 1)).unwrap();
    ring.on_local_end();
    assert_eq!(effects(&mut ring), [RingEffect::Enter(0, stretch(1, 1))]);
    ring.on_child_end(AgentId(5));
    ring.on_place(0, &place(0, 1, 1)).unwrap();
    assert_eq!(effects(&mut ring), [RingEffect::Tell(AgentId(5), 0, place(0, 1, 1))]);
    assert_eq!(ring.on_place(1, &place(0, 1, 1)), Ok(()));
}

#[test]
fn a_ring_beside_fences_waits_for_those_that_have_not_ended_there() {
    let mut fence: Fence = Fence::new(true, [AgentId(4), AgentId(5)]);
    fence.on_child_end(AgentId(4));
    fence.on_child_enter(AgentId(5), 0, Default::default()).unwrap();
    let mut ring = Ring::beside(&fence);
    ring.on_child_enter(AgentId(5), 0, stretch(1, 1)).unwrap();
    assert_eq!(effects(&mut ring), []);
    ring.on_local_enter(stretch(0, 1));
    assert_eq!(effects(&mut ring), [RingEffect::Enter(0, stretch(0, 2))]);
    fence.on_local_end();
    let mut ring = Ring::beside(&fence);
    ring.on_child_enter(AgentId(5), 0, stretch(1, 1)).unwrap();
    assert_eq!(effects(&mut ring), [RingEffect::Enter(0, stretch(1, 1))]);
}

#[test]
fn a_peer_that_breaks_the_protocol_is_an_error_not_a_panic() {
    let mut ring = Ring::new(true, [AgentId(4)]);
    let unexpected = |child, ring| Err(RingError::UnexpectedEnter { child, ring });
    assert_eq!(ring.on_child_enter(AgentId(9), 0, stretch(0, 1)), unexpected(AgentId(9), 0));
    assert_eq!(ring.on_child_enter(AgentId(4), 1, stretch(0, 1)), unexpected(AgentId(4), 1));
    assert_eq!(ring.on_place(0, &place(0, 0, 0)), Err(RingError::EarlyPlace(0)));
    let most = RingStretch { count: u32::MAX, ..stretch(0, 1) };
    ring.on_child_enter(AgentId(4), 0, most).unwrap();
    ring.on_local_enter(stretch(0, 1));
    ring.on_place(0, &place(u32::MAX, 0, 0)).unwrap();
}
