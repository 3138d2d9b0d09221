//! A second opinion on a session: what the documents promise, worked out from what can be seen of it.
//!
//! It knows no state of any engine. It sees what the user does, what the head tells its observers
//! and which agents were welcomed and hurt, and works out from `docs/exit-status.md` and
//! `docs/faults.md` who is a member, when tasks may be launched, which failures may be told, and the
//! exit status. The engine must come to the same.

use std::time::Duration;

use model::{AgentId, ExitStatus, IdSet, JobId, Muster, Signal, Time};
use proto::Event;
use wire::JobFault;

/// A session as the documents have it.
pub(crate) struct Rulebook {
    muster: Muster,
    all: IdSet,
    /// Who gets an agent when a spawn needs it.
    later: IdSet,
    /// Whom the job was planned for, and when it is launched: whom it runs on.
    members: IdSet,
    joined: IdSet,
    failed: IdSet,
    /// Agents that were named as lost or not started, not those that only followed.
    told: IdSet,
    phase: Phase,
    has_fault: bool,
    has_abort: bool,
    status: Option<u8>,
    /// The user's first signal that means to end.
    signal: Option<Signal>,
    output_is_closed: bool,
    /// When the time limit and the grace time after the user's signal pass.
    times_out_at: Option<Time>,
    kills_at: Option<Time>,
    grace: Duration,
    /// The head was stopped: it heard of things later than they happened.
    is_late: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Joining,
    /// It is known who runs the job.
    Settled,
    Running,
    Stopping,
    Leaving,
}

/// What the world knows of an agent that the head names.
pub(crate) trait Truth {
    /// It had a link to its parent at some time.
    fn was_linked(&self, agent: AgentId) -> bool;
    /// Its parent's answer to its first words reached it at some time.
    fn was_welcomed(&self, agent: AgentId) -> bool;
    /// It, its parent, or what is between them was hurt.
    fn was_hurt(&self, agent: AgentId) -> bool;
}

impl Rulebook {
    /// A session of `n` nodes, those included that get an agent later.
    pub(crate) fn new(
        n: u32,
        muster: Muster,
        timeout: Option<Duration>,
        grace: Duration,
    ) -> Rulebook {
        let all = IdSet::range(1, muster.planned() + muster.spares);
        Rulebook {
            later: IdSet::range(1, n).difference(&all),
            all,
            members: IdSet::range(1, muster.planned()),
            muster,
            joined: IdSet::new(),
            failed: IdSet::new(),
            told: IdSet::new(),
            phase: Phase::Joining,
            has_fault: false,
            has_abort: false,
            status: None,
            signal: None,
            output_is_closed: false,
            times_out_at: timeout.map(|time| Time::ZERO + time),
            kills_at: None,
            grace,
            is_late: false,
        }
    }

    /// Follows what the head tells. Returns what must not be.
    pub(crate) fn on_event(
        &mut self,
        now: Time,
        event: &Event,
        truth: &impl Truth,
    ) -> Option<String> {
        self.on_time(now);
        match event {
            Event::AgentsJoined(agents) => {
                let wrong = self.on_joined(agents, truth);
                self.must_be_placed();
                wrong
            }
            Event::StartFailed(failure) => {
                self.on_missing(&failure.agents, NOT_STARTED);
                self.must_be_agents(&failure.agents)
            }
            Event::AgentLost(loss) => {
                self.joined = self.joined.difference(&loss.again);
                self.on_missing(&loss.agents, AGENT_LOST);
                let is_news = self.told.insert(loss.agent.0);
                let was_linked = truth.was_linked(loss.agent);
                let was_hurt = truth.was_hurt(loss.agent);
                if !(is_news && was_linked && was_hurt) {
                    return Some(format!(
                        "{event:?}, but it is news: {is_news}, it was linked: {was_linked}, it was \
                         hurt: {was_hurt}"
                    ));
                }
                if !loss.again.is_empty() && self.phase != Phase::Joining {
                    return Some(format!("{event:?}, but the job is launched"));
                }
                self.must_be_agents(&loss.agents.union(&loss.again))
            }
            Event::AllJoined(members) => self.on_members(members),
            Event::Launched(JobId::FIRST) => self.enter(Phase::Settled, Phase::Running),
            Event::Stopping(_) => {
                // A second signal, or the end of the grace time, stops for good.
                if self.phase != Phase::Stopping {
                    return self.enter(Phase::Running, Phase::Stopping);
                }
                None
            }
            Event::JobFault(_, fault) => {
                self.on_fault(fault);
                None
            }
            Event::JobDone(JobId::FIRST) | Event::Over => {
                self.phase = Phase::Leaving;
                None
            }
            Event::Launched(_)
            | Event::JobDone(_)
            | Event::AgentStarted { .. }
            | Event::StartRetried { .. }
            | Event::LinkOverShell(_)
            | Event::Marked(_)
            | Event::TaskStarted { .. }
            | Event::TaskEnded { .. }
            | Event::FenceReleased { .. }
            | Event::JobWarning(..)
            | Event::PeerMisbehaved { .. } => None,
        }
    }

