//! One end of an edge that can go on over another link when its own breaks: nothing is lost, doubled
//! or reordered.
//!
//! Both ends count what they send and receive, control and data apart, since control overtakes data
//! on the way. What is sent is kept until the peer says that it has it, which it does now and then.
//! When the link breaks, each tells the other how much it has received, and the other sends the rest
//! again. Payloads are shared, not copied, so to keep a message costs little; how much is kept is
//! bounded by the credit for data, and by what may be owed for the rest.

use alloc::collections::VecDeque;

/// Messages that are owed an answer before one is sent.
const OWED_MESSAGES: u32 = 16;

/// The same in bytes.
const OWED_BYTES: usize = 256 << 10;

/// What one end has sent and not been told of, and what it has received.
#[derive(Clone, Debug)]
pub struct Backlog<M> {
    classes: [Class<M>; 2],
    owed_messages: u32,
    owed_bytes: usize,
}

#[derive(Clone, Debug)]
struct Class<M> {
    kept: VecDeque<M>,
    /// How many messages were sent before those that are kept.
    acknowledged: u32,
    received: u32,
}

impl<M> Default for Backlog<M> {
    fn default() -> Backlog<M> {
        let class = || Class { kept: VecDeque::new(), acknowledged: 0, received: 0 };
        Backlog { classes: [class(), class()], owed_messages: 0, owed_bytes: 0 }
    }
}

impl<M: Clone> Backlog<M> {
    /// Keeps a message of class 0 or 1 that is sent, or that will be when there is a way again.
    pub fn keep(&mut self, class: usize, message: M) {
        self.classes[class].kept.push_back(message);
    }

    /// Handles that a message was received; returns what to tell the peer, if it is time.
    pub fn on_received(&mut self, class: usize, bytes: usize) -> Option<[u32; 2]> {
        let received = &mut self.classes[class].received;
        *received = received.wrapping_add(1);
        self.owed_messages += 1;
        self.owed_bytes = self.owed_bytes.saturating_add(bytes);
        let is_time = self.owed_messages >= OWED_MESSAGES || self.owed_bytes >= OWED_BYTES;
        is_time.then(|| {
            (self.owed_messages, self.owed_bytes) = (0, 0);
            self.received()
        })
    }

    /// How many messages of each class have been received.
    pub fn received(&self) -> [u32; 2] {
        [self.classes[0].received, self.classes[1].received]
    }

    /// Handles that the peer has received so many. One that claims to have more than was sent has all.
    pub fn on_told(&mut self, received: [u32; 2]) {
        for (class, received) in self.classes.iter_mut().zip(received) {
            let count = received.wrapping_sub(class.acknowledged) as usize;
            // A number from before is far ahead when it wraps, and tells nothing.
            if count <= class.kept.len() {
                class.kept.drain(..count);
                class.acknowledged = received;
            }
        }
    }

    /// What the peer has not received, as far as it has told, control first.
    pub fn kept(&self) -> impl Iterator<Item = &M> {
        self.classes.iter().flat_map(|class| &class.kept)
    }

    /// The same, which is to be sent over a way that does not break, so it is kept no longer.
    pub fn take(&mut self) -> impl Iterator<Item = M> {
        let [control, data] = &mut self.classes;
        core::mem::take(&mut control.kept).into_iter().chain(core::mem::take(&mut data.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn wherever_a_link_breaks_each_message_arrives_once_and_in_order() {
        for sent in 0..60 {
            for arrived in 0..=sent {
                let (mut from, mut to) = (Backlog::default(), Backlog::<u32>::default());
                let class = |message: u32| usize::from(message.is_multiple_of(3));
                let mut got = Vec::new();
                for message in 0..sent {
                    from.keep(class(message), message);
                    if message < arrived {
                        got.push(message);
                        if let Some(received) = to.on_received(class(message), 1) {
                            from.on_told(received);
                        }
                    }
                }
                from.on_told(to.received());
                assert!(from.kept().eq(from.clone().take().collect::<Vec<_>>().iter()));
                got.extend(from.take());
                for of in 0..2 {
                    let of_class = |all: &[u32]| -> Vec<u32> {
                        all.iter().copied().filter(|&message| class(message) == of).collect()
                    };
                    let all: Vec<u32> = (0..sent).collect();
                    assert_eq!(of_class(&got), of_class(&all), "{arrived} of {sent} had arrived");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_is_bounded_by_messages_and_bytes_while_the_peer_answers() {
        for bytes in [0, 100, 70_000, 1 << 20] {
            let (mut from, mut to) = (Backlog::default(), Backlog::<u32>::default());
            for message in 0..1_000 {
                from.keep(0, message);
                if let Some(received) = to.on_received(0, bytes) {
                    from.on_told(received);
                }
                let kept = from.classes[0].kept.len();
                assert!(kept < 16 && kept * bytes < 256 << 10, "{kept} of {bytes} bytes");
            }
        }
    }

    #[test]
    fn a_peer_that_claims_what_cannot_be_changes_nothing() {
        let mut from = Backlog::default();
        (0..5).for_each(|message| from.keep(0, message));
        from.on_told([2, 0]);
        for wrong in [[1, 0], [6, 0], [2, 1], [u32::MAX, u32::MAX]] {
            from.on_told(wrong);
        }
        assert!(from.take().eq(2..5));
    }
}
