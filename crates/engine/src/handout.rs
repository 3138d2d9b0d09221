//! The adaptive tree: hosts are handed out as agents become free, and nobody plans.
//!
//! The head holds all hosts at first. Every agent that is up starts hosts that it holds, one after
//! the other, as fast as its own host lets it ([`Pace`]). A child that joins is given a few hosts
//! with its welcome; who has none left asks its parent, which gives of its own or asks further up.
//! So whoever is faster asks earlier and gets more, and a host that is slow to come up delays
//! itself alone: it is responsible for nobody before it has joined.
//!
//! A host that has not been started is held by one agent at any time: by whoever was given it last.
//! Nothing is given back but by those that are lost (`takeover.rs`), so a share must be small: a part
//! of what is left that shrinks as that runs out ([`Handout::share`]). That is two messages for every few hosts, and one in vain from
//! each agent at the most: who has asked is told when there is something, and only then.
//!
//! When hosts are alike, this is the greedy tree: everybody who is up starts others all the time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use model::{AgentId, IdSet, Time, Tree};
use wire::{Message, Work};

use crate::child::Child;
use crate::engine::Engine;
use crate::pace::Pace;
use crate::tree::DEFAULT_CHILDREN_MAX;
use crate::{StartId, names};

/// The most hosts that are given at once for each agent that is free: what an agent that turns out
/// to be slow can keep from the others.
const SHARE_MAX: u64 = 4;

/// So few hosts the head starts all at once. Until the first is up, nobody else could, and a gap that
/// is only assumed would keep most of them waiting for that.
const FEW: u64 = 16;

/// What an agent of an adaptive tree holds and owes.
#[derive(Debug)]
pub(crate) struct Handout {
    /// Agents that nobody has started, with the names of their hosts.
    unstarted: VecDeque<(AgentId, String)>,
    /// Children that wait for work, the longest first, and how many agents are to get some there.
    hungry: VecDeque<(AgentId, u32)>,
    /// Whether the parent knows that we wait for work.
    asked: bool,
    /// How many agents below have joined.
    joined: u64,
    pub(crate) pace: Pace,
}

impl Handout {
    fn new(now: Time, latency: Duration, gap: Duration) -> Handout {
        Handout {
            unstarted: VecDeque::new(),
            hungry: VecDeque::new(),
            asked: false,
            joined: 0,
            pace: Pace::new(now, latency, gap),
        }
    }

    /// The agents that nobody has started.
    fn held(&self) -> IdSet {
        self.unstarted.iter().map(|(agent, _)| agent.0).collect()
    }

    fn put(&mut self, below: &IdSet, names: Vec<String>) {
        self.unstarted.extend(below.iter().map(AgentId).zip(names));
    }

    /// How many hosts to give for `free` agents: half of their part of the rest, when all who
    /// are up and all who are on their way (`in_flight`) get one.
    fn share(&self, free: u32, in_flight: usize) -> usize {
        let left = self.unstarted.len() as u64;
        let workers = 1 + self.joined + in_flight as u64;
        let each = (left / (2 * workers)).clamp(1, SHARE_MAX);
        usize::try_from(left.min(each * u64::from(free))).unwrap_or(usize::MAX)
    }

    /// Takes the next `count` hosts out, for one who will hold them.
    fn take(&mut self, count: usize) -> (IdSet, Vec<String>) {
        let mut taken: Vec<(AgentId, String)> = self.unstarted.drain(..count).collect();
        taken.sort_unstable_by_key(|&(agent, _)| agent);
        let below = taken.iter().map(|(agent, _)| agent.0).collect();
        (below, taken.into_iter().map(|(_, name)| name).collect())
    }
}

