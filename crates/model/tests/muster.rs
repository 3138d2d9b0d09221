//! Which nodes a job runs on when some are missing, and what goes where.

use model::{IdSet, Muster, Order, PlacementError, Rank, Request, Slots, TaskMap};
use proptest::prelude::*;

/// So many tasks for each node that is there.
fn counts(muster: &Muster, there: &[u32]) -> Result<Vec<(u32, u32)>, PlacementError> {
    let map = muster.place(&there.iter().copied().collect())?;
    let on = |node| map.tasks_on(model::NodeId(node));
    Ok(map.nodes().iter().map(|node| (node, on(node))).collect())
}

fn slots(slots: &[u32]) -> Muster {
    Muster { slots: slots.iter().copied().map(Slots::of).collect(), ..Muster::default() }
}

fn asking(tasks: u32) -> Request {
    Request { tasks: Some(tasks), ..Request::default() }
}

#[test]
fn without_a_number_of_tasks_the_slots_that_are_left_are_filled() {
    let muster = slots(&[2, 3, 4, 5]);
    assert_eq!(counts(&muster, &[0, 2, 3]), Ok(vec![(0, 2), (2, 4), (3, 5)]));
    let none_given = Muster::strict(3);
    assert_eq!(counts(&none_given, &[1, 2]), Ok(vec![(1, 1), (2, 1)]));
    let per_node =
        Muster { request: Request { per_node: Some(3), ..Request::default() }, ..muster };
    assert_eq!(counts(&per_node, &[1, 3]), Ok(vec![(1, 3), (3, 3)]));
}

#[test]
fn a_number_of_tasks_is_kept_or_is_too_much() {
    let muster = Muster { request: asking(6), ..slots(&[4, 4, 4]) };
    assert_eq!(counts(&muster, &[0, 2]), Ok(vec![(0, 4), (2, 2)]));
    let error = counts(&muster, &[1]).unwrap_err();
    assert_eq!(error, PlacementError::TooManyTasks { tasks: 6, slots: 4, nodes: 1 });
}

#[test]
fn spares_stand_in_in_their_order_and_more_than_one_for_a_larger_node() {
    let muster = Muster { request: asking(8), spares: 2, ..slots(&[4, 4, 2, 2]) };
    assert_eq!(counts(&muster, &[0, 1, 2, 3]), Ok(vec![(0, 4), (1, 4)]));
    assert_eq!(counts(&muster, &[1, 2, 3]), Ok(vec![(1, 4), (2, 2), (3, 2)]));
    let spread = Muster { request: asking(8), spares: 2, ..Muster::strict(4) };
    assert_eq!(counts(&spread, &[1, 2, 3]), Ok(vec![(1, 4), (2, 4)]), "one spare is enough");
}

#[test]
fn ranks_go_around_the_nodes_that_are_there_where_they_were_to_go_around() {
    let request = Request { order: Order::Nodes, ..Request::default() };
    let muster = Muster { request, ..slots(&[2, 2, 2, 2]) };
    let map = muster.place(&[0, 1, 3].into_iter().collect()).unwrap();
    let nodes = (0..6).filter_map(|rank| map.node_of(model::Rank(rank)));
    assert_eq!(nodes.map(|node| node.0).collect::<Vec<_>>(), [0, 1, 3, 0, 1, 3]);
}

#[test]
fn programs_and_ranks_are_in_the_asked_order_on_the_nodes_that_are_there() {
    let request =
        Request { programs_from: vec![Rank(4)], ranking: Some(Order::Nodes), ..asking(6) };
    let muster = Muster { request, ..slots(&[2, 2, 2, 2]) };
    let map = muster.place(&[0, 1, 3].into_iter().collect()).unwrap();
    let nodes = (0..6).filter_map(|rank| map.node_of(Rank(rank)));
    assert_eq!(nodes.map(|node| node.0).collect::<Vec<_>>(), [0, 1, 0, 1, 3, 3]);
}

#[test]
fn nodes_that_are_missing_are_no_nodes_of_the_process_mapping() {
    let map = |counts: &[u32]| TaskMap::from_counts(counts.iter().copied()).unwrap();
    assert_eq!(map(&[0, 2, 0, 2]).process_mapping().unwrap(), "(vector,(0,2,2))");
    assert_eq!(map(&[3, 0, 2]).process_mapping().unwrap(), "(vector,(0,1,3),(1,1,2))");
    assert_eq!(map(&[2, 2]).process_mapping().unwrap(), "(vector,(0,2,2))");
}

proptest! {
    #[test]
    fn tasks_are_on_nodes_that_are_there_and_on_the_first_of_them(
        slots in proptest::collection::vec(proptest::option::of(1_u32..5), 1..20),
        there in proptest::collection::btree_set(0_u32..20, 0..20),
        spares in 0_u32..4,
        tasks in proptest::option::of(1_u32..40),
        order in prop_oneof![Just(Order::Slots), Just(Order::Nodes)],
    ) {
        let there: IdSet = there.into_iter().filter(|&node| (node as usize) < slots.len()).collect();
        let spares = spares.min(slots.len() as u32 - 1);
        let slots = slots.into_iter().map(|given| Slots { given, max: None }).collect::<Vec<_>>();
        let request = Request { tasks, order, ..Request::default() };
        let muster = Muster { slots, spares, request, ..Muster::default() };
        if let Ok(map) = muster.place(&there) {
            let nodes = map.nodes();
            prop_assert_eq!(&nodes, &there.split(nodes.len()).0);
            prop_assert!(tasks.is_none_or(|tasks| map.len() == tasks));
            prop_assert!(tasks.is_some() || nodes.len() <= u64::from(muster.planned()));
        } else {
            prop_assert!(there.is_empty() || tasks.is_some());
        }
    }
}
