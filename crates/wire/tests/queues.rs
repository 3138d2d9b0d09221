//! Outbox and inbox: order, limits, and what they hold.
#![expect(clippy::unwrap_used, reason = "tests")]

mod arbitrary;
mod link;

use bytes::Bytes;
use link::{received, sealed};
use model::{ExitStatus, JobId, Rank, StatusRuns};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::channel::RECORD_BYTES_MAX;
use wire::{Class, Frame, Message, Outbox, Output, Stream, encoded_len, rehearsed};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn all_messages_arrive_each_class_in_its_order(
        messages in vec(arbitrary::message(), 0..10),
        cuts in vec(1_usize..500, 1..20),
    ) {
        let (mut child, mut parent) = rehearsed();
        let mut outbox = Outbox::new();
        for message in &messages {
            outbox.push(message).unwrap();
        }
        prop_assert_eq!(outbox.queued_bytes(), messages.iter().map(encoded_len).sum::<usize>());
        let sent = sealed(&mut child, &mut outbox);

        let mut arrived = Vec::new();
        let mut rest = sent.as_slice();
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            arrived.extend(received(&mut parent, piece));
            rest = after;
        }
        let (mut expected, data): (Vec<Message>, Vec<Message>) =
            messages.into_iter().partition(|it| Class::of(it) == Class::Control);
        expected.extend(data);
        prop_assert_eq!(arrived, expected);
    }

    #[test]
    fn a_slow_link_gets_the_same_messages(
        messages in vec(arbitrary::data_message(), 1..6),
        bytes_max in 1_usize..100_000,
    ) {
        let (mut child, mut parent) = rehearsed();
        let mut outbox = Outbox::new();
        let mut arrived = Vec::new();
        for message in &messages {
            outbox.push(message).unwrap();
        }
        while !outbox.is_empty() {
            let mut out = Vec::new();
            outbox.fill(&mut child.channel, &mut out, bytes_max).unwrap();
            prop_assert!(out.len() < bytes_max + 2 + RECORD_BYTES_MAX);
            arrived.extend(received(&mut parent, &out));
        }
        prop_assert_eq!(arrived, messages);
    }
}

#[test]
fn control_overtakes_data_but_does_not_cut_a_frame() {
    let (mut child, mut parent) = rehearsed();
    let mut outbox = Outbox::new();
    let (first, second) = (output(0, 65_536), output(65_536, 10));
    outbox.push(&first).unwrap();
    outbox.push(&second).unwrap();
    let mut out = Vec::new();
    outbox.fill(&mut child.channel, &mut out, 1).unwrap();
    assert_eq!(received(&mut parent, &out), []);

    outbox.push(&PING).unwrap();
    let rest = sealed(&mut child, &mut outbox);
    assert_eq!(received(&mut parent, &rest), [first, PING, second]);
}

#[test]
fn the_end_of_a_stream_does_not_overtake_it() {
    let mut statuses = StatusRuns::new();
    statuses.insert(Rank(0), ExitStatus::Exited(0));
    let messages = [
        output(0, 10),
        Message::InputEnd(JobId(0)),
        Message::Done { job: JobId(0), statuses, by_order: false },
        Message::Bye(Box::default()),
    ];
    let (mut child, mut parent) = rehearsed();
    let mut outbox = Outbox::new();
    for message in messages.iter().chain([&PING]) {
        outbox.push(message).unwrap();
    }
    let sent = sealed(&mut child, &mut outbox);
    let (first, rest) = (PING, messages.to_vec());
    assert_eq!(received(&mut parent, &sent), [vec![first], rest].concat());
}

#[test]
fn many_small_messages_share_a_record() {
    let (mut child, _) = rehearsed();
    let mut outbox = Outbox::new();
    for _ in 0..1_000 {
        outbox.push(&PING).unwrap();
    }
    let bytes = outbox.queued_bytes();
    assert_eq!(sealed(&mut child, &mut outbox).len(), bytes + 2 + 16);
}

#[test]
fn one_encoding_serves_many_links() {
    let release =
        Message::Release { job: JobId(0), fence: 0, payload: Bytes::from(vec![7; 1_000_000]) };
    let frame = Frame::new(&release).unwrap();
    for _ in 0..3 {
        let (mut child, mut parent) = rehearsed();
        let mut outbox = Outbox::new();
        outbox.push_frame(frame.clone());
        let sent = sealed(&mut child, &mut outbox);
        assert_eq!(received(&mut parent, &sent), std::slice::from_ref(&release));
    }
}

#[test]
fn output_arrives_as_slices_of_one_buffer() {
    let (mut child, mut parent) = rehearsed();
    let mut outbox = Outbox::new();
    outbox.push(&output(0, 1_000)).unwrap();
    outbox.push(&output(1_000, 1_000)).unwrap();
    let sent = sealed(&mut child, &mut outbox);
    let places: Vec<usize> = received(&mut parent, &sent).iter().map(place_of_data).collect();
    assert_eq!(places[1] - places[0], encoded_len(&output(0, 1_000)));
}

const PING: Message = Message::Ping { next_ms: 1 };

fn output(offset: u64, bytes: usize) -> Message {
    Message::Output(Output {
        job: JobId(0),
        rank: Rank(1),
        stream: Stream::Stdout,
        offset,
        lead: Bytes::new(),
        data: Bytes::from(vec![b'x'; bytes]),
    })
}

fn place_of_data(message: &Message) -> usize {
    let Message::Output(output) = message else { panic!("{message:?}") };
    output.data.as_ptr() as usize
}
