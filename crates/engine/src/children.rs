//! A member as a spawn parent: starts its children, lets them join, notices when they are gone.
//!
//! At most `window` starts are in flight, and leaves may be started in sets (`set.rs`). A start ends in
//! one of three ways: its agent says hello, its shell ends, or its time is up, and then the shell is
//! killed so that its last words can be told. A child that is up and whose link or shell ends is given
//! a moment to explain itself: the other of the two usually says more.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, JobId, Time, Tree};
use proto::{Event, Grants, Silence};
use wire::{
    AgentLoss, Hello, LossCause, MarkKind, Message, ShellFailureKind, StartCause, StartFailure,
    Stats, Welcome, Work,
};

use crate::child::{Child, ChildState, Failure, back_off};
use crate::engine::Engine;
use crate::slow::StartTimes;
use crate::{Effect, LinkEnd, LinkId, Start, StartId, names};

/// How long the other of link and shell may take to explain why the first is gone.
const EXPLAIN_MAX: Duration = Duration::from_millis(200);

/// How long a shell may outlive its agent's farewell.
const SHELL_LINGER_MAX: Duration = Duration::from_secs(1);

/// From one ping to the next once a job is being killed, when a child that hangs would keep the
/// whole session waiting: it is lost, and named, before the head gives up.
const HURRY: Duration = Duration::from_millis(800);

/// Output that all children together may have on their way to this member, in bytes, and bounds on
/// one child's part. The lower bound keeps one link busy. The upper bounds this member's memory, and
/// keeps what is on its way in the processors' caches: with four times as much, every copy on the way
/// takes twice as long. It fills 10 Gbit/s over 0.2 ms.
const OUTPUT_BYTES: u32 = 4 << 20;
const OUTPUT_BYTES_MIN: u32 = 64 << 10;
const OUTPUT_BYTES_MAX: u32 = 256 << 10;

impl Engine {
    /// Makes the children of this member's part of a planned tree.
    pub(crate) fn plan_children(&mut self, tree: &Tree, below: &IdSet, mut names: Vec<String>) {
        // The parts of a routed tree are no ranges.
        let mut name_of = |id| {
            let index = below.index_of(id).and_then(|index| usize::try_from(index).ok());
            let name = index.and_then(|index| names.get_mut(index));
            name.map(core::mem::take).unwrap_or_default()
        };
        for branch in crate::tree::branches(tree, below) {
            let name = name_of(branch.child.0);
            let below_names = branch.below.iter().map(&mut name_of).collect();
            let child =
                Child::new(self.now, branch.child, name, branch.below, below_names, branch.tree);
            self.waiting.push_back(branch.child);
            self.insert_child(child);
        }
    }

    pub(crate) fn insert_child(&mut self, child: Child) {
        self.jobs.iter_mut().for_each(|job| job.add_child(child.agent));
        self.children.insert(child.agent, child);
    }

    /// Starts as many children as the window and the current set allow.
    pub(crate) fn start_waiting(&mut self) {
        if self.ending.is_some() {
            return;
        }
        if self.handout.is_some() {
            return self.start_free();
        }
        let session = self.session();
        let bulk_max = usize::try_from(session.bulk_max.max(1)).unwrap_or(usize::MAX);
        while !self.waiting.is_empty()
            && self.children.starts_in_flight() < session.window.max(1) as usize
        {
            let agents = self.next_waiting(bulk_max);
            if agents.is_empty() {
                return;
            }
            self.start(agents);
        }
    }

    /// Takes the agents of the next start out of those that wait. An agent is told which try it
    /// is, so those of one command are on the same. None, if only leaves wait and their set is full.
    pub(crate) fn next_waiting(&mut self, bulk_max: usize) -> Vec<AgentId> {
        let attempts = |agent: &AgentId| self.children[agent].attempts;
        let first = self.waiting.front().map(attempts);
        let mut leaves_max = self.set_room();
        let is_free = |agent: &&AgentId| {
            let is_leaf = self.children[agent].is_leaf();
            let is_free = !is_leaf || leaves_max > 0;
            leaves_max = leaves_max.saturating_sub(usize::from(is_leaf));
            is_free
        };
        let same = self.waiting.iter().take_while(|agent| Some(attempts(agent)) == first);
        let count = same.take(bulk_max).take_while(is_free).count();
        self.waiting.drain(..count).collect()
    }