    /// Whether there is nothing for which a job that fits might be refused.
    pub(crate) fn must_grant(&self) -> bool {
        self.is_running() && self.failed.intersection(&self.later).is_empty()
    }

    /// Whether nothing ends the tasks that run.
    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// A task is created.
    pub(crate) fn on_spawn(&self) -> Option<String> {
        let may = matches!(self.phase, Phase::Running | Phase::Stopping | Phase::Leaving);
        (!may).then(|| "a task was launched before all had joined".to_owned())
    }

    /// The head looks at its clock: what is due now comes before all else that happens now.
    pub(crate) fn on_wake(&mut self, now: Time) {
        self.on_time(now + TICK);
    }

    /// The user sends a signal to the front end.
    pub(crate) fn on_user_signal(&mut self, now: Time, signal: Signal) {
        self.on_time(now);
        if ![Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal) {
            return;
        }
        let is_first = self.signal.is_none();
        let status = 128 + self.signal.get_or_insert(signal).0;
        match self.phase {
            Phase::Joining | Phase::Settled => {
                self.decide(status);
                self.phase = Phase::Leaving;
            }
            // The tasks decide; only who lets the grace time pass is killed.
            Phase::Running if is_first => {
                self.kills_at = (signal != Signal::INT).then(|| now + self.grace);
            }
            Phase::Running | Phase::Stopping => self.decide(status),
            Phase::Leaving if is_first => {}
            Phase::Leaving => self.decide(status),
        }
    }

    /// Nobody reads the front end's output any more.
    pub(crate) fn on_output_closed(&mut self, now: Time) {
        self.on_time(now);
        if std::mem::replace(&mut self.output_is_closed, true) {
            return;
        }
        match self.phase {
            Phase::Joining | Phase::Settled | Phase::Running => self.decide(OUTPUT_CLOSED),
            Phase::Stopping | Phase::Leaving => {}
        }
        if matches!(self.phase, Phase::Joining | Phase::Settled) {
            self.phase = Phase::Leaving;
        }
    }

    /// The head was stopped or slow: what came first can't be told from outside.
    pub(crate) fn on_late(&mut self) {
        self.is_late = true;
    }

    /// The head has ended with this status.
    pub(crate) fn on_exit(&mut self, now: Time, code: u8, is_orderly: bool) -> Option<String> {
        self.on_time(now);
        let expected = self.status.unwrap_or(if is_orderly { 0 } else { INTERNAL });
        (!self.is_late && code != expected)
            .then(|| format!("exit status {code}, but by the rule it is {expected}"))
    }

    fn on_joined(&mut self, agents: &IdSet, truth: &impl Truth) -> Option<String> {
        let again = agents.intersection(&self.joined);
        self.joined = self.joined.union(agents);
        if self.phase == Phase::Running {
            self.members = self.members.union(&agents.intersection(&self.later));
        }
        let strangers: IdSet =
            agents.iter().filter(|&agent| !truth.was_welcomed(AgentId(agent))).collect();
        if !again.is_empty() || !strangers.is_empty() {
            return Some(format!("{again} joined twice, {strangers} without a welcome"));
        }
        self.must_be_agents(agents)
    }

    /// Agents will not be there: before the launch that matters if too few are left, and then if the job
    /// runs on them.
    fn on_missing(&mut self, agents: &IdSet, status: u8) {
        self.failed = self.failed.union(agents);
        let left = self.all.difference(&self.failed).len();
        let matters = match self.phase {
            Phase::Joining => left < u64::from(self.muster.nodes_min()),
            Phase::Settled | Phase::Running | Phase::Stopping | Phase::Leaving => {
                self.members.difference(agents) != self.members
            }
        };
        if matters {
            self.decide(status);
        } else {
            self.must_be_placed();
        }
    }

    /// Once all have joined or failed, the job must fit on those who are there.
    fn must_be_placed(&mut self) {
        let there = self.joined.difference(&self.failed);
        let are_all = self.all.difference(&self.joined).difference(&self.failed).is_empty();
        let is_moved = !self.members.difference(&there).is_empty();
        let is_joining = self.phase == Phase::Joining && !self.has_fault;
        if is_joining && are_all && is_moved && self.place(&there).is_none() {
            self.decide(NOT_STARTED);
        }
    }

