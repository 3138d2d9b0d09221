//! A link without peers, for those who measure what one costs or test what goes over it.

use model::AgentId;

use crate::{BuildHash, Ephemeral, Established, Expected, Handshake, Preamble, Secret, SessionId};

/// Both ends of a link from agent 1, a child, to the head, after their handshake. Its keys are
/// always the same and no secret, so it protects nothing.
pub fn rehearsed() -> (Established, Established) {
    let secret = Secret::new([1; 32]);
    let (build, session) = (BuildHash([2; 8]), SessionId([3; 16]));
    let expected = Expected { build, session, own: AgentId::HEAD };
    let preamble = Preamble { build, session, from: AgentId(1), to: AgentId::HEAD, attempt: 0 };
    let mut child = Handshake::initiator(&secret, preamble, Ephemeral::new([4; 32]));
    let mut parent = Handshake::responder(&secret, expected, Ephemeral::new([5; 32]));
    pass(&mut child, &mut parent); // preamble
    pass(&mut parent, &mut child); // answer
    pass(&mut child, &mut parent); // proof
    let ends = (child.poll_established(), parent.poll_established());
    let (Some(child), Some(parent)) = ends else { unreachable!("three messages are a handshake") };
    (child, parent)
}

fn pass(from: &mut Handshake, to: &mut Handshake) {
    let bytes = from.poll_send().expect("it is this side's turn");
    to.on_bytes(&bytes).expect("both sides have the same secret");
}
