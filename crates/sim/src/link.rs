//! A link between a parent and a child, of the spawn tree or of the routing tree: first in, first out,
//! each way.

use std::time::Duration;

use engine::{HOST_SILENT_MAX, LinkId};
use model::Time;
use wire::{Class, Message};

use crate::process::ProcessId;

/// A link. Both drivers give it the same number: its index.
pub(crate) struct Link {
    /// The parent, then the child.
    pub(crate) ends: [ProcessId; 2],
    /// It is of the routing tree alone.
    pub(crate) is_route: bool,
    /// Whether the end has closed the link or has been told that it is down.
    pub(crate) is_closed: [bool; 2],
    /// What is sent to this end does not arrive, and nobody is told.
    pub(crate) is_deaf: [bool; 2],
    /// What would have arrived at an end that is deaf, in order.
    pub(crate) held: [Vec<Held>; 2],
    /// The kernels do not notice either that it is cut.
    pub(crate) is_hushed: bool,
    /// After which silence each end's kernel gives the link up.
    pub(crate) timeouts: [Duration; 2],
    /// When each end's kernel gives the link up, once it is cut.
    pub(crate) gives_up_at: [Option<Time>; 2],
    /// What takes the messages of each end.
    wires: [Wire; 2],
    /// One way.
    pub(crate) latency: Duration,
    /// The first grant of credit for output: what may be on its way.
    pub(crate) window: Option<i64>,
    /// Output bytes that the child may still send.
    pub(crate) credit: i64,
}

/// What waits for a cut to heal.
pub(crate) enum Held {
    /// A message.
    Message(Message),
    /// The other end has closed the link.
    Down,
}

impl Link {
    pub(crate) fn new(parent: ProcessId, child: ProcessId, latency: Duration) -> Link {
        Link {
            ends: [parent, child],
            is_route: false,
            is_closed: [false; 2],
            is_deaf: [false; 2],
            held: [Vec::new(), Vec::new()],
            is_hushed: false,
            timeouts: [HOST_SILENT_MAX; 2],
            gives_up_at: [None; 2],
            wires: [Wire::default(); 2],
            latency,
            window: None,
            credit: 0,
        }
    }

    /// Whether something does not arrive, so that the kernels count the time.
    pub(crate) fn is_hurt(&self) -> bool {
        self.is_deaf != [false; 2]
    }

    /// Which of the ends this process is.
    pub(crate) fn end_of(&self, process: ProcessId) -> usize {
        usize::from(self.ends[0] != process)
    }

    /// When a message that this end sends now, and that its host has sent by then, is at the other end.
    pub(crate) fn arrival(
        &mut self,
        now: Time,
        by_host: Time,
        end: usize,
        class: Class,
        transfer: Duration,
    ) -> Time {
        self.wires[end].send(now, by_host, class, transfer) + self.latency
    }

    /// When the other end sees that this one has closed the link: behind all that was sent.
    pub(crate) fn end_arrival(&self, now: Time, end: usize) -> Time {
        let Wire { control, data } = self.wires[end];
        control.max(data).max(now) + self.latency
    }
}

/// What carries one message after the other: when it can take the next one, of control and of data.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wire {
    control: Time,
    data: Time,
}

impl Wire {
    /// When a message is sent that it gets now, no sooner than `least`. Control overtakes the data that waits.
    pub(crate) fn send(
        &mut self,
        now: Time,
        least: Time,
        class: Class,
        transfer: Duration,
    ) -> Time {
        match class {
            Class::Control => {
                self.control = (self.control.max(now) + transfer).max(least);
                self.data = self.data.max(now) + transfer;
                self.control
            }
            Class::Data => {
                self.data = (self.data.max(self.control).max(now) + transfer).max(least);
                self.data
            }
        }
    }
}

pub(crate) fn index(link: LinkId) -> usize {
    usize::try_from(link.0).unwrap_or(usize::MAX)
}

/// How long `bytes` take at `bandwidth` bytes a second.
pub(crate) fn transfer_time(bytes: u64, bandwidth: Option<u64>) -> Duration {
    let nanos = bandwidth.map_or(0, |rate| bytes.saturating_mul(1_000_000_000) / rate.max(1));
    Duration::from_nanos(nanos)
}