    pub(crate) fn start(&mut self, agents: Vec<AgentId>) {
        let session = self.session();
        self.count_in_set(&agents);
        let start = StartId(self.starts_made);
        self.starts_made += 1;
        let give_up_at = self.start_time_from(self.now);
        let mut named = Vec::with_capacity(agents.len());
        let mut attempt = 0;
        for agent in &agents {
            let Some(child) = self.children.get_mut(agent) else { continue };
            if child.attempts == 0 {
                child.first_start = self.now;
            }
            child.started_at = self.now;
            attempt = child.attempts;
            child.attempts += 1;
            child.shell = Some(start);
            child.state = ChildState::Starting { give_up_at };
            named.push((*agent, child.name.clone()));
            self.events.push_back(Event::AgentStarted { agent: *agent, attempt });
        }
        self.mark_all(&agents, MarkKind::Started);
        self.starts.insert(start, agents);
        self.effects.push_back(Effect::Start(Start { start, agents: named, attempt, session }));
    }

    /// Handles a link of somebody who claims to be a child, and has yet to say so.
    pub(crate) fn on_child_link_up(&mut self, link: LinkId, agent: AgentId, over_shell: bool) {
        self.links.insert(link, agent);
        self.mark(agent, MarkKind::LinkUp);
        if over_shell {
            self.stats.shell_links += 1;
            self.events.push_back(Event::LinkOverShell(agent));
        }
    }

    /// Handles a child's first words.
    pub(crate) fn on_hello(&mut self, link: LinkId, agent: AgentId, hello: Hello) {
        let window = output_window(self.children_expected());
        let ending = self.ending.is_some();
        let Some(child) = self.children.get_mut(&agent) else { return };
        let expected = matches!(child.state, ChildState::Starting { .. })
            && hello.attempt + 1 == child.attempts;
        if !expected {
            self.links.remove(&link);
            if ending {
                self.send(vec![link], Message::Shutdown);
            }
            self.effects.push_back(Effect::Close(link));
            return;
        }
        child.state = ChildState::Up;
        child.up_at = Some(self.now);
        child.link = Some(link);
        child.silence = Silence::new(self.now);
        child.grants = Grants::new(window);
        let took = self.now.since(child.first_start);
        self.start_times.note(took);
        let joined_in = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.stats.join_us_max = self.stats.join_us_max.max(joined_in);
        self.first_share(agent);
        let session = self.session();
        let Some(child) = self.children.get_mut(&agent) else { return };
        let names = names::fold(&core::mem::take(&mut child.names));
        let below = child.below.clone();
        if !child.is_leaf() {
            child.given = vec![Work { below: below.clone(), names: names.clone() }];
        }
        let welcome = Welcome {
            tree: child.tree,
            below,
            names,
            own_name: child.name.clone(),
            session: (*session).clone(),
        };
        let timeout_ms = welcome.session.link_timeout_ms;
        self.effects.push_back(Effect::SetLinkTimeout(link, Some(timeout_ms)));
        self.send(vec![link], Message::Welcome(welcome.into()));
        self.mark(agent, MarkKind::Welcomed);
        if self.routing.is_none() {
            self.send(vec![link], Message::OutputCredit(window));
        }
        if let Some(spec) = self.jobs.get(JobId::FIRST).map(|job| Arc::clone(&job.spec)) {
            self.send(vec![link], Message::Job((*spec).clone().into()));
        }
        // From the first ping and its answer on, both ends know how long the other may be silent.
        if let Some(ticker) = &self.ticker {
            let next_ms = ticker.period_ms();
            if let Some(child) = self.children.get_mut(&agent) {
                // A child that hangs before its first answer has announced nothing itself.
                child.silence.on_announced(self.now, next_ms);
            }
            self.send(vec![link], Message::Ping { next_ms });
        }
        self.start_waiting();
    }

