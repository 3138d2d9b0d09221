//! Links: sending, closing, and what the other end sees.

use std::time::Duration;

use engine::{HOST_SILENT_MAX, Input, LinkEnd, LinkId};
use wire::{Class, Decoder, Message};

use super::{Happening, World};
use crate::link::{Held, Link, index, message_bytes, message_kind, transfer_time};
use crate::process::ProcessId;

impl World<'_> {
    /// Joins two processes and tells both.
    pub(super) fn connect(&mut self, parent: ProcessId, child: ProcessId, is_route: bool) {
        let link = LinkId(self.links.len() as u64);
        let agent = self.processes[child.0].agent;
        let over_shell = !is_route && self.session.is_over_shell(agent);
        let mut new = Link::new(parent, child, self.machines.link_latency(agent));
        new.is_route = is_route;
        // Nobody probes a shell's streams.
        new.is_hushed = over_shell;
        self.links.push(new);
        for (id, peer) in [(parent, child), (child, parent)] {
            let process = &mut self.processes[id.0];
            process.links.insert(link);
            let report = &mut self.checker.report;
            report.links_max = report.links_max.max(process.links.len());
            let peer = self.processes[peer.0].agent;
            self.tell(id, Input::LinkUp { link, peer, over_shell });
        }
    }

    pub(super) fn send(&mut self, id: ProcessId, links: &[LinkId], message: &Message) {
        for &link in links {
            let agent = self.processes[id.0].agent;
            match self.links.get(index(link)) {
                Some(found) if found.ends.contains(&id) => self.send_one(id, link, message),
                Some(_) | None => {
                    self.checker.violate(format!("agent {agent} sends on {link:?}, not its own"));
                }
            }
        }
    }

    fn send_one(&mut self, id: ProcessId, link_id: LinkId, message: &Message) {
        let link = &mut self.links[index(link_id)];
        let end = link.end_of(id);
        let kind = message_kind(message);
        let other = link.ends[1 - end];
        let hands_over = matches!(message, Message::Welcome(_) | Message::Work(_));
        if hands_over && self.is_member(id) {
            let wrong = self.holders.hand_over(id, other, message);
            self.checker.violations.extend(wrong);
        }
        if let Message::Welcome(_) = message {
            self.welcome(id, other, link_id);
        }
        let link = &mut self.links[index(link_id)];
        if link.is_closed[end] {
            let agent = self.processes[id.0].agent;
            let words = format!("agent {agent} sends {kind} on {link_id:?}, which is down");
            return self.checker.violate(words);
        }
        *self.checker.report.messages.entry(kind).or_default() += 1;
        if let Message::Output(output) = message {
            // A sender may overdraw by one piece.
            if link.credit <= 0 {
                self.checker.violate(format!("{link_id:?} carries output without credit"));
            }
            link.credit -= output.len() as i64;
            let uncredited = link.window.unwrap_or(0) - link.credit;
            let report = &mut self.checker.report;
            report.uncredited_max = report.uncredited_max.max(uncredited);
        }
        let bytes = message_bytes(message);
        *self.checker.report.bytes.entry(kind).or_default() += bytes;
        let begin = self.work(id, self.now, self.machines.cpu().message_us);
        let class = Class::of(message);
        let by_host = self.machines.send(self.processes[id.0].agent, begin, class, bytes);
        let link = &mut self.links[index(link_id)];
        let bandwidth = self.session.calibration.link.bandwidth_bytes_per_s;
        let time = link.arrival(begin, by_host, end, class, transfer_time(bytes, bandwidth));
        let message = if self.session.encodes { self.recoded(message) } else { message.clone() };
        self.queue.push(time, Happening::Arrival(link_id, 1 - end, message));
    }

    /// A process takes another as its child.
    fn welcome(&mut self, by: ProcessId, child: ProcessId, link: LinkId) {
        let agent = self.processes[child.0].agent;
        self.sets.welcome(by, agent);
        self.processes[child.0].uplink = Some(link);
        if !self.is_member(by) {
            return;
        }
        if let Some(before) = self.holders.welcome(agent, child)
            && self.is_member(before)
        {
            self.checker.violate(format!("{before:?} and {child:?} are both agent {agent}"));
        }
    }

    /// Whether a process has a path to the head whose links are all open at their upper ends.
    pub(super) fn is_member(&self, mut id: ProcessId) -> bool {
        while let Some(link) = self.processes[id.0].uplink.map(|link| &self.links[index(link)]) {
            if link.is_closed[0] {
                return false;
            }
            id = link.ends[0];
        }
        id == ProcessId::HEAD
    }

    /// A message as it comes out of the codec at the other end.
    fn recoded(&mut self, message: &Message) -> Message {
        match recode(message) {
            Ok(decoded) if decoded == *message => return decoded,
            Ok(decoded) => self.checker.violate(format!("{message:?} is decoded as {decoded:?}")),
            Err(words) => self.checker.violate(format!("{message:?} has no encoding: {words}")),
        }
        message.clone()
    }

    /// A message is there; its receiver gets to it when it is free.
    pub(super) fn arrive(&mut self, link_id: LinkId, end: usize, message: Message) {
        let link = &mut self.links[index(link_id)];
        if link.is_deaf[end] {
            return link.held[end].push(Held::Message(message));
        }
        let id = link.ends[end];
        let done = self.work(id, self.now, self.machines.cpu().message_us);
        if done > self.now {
            self.queue.push(done, Happening::Receipt(link_id, end, message));
        } else {
            self.receive(link_id, end, message);
        }
    }

    pub(super) fn receive(&mut self, link_id: LinkId, end: usize, message: Message) {
        let link = &self.links[index(link_id)];
        let id = link.ends[end];
        let process = &self.processes[id.0];
        if link.is_closed[end] || !process.is_running() {
            return;
        }
        if let Some(at) = process.paused_until(self.now) {
            let again = Happening::Receipt(link_id, end, message);
            return self.queue.push(at, again);
        }
        self.note_arrival(link_id, id, &message);
        self.tell(id, Input::Message { link: link_id, message });
    }

    fn note_arrival(&mut self, link_id: LinkId, id: ProcessId, message: &Message) {
        let agent = self.processes[id.0].agent;
        if let Message::OutputCredit(bytes) = message {
            let link = &mut self.links[index(link_id)];
            link.credit += i64::from(*bytes);
            if link.credit > *link.window.get_or_insert(link.credit) {
                self.checker.violate(format!("agent {agent} is credited more than it sent"));
            }
        }
        if let Message::Welcome(_) = message {
            self.checker.reference.welcome(agent);
            let report = &mut self.checker.report;
            report.welcomed_at = Some(self.now);
            *report.welcomes.entry(agent).or_default() += 1;
        }
    }

    /// An engine closes a link.
    pub(super) fn close_link(&mut self, id: ProcessId, link: LinkId) {
        match self.links.get(index(link)) {
            Some(found) if found.ends.contains(&id) => self.close_end(id, link),
            Some(_) | None => {
                self.checker.violate(format!("Close of {link:?}, which is not there"))
            }
        }
    }

    /// Closes one end; the other sees it behind all that was sent.
    pub(super) fn close_end(&mut self, id: ProcessId, link_id: LinkId) {
        let begin = self.now.max(self.processes[id.0].busy_until);
        let link = &mut self.links[index(link_id)];
        let end = link.end_of(id);
        self.processes[id.0].links.remove(&link_id);
        if std::mem::replace(&mut link.is_closed[end], true) {
            return;
        }
        let time = link.end_arrival(begin, end);
        self.queue.push(time, Happening::LinkDown(link_id, 1 - end));
    }

    /// One end sees that the other has closed the link.
    pub(super) fn see_link_down(&mut self, link: LinkId, end: usize) {
        let found = &mut self.links[index(link)];
        if found.is_deaf[end] {
            return found.held[end].push(Held::Down);
        }
        self.break_link(link, end, LinkEnd::Closed, Happening::LinkDown);
    }

    pub(super) fn set_link_timeout(&mut self, id: ProcessId, link_id: LinkId, ms: Option<u32>) {
        let Some(link) = self.links.get_mut(index(link_id)) else {
            return self
                .checker
                .violate(format!("SetLinkTimeout of {link_id:?}, which is not there"));
        };
        let end = link.end_of(id);
        link.timeouts[end] = ms.map_or(HOST_SILENT_MAX, |ms| Duration::from_millis(u64::from(ms)));
        if link.is_hurt() {
            self.run_link_timeout(link_id, end);
        }
    }

    /// Nothing arrives at these ends of a link from here on. What one end sends is acknowledged on
    /// the way to it, so either kernel counts the time.
    pub(super) fn cut_link(&mut self, link: LinkId, deaf: [bool; 2], is_noticed: bool) {
        let found = &mut self.links[index(link)];
        found.is_hushed |= !is_noticed;
        for end in [0, 1] {
            found.is_deaf[end] |= deaf[end];
        }
        for end in [0, 1] {
            self.run_link_timeout(link, end);
        }
    }

    /// What was sent meanwhile arrives: the kernels have kept it, and send it again.
    pub(super) fn heal_link(&mut self, link_id: LinkId) {
        let link = &mut self.links[index(link_id)];
        link.is_deaf = [false; 2];
        link.gives_up_at = [None; 2];
        let held = std::mem::take(&mut link.held);
        for (end, held) in held.into_iter().enumerate() {
            for held in held {
                match held {
                    Held::Message(message) => self.arrive(link_id, end, message),
                    Held::Down => self.see_link_down(link_id, end),
                }
            }
        }
    }

    /// Has an end's kernel give a link up that is cut, from now on after its whole time.
    fn run_link_timeout(&mut self, link_id: LinkId, end: usize) {
        let link = &mut self.links[index(link_id)];
        let time = self.now + link.timeouts[end];
        link.gives_up_at[end] = (!link.is_hushed).then_some(time);
        self.queue.push(time, Happening::LinkTimeout(link_id, end));
    }

    pub(super) fn link_timeout(&mut self, link: LinkId, end: usize) {
        if self.links[index(link)].gives_up_at[end].is_some_and(|at| at <= self.now) {
            self.break_link(link, end, LinkEnd::Cut, Happening::LinkTimeout);
            self.reset_other_end(link, end);
        }
    }

    /// A kernel that has given a link up forgets what it was to send, and answers with a reset.
    fn reset_other_end(&mut self, link_id: LinkId, end: usize) {
        let link = &mut self.links[index(link_id)];
        if link.is_closed[end] {
            link.held[1 - end].clear();
            let latency = link.latency;
            self.after(latency, Happening::LinkDown(link_id, 1 - end));
        }
    }

    pub(super) fn break_link(
        &mut self,
        link_id: LinkId,
        end: usize,
        cause: LinkEnd,
        again: fn(LinkId, usize) -> Happening,
    ) {
        let link = &mut self.links[index(link_id)];
        let id = link.ends[end];
        let process = &mut self.processes[id.0];
        if link.is_closed[end] || !process.is_running() {
            return;
        }
        let paused_until = process.paused_until(self.now).unwrap_or(self.now);
        let free_at = paused_until.max(process.busy_until);
        if free_at > self.now {
            return self.queue.push(free_at, again(link_id, end));
        }
        link.is_closed[end] = true;
        process.links.remove(&link_id);
        log!(self, "{link_id:?} is down at agent {}", self.processes[id.0].agent);
        self.tell(id, Input::LinkDown { link: link_id, end: cause, words: String::new() });
    }
}

/// Encodes and decodes a message. The encoding is cut in two, as a socket may cut it.
fn recode(message: &Message) -> Result<Message, String> {
    let (mut bytes, mut decoder) = (Vec::new(), Decoder::new());
    wire::encode(message, &mut bytes).map_err(|error| error.to_string())?;
    let (begin, rest) = bytes.split_at(bytes.len() / 2);
    decoder.push(begin);
    if let Some(early) = decoder.next_message().map_err(|error| error.to_string())? {
        return Err(format!("half of it is {early:?}"));
    }
    decoder.push(rest);
    let decoded = decoder.next_message().map_err(|error| error.to_string())?;
    decoded.ok_or_else(|| "all of it is no whole message".to_owned())
}
