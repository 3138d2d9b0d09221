//! Nodes that do not come up: whom the head counts on, when it goes on, and what it tells.

use std::time::Duration;

use engine::{HeadConfig, exit_code};
use model::{AgentId, IdSet, Rank, Slots};
use wire::{AgentLoss, JobFault, Launch, LossCause, Message, ShellFailureKind};

use crate::member::{JOB, Member};

/// Those who join within this time are told of in one message, while others are waited for.
const BUNDLE: Duration = Duration::from_millis(20);

/// A head of `n` nodes with a slot each, that may run its job elsewhere than was planned.
fn head(n: u32, change: impl FnOnce(&mut HeadConfig)) -> Member {
    let mut head = Member::head(n, |config| {
        config.job = crate::member::job_on_each(n);
        config.session.retries_max = 0;
        change(config);
        let planned = config.muster.planned();
        config.job = crate::member::job_on_each(planned);
        config.job.is_movable = config.muster.is_movable();
    });
    let all: Vec<AgentId> = (1..=n).map(AgentId).collect();
    assert_eq!(head.started(), all);
    head
}

fn joins(head: &mut Member, agent: u32) {
    head.child_joins(agent);
    head.joined(agent, IdSet::range(agent, agent));
}

/// The start of this agent fails for good.
fn fails(head: &mut Member, agent: u32) {
    head.shell_ends(engine::StartId(u64::from(agent) - 1), ShellFailureKind::Auth);
}

fn launch(head: &mut Member) -> Option<Launch> {
    let launch = |message| if let Message::Launch(launch) = message { Some(*launch) } else { None };
    head.sent().into_iter().find_map(launch)
}

fn set(agents: &[u32]) -> IdSet {
    agents.iter().copied().collect()
}

#[test]
fn a_job_whose_planned_nodes_are_there_runs_at_once_and_waits_for_no_spare() {
    let mut head = head(4, |config| config.muster.spares = 2);
    joins(&mut head, 2);
    assert_eq!(launch(&mut head), None);
    joins(&mut head, 1);
    head.pass(BUNDLE);
    let launch = launch(&mut head).unwrap();
    assert_eq!((launch.members, launch.map), (set(&[1, 2]), None));
}

#[test]
fn a_spare_takes_the_place_of_a_node_that_fails_and_the_first_spare_comes_first() {
    for (failing, members) in [(vec![1], set(&[2, 3])), (vec![1, 3], set(&[2, 4]))] {
        let mut head = head(4, |config| config.muster.spares = 2);
        for agent in 1..=4 {
            assert_eq!(launch(&mut head), None);
            if failing.contains(&agent) {
                fails(&mut head, agent);
            } else {
                joins(&mut head, agent);
            }
        }
        let launch = launch(&mut head).unwrap();
        assert_eq!(launch.members, members);
        let map = launch.map.unwrap();
        assert_eq!(map.len(), 2);
        assert_eq!(map.node_of(Rank(0)).map(|node| node.agent().0), members.first());
        assert_eq!(head.outcome().code, 0);
    }
}

#[test]
fn with_spares_a_node_that_hangs_is_waited_for_as_long_again_as_the_others_took() {
    let mut head = head(3, |config| config.muster.spares = 1);
    head.now = head.now + Duration::from_secs(2);
    joins(&mut head, 2);
    head.now = head.now + Duration::from_secs(1);
    joins(&mut head, 3);
    assert_eq!(launch(&mut head), None);
    head.pass(Duration::from_millis(2_999));
    assert_eq!(launch(&mut head), None);
    head.pass(Duration::from_millis(1));
    assert_eq!(launch(&mut head).unwrap().members, set(&[2, 3]));
    assert_eq!(head.outcome().start_failures[0].agents, set(&[1]), "who was late is named");
}