    /// Handles the end of a shell, or that it could not be run.
    pub(crate) fn on_shell_ended(&mut self, start: StartId, cause: StartCause, words: String) {
        self.end_delivery(start);
        for agent in self.starts.remove(&start).unwrap_or_default() {
            let Some(child) = self.children.get_mut(&agent) else { continue };
            if child.shell != Some(start) {
                continue;
            }
            child.shell = None;
            match &mut child.state {
                ChildState::Starting { .. } => self.start_failed(agent, cause, words.clone()),
                ChildState::GivingUp(cause) => {
                    let cause = *cause;
                    self.fail(agent, Failure { cause, words: words.clone() });
                }
                ChildState::Up => {
                    let cause = shell_loss(cause).unwrap_or(LossCause::LinkClosed);
                    child.state = ChildState::Losing {
                        cause,
                        words: words.clone(),
                        report_at: self.now + EXPLAIN_MAX,
                    };
                }
                ChildState::Losing { cause: told, words: said, .. } => {
                    if let (LossCause::LinkClosed, Some(cause)) = (*told, shell_loss(cause)) {
                        *told = cause;
                    }
                    if !words.is_empty() {
                        said.clone_from(&words);
                    }
                    self.lose(agent);
                }
                ChildState::Waiting | ChildState::BackingOff { .. } | ChildState::Gone { .. } => {}
            }
        }
        self.start_waiting();
    }

    fn start_failed(&mut self, agent: AgentId, cause: StartCause, words: String) {
        let session = self.session();
        let failure = Failure { cause, words };
        let Some(child) = self.children.get_mut(&agent) else { return };
        let pause = if self.resumed_at.is_some_and(|at| child.started_at < at) {
            // It may have called and given up while we were stopped, which is no fault of its own.
            Some(Duration::ZERO)
        } else if child.elsewhere.is_some() {
            None
        } else {
            back_off(cause, child.attempts, session.retries_max, &mut self.rng)
        };
        match pause {
            Some(pause) if self.ending.is_none() => {
                self.stats.retries += 1;
                let words = failure.words.clone();
                self.events.push_back(Event::StartRetried { agent, cause, words });
                child.state = ChildState::BackingOff { until: self.now + pause, last: failure };
                if matches!(cause, StartCause::Shell(ShellFailureKind::Busy, _)) {
                    self.slow_down();
                }
            }
            Some(_) | None => self.fail(agent, failure),
        }
    }

    /// Reports a child as failed, and takes over what it was to start.
    fn fail(&mut self, agent: AgentId, failure: Failure) {
        let (again, given_up) = self.orphans_of(agent);
        let Some(child) = self.children.get_mut(&agent) else { return };
        child.state = ChildState::Gone { kill_shell_at: None };
        let elsewhere = child.elsewhere.take();
        let report = |agents: IdSet, cause, words| StartFailure {
            agents,
            cause,
            words,
            elapsed_ms: millis(self.now.since(child.first_start)),
            attempts: child.attempts,
            by: self.id,
        };
        let only = IdSet::range(agent.0, agent.0);
        let mut failures: Vec<StartFailure> =
            elsewhere.map(|failure| *failure).into_iter().collect();
        failures.push(report(only, failure.cause, failure.words));
        if !given_up.is_empty() {
            failures.push(never_started(given_up, self.id));
        }
        self.mark(agent, MarkKind::GivenUp);
        self.on_start_failures(failures);
        self.child_ended(agent);
        self.take_over(agent, &again);
    }

    /// Passes failures on to the head.
    pub(crate) fn on_start_failures(&mut self, failures: Vec<StartFailure>) {
        for failure in &failures {
            if !self.is_head() {
                self.events.push_back(Event::StartFailed(failure.clone()));
            }
            self.not_joining(&failure.agents);
        }
        self.up(Message::StartFailed(failures));
    }

