//! Who kills what an agent leaves behind: itself, its keeper, or the kernel; and what nobody does.

use std::time::Duration;

use model::{AgentId, ExitStatus, Signal};
use sim::{Failure, Fault, Script, Session, Step, When};
use wire::LossCause;

const AGENT: AgentId = AgentId(2);
const PAUSE: Duration = Duration::from_secs(3);

#[test]
fn what_a_killed_agent_leaves_behind_is_its_keepers_to_kill_in_time() {
    let keeper_takes = |time| {
        let session = session().costs(|costs| costs.keeper = time);
        session.crash(AGENT, running()).try_run()
    };
    keeper_takes(Duration::from_millis(900)).expect("in time");
    for late in [Duration::from_millis(1_100), Duration::from_secs(1_000)] {
        says(keeper_takes(late), "agent 2 has left tasks behind");
    }
}

#[test]
fn the_keeper_of_an_agent_that_nobody_is_left_to_need_is_waited_for_too() {
    // The head dies with the last agent: all that is left are keepers.
    for agents in [vec![1, 0], vec![0, 1]] {
        let crashes = agents.iter().map(|&agent| Fault::Crash(AgentId(agent)));
        let session = Session::of(1).script(leaves_a_stray());
        let session = session.costs(|costs| costs.keeper = Duration::from_secs(2));
        let session = crashes.fold(session, |session, crash| session.fault(running(), crash));
        says(session.try_run(), "agent 1 has left tasks behind");
    }
}

#[test]
fn an_agent_whose_keeper_is_killed_kills_its_tasks_itself_and_is_lost() {
    let report = session().fault(running(), Fault::KillKeeper(AGENT)).run();
    let losses = &report.outcome.losses;
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert_eq!((losses[0].agent, losses[0].cause), (AGENT, SSH_FAILED));
}

#[test]
fn an_agent_that_is_killed_tells_the_signal_only_while_its_keeper_lives() {
    let cause_after = |faults: &[Fault]| {
        let at = faults.iter().cloned().map(|fault| (running(), fault));
        let session = at.fold(session(), |session, (when, fault)| session.fault(when, fault));
        session.run().outcome.losses[0].cause
    };
    let (crash, kill_keeper) = (Fault::Crash(AGENT), Fault::KillKeeper(AGENT));
    let pause = Fault::Pause(AGENT, PAUSE);
    assert_eq!(cause_after(std::slice::from_ref(&crash)), LossCause::Killed(Signal::KILL));
    assert_eq!(cause_after(&[pause.clone(), crash.clone()]), LossCause::Killed(Signal::KILL));
    for faults in [
        vec![kill_keeper.clone(), crash.clone()],
        vec![crash.clone(), kill_keeper.clone()],
        vec![pause, kill_keeper, crash],
    ] {
        assert_eq!(cause_after(&faults), SSH_FAILED, "{faults:?}");
    }
}

#[test]
fn keeper_and_agent_that_are_killed_together_at_any_step_leave_no_task() {
    let faults = [Fault::KillKeeper(AGENT), Fault::Crash(AGENT)];
    for step in 0..session().run().steps {
        for order in [[0, 1], [1, 0]] {
            let at = When::Step(step);
            let session = order.iter().fold(session(), |session, &index: &usize| {
                session.fault(at, faults[index].clone())
            });
            if let Err(failure) = session.ends_within(Duration::from_secs(15)).try_run() {
                panic!("{failure}\nafter step {step}, in the order {order:?}");
            }
        }
    }
}

#[test]
fn an_agent_that_does_not_run_sees_the_death_of_its_keeper_once_it_does() {
    let session = session().fault(running(), Fault::Pause(AGENT, PAUSE));
    let report = session.fault(running(), Fault::KillKeeper(AGENT)).run();
    assert_eq!(report.outcome.losses[0].cause, SSH_FAILED);
    assert!(report.ended_at.unwrap().since(model::Time::ZERO) > RUNNING + PAUSE);
}

#[test]
fn only_its_keeper_ends_an_agent_that_hangs_and_whose_shell_is_gone() {
    let hangs = session().fault(running(), Fault::Hang(AGENT));
    hangs.run();
    let unkept = hangs.fault(running(), Fault::KillKeeper(AGENT));
    says(unkept.try_run(), "agent 2 lives on with nobody above it");
}

const SSH_FAILED: LossCause = LossCause::Shell(ExitStatus::Exited(255));

/// When all tasks run.
const RUNNING: Duration = Duration::from_secs(5);

fn running() -> When {
    When::At(RUNNING)
}

fn leaves_a_stray() -> Script {
    Script::new().then(Step::LeaveStray).wait(Duration::from_secs(10))
}

fn session() -> Session {
    Session::of(5).tree("kary:2").script(leaves_a_stray())
}

fn says(result: Result<sim::Report, Failure>, words: &str) {
    let Err(failure) = result else { panic!("nothing says: {words}") };
    let violations = failure.violations;
    assert!(violations.iter().any(|said| said.contains(words)), "{violations:?}");
}