    /// Whom a job runs on that could not be launched as it was planned.
    fn place(&self, there: &IdSet) -> Option<IdSet> {
        let nodes = there.iter().map(|agent| agent - 1).collect();
        let map = self.muster.place(&nodes).ok()?;
        Some(map.nodes().iter().map(|node| node + 1).collect())
    }

    /// The head says whom the job runs on: those it was planned for if they are there, else the first
    /// that are there, once all have joined or failed or there are as many as were planned.
    fn on_members(&mut self, members: &IdSet) -> Option<String> {
        let there = self.joined.difference(&self.failed);
        let are_planned = *members == self.members && members.difference(&there).is_empty();
        let are_all = self.all.difference(&self.joined).difference(&self.failed).is_empty();
        let are_enough =
            are_all || self.muster.spares > 0 && there.len() >= u64::from(self.muster.planned());
        let is_so = are_planned || are_enough && self.place(&there).as_ref() == Some(members);
        let is_few = there.len() < u64::from(self.muster.nodes_min());
        let wrong = !is_so || is_few || self.has_fault || self.phase != Phase::Joining;
        self.members.clone_from(members);
        self.phase = Phase::Settled;
        wrong.then(|| format!("the job runs on {members}? {there} are there"))
    }

    fn must_be_agents(&self, agents: &IdSet) -> Option<String> {
        let strangers = agents.difference(&self.all).difference(&self.later);
        (!strangers.is_empty()).then(|| format!("agents {strangers} are none of the session"))
    }

    fn enter(&mut self, from: Phase, to: Phase) -> Option<String> {
        let is_wrong = self.phase != from;
        let words = format!("the session goes from {:?} to {to:?}", self.phase);
        self.phase = to;
        is_wrong.then_some(words)
    }

    fn on_fault(&mut self, fault: &JobFault) {
        self.has_fault = true;
        let status = match fault {
            JobFault::Program { errno, .. } | JobFault::Spawn { errno, .. } => {
                if *errno == NO_SUCH_FILE { NOT_FOUND } else { CANNOT_RUN }
            }
            JobFault::Directory { .. } => CANNOT_RUN,
            JobFault::Output { .. } => NOT_WRITTEN,
            JobFault::Task { status, .. } => status_of(*status),
            JobFault::Unfinalized { status, .. } => match status.map(status_of) {
                None | Some(0) => PMI_BROKEN,
                Some(own) => own,
            },
            JobFault::Pmi { .. } => PMI_BROKEN,
            JobFault::Abort { code, .. } => {
                if !std::mem::replace(&mut self.has_abort, true) {
                    self.status = None;
                }
                u8::try_from(code.rem_euclid(256)).ok().filter(|&low| low != 0).unwrap_or(1)
            }
        };
        self.decide(status);
    }

    /// What went wrong first gives the status.
    fn decide(&mut self, status: u8) {
        self.status.get_or_insert(status);
    }

    fn on_time(&mut self, now: Time) {
        let is_due = |at: &mut Option<Time>| at.take_if(|at| *at < now).is_some();
        if matches!(self.phase, Phase::Stopping | Phase::Leaving) {
            self.kills_at = None;
        }
        if self.phase == Phase::Leaving {
            self.times_out_at = None;
        }
        let (kill, timeout) = (self.kills_at, self.times_out_at);
        let kill_first = kill.is_some_and(|kill| timeout.is_none_or(|timeout| kill < timeout));
        let killed = 128 + self.signal.map_or(0, |signal| signal.0);
        let (due_kill, due_timeout) = (is_due(&mut self.kills_at), is_due(&mut self.times_out_at));
        if due_kill && kill_first {
            self.decide(killed);
        }
        if due_timeout {
            self.decide(TIMED_OUT);
        }
        if due_kill {
            self.decide(killed);
        }
    }
}

/// The statuses of `docs/exit-status.md`.
const TIMED_OUT: u8 = 124;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
const OUTPUT_CLOSED: u8 = 141;
const NOT_WRITTEN: u8 = 249;
const PMI_BROKEN: u8 = 250;
const AGENT_LOST: u8 = 251;
const NOT_STARTED: u8 = 252;

const INTERNAL: u8 = 253;

const NO_SUCH_FILE: i32 = 2;

/// The resolution of time.
const TICK: Duration = Duration::from_nanos(1);