    /// Handles that the time to join is over: whoever is not up is reported, with its last words.
    pub(crate) fn give_up_joining(&mut self) {
        self.joining.is_over = true;
        self.waiting.clear();
        self.fail_held();
        let agents: Vec<AgentId> = self.children.keys().copied().collect();
        for agent in agents {
            let Some(child) = self.children.get_mut(&agent) else { continue };
            match &mut child.state {
                ChildState::Waiting => {
                    let words = String::new();
                    self.fail(agent, Failure { cause: StartCause::Deadline, words });
                }
                ChildState::BackingOff { last, .. } => {
                    let last = last.clone();
                    self.fail(agent, last);
                }
                ChildState::Starting { .. } => self.give_up(agent, StartCause::Deadline),
                ChildState::GivingUp(_)
                | ChildState::Up
                | ChildState::Losing { .. }
                | ChildState::Gone { .. } => {}
            }
        }
    }

    /// Reports those that nobody has started.
    fn fail_held(&mut self) {
        let held = self.drop_held();
        if held.is_empty() {
            return;
        }
        self.on_start_failures(vec![never_started(held, self.id)]);
    }

    /// Kills a start's shell, whose end then fails the start with `cause`.
    fn give_up(&mut self, agent: AgentId, cause: StartCause) {
        let Some(child) = self.children.get_mut(&agent) else { return };
        child.state = ChildState::GivingUp(cause);
        if !self.kill_shell_of(agent) {
            self.fail(agent, Failure { cause, words: String::new() });
        }
    }

    /// Kills what remains of a child's shell, unless others live by it. Returns whether it did.
    fn kill_shell_of(&mut self, agent: AgentId) -> bool {
        let Some(shell) = self.children.get(&agent).and_then(|child| child.shell) else {
            return false;
        };
        let is_needed = |other: &AgentId| {
            self.children.get(other).is_some_and(|child| match child.state {
                ChildState::Starting { .. } | ChildState::Up | ChildState::Losing { .. } => true,
                ChildState::Waiting
                | ChildState::GivingUp(_)
                | ChildState::BackingOff { .. }
                | ChildState::Gone { .. } => false,
            })
        };
        if self.starts.get(&shell).is_some_and(|agents| agents.iter().any(is_needed)) {
            return false;
        }
        self.effects.push_back(Effect::KillShell(shell));
        true
    }

    /// Ends what has been started and has not joined, and starts nothing more.
    pub(crate) fn end_starts(&mut self) {
        self.waiting = VecDeque::new();
        self.start_times = StartTimes::default();
        self.drop_held();
        let (mut unjoined, mut failures) = (Vec::new(), Vec::new());
        for child in self.children.values_mut() {
            child.given = Vec::new();
            match child.state {
                ChildState::Waiting
                | ChildState::BackingOff { .. }
                | ChildState::Starting { .. }
                | ChildState::GivingUp(_) => {
                    child.state = ChildState::Gone { kill_shell_at: None };
                    unjoined.push(child.agent);
                    failures.extend(child.elsewhere.take().map(|failure| *failure));
                }
                ChildState::Up | ChildState::Losing { .. } | ChildState::Gone { .. } => {}
            }
        }
        for agent in unjoined {
            self.kill_shell_of(agent);
        }
        // Nobody will know better.
        if !failures.is_empty() {
            self.on_start_failures(failures);
        }
    }

    pub(crate) fn on_child_link_down(
        &mut self,
        agent: AgentId,
        link: LinkId,
        end: LinkEnd,
        words: String,
    ) {
        let session = self.session();
        let Some(child) = self.children.get_mut(&agent) else { return };
        if child.link != Some(link) {
            return;
        }
        child.link = None;
        match &mut child.state {
            ChildState::Up => {
                let cause = match end {
                    LinkEnd::Closed => LossCause::LinkClosed,
                    LinkEnd::Cut => LossCause::LinkCut(session.link_timeout_ms),
                    LinkEnd::Misbehaved => LossCause::Misbehaved,
                };
                let report_at = self.now + EXPLAIN_MAX;
                child.state = ChildState::Losing { cause, words, report_at };
                if child.shell.is_none() {
                    self.lose(agent);
                }
            }
            ChildState::Losing { .. } => self.lose(agent),
            ChildState::Waiting
            | ChildState::Starting { .. }
            | ChildState::GivingUp(_)
            | ChildState::BackingOff { .. }
            | ChildState::Gone { .. } => {}
        }
    }

