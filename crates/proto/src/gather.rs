//! Waiting for all parts of one agent: its own tasks, and what is below each child.
//!
//! A part whose tasks have all ended can't enter any more and is not waited for: a task that ends
//! without entering must not leave the others waiting for ever. Losing an agent is another
//! matter, and ends the job.

use alloc::collections::BTreeMap;

use model::AgentId;

/// One round after the other, in each of which every part brings a `P`.
#[derive(Debug)]
pub(crate) struct Gather<P> {
    number: u32,
    /// `None` where no task of the job runs.
    local: Option<Part<P>>,
    children: BTreeMap<AgentId, Part<P>>,
    counts: Counts,
    entered: bool,
}

/// One of those that are waited for.
#[derive(Debug)]
enum Part<P> {
    Awaited,
    Entered(P),
    Ended,
}

/// How many parts are in which state, so that none of very many children costs a look at all.
#[derive(Debug, Default)]
struct Counts {
    awaited: usize,
    entered: usize,
}

impl Counts {
    /// Puts a part into another state.
    fn change<P>(&mut self, part: &mut Part<P>, to: Part<P>) {
        if let Some(count) = self.of(part) {
            *count -= 1;
        }
        if let Some(count) = self.of(&to) {
            *count += 1;
        }
        *part = to;
    }

    fn of<P>(&mut self, part: &Part<P>) -> Option<&mut usize> {
        match part {
            Part::Awaited => Some(&mut self.awaited),
            Part::Entered(_) => Some(&mut self.entered),
            Part::Ended => None,
        }
    }
}

impl<P> Gather<P> {
    /// Rounds with tasks on this agent (`local`) and below these children.
    pub(crate) fn new(local: bool, children: impl IntoIterator<Item = AgentId>) -> Gather<P> {
        let mut gather = Gather {
            number: 0,
            local: local.then_some(Part::Awaited),
            children: BTreeMap::new(),
            counts: Counts { awaited: usize::from(local), entered: 0 },
            entered: false,
        };
        children.into_iter().for_each(|child| gather.add_child(child));
        gather
    }

    /// Waits for one more child. Nobody has entered yet.
    pub(crate) fn add_child(&mut self, child: AgentId) {
        let part = self.children.entry(child).or_insert(Part::Ended);
        self.counts.change(part, Part::Awaited);
    }

    /// Takes what all local tasks bring.
    pub(crate) fn enter_local(&mut self, brought: P) {
        let Some(part @ Part::Awaited) = &mut self.local else {
            panic!("local tasks enter a round once");
        };
        self.counts.change(part, Part::Entered(brought));
    }

    /// Takes what is brought from below a child; false when this round does not wait for that.
    #[must_use]
    pub(crate) fn enter_child(&mut self, child: AgentId, number: u32, brought: P) -> bool {
        let is_awaited = self.awaits_child(child, number);
        if let Some(part) = self.children.get_mut(&child).filter(|_| is_awaited) {
            self.counts.change(part, Part::Entered(brought));
        }
        is_awaited
    }

    /// Whether the round of this number waits for what is below a child.
    pub(crate) fn awaits_child(&self, child: AgentId, number: u32) -> bool {
        let is_awaited = matches!(self.children.get(&child), Some(Part::Awaited));
        is_awaited && number == self.number && !self.entered
    }

    /// The number of this round.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether the local tasks have not ended.
    pub(crate) fn counts_local(&self) -> bool {
        matches!(self.local, Some(Part::Awaited | Part::Entered(_)))
    }

    /// The children below which not all tasks have ended.
    pub(crate) fn children(&self) -> impl Iterator<Item = AgentId> {
        let counts = |part: &&Part<P>| !matches!(part, Part::Ended);
        self.children.iter().filter(move |(_, part)| counts(part)).map(|(child, _)| *child)
    }

    /// The children that are waited for.
    pub(crate) fn awaited_children(&self) -> impl Iterator<Item = AgentId> {
        let is_awaited = |part: &&Part<P>| matches!(part, Part::Awaited);
        let awaited = self.children.iter().filter(move |(_, part)| is_awaited(part));
        awaited.map(|(child, _)| *child)
    }

    /// No local task can enter any more.
    pub(crate) fn end_local(&mut self) {
        if let Some(part) = &mut self.local {
            self.counts.change(part, Part::Ended);
        }
    }

    /// No task below a child can enter any more.
    pub(crate) fn end_child(&mut self, child: AgentId) {
        if let Some(part) = self.children.get_mut(&child) {
            self.counts.change(part, Part::Ended);
        }
    }

    /// The number of the round when all that it waits for have entered, once.
    pub(crate) fn completes(&mut self) -> Option<u32> {
        let is_complete = !self.entered && self.counts.entered > 0 && self.counts.awaited == 0;
        self.entered |= is_complete;
        is_complete.then_some(self.number)
    }

    /// What has been brought: by the local tasks, then by each child in order.
    pub(crate) fn brought(&self) -> impl Iterator<Item = (Option<AgentId>, &P)> {
        let children = self.children.iter().map(|(child, part)| (Some(*child), part));
        let parts = self.local.iter().map(|part| (None, part)).chain(children);
        parts.filter_map(|(whose, part)| match part {
            Part::Entered(brought) => Some((whose, brought)),
            Part::Awaited | Part::Ended => None,
        })
    }

    /// The same, to be changed.
    pub(crate) fn brought_mut(&mut self) -> impl Iterator<Item = &mut P> {
        let parts = self.local.iter_mut().chain(self.children.values_mut());
        parts.filter_map(|part| match part {
            Part::Entered(brought) => Some(brought),
            Part::Awaited | Part::Ended => None,
        })
    }

    /// Ends a round, whose number the parent says. A parent tells all its children, those with it whose
    /// tasks have ended: they waited for nothing.
    pub(crate) fn end(&mut self, number: u32) -> Ended {
        let ended = self.would_end(number);
        if ended != Ended::Well {
            return ended;
        }
        self.number += 1;
        self.entered = false;
        for part in self.local.iter_mut().chain(self.children.values_mut()) {
            if matches!(part, Part::Entered(_)) {
                self.counts.change(part, Part::Awaited);
            }
        }
        ended
    }

    /// What the end of the round of this number would be now.
    pub(crate) fn would_end(&self, number: u32) -> Ended {
        if !self.entered && self.has_ended() {
            Ended::NotHere
        } else if number != self.number || !self.entered {
            Ended::Early
        } else {
            Ended::Well
        }
    }

    /// Whether no task below can enter any more.
    fn has_ended(&self) -> bool {
        self.counts.awaited == 0 && self.counts.entered == 0
    }
}

/// What the end of a round is to an agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ended {
    /// The end of the round that was entered here.
    Well,
    /// Nobody here waits for it.
    NotHere,
    /// The parent's mistake: the round was not entered here.
    Early,
}
