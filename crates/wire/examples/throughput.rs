//! Times a link without its socket: frames in, records, frames out, all on one core.
//!
//! Run with `cargo run -p wire --release --example throughput`. Each figure is that of the best
//! round, so that what else runs on the machine counts little. The last line is the floor: the same
//! bytes copied once.
#![expect(clippy::print_stdout, reason = "it reports to the terminal")]
#![expect(clippy::disallowed_methods, reason = "it measures")]
#![expect(clippy::unwrap_used, reason = "nothing here comes from outside")]

use std::hint::black_box;
use std::time::Instant;

use model::{JobId, Rank};
use wire::{Message, Outbox, Output, Stream, rehearsed};

const ROUNDS: u32 = 1_000;
const ROUND_BYTES: usize = 512 << 10;

fn main() {
    time_handshake();
    for piece_bytes in [100, 1_000, 16 << 10, 64 << 10] {
        time_link(piece_bytes);
    }
    time_copy();
}

fn time_handshake() {
    let secs = best_secs(|| {
        black_box(rehearsed());
    });
    println!("handshake, both sides: {:.3} ms", secs * 1e3);
}

/// Sends output in pieces of `piece_bytes` and reads it back as a driver does.
fn time_link(piece_bytes: usize) {
    let (mut child, mut parent) = rehearsed();
    let message = output(piece_bytes);
    let (mut outbox, mut out) = (Outbox::new(), Vec::new());
    let (mut send_secs, mut receive_secs) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..ROUND_BYTES / piece_bytes {
            outbox.push(&message).unwrap();
        }
        outbox.fill(&mut child.channel, &mut out, usize::MAX).unwrap();
        send_secs = send_secs.min(start.elapsed().as_secs_f64());

        let start = Instant::now();
        for read in out.chunks(256 << 10) {
            parent.inbox.push(&mut parent.channel, read).unwrap();
            while let Some(message) = parent.inbox.next_message().unwrap() {
                black_box(message);
            }
        }
        receive_secs = receive_secs.min(start.elapsed().as_secs_f64());
        out.clear();
    }
    println!(
        "pieces of {piece_bytes} bytes: send {:.2} GB/s, receive {:.2} GB/s",
        gigabytes() / send_secs,
        gigabytes() / receive_secs
    );
}

fn time_copy() {
    let (from, mut to) = (vec![1_u8; ROUND_BYTES], vec![0_u8; ROUND_BYTES]);
    let secs = best_secs(|| {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    });
    println!("one copy: {:.2} GB/s", gigabytes() / secs);
}

/// Payload of a round.
fn gigabytes() -> f64 {
    ROUND_BYTES as f64 / 1e9
}

fn best_secs(mut round: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn output(bytes: usize) -> Message {
    Message::Output(Output {
        job: JobId(0),
        rank: Rank(0),
        stream: Stream::Stdout,
        offset: 0,
        lead: bytes::Bytes::new(),
        data: vec![b'x'; bytes].into(),
    })
}
