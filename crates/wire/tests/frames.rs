//! Frames and the decoder.
#![expect(clippy::unwrap_used, reason = "tests")]

mod arbitrary;

use bytes::Bytes;
use model::{IdSet, JobId, Rank};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::frame::{CONTROL_BYTES_MAX, DATA_BYTES_MAX, HEADER_BYTES};
use wire::{Decoder, FrameError, Message, Output, Stream, encode, encoded_len};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn messages_come_back_however_their_bytes_are_cut(
        messages in vec(arbitrary::message(), 1..5),
        cuts in vec(1_usize..200, 1..20),
    ) {
        let mut stream = Vec::new();
        for message in &messages {
            encode(message, &mut stream).unwrap();
        }
        let mut decoder = Decoder::new();
        let mut decoded = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            decoder.push(piece);
            decoded.extend(core::iter::from_fn(|| decoder.next_message().unwrap()));
            rest = after;
        }
        prop_assert_eq!(decoded, messages);
    }

    #[test]
    fn the_length_is_known_without_encoding(message in arbitrary::message()) {
        let mut encoded = Vec::new();
        encode(&message, &mut encoded).unwrap();
        prop_assert_eq!(encoded_len(&message), encoded.len());
    }

    #[test]
    fn arbitrary_bytes_are_messages_or_errors(bytes in vec(any::<u8>(), 0..100)) {
        decode_all(&bytes);
    }

    #[test]
    fn a_damaged_frame_is_a_message_or_an_error(
        message in arbitrary::message(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut encoded = Vec::new();
        encode(&message, &mut encoded).unwrap();
        let at = at.index(encoded.len().min(100));
        encoded[at] = byte;
        decode_all(&encoded);
    }
}

#[test]
fn a_line_of_the_longest_allowed_length_goes_out_whole() {
    let message = output(DATA_BYTES_MAX);
    let mut encoded = Vec::new();
    encode(&message, &mut encoded).unwrap();
    let mut decoder = Decoder::new();
    decoder.push(&encoded);
    assert_eq!(decoder.next_message(), Ok(Some(message)));
}

#[test]
fn a_message_that_is_too_long_is_refused_and_leaves_no_bytes() {
    let mut out = vec![1, 2, 3];
    let error = encode(&output(DATA_BYTES_MAX + 1), &mut out).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { .. }));
    assert_eq!(out, [1, 2, 3]);

    let payload = Bytes::from(vec![0; CONTROL_BYTES_MAX]);
    let release = Message::Release { job: JobId(0), fence: 0, payload };
    let error = encode(&release, &mut out).unwrap_err();
    assert!(matches!(error, FrameError::TooLong { .. }));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn an_impossible_length_is_an_error_before_the_body_comes() {
    let mut decoder = Decoder::new();
    decoder.push(&[0xff, 0xff, 0xff, 0x7f]);
    assert_eq!(decoder.next_message(), Ok(None));
    decoder.push(&[1]);
    assert!(matches!(decoder.next_message(), Err(FrameError::TooLong { .. })));
}

#[test]
fn ids_out_of_order_are_put_in_order() {
    let body = [3, 2, 5, 9, 1, 6]; // Joined, two ranges: 5-9 and 1-6.
    let mut decoder = Decoder::new();
    decoder.push(&[u8::try_from(body.len()).unwrap(), 0, 0, 0, 0]);
    decoder.push(&body);
    assert_eq!(decoder.next_message(), Ok(Some(Message::Joined(IdSet::range(1, 9)))));
}

#[test]
fn output_costs_21_bytes_a_piece() {
    assert_eq!(encoded_len(&output(0)), HEADER_BYTES + 16);
    assert_eq!(encoded_len(&output(1_000)), 1_021);
}

#[test]
fn a_piece_in_two_parts_is_one_on_the_wire() {
    let Message::Output(whole) = output(10_000) else { unreachable!() };
    let lead = whole.data.slice(..100);
    let data = whole.data.slice(100..);
    let parts = Message::Output(Output { lead, data, ..whole.clone() });
    let whole = Message::Output(whole);
    assert_eq!(encoded_len(&parts), encoded_len(&whole));
    let (mut one, mut other) = (Vec::new(), Vec::new());
    encode(&whole, &mut one).unwrap();
    encode(&parts, &mut other).unwrap();
    assert_eq!(one, other);
}

fn output(bytes: usize) -> Message {
    let data = Bytes::from(vec![b'x'; bytes]);
    Message::Output(Output {
        job: JobId(0),
        rank: Rank(1),
        stream: Stream::Stdout,
        offset: 7,
        lead: Bytes::new(),
        data,
    })
}

/// Decodes until the end or an error. What decodes must encode, and decode to the same.
fn decode_all(bytes: &[u8]) {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    while let Ok(Some(message)) = decoder.next_message() {
        let mut encoded = Vec::new();
        encode(&message, &mut encoded).unwrap();
        let mut again = Decoder::new();
        again.push(&encoded);
        assert_eq!(again.next_message(), Ok(Some(message)));
    }
}
