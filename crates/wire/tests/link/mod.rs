//! What goes over a link of two agents that have shaken hands.

use wire::{Established, Message, Outbox};

/// All that `outbox` holds, sealed by `side`.
pub(crate) fn sealed(side: &mut Established, outbox: &mut Outbox) -> Vec<u8> {
    let mut out = Vec::new();
    outbox.fill(&mut side.channel, &mut out, usize::MAX).unwrap();
    assert!(outbox.is_empty());
    out
}

/// The messages in what `side` reads next.
pub(crate) fn received(side: &mut Established, bytes: &[u8]) -> Vec<Message> {
    side.inbox.push(&mut side.channel, bytes).unwrap();
    core::iter::from_fn(|| side.inbox.next_message().unwrap()).collect()
}