    /// Reports a child that was up as lost, and with it all below unless they can be taken over.
    fn lose(&mut self, agent: AgentId) {
        let (again, mut agents) = self.orphans_of(agent);
        agents.insert(agent.0);
        let Some(child) = self.children.get_mut(&agent) else { return };
        let gone = ChildState::Gone { kill_shell_at: Some(self.now) };
        let ChildState::Losing { cause, words, .. } = core::mem::replace(&mut child.state, gone)
        else {
            return;
        };
        if let Some(link) = child.link.take() {
            self.links.remove(&link);
            self.effects.push_back(Effect::Close(link));
        }
        self.mark(agent, MarkKind::GivenUp);
        self.kill_shell_of(agent);
        // While the session ends, to be gone is what was asked for.
        if self.ending.is_none() {
            self.on_loss(AgentLoss { agent, agents, again: again.clone(), cause, words });
        } else if self.place.is_some() || self.jobs.iter().any(|job| job.waits_for(agent)) {
            // Where messages take another tree, only it could have told that all had ended there and below.
            let below = agents.iter().map(|id| self.job_subtree(AgentId(id)));
            let left = below.fold(agents.clone(), |left, below| left.union(&below));
            self.stats.unfinished = self.stats.unfinished.union(&left);
        }
        self.child_ended(agent);
        self.take_over(agent, &again);
    }

    /// Passes a loss on to the head.
    pub(crate) fn on_loss(&mut self, loss: AgentLoss) {
        if !self.is_head() {
            self.events.push_back(Event::AgentLost(loss.clone()));
        }
        self.discount_workers(&loss.agents.union(&loss.again));
        self.joining_again(&loss.again);
        self.not_joining(&loss.agents);
        self.await_no_routes_of(loss.agent);
        self.up(Message::Lost(loss));
    }

    pub(crate) fn child_misbehaved(&mut self, agent: AgentId, words: &str) {
        let link = self.children.get(&agent).and_then(|child| child.link);
        if let Some(link) = link {
            self.misbehaved(link, agent, words);
        }
    }

    /// Handles a child's farewell.
    pub(crate) fn on_bye(&mut self, agent: AgentId, stats: &Stats) {
        self.stats.merge(stats);
        if self.ending.is_none() {
            return self.child_misbehaved(agent, "it left before it was told to");
        }
        let Some(child) = self.children.get_mut(&agent) else { return };
        child.state = ChildState::Gone { kill_shell_at: Some(self.now + SHELL_LINGER_MAX) };
        if let Some(link) = child.link.take() {
            self.links.remove(&link);
            self.effects.push_back(Effect::Close(link));
        }
        self.mark(agent, MarkKind::Left);
        self.child_ended(agent);
    }

    /// Handles that a child's subtree will do nothing more for the job.
    fn child_ended(&mut self, agent: AgentId) {
        // Where the job's messages take another tree, the head might hear of the end before it hears
        // of the loss. So it says itself who is gone.
        if self.place.is_none() || self.ending.is_some() {
            self.on_child_gone(agent);
        }
    }

    pub(crate) fn child_heard(&mut self, agent: AgentId) {
        if let Some(child) = self.children.get_mut(&agent) {
            child.silence.on_heard(self.now);
        }
    }

    pub(crate) fn child_announced(&mut self, agent: AgentId, next_ms: u32) {
        if let Some(child) = self.children.get_mut(&agent) {
            child.silence.on_announced(self.now, next_ms);
        }
    }

    /// Does what the passing of time asks for.
    pub(crate) fn check_children(&mut self) {
        if let Some(ticker) = &mut self.ticker
            && ticker.is_due(self.now)
        {
            let next_ms = ticker.period_ms();
            self.tell_children(Message::Ping { next_ms });
        }
        let due = self.children.due_until(self.now);
        // Of those that are found silent together, none is given what others leave.
        due.iter().for_each(|agent| self.suspect(*agent));
        for agent in due {
            self.child_timed_out(agent);
        }
        self.relieve_slow();
    }

