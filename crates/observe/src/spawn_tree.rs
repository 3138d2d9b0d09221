//! Draws who started whom, with the time at which each agent joined.

use std::fmt::Write;

use model::{IdSet, Tree};

use crate::{Timeline, seconds};

/// The planned spawn tree over the nodes `names`, one line for each agent. An adaptive tree has no
/// plan, and nobody is told what it came to: its agents are listed.
pub fn draw_tree(tree: &Tree, names: &[String], timeline: &Timeline) -> String {
    let n = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let mut text = format!("front end  {n} agents, tree {tree}\n");
    let below = if n == 0 { IdSet::new() } else { IdSet::range(1, n) };
    let tree = if matches!(tree, Tree::Adaptive { .. }) { &Tree::Flat } else { tree };
    Drawing { names, timeline, text: &mut text }.branches(tree, &below, "");
    text
}

struct Drawing<'a> {
    names: &'a [String],
    timeline: &'a Timeline,
    text: &'a mut String,
}

impl Drawing<'_> {
    /// Recursive: a chain of a thousand agents is a thousand deep, and takes some 200 KiB of stack.
    fn branches(&mut self, tree: &Tree, below: &IdSet, indent: &str) {
        let branches = engine::tree::branches(tree, below);
        let last = branches.len().saturating_sub(1);
        for (index, branch) in branches.iter().enumerate() {
            let (fork, bar) = if index == last { ("└─", "   ") } else { ("├─", "│  ") };
            let name = self.name(branch.child.0);
            let joined = match self.timeline.joined_at(branch.child.0) {
                Some(at) => seconds(at.since(model::Time::ZERO)),
                None => "did not join".to_owned(),
            };
            // Writing to a String does not fail.
            let _ = writeln!(self.text, "{indent}{fork} {name}  {joined}");
            self.branches(&branch.tree, &branch.below, &format!("{indent}{bar}"));
        }
    }

    fn name(&self, agent: u32) -> String {
        let index = usize::try_from(agent).unwrap_or(0).wrapping_sub(1);
        self.names.get(index).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use model::Time;
    use proto::Event;

    use super::*;

    #[test]
    fn a_tree_is_drawn_with_the_times_of_joining() {
        let names = ["n1", "n2", "n3"].map(String::from);
        let mut timeline = Timeline::default();
        let joined = Event::AgentsJoined(IdSet::range(1, 2));
        timeline.on_event(Time::from_nanos(250_000_000), &joined);
        insta::assert_snapshot!(draw_tree(&Tree::Kary(2), &names, &timeline), @r"
        front end  3 agents, tree kary:2
        ├─ n1  0.25 s
        │  └─ n2  0.25 s
        └─ n3  did not join
        ");
    }
}
