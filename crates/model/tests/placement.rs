//! Where tasks go, and what PMI clients are told about it.

use std::collections::BTreeMap;

use model::{
    HostList, IdSet, NodeId, Order, Placement, PlacementError, Rank, Request, TaskMap, TaskRun,
};
use proptest::prelude::*;

#[test]
fn without_slots_each_host_gets_one_task() {
    assert_eq!(counts("n[1-3]", None, None), [1, 1, 1]);
    assert_eq!(counts("n[1-3]", Some(2), None), [1, 1]);
}

#[test]
fn without_slots_more_tasks_than_hosts_are_spread_evenly() {
    assert_eq!(counts("n[1-3]", Some(8), None), [3, 3, 2]);
    assert_eq!(counts("n1", Some(512), None), [512]);
}

#[test]
fn with_slots_nodes_are_filled_in_order() {
    assert_eq!(counts("a:4,b:2,c:4", None, None), [4, 2, 4]);
    assert_eq!(counts("a:4,b:2,c:4", Some(5), None), [4, 1]);
    assert_eq!(counts("a:4,b", None, None), [4, 1]);
}

#[test]
fn tasks_per_node_overrule_slots() {
    assert_eq!(counts("a:4,b:2", None, Some(3)), [3, 3]);
    assert_eq!(counts("a,b,c", Some(4), Some(3)), [3, 1]);
}

#[test]
fn a_node_without_tasks_is_no_member() {
    let placement = place("n[1-4]:2", Some(3), None).unwrap();
    let names: Vec<_> = placement.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n1", "n2"]);
}

#[test]
fn more_tasks_than_room_is_an_error_with_the_numbers_and_a_hint() {
    let error = place("n[1-4]:4", Some(17), None).unwrap_err();
    assert_eq!(error.to_string(), "17 tasks do not fit into 16 slots on 4 nodes");
    assert!(error.hint().is_some_and(|hint| hint.contains("--ppn") && hint.contains("host:N")));
    let error = place("n1", Some(5), Some(4)).unwrap_err();
    assert_eq!(error.to_string(), "5 tasks do not fit into 4 slots on 1 node");
}

#[test]
fn jobs_without_tasks_or_nodes_and_jobs_too_large_are_errors() {
    let error = |n, ppn| place("a,b,c", n, ppn).unwrap_err().to_string();
    assert_eq!(error(Some(0), None), "the number of tasks must be at least 1");
    assert_eq!(error(None, Some(0)), "the number of tasks per node must be at least 1");
    assert_eq!(Placement::of(&[], &Request::default()), Err(PlacementError::NoNodes));
    let large = "3000000000 tasks are more than the 2147483647 that a job can have";
    assert_eq!(error(None, Some(1_000_000_000)), large);
    assert_eq!(error(Some(u32::MAX), None), large.replace("3000000000", "4294967295"));
}

#[test]
fn the_table_shows_each_node_with_its_slots_and_ranks() {
    let placement = place("node[08-10]:16,me@x", Some(34), None).unwrap();
    insta::assert_snapshot!(placement);
    let placement = place("[::1],b", None, None).unwrap();
    insta::assert_snapshot!(placement);
}

#[test]
fn by_node_consecutive_ranks_are_on_different_nodes_until_those_are_full() {
    let request = Request { order: Order::Nodes, ..Request::default() };
    let map = |hosts: &str| {
        let hosts: HostList = hosts.parse().unwrap();
        Placement::of(hosts.nodes(), &request).unwrap().map
    };
    assert_eq!(nodes_of(&map("a:3,b:1,c:2")), [0, 1, 2, 0, 2, 0]);
    // However many there are, equal nodes are one run, and two kinds of nodes are two.
    assert_eq!(map("n[0-9999]:128").runs(), [TaskRun { rounds: 128, ..run(0, 10_000, 1) }]);
    let uneven = map("a[0-99]:4,b[0-99]:8");
    let expected =
        [TaskRun { rounds: 4, ..run(0, 200, 1) }, TaskRun { rounds: 4, ..run(100, 100, 1) }];
    assert_eq!(uneven.runs(), expected);
}

#[test]
fn nodes_that_are_full_are_filled_again_only_when_oversubscribed_and_up_to_their_limit() {
    let hosts: HostList = "a:2,b:1".parse().unwrap();
    let mut nodes = hosts.into_nodes();
    let request = Request { tasks: Some(7), oversubscribe: true, ..Request::default() };
    assert_eq!(nodes_of(&Placement::of(&nodes, &request).unwrap().map), [0, 0, 1, 0, 0, 1, 0]);
    nodes[0].slots_max = Some(3);
    assert_eq!(nodes_of(&Placement::of(&nodes, &request).unwrap().map), [0, 0, 1, 0, 1, 1, 1]);
    nodes[1].slots_max = Some(1);
    let error = Placement::of(&nodes, &request).unwrap_err();
    assert_eq!(error.to_string(), "7 tasks do not fit into 4 slots on 2 nodes");
}

