//! Handshakes and channels between two agents, bytes carried by hand.
#![expect(clippy::unwrap_used, reason = "tests")]

use model::AgentId;
use wire::{
    BuildHash, ChannelError, Ephemeral, Established, Expected, Handshake, Hello, Message, Outbox,
    Preamble, Refusal, Secret, SessionId, VERSION,
};

#[test]
fn both_sides_know_each_other_after_the_handshake() {
    let (child, parent) = established();
    assert_eq!(child.peer, AgentId(3));
    assert_eq!((parent.peer, parent.attempt), (AgentId(7), 2));
}

#[test]
fn the_handshake_works_byte_by_byte() {
    let (mut child, mut parent) = (initiator(SECRET, PREAMBLE), responder());
    let mut established = (None, None);
    for _ in 0..3 {
        for byte in child.poll_send().unwrap_or_default() {
            parent.on_bytes(&[byte]).unwrap();
        }
        for byte in parent.poll_send().unwrap_or_default() {
            child.on_bytes(&[byte]).unwrap();
        }
        established.0 = established.0.or_else(|| child.poll_established());
        established.1 = established.1.or_else(|| parent.poll_established());
    }
    assert!(established.0.is_some() && established.1.is_some());
}

#[test]
fn what_comes_with_the_last_bytes_of_the_handshake_is_not_lost() {
    let (mut child, mut parent) = (initiator(SECRET, PREAMBLE), responder());
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    child.on_bytes(&parent.poll_send().unwrap()).unwrap();
    let mut sent = child.poll_send().unwrap();
    let mut child = child.poll_established().unwrap();
    sent.extend(sealed(&mut child, &hello()));

    parent.on_bytes(&sent).unwrap();
    let mut parent = parent.poll_established().unwrap();
    assert_eq!(parent.inbox.next_message(), Ok(Some(hello())));
    assert_eq!(parent.inbox.next_message(), Ok(None));
}

#[test]
fn a_parent_is_not_established_before_the_child_has_proven_itself() {
    let (mut child, mut parent) = (initiator(SECRET, PREAMBLE), responder());
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    parent.poll_send().unwrap();
    assert!(parent.poll_established().is_none());
}

#[test]
fn a_replayed_first_message_gets_no_further_than_the_answer() {
    let mut child = initiator(SECRET, PREAMBLE);
    let mut recorded = child.poll_send().unwrap();
    let mut parent = responder();
    parent.on_bytes(&recorded).unwrap();
    child.on_bytes(&parent.poll_send().unwrap()).unwrap();
    let proof = child.poll_send().unwrap();

    let mut parent = responder_with(Ephemeral::new([99; 32]));
    parent.on_bytes(&recorded).unwrap();
    parent.poll_send().unwrap();
    assert_eq!(parent.on_bytes(&proof), Err(ChannelError::Replayed));
    assert!(parent.poll_established().is_none());

    recorded.extend(proof);
    assert_eq!(responder().on_bytes(&recorded), Err(ChannelError::Early));
}

#[test]
fn a_wrong_secret_is_noticed_by_the_parent_and_told_to_the_child() {
    let child = initiator([2; 32], PREAMBLE);
    assert_refused(child, ChannelError::Secret, Refusal::Secret);
}

#[test]
fn another_build_is_refused_by_name() {
    let theirs = BuildHash([9; 8]);
    let child = initiator(SECRET, Preamble { build: theirs, ..PREAMBLE });
    let error = ChannelError::Build { ours: EXPECTED.build, theirs };
    assert_refused(child, error, Refusal::Build);
}

#[test]
fn another_session_is_refused_by_name() {
    let theirs = SessionId([9; 16]);
    let child = initiator(SECRET, Preamble { session: theirs, ..PREAMBLE });
    assert_refused(child, ChannelError::Session { theirs }, Refusal::Session);
}

#[test]
fn a_child_that_looks_for_a_twin_of_the_parent_is_refused() {
    let wanted = AgentId(4);
    let child = initiator(SECRET, Preamble { to: wanted, ..PREAMBLE });
    let error = ChannelError::WrongAgent { ours: EXPECTED.own, wanted };
    assert_refused(child, error, Refusal::WrongAgent);
}

#[test]
fn another_version_is_refused_by_both_sides() {
    let mut parent = responder();
    let error = ChannelError::Version { ours: VERSION, theirs: VERSION + 1 };
    assert_eq!(parent.on_bytes(&other_version()), Err(error.clone()));
    assert!(parent.poll_send().is_some());
    assert_eq!(initiator(SECRET, PREAMBLE).on_bytes(&other_version()), Err(error));
}

#[test]
fn a_stranger_is_recognised_by_its_first_bytes() {
    for words in [&b"SSH-2.0-OpenSSH_9.2"[..], b"GET / HTTP/1.1", b"C\0"] {
        let mut parent = responder();
        assert_eq!(parent.on_bytes(words), Err(ChannelError::NotConvoke));
        assert_eq!(parent.poll_send(), None);
        let mut child = initiator(SECRET, PREAMBLE);
        assert_eq!(child.on_bytes(words), Err(ChannelError::NotConvoke));
    }
}

#[test]
fn a_parent_without_the_secret_does_not_fool_a_child() {
    let mut child = initiator(SECRET, PREAMBLE);
    let mut answer = b"CVKE\x01\x00\x00".to_vec();
    answer.extend([5; 48]);
    child.poll_send();
    assert_eq!(child.on_bytes(&answer), Err(ChannelError::Secret));
    assert!(child.poll_established().is_none());
}