    /// Asks every child for a sign of life, and from here on often.
    pub(crate) fn hurry_children(&mut self) {
        let Some(ticker) = &mut self.ticker else { return };
        ticker.hurry(self.now, HURRY);
        for child in self.children.values_mut().filter(|child| child.is_up()) {
            child.silence.on_announced(self.now, millis(HURRY));
        }
    }

    /// Handles that this process goes on after it was stopped for `pause`, in which nobody could have
    /// come up.
    pub(crate) fn resume_starts(&mut self, pause: Duration) {
        self.resumed_at = Some(self.now);
        for child in self.children.values_mut() {
            if let ChildState::Starting { give_up_at } = &mut child.state {
                *give_up_at = *give_up_at + pause;
                child.first_start = child.first_start + pause;
            }
        }
    }

    /// Until when a start that has had its time may go on. Starts of one host queue there: for a
    /// processor, a lock, a name service. So each has its whole time from when the last one came up
    /// that was made before it, and for as long as those come up nobody is given up. Nor is one that
    /// waits for its turn to be sent the program.
    fn more_time(&self, agent: AgentId) -> Option<Time> {
        let Child { state: ChildState::Starting { .. }, shell: Some(start), .. } =
            *self.children.get(&agent)?
        else {
            return None;
        };
        if self.deliveries.is_waiting(start) {
            return Some(self.start_time_from(self.now));
        }
        let is_before = |child: &&Child| child.shell.is_some_and(|other| other <= start);
        let last =
            self.children.values().filter(is_before).filter_map(|child| child.up_at).max()?;
        let until = self.start_time_from(last);
        (until > self.now).then_some(until)
    }

    /// Handles that a child that is up has been silent for too long.
    fn suspect(&mut self, agent: AgentId) {
        let Some(child) = self.children.get_mut(&agent).filter(|child| child.is_up()) else {
            return;
        };
        let cause = LossCause::Silent(millis(child.silence.length(self.now)));
        let (words, report_at) = (String::new(), self.now);
        child.state = ChildState::Losing { cause, words, report_at };
    }

    fn child_timed_out(&mut self, agent: AgentId) {
        let more_time = self.more_time(agent);
        let Some(child) = self.children.get_mut(&agent) else { return };
        match &mut child.state {
            ChildState::Waiting | ChildState::GivingUp(_) => {}
            ChildState::Starting { give_up_at } => match more_time {
                Some(until) => *give_up_at = until,
                None => {
                    self.give_up(agent, StartCause::Silent);
                    self.start_waiting();
                }
            },
            ChildState::BackingOff { .. } => {
                child.state = ChildState::Waiting;
                if self.is_first_again(agent) {
                    self.waiting.push_front(agent);
                } else {
                    self.waiting.push_back(agent);
                }
                self.start_waiting();
            }
            ChildState::Up => {}
            ChildState::Losing { .. } => self.lose(agent),
            ChildState::Gone { kill_shell_at } => {
                *kill_shell_at = None;
                self.kill_shell_of(agent);
            }
        }
    }
}

/// Output that each of so many children may have on its way.
pub(crate) fn output_window(children: usize) -> u32 {
    let count = u32::try_from(children).unwrap_or(u32::MAX).max(1);
    (OUTPUT_BYTES / count).clamp(OUTPUT_BYTES_MIN, OUTPUT_BYTES_MAX)
}

/// What the end of a shell says about the loss of its agent.
fn shell_loss(cause: StartCause) -> Option<LossCause> {
    match cause {
        StartCause::Shell(ShellFailureKind::AgentKilled(signal), _) => {
            Some(LossCause::Killed(signal))
        }
        StartCause::Shell(_, status) => Some(LossCause::Shell(status)),
        StartCause::NoShell(_) | StartCause::Silent | StartCause::Deadline => None,
    }
}

/// What `by` says of agents that waited for their turn when the time to join was over.
pub(crate) fn never_started(agents: IdSet, by: AgentId) -> StartFailure {
    StartFailure {
        agents,
        cause: StartCause::Deadline,
        words: String::new(),
        elapsed_ms: 0,
        attempts: 0,
        by,
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