fn status_of(status: ExitStatus) -> u8 {
    match status {
        ExitStatus::Exited(code) => code,
        ExitStatus::Signaled { signal, .. } => 128 + signal.0,
    }
}

#[cfg(test)]
mod tests {
    use model::Rank;

    use super::*;

    const JOB: JobId = JobId(0);

    /// Every agent has been welcomed, and nothing is hurt.
    struct Fine;

    impl Truth for Fine {
        fn was_linked(&self, _: AgentId) -> bool {
            true
        }

        fn was_welcomed(&self, _: AgentId) -> bool {
            true
        }

        fn was_hurt(&self, _: AgentId) -> bool {
            false
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn tell(rulebook: &mut Rulebook, event: Event) -> Option<String> {
        rulebook.on_event(at(1), &event, &Fine)
    }

    /// One that has launched the job of two agents.
    fn running(timeout: Option<Duration>) -> Rulebook {
        let mut rulebook = Rulebook::new(2, Muster::strict(2), timeout, Duration::from_secs(3));
        assert_eq!(tell(&mut rulebook, Event::AgentsJoined(IdSet::range(1, 2))), None);
        assert_eq!(tell(&mut rulebook, Event::AllJoined(IdSet::range(1, 2))), None);
        assert_eq!(tell(&mut rulebook, Event::Launched(JOB)), None);
        rulebook
    }

    fn fails(rank: u32, code: u8) -> Event {
        let status = ExitStatus::Exited(code);
        Event::JobFault(JOB, JobFault::Task { rank: Rank(rank), status })
    }

    #[test]
    fn a_launch_without_all_members_breaks_the_rules() {
        let mut rulebook = Rulebook::new(2, Muster::strict(2), None, Duration::ZERO);
        assert_eq!(tell(&mut rulebook, Event::AgentsJoined(IdSet::range(1, 1))), None);
        assert!(tell(&mut rulebook, Event::AllJoined(IdSet::range(1, 2))).is_some());
        assert!(tell(&mut rulebook, Event::AgentsJoined(IdSet::range(1, 1))).is_some(), "twice");
        assert!(
            tell(&mut rulebook, Event::AgentsJoined(IdSet::range(2, 3))).is_some(),
            "no member"
        );
        assert!(rulebook.on_spawn().is_some());
    }

    #[test]
    fn the_first_failure_gives_the_status_and_an_abort_counts_above_it() {
        let mut rulebook = running(None);
        tell(&mut rulebook, fails(1, 3));
        tell(&mut rulebook, fails(0, 4));
        assert_eq!(rulebook.on_exit(at(2), 3, true), None);
        let abort = JobFault::Abort { rank: Rank(0), code: 256, message: String::new() };
        tell(&mut rulebook, Event::JobFault(JOB, abort));
        assert!(rulebook.on_exit(at(2), 3, true).is_some());
        assert_eq!(rulebook.on_exit(at(2), 1, true), None);
    }

    #[test]
    fn tasks_that_heed_the_users_signal_decide_and_those_that_ignore_it_do_not() {
        let mut heed = running(None);
        heed.on_user_signal(at(2), Signal::TERM);
        tell(&mut heed, Event::JobDone(JOB));
        assert_eq!(heed.on_exit(at(9), 0, true), None);
        let mut ignore = running(None);
        ignore.on_user_signal(at(2), Signal::TERM);
        assert_eq!(ignore.on_exit(at(6), 128 + 15, true), None);
        let mut twice = running(None);
        twice.on_user_signal(at(2), Signal::INT);
        twice.on_user_signal(at(3), Signal::INT);
        assert_eq!(twice.on_exit(at(3), 130, true), None);
    }

    #[test]
    fn a_loss_of_somebody_that_nothing_has_hurt_breaks_the_rules() {
        let mut rulebook = running(None);
        let loss = wire::AgentLoss {
            agent: AgentId(2),
            agents: IdSet::range(2, 2),
            again: IdSet::new(),
            cause: wire::LossCause::LinkClosed,
            words: String::new(),
        };
        assert!(tell(&mut rulebook, Event::AgentLost(loss)).is_some());
        assert_eq!(rulebook.on_exit(at(2), AGENT_LOST, true), None);
    }

    #[test]
    fn the_time_limit_gives_the_status_when_it_passes_first() {
        let mut rulebook = running(Some(Duration::from_secs(5)));
        assert_eq!(rulebook.on_exit(at(6), TIMED_OUT, true), None);
        let mut early = running(Some(Duration::from_secs(5)));
        tell(&mut early, fails(0, 9));
        assert_eq!(early.on_exit(at(6), 9, true), None);
    }
}
