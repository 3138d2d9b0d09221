//! Whatever a peer sends, however it is cut, `wire` answers with messages or errors.

use bolero::check;
use model::AgentId;
use wire::{
    BootPayload, BuildHash, Decoder, Ephemeral, Expected, FrameError, Handshake, Message, Preamble,
    Secret, SessionId, VERSION, encode, encoded_len,
};

/// About a second of CI; explore with `cargo bolero test`.
const ITERATIONS: usize = 20_000;

/// A handshake costs far more than a frame.
const HANDSHAKES: usize = 2_000;

/// The first byte is the length of the reads, the rest is the stream.
#[test]
fn frames_decode_alike_however_they_are_cut() {
    check!().with_iterations(ITERATIONS).for_each(|input: &[u8]| {
        let Some((&cut, stream)) = input.split_first() else { return };
        let whole = decode([stream]);
        assert_eq!(decode(stream.chunks(usize::from(cut).max(1))), whole);
        whole.0.iter().for_each(assert_encodes_as_itself);
    });
}

/// Random bytes seldom make a frame, so these get a correct header.
#[test]
fn frame_bodies_decode_to_messages_or_errors() {
    check!().with_iterations(ITERATIONS).with_type::<(u8, Vec<u8>)>().for_each(|(kind, body)| {
        let mut stream = u32::try_from(body.len()).unwrap_or(0).to_le_bytes().to_vec();
        stream.push(kind % 5);
        stream.extend(body);
        decode([stream.as_slice()]).0.iter().for_each(assert_encodes_as_itself);
    });
}

#[test]
fn a_parent_believes_nobody_without_the_secret() {
    check!().with_iterations(HANDSHAKES).for_each(|input: &[u8]| {
        let expected =
            Expected { build: BuildHash([1; 8]), session: SessionId([2; 16]), own: AgentId(0) };
        let ephemeral = Ephemeral::new([3; 32]);
        let mut parent = Handshake::responder(&Secret::new([4; 32]), expected, ephemeral);
        for piece in input.chunks(40) {
            if parent.on_bytes(piece).is_err() {
                break;
            }
        }
        parent.poll_send();
        assert!(parent.poll_established().is_none());
    });
}

#[test]
fn a_child_believes_nobody_without_the_secret() {
    check!().with_iterations(HANDSHAKES).for_each(|input: &[u8]| {
        let preamble = Preamble {
            build: BuildHash([1; 8]),
            session: SessionId([2; 16]),
            from: AgentId(1),
            to: AgentId(0),
            attempt: 0,
        };
        let ephemeral = Ephemeral::new([3; 32]);
        let mut child = Handshake::initiator(&Secret::new([4; 32]), preamble, ephemeral);
        child.poll_send();
        assert!(child.on_bytes(input).is_err() || input.len() < 55);
        child.poll_send();
        assert!(child.poll_established().is_none());
    });
}

#[test]
fn boot_payloads_decode_or_are_errors() {
    check!().with_iterations(ITERATIONS).for_each(|input: &[u8]| {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(input);
        // The build is the first thing in the body.
        let build = input.first_chunk().map_or(BuildHash([0; 8]), |&build| BuildHash(build));
        if let Ok(payload) = BootPayload::decode(&bytes, build) {
            let encoded = payload.encode().unwrap_or_default();
            assert_eq!(BootPayload::decode(&encoded, build), Ok(payload));
        }
    });
}

/// All messages of a stream that comes in `pieces`, and the error that ends it.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Message>, Option<FrameError>) {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

fn assert_encodes_as_itself(message: &Message) {
    let mut encoded = Vec::new();
    assert_eq!(encode(message, &mut encoded), Ok(()));
    assert_eq!(encoded.len(), encoded_len(message));
    let (decoded, error) = decode([encoded.as_slice()]);
    assert_eq!((decoded.as_slice(), error), (std::slice::from_ref(message), None));
}