#[test]
fn ranks_are_counted_on_the_placed_tasks_node_after_node_or_in_turn() {
    let ranked = |order, ranking| ranked("a:3,b:1,c:2", 4, &[], order, Some(ranking));
    assert_eq!(ranked(Order::Slots, Order::Nodes), [0, 1, 0, 0]);
    assert_eq!(ranked(Order::Nodes, Order::Slots), [0, 0, 1, 2]);
    assert_eq!(ranked(Order::Slots, Order::Slots), [0, 0, 0, 1]);
    assert_eq!(ranked(Order::Nodes, Order::Nodes), [0, 1, 2, 0]);
}

#[test]
fn each_program_is_placed_in_what_those_before_it_have_left_and_ranked_by_itself() {
    let ranked = |order, ranking| ranked("a:3,b:1,c:2", 6, &[2], order, ranking);
    assert_eq!(ranked(Order::Slots, None), [0, 0, 0, 1, 2, 2]);
    assert_eq!(ranked(Order::Slots, Some(Order::Nodes)), [0, 0, 0, 1, 2, 2]);
    assert_eq!(ranked(Order::Nodes, None), [0, 1, 0, 2, 0, 2]);
    assert_eq!(ranked(Order::Nodes, Some(Order::Slots)), [0, 1, 0, 0, 2, 2]);
}

#[test]
fn nodes_that_are_filled_again_are_ranked_as_a_whole() {
    let request = |ranking| Request {
        tasks: Some(9),
        programs_from: vec![Rank(7)],
        oversubscribe: true,
        ranking,
        ..Request::default()
    };
    let hosts: HostList = "a:3,b:1,c:2".parse().unwrap();
    let places = |ranking| nodes_of(&Placement::of(hosts.nodes(), &request(ranking)).unwrap().map);
    assert_eq!(places(None), [0, 0, 0, 1, 2, 2, 0, 0, 0]);
    assert_eq!(places(Some(Order::Slots)), [0, 0, 0, 0, 1, 2, 2, 0, 0]);
    assert_eq!(places(Some(Order::Nodes)), [0, 1, 2, 0, 2, 0, 0, 0, 0]);
}