#[test]
fn any_flipped_bit_of_the_handshake_ends_it() {
    let mut child = initiator(SECRET, PREAMBLE);
    let first = child.poll_send().unwrap();
    for bit in 0..first.len() * 8 {
        let mut parent = responder();
        assert!(parent.on_bytes(&flipped(&first, bit)).is_err(), "bit {bit}");
        assert!(parent.poll_established().is_none());
    }
    let mut parent = responder();
    parent.on_bytes(&first).unwrap();
    let answer = parent.poll_send().unwrap();
    for bit in 0..answer.len() * 8 {
        assert!(initiator(SECRET, PREAMBLE).on_bytes(&flipped(&answer, bit)).is_err(), "bit {bit}");
    }
    child.on_bytes(&answer).unwrap();
    let proof = child.poll_send().unwrap();
    for bit in 0..proof.len() * 8 {
        let mut parent = responder();
        parent.on_bytes(&first).unwrap();
        assert_eq!(
            parent.on_bytes(&flipped(&proof, bit)),
            Err(ChannelError::Replayed),
            "bit {bit}"
        );
    }
}

#[test]
fn any_flipped_bit_of_a_record_ends_the_channel() {
    let (mut child, _) = established();
    let record = sealed(&mut child, &hello());
    for bit in 0..record.len() * 8 {
        let (_, mut parent) = established();
        // A length that grew waits for bytes that belong to the next record, and fails with them.
        let pushed = parent
            .inbox
            .push(&mut parent.channel, &flipped(&record, bit))
            .and_then(|()| parent.inbox.push(&mut parent.channel, &[0; 65_535]));
        assert!(pushed.is_err(), "bit {bit}");
        assert_eq!(parent.inbox.next_message(), Ok(None));
    }
}

#[test]
fn a_repeated_record_ends_the_channel() {
    let (mut child, mut parent) = established();
    let record = sealed(&mut child, &hello());
    parent.inbox.push(&mut parent.channel, &record).unwrap();
    let again = parent.inbox.push(&mut parent.channel, &record);
    assert_eq!(again, Err(ChannelError::Garbled));
}

#[test]
fn a_record_sent_back_to_its_sender_ends_the_channel() {
    let (mut child, _) = established();
    let record = sealed(&mut child, &hello());
    let reflected = child.inbox.push(&mut child.channel, &record);
    assert_eq!(reflected, Err(ChannelError::Garbled));
}

#[test]
fn an_empty_record_is_an_error() {
    let (_, mut parent) = established();
    let pushed = parent.inbox.push(&mut parent.channel, &[16, 0]);
    assert_eq!(pushed, Err(ChannelError::EmptyRecord(16)));
}

#[test]
fn a_secret_is_not_printed() {
    assert_eq!(format!("{:?}", Secret::new([7; 32])), "Secret(..)");
    assert!(!format!("{:?}", responder()).contains("222"));
    assert!(!format!("{:?}", Ephemeral::new([7; 32])).contains('7'));
}

const SECRET: [u8; 32] = [222; 32];

const EXPECTED: Expected =
    Expected { build: BuildHash([1; 8]), session: SessionId([2; 16]), own: AgentId(3) };

const PREAMBLE: Preamble = Preamble {
    build: EXPECTED.build,
    session: EXPECTED.session,
    from: AgentId(7),
    to: EXPECTED.own,
    attempt: 2,
};

fn initiator(secret: [u8; 32], preamble: Preamble) -> Handshake {
    Handshake::initiator(&Secret::new(secret), preamble, Ephemeral::new([10; 32]))
}

fn responder() -> Handshake {
    responder_with(Ephemeral::new([20; 32]))
}

fn responder_with(ephemeral: Ephemeral) -> Handshake {
    Handshake::responder(&Secret::new(SECRET), EXPECTED, ephemeral)
}

fn established() -> (Established, Established) {
    let (mut child, mut parent) = (initiator(SECRET, PREAMBLE), responder());
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    child.on_bytes(&parent.poll_send().unwrap()).unwrap();
    parent.on_bytes(&child.poll_send().unwrap()).unwrap();
    (child.poll_established().unwrap(), parent.poll_established().unwrap())
}

fn assert_refused(mut child: Handshake, error: ChannelError, refusal: Refusal) {
    let mut parent = responder();
    assert_eq!(parent.on_bytes(&child.poll_send().unwrap()), Err(error));
    assert!(parent.poll_established().is_none());
    let answer = parent.poll_send().unwrap();
    assert_eq!(child.on_bytes(&answer), Err(ChannelError::Refused(refusal)));
    assert!(child.poll_established().is_none());
}

fn other_version() -> Vec<u8> {
    let mut bytes = b"CVKE".to_vec();
    bytes.extend((VERSION + 1).to_le_bytes());
    bytes
}

fn hello() -> Message {
    Message::Hello(Hello { attempt: 2, pid: 4711 })
}

fn sealed(side: &mut Established, message: &Message) -> Vec<u8> {
    let mut outbox = Outbox::new();
    outbox.push(message).unwrap();
    let mut out = Vec::new();
    outbox.fill(&mut side.channel, &mut out, usize::MAX).unwrap();
    out
}

fn flipped(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}