impl Engine {
    /// Begins to hand out: the hosts are held here until they are started or given away.
    pub(crate) fn begin_handout(
        &mut self,
        (latency, gap): (Duration, Duration),
        below: &IdSet,
        names: Vec<String>,
    ) {
        let is_head_of_few = self.is_head() && below.len() <= FEW;
        let gap = if is_head_of_few { Duration::ZERO } else { gap };
        let mut handout = Handout::new(self.now, latency, gap);
        // Whoever is welcomed without work is known to wait for some.
        handout.asked = below.is_empty();
        handout.put(below, names);
        if self.is_told {
            handout.pace.be_told();
        }
        self.handout = Some(handout);
    }

    /// Starts what may be started now, then asks for more if nothing is left.
    pub(crate) fn start_free(&mut self) {
        while self.may_start() {
            let agents = self.next_agents();
            if agents.is_empty() {
                break;
            }
            let in_flight = self.children.starts_in_flight();
            if let Some(handout) = &mut self.handout {
                handout.pace.on_start(self.now, in_flight);
            }
            self.start(agents);
        }
        self.ask_for_work();
    }

    /// Handles that a host turned a start away since there were too many.
    pub(crate) fn slow_down(&mut self) {
        let in_flight = self.children.starts_in_flight();
        if let Some(handout) = &mut self.handout {
            handout.pace.on_busy(in_flight);
        }
    }

    fn may_start(&mut self) -> bool {
        let in_flight = self.children.starts_in_flight();
        let Some(handout) = &self.handout else { return false };
        let window = self.session().window.max(1) as usize;
        let most = handout.pace.in_flight_max().min(window);
        handout.pace.is_free(self.now) && in_flight < most && self.set_room() > 0
    }

    /// The agents of the next start: those that are to be tried again come first.
    fn next_agents(&mut self) -> Vec<AgentId> {
        let bulk_max = usize::try_from(self.session().bulk_max.max(1)).unwrap_or(usize::MAX);
        let again = self.next_waiting(bulk_max);
        if !again.is_empty() {
            return again;
        }
        let room = self.room().min(self.set_room());
        let Some(handout) = &mut self.handout else { return again };
        let count = handout.unstarted.len().min(bulk_max).min(room);
        let taken: Vec<(AgentId, String)> = handout.unstarted.drain(..count).collect();
        taken.into_iter().map(|(agent, name)| self.add_child(agent, name)).collect()
    }

    /// How many more children this member may have.
    fn room(&self) -> usize {
        let children = self.children.values().filter(|child| !child.is_gone()).count();
        let most = DEFAULT_CHILDREN_MAX.min(self.children_max.into());
        usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(children)
    }

    fn add_child(&mut self, agent: AgentId, name: String) -> AgentId {
        let tree = Tree::adaptive(); // told better when it joins
        self.insert_child(Child::new(self.now, agent, name, IdSet::new(), Vec::new(), tree));
        self.set_ticker();
        agent
    }

    /// Gives a child that has just joined its first work.
    pub(crate) fn first_share(&mut self, agent: AgentId) {
        let Some(handout) = &mut self.handout else { return };
        let Some(child) = self.children.get_mut(&agent) else { return };
        handout.pace.on_joined(self.now, child.first_start);
        // How fast it is will be known when it asks for more.
        let share = handout.unstarted.len().min(1);
        (child.below, child.names) = handout.take(share);
        child.tree = handout.pace.tree();
        if child.below.is_empty() {
            handout.hungry.push_back((agent, 1));
        }
    }

    /// Handles that a child's subtree has nobody left to start.
    pub(crate) fn on_more_work(&mut self, agent: AgentId, free: u32) {
        let Some(handout) = &mut self.handout else {
            return self.child_misbehaved(agent, "it asked for work in a planned tree");
        };
        handout.hungry.retain(|&(other, _)| other != agent);
        handout.hungry.push_back((agent, free.max(1)));
        self.feed();
        self.start_waiting();
    }