#[test]
fn a_node_that_a_smaller_spare_cannot_stand_in_for_is_waited_for_until_it_joins_or_fails() {
    for comes in [true, false] {
        let mut head = head(3, |config| {
            config.muster.spares = 1;
            config.muster.slots = [2, 2, 1].map(Slots::of).to_vec();
            config.muster.request.tasks = Some(4);
        });
        head.now = head.now + Duration::from_secs(1);
        joins(&mut head, 1);
        joins(&mut head, 3);
        head.pass(Duration::from_secs(2));
        assert_eq!(launch(&mut head), None);
        assert_eq!(head.outcome().shortage, None);
        if comes {
            joins(&mut head, 2);
            head.pass(BUNDLE);
            assert_eq!(launch(&mut head).unwrap().members, set(&[1, 2]));
        } else {
            fails(&mut head, 2);
            head.run_until_exit();
            assert_eq!(head.outcome().code, exit_code::NOT_STARTED);
            assert!(head.outcome().shortage.is_some());
        }
    }
}

#[test]
fn more_nodes_that_fail_than_there_are_spares_end_the_session() {
    let mut head = head(4, |config| config.muster.spares = 1);
    fails(&mut head, 1);
    fails(&mut head, 2);
    head.run_until_exit();
    assert_eq!(head.outcome().code, exit_code::NOT_STARTED);
    assert_eq!(head.outcome().members, IdSet::new());
}

#[test]
fn a_job_that_may_go_on_runs_on_any_that_are_left_but_too_few() {
    for n in 1..=6 {
        for nodes_min in 1..=n {
            for failing in 0..=n {
                let mut head = head(n, |config| config.muster.nodes_min = Some(nodes_min));
                (1..=failing).for_each(|agent| fails(&mut head, agent));
                (failing + 1..=n).for_each(|agent| joins(&mut head, agent));
                if n - failing >= nodes_min {
                    let members = launch(&mut head).unwrap().members;
                    assert_eq!(members, IdSet::range(failing + 1, n));
                } else {
                    head.run_until_exit();
                    assert_eq!(head.outcome().code, exit_code::NOT_STARTED);
                }
            }
        }
    }
}

#[test]
fn tasks_that_do_not_fit_on_the_rest_end_the_session_and_say_how_many() {
    let mut head = head(3, |config| {
        config.muster.nodes_min = Some(1);
        config.muster.request.tasks = Some(3);
        config.muster.slots = vec![Slots::of(1); 3];
    });
    fails(&mut head, 2);
    joins(&mut head, 1);
    joins(&mut head, 3);
    assert_eq!(head.outcome().code, exit_code::NOT_STARTED);
    let words = head.outcome().shortage.as_ref().map(ToString::to_string);
    assert_eq!(words.as_deref(), Some("3 tasks do not fit into 2 slots on 2 nodes"));
}

#[test]
fn a_program_that_is_missing_on_one_node_ends_the_session_whatever_may_be_missing() {
    let mut head = head(2, |config| config.muster.nodes_min = Some(1));
    head.child_joins(1);
    let words = String::new();
    let fault = JobFault::Program { agent: AgentId(1), app: 0, errno: 2, words };
    head.message(engine::LinkId(1), Message::JobFault(JOB, Box::new(fault)));
    head.joined(1, set(&[1]));
    joins(&mut head, 2);
    assert_eq!(launch(&mut head), None);
    assert_eq!(head.outcome().code, exit_code::NOT_FOUND);
}

#[test]
fn who_has_no_tasks_may_be_lost_or_lack_the_program_while_the_job_runs() {
    let mut head = head(4, |config| config.muster.spares = 2);
    joins(&mut head, 3);
    head.child_joins(4);
    joins(&mut head, 1);
    joins(&mut head, 2);
    head.pass(BUNDLE);
    assert!(launch(&mut head).is_some());
    let (agent, words) = (AgentId(3), String::new());
    let (agents, again, cause) = (set(&[3]), IdSet::new(), LossCause::LinkClosed);
    let loss = AgentLoss { agent, agents, again, cause, words };
    head.message(engine::LinkId(3), Message::Lost(loss));
    let fault = JobFault::Program { agent: AgentId(4), app: 0, errno: 2, words: String::new() };
    head.message(engine::LinkId(4), Message::JobFault(JOB, Box::new(fault)));
    assert!(!head.effects().iter().any(crate::member::is_stop));
    assert_eq!((head.outcome().code, head.outcome().faults.len()), (0, 0));
}