/// Bytes of a message as the bandwidth sees them: its payload and a header.
pub(crate) fn message_bytes(message: &Message) -> u64 {
    const HEADER: u64 = 32;
    let payload = match message {
        Message::Enter { payload, .. }
        | Message::Release { payload, .. }
        | Message::GroupEnter { payload, .. }
        | Message::GroupRelease { payload, .. } => payload.len(),
        Message::Output(output) => output.len(),
        Message::Input { data, .. } => data.len(),
        Message::Welcome(welcome) => welcome.names.len(),
        Message::Work(work) => work.names.len(),
        Message::Job(job) => {
            let words = job.apps.iter().flat_map(|app| app.argv.iter().chain(&app.env));
            job.env.iter().chain(words).map(|text| text.len()).sum()
        }
        Message::Contacts(_) | Message::Route(_) | Message::Forward(_) => {
            return wire::encoded_len(message) as u64;
        }
        Message::Hello(_)
        | Message::Joined(_)
        | Message::Resolve(_)
        | Message::Attach(_)
        | Message::Received(_)
        | Message::Routed
        | Message::Gone(_)
        | Message::StartFailed(_)
        | Message::JoinDeadline
        | Message::Launch(_)
        | Message::JobFault(..)
        | Message::OutputCredit(_)
        | Message::InputEnd(..)
        | Message::InputCredit(..)
        | Message::InputClosed(_)
        | Message::Signal(..)
        | Message::Stop { .. }
        | Message::Done { .. }
        | Message::Lost(_)
        | Message::Shutdown
        | Message::Bye(_)
        | Message::Marks(_)
        | Message::Records(..)
        | Message::Ping { .. }
        | Message::Suspend(_)
        | Message::MoreWork(_)
        | Message::Held(..)
        | Message::GroupAwaited(..)
        | Message::Warning(..)
        | Message::NameRequest(..)
        | Message::NameReply(..)
        | Message::SpawnRequest(..)
        | Message::SpawnReply(..)
        | Message::Spawn(_)
        | Message::Reached(..) => 0,
        Message::Fetch(_, name) => name.space.len() + name.key.len(),
        Message::Fetched(_, name, value) => {
            name.space.len() + name.key.len() + value.as_ref().map_or(0, |value| value.len())
        }
        Message::RingEnter(_, _, stretch) => stretch.left.len() + stretch.right.len(),
        Message::RingPlace(_, _, place) => place.left.len() + place.right.len(),
        Message::AllgatherEnter(_, _, values) | Message::AllgatherRelease(_, _, values) => {
            values.len()
        }
        Message::EnterPart(_, part) | Message::ReleasePart(_, part) => part.payload.coded().len(),
    };
    HEADER + payload as u64
}

/// The name of a message's kind.
pub(crate) fn message_kind(message: &Message) -> &'static str {
    match message {
        Message::Hello(_) => "Hello",
        Message::Welcome(_) => "Welcome",
        Message::Job(_) => "Job",
        Message::Joined(_) => "Joined",
        Message::StartFailed(_) => "StartFailed",
        Message::JoinDeadline => "JoinDeadline",
        Message::Launch(_) => "Launch",
        Message::JobFault(..) => "JobFault",
        Message::Enter { .. } => "Enter",
        Message::Release { .. } => "Release",
        Message::Held(..) => "Held",
        Message::Fetch(..) => "Fetch",
        Message::Fetched(..) => "Fetched",
        Message::EnterPart(..) => "EnterPart",
        Message::ReleasePart(..) => "ReleasePart",
        Message::Output(_) => "Output",
        Message::OutputCredit(_) => "OutputCredit",
        Message::Input { .. } => "Input",
        Message::InputEnd(..) => "InputEnd",
        Message::InputCredit(..) => "InputCredit",
        Message::InputClosed(_) => "InputClosed",
        Message::Signal(..) => "Signal",
        Message::Stop { .. } => "Stop",
        Message::Done { .. } => "Done",
        Message::Lost(_) => "Lost",
        Message::Shutdown => "Shutdown",
        Message::Bye(_) => "Bye",
        Message::Ping { .. } => "Ping",
        Message::Suspend(_) => "Suspend",
        Message::MoreWork(_) => "MoreWork",
        Message::Work(_) => "Work",
        Message::Marks(_) => "Marks",
        Message::Records(..) => "Records",
        Message::GroupEnter { .. } => "GroupEnter",
        Message::GroupRelease { .. } => "GroupRelease",
        Message::GroupAwaited(..) => "GroupAwaited",
        Message::Warning(..) => "Warning",
        Message::NameRequest(..) => "NameRequest",
        Message::NameReply(..) => "NameReply",
        Message::SpawnRequest(..) => "SpawnRequest",
        Message::SpawnReply(..) => "SpawnReply",
        Message::Spawn(_) => "Spawn",
        Message::Reached(..) => "Reached",
        Message::RingEnter(..) => "RingEnter",
        Message::RingPlace(..) => "RingPlace",
        Message::AllgatherEnter(..) => "AllgatherEnter",
        Message::AllgatherRelease(..) => "AllgatherRelease",
        Message::Contacts(_) => "Contacts",
        Message::Resolve(_) => "Resolve",
        Message::Route(_) => "Route",
        Message::Attach(_) => "Attach",
        Message::Received(_) => "Received",
        Message::Routed => "Routed",
        Message::Forward(_) => "Forward",
        Message::Gone(_) => "Gone",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_goes_before_waiting_data_and_takes_its_time_from_it() {
        const RATE: Option<u64> = Some(1_000_000);
        let at = |us| Time::ZERO + Duration::from_micros(us);
        for bytes in [1, 10, 999, 100_000] {
            let (parent, child) = (ProcessId::HEAD, ProcessId(1));
            let mut link = Link::new(parent, child, Duration::from_micros(7));
            let mut send = |class, bytes| {
                link.arrival(at(50), Time::ZERO, 0, class, transfer_time(bytes, RATE))
            };
            assert_eq!(send(Class::Data, bytes), at(57 + bytes));
            assert_eq!(send(Class::Control, 300), at(57 + 300));
            assert_eq!(send(Class::Control, 20), at(57 + 320));
            assert_eq!(send(Class::Data, 5), at(57 + bytes + 325));
            assert_eq!(link.end_arrival(at(50), 0), at(57 + bytes + 325));
            assert_eq!(
                link.arrival(at(50), Time::ZERO, 1, Class::Data, transfer_time(5, RATE)),
                at(62),
                "the other way is free"
            );
        }
    }
}