#[test]
fn programs_with_hosts_of_their_own_follow_each_other_in_one_job() {
    let joined = |hosts: &[(&str, u32)]| {
        let placed = hosts.iter().map(|(hosts, n)| place(hosts, Some(*n), None).unwrap());
        let joined = Placement::joined(&placed.collect::<Vec<_>>()).unwrap();
        let name = |node| joined.nodes[node as usize].name.clone();
        nodes_of(&joined.map).into_iter().map(name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(joined(&[("a,b", 2), ("c", 2)]), "a b c c");
    assert_eq!(joined(&[("c:2,a", 3), ("a:2,b:2", 3)]), "c c a a a b");
    assert_eq!(joined(&[("b,a,unused", 2), ("a,b", 2)]), "b a a b");
    let twice = [place("a:2", None, None).unwrap(), place("b,a:3", None, None).unwrap()];
    let joined = Placement::joined(&twice).unwrap();
    let slots: Vec<_> = joined.nodes.iter().map(|node| (node.name.as_str(), node.slots)).collect();
    assert_eq!(slots, [("a", Some(5)), ("b", None)]);
}

/// Up to 64 nodes and as many tasks, as up to three programs.
#[test]
fn ranking_moves_no_task_and_no_slot_is_used_twice() {
    let orders = [Order::Slots, Order::Nodes];
    for n in 1..=64_u32 {
        for slots in [|_| 1, |node| node % 3 + 1, |node| if node < 5 { 4 } else { 2 }] {
            let room: Vec<u32> = (0..n).map(slots).collect();
            let list: Vec<String> =
                (0..).zip(&room).map(|(i, slots): (u32, _)| format!("n{i}:{slots}")).collect();
            let (hosts, tasks) = (list.join(","), room.iter().sum::<u32>().min(64));
            for starts in [vec![], vec![tasks / 2], vec![tasks / 3, tasks / 2]] {
                for (order, ranking) in orders.map(|order| orders.map(|it| (order, it))).concat() {
                    let placed = ranked(&hosts, tasks, &starts, order, None);
                    let ranked = ranked(&hosts, tasks, &starts, order, Some(ranking));
                    let expected = reranked(&placed, &starts, ranking);
                    assert_eq!(ranked, expected, "{hosts} {starts:?} {order:?} {ranking:?}");
                    for (node, room) in (0..).zip(&room) {
                        let used = ranked.iter().filter(|used| **used == node).count();
                        assert!(used <= *room as usize, "{hosts} {starts:?} {order:?}");
                    }
                }
            }
        }
    }
}

/// All numbers of nodes and tasks up to 300, with slots that are even, uneven and periodic.
#[test]
fn every_placement_is_the_naive_one_and_clients_read_it_so() {
    for n in 1..=300_u32 {
        for slots in [|_| 1, |_| 3, |node| node % 3 + 1, |node| if node < 5 { 4 } else { 2 }] {
            let room: Vec<u32> = (0..n).map(slots).collect();
            let list: Vec<String> =
                (0..).zip(&room).map(|(i, slots): (u32, _)| format!("n{i}:{slots}")).collect();
            let hosts: HostList = list.join(",").parse().unwrap();
            for (order, tasks) in [Order::Slots, Order::Nodes]
                .into_iter()
                .flat_map(|order| [(order, n), (order, 300)])
            {
                let request = Request {
                    tasks: Some(tasks),
                    order,
                    oversubscribe: true,
                    ..Request::default()
                };
                let placement = Placement::of(hosts.nodes(), &request).unwrap();
                let expected = naive(&room, order, tasks);
                assert_eq!(nodes_of(&placement.map), expected, "{n} nodes, {tasks} tasks");
                if let Some(mapping) = placement.map.process_mapping() {
                    assert_eq!(expanded(&mapping), expected, "{n} nodes, {tasks} tasks");
                }
            }
        }
    }
}

/// `reference/pmi1.md` §8.
#[test]
fn process_mappings_are_the_published_ones() {
    let block = |hosts, n| place(hosts, Some(n), None).unwrap().map.process_mapping().unwrap();
    assert_eq!(block("a", 2), "(vector,(0,1,2))");
    assert_eq!(block("a:4,b:4", 8), "(vector,(0,2,4))");
    assert_eq!(block("a:1,b:2,c:2", 5), "(vector,(0,1,1),(1,2,2))");
    let cyclic = map(&[(0, 3, 1), (0, 2, 1)]);
    assert_eq!(cyclic.process_mapping().unwrap(), "(vector,(0,3,1),(0,2,1))");
}

#[test]
fn a_mapping_that_would_not_fit_a_value_is_none() {
    let irregular = |nodes: u32| TaskMap::from_counts((0..nodes).map(|node| node % 2 + 1)).unwrap();
    assert!(irregular(100).process_mapping().is_some_and(|text| text.len() < 1024));
    assert_eq!(irregular(200).process_mapping(), None);
}

#[test]
fn a_node_in_several_runs_has_all_their_ranks() {
    let map = map(&[(0, 3, 1), (0, 2, 2)]);
    assert_eq!(map.ranks_on(NodeId(0)), "0,3-4".parse::<IdSet>().unwrap());
    assert_eq!(map.local_rank(Rank(4)), Some(2));
    assert_eq!(map.node_of(Rank(6)), Some(NodeId(1)));
    assert_eq!(map.node_of(Rank(7)), None);
    assert_eq!((map.len(), map.node_count()), (7, 3));
}

#[test]
fn a_map_from_a_peer_is_checked() {
    let decode =
        |runs: &[TaskRun]| postcard::from_bytes::<TaskMap>(&postcard::to_allocvec(runs).unwrap());
    assert!(decode(&[run(0, 2, 4), run(7, 1, 1)]).is_ok());
    assert!(decode(&[run(0, 0, 4)]).is_err());
    assert!(decode(&[TaskRun { rounds: 0, ..run(0, 1, 4) }]).is_err());
    assert!(decode(&[TaskRun { rounds: 1 << 20, ..run(0, 1 << 10, 1 << 5) }]).is_err());
    assert!(decode(&[run(0, 1 << 20, 1 << 20)]).is_err());
    assert!(decode(&[run(u32::MAX, 1, 1)]).is_err());
}

proptest! {
    #[test]
    fn every_rank_is_on_one_node_and_has_one_local_rank(runs in prop::collection::vec((0_u32..9, 1_u32..9, 1_u32..5, 1_u32..4), 1..9)) {
        let mut map = TaskMap::new();
        for &(first, count, tasks, rounds) in &runs {
            map.push(TaskRun { rounds, ..run(first, count, tasks) }).unwrap();
        }
        let mut expected = Vec::new();
        for (first, count, tasks, rounds) in runs {
            let nodes = (0..rounds).flat_map(|_| first..first + count);
            expected.extend(nodes.flat_map(|node| (0..tasks).map(move |_| node)));
        }
        prop_assert_eq!(map.len() as usize, expected.len());
        let mut local_ranks = vec![0; 32];
        for (rank, node) in (0..).map(Rank).zip(expected) {
            prop_assert_eq!(map.node_of(rank), Some(NodeId(node)));
            prop_assert!(map.ranks_on(NodeId(node)).contains(rank.0));
            prop_assert_eq!(map.local_rank(rank), Some(local_ranks[node as usize]));
            local_ranks[node as usize] += 1;
        }
        for (node, tasks) in (0..).map(NodeId).zip(local_ranks) {
            prop_assert_eq!(map.tasks_on(node), tasks);
            prop_assert_eq!(map.ranks_on(node).len(), u64::from(tasks));
        }
        let bytes = postcard::to_allocvec(&map).unwrap();
        prop_assert_eq!(postcard::from_bytes::<TaskMap>(&bytes).unwrap(), map);
    }
}

/// Round after round over nodes with room for these, or node after node.
fn naive(room: &[u32], order: Order, tasks: u32) -> Vec<u32> {
    let mut used = vec![0; room.len()];
    let mut places = Vec::new();
    while places.len() < tasks as usize {
        if used == room {
            used.fill(0);
        }
        for (node, &room) in room.iter().enumerate() {
            let most = if order == Order::Nodes { 1 } else { room };
            for _ in 0..most.min(room - used[node]) {
                used[node] += 1;
                places.push(u32::try_from(node).expect("few nodes"));
            }
        }
    }
    places.truncate(tasks as usize);
    places
}

/// The same tasks, those of each program counted node after node or in turn.
fn reranked(placed: &[u32], starts: &[u32], ranking: Order) -> Vec<u32> {
    let ends = starts.iter().map(|start| *start as usize).chain([placed.len()]);
    let mut ranked = Vec::new();
    for end in ends {
        let mut program = placed[ranked.len()..end].to_vec();
        program.sort_unstable();
        let mut before = BTreeMap::new();
        let mut turns: Vec<(u32, u32)> = program
            .into_iter()
            .map(|node| {
                let turn = before.entry(node).or_insert(0);
                *turn += 1;
                (if ranking == Order::Nodes { *turn } else { 0 }, node)
            })
            .collect();
        turns.sort_unstable();
        ranked.extend(turns.into_iter().map(|(_, node)| node));
    }
    ranked
}

/// The nodes of all ranks as a client reads them (`reference/pmi1.md` §8).
fn expanded(mapping: &str) -> Vec<u32> {
    let blocks = mapping.strip_prefix("(vector,(").and_then(|rest| rest.strip_suffix("))"));
    let mut places = Vec::new();
    for block in blocks.expect("one block at least").split("),(") {
        let numbers: Vec<u32> =
            block.split(',').map(|number| number.parse().expect("a number")).collect();
        let nodes = numbers[0]..numbers[0] + numbers[1];
        places.extend(nodes.flat_map(|node| (0..numbers[2]).map(move |_| node)));
    }
    places
}

fn nodes_of(map: &TaskMap) -> Vec<u32> {
    (0..map.len()).map(|rank| map.node_of(Rank(rank)).expect("a task").0).collect()
}

/// The nodes of all ranks of programs that begin at these.
fn ranked(
    hosts: &str,
    tasks: u32,
    starts: &[u32],
    order: Order,
    ranking: Option<Order>,
) -> Vec<u32> {
    let hosts: HostList = hosts.parse().expect("the list is right");
    let programs_from = starts.iter().copied().map(Rank).collect();
    let request =
        Request { tasks: Some(tasks), programs_from, order, ranking, ..Request::default() };
    nodes_of(&Placement::of(hosts.nodes(), &request).expect("there is room").map)
}

fn run(first_node: u32, node_count: u32, tasks_per_node: u32) -> TaskRun {
    TaskRun { first_node: NodeId(first_node), node_count, tasks_per_node, rounds: 1 }
}

fn map(runs: &[(u32, u32, u32)]) -> TaskMap {
    let mut map = TaskMap::new();
    for &(first_node, node_count, tasks) in runs {
        map.push(run(first_node, node_count, tasks)).expect("the runs are small");
    }
    map
}

fn place(hosts: &str, n: Option<u32>, ppn: Option<u32>) -> Result<Placement, PlacementError> {
    let hosts: HostList = hosts.parse().expect("the list is right");
    let request = Request { tasks: n, per_node: ppn, ..Request::default() };
    Placement::of(hosts.nodes(), &request)
}

fn counts(hosts: &str, n: Option<u32>, ppn: Option<u32>) -> Vec<u32> {
    let placement = place(hosts, n, ppn).expect("there is room");
    (0..).map(NodeId).zip(&placement.nodes).map(|(node, _)| placement.map.tasks_on(node)).collect()
}
