//! Two agents that have shaken hands.

use model::AgentId;
use wire::{
    BuildHash, Ephemeral, Established, Expected, Handshake, Message, Outbox, Preamble, Secret,
    SessionId,
};

/// The child's and the parent's side.
pub(crate) fn established() -> (Established, Established) {
    let secret = Secret::new([1; 32]);
    let expected =
        Expected { build: BuildHash([2; 8]), session: SessionId([3; 16]), own: AgentId(0) };
    let Expected { build, session, own } = expected;
    let preamble = Preamble { build, session, from: AgentId(1), to: own, attempt: 0 };
    let mut child = Handshake::initiator(&secret, preamble, Ephemeral::new([4; 32]));
    let mut parent = Handshake::responder(&secret, expected, Ephemeral::new([5; 32]));
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    child.on_bytes(&parent.poll_send().unwrap()).unwrap();
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    (child.poll_established().unwrap(), parent.poll_established().unwrap())
}

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