    /// Handles that the parent gives more work.
    pub(crate) fn on_work(&mut self, work: &Work) {
        let Ok(names) = names::unfold(&work.names, work.below.len()) else {
            return self.abandon("its parent's list of names is broken".into());
        };
        let Some(handout) = &mut self.handout else {
            return self.abandon("its parent gave it work beyond the plan".into());
        };
        handout.asked = false;
        self.joining.missing = self.joining.missing.union(&work.below);
        self.hand_out(&work.below, names);
    }

    /// Hands out agents that this member is to start beyond those it held.
    pub(crate) fn hand_out(&mut self, below: &IdSet, names: Vec<String>) {
        let Some(handout) = &mut self.handout else { return };
        handout.put(below, names);
        if self.ending.is_some() {
            self.drop_held();
            return;
        }
        self.start_free();
        self.feed();
        self.start_free();
    }

    /// Gives to the children that wait, the longest first, as long as there is something.
    fn feed(&mut self) {
        let in_flight = self.children.starts_in_flight();
        while let Some(handout) = &mut self.handout
            && !handout.unstarted.is_empty()
            && let Some((agent, free)) = handout.hungry.pop_front()
        {
            let Some(child) = self.children.get_mut(&agent).filter(|child| child.is_up()) else {
                continue;
            };
            let Some(link) = child.link else { continue };
            let share = handout.share(free, in_flight);
            let (below, names) = handout.take(share);
            child.below = child.below.union(&below);
            let work = Work { below, names: names::fold(&names) };
            child.given.push(work.clone());
            self.send(vec![link], Message::Work(Box::new(work)));
        }
    }

    /// Asks the parent for work, once, when somebody here or below is free and nothing is left.
    fn ask_for_work(&mut self) {
        let own = u32::from(self.room() > 0 && self.may_start());
        let is_head = self.is_head();
        let Some(handout) = &mut self.handout else { return };
        let below = handout.hungry.iter().map(|&(_, free)| free);
        let free = below.fold(own, u32::saturating_add);
        // Who works below is free soon, and then shall not have to ask all the way up.
        let working = u32::try_from(handout.joined).unwrap_or(u32::MAX);
        if is_head || handout.asked || !handout.unstarted.is_empty() || free == 0 {
            return;
        }
        handout.asked = true;
        self.up(Message::MoreWork(free.max(working)));
    }

    /// Handles that the driver's host is free for another start.
    pub(crate) fn on_started(&mut self, _start: StartId) {
        if let Some(handout) = &mut self.handout {
            handout.pace.on_started(self.now);
            self.start_waiting();
        }
    }

    /// What is held here; it is held no longer.
    pub(crate) fn drop_held(&mut self) -> IdSet {
        let Some(handout) = &mut self.handout else { return IdSet::new() };
        let held = handout.held();
        handout.unstarted.clear();
        held
    }

    /// When the next start is due, if time is what it waits for.
    pub(crate) fn start_due(&self) -> Option<Time> {
        let handout = self.handout.as_ref().filter(|_| self.ending.is_none())?;
        let has_some = !self.waiting.is_empty() || !handout.unstarted.is_empty();
        let is_waiting = has_some || !(handout.asked || self.is_head());
        handout.pace.due(self.now).filter(|_| is_waiting)
    }

    /// How many children this member may have in the end. An agent can't know what it will get.
    pub(crate) fn children_expected(&self) -> usize {
        let Some(handout) = &self.handout else { return self.children.len() };
        let more = if self.is_head() { handout.unstarted.len() } else { usize::MAX };
        self.children.len() + more.min(self.room())
    }

    /// Counts agents of a child's subtree as workers.
    pub(crate) fn count_workers(&mut self, ids: &IdSet) {
        if let Some(handout) = &mut self.handout {
            handout.joined += ids.len();
        }
    }

    /// No longer counts those that had joined and are gone.
    pub(crate) fn discount_workers(&mut self, gone: &IdSet) {
        if let Some(handout) = &mut self.handout {
            let joined = gone.difference(&self.joining.missing).len();
            handout.joined = handout.joined.saturating_sub(joined);
        }
    }
}
