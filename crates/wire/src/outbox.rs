//! The sending end of a link: messages in, sealed bytes out, control before data.
//!
//! What is queued is encoded but not sealed, because its order is open until it goes. A frame that
//! has begun is finished first; data frames are short, so control waits for some 64 KiB, or for one large value.
//! Frames share their bytes with their messages and with other links, so a queue of output costs a
//! header per piece. Filling copies each byte once, to where the channel seals it in place; an
//! empty outbox holds no memory.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::Message;
use crate::channel::{Channel, ChannelError, RECORD_PLAIN_BYTES_MAX, SEALED_BYTES_MAX};
use crate::frame::{Class, Frame, FrameError};

/// What one link has yet to send.
#[derive(Debug, Default)]
pub struct Outbox {
    /// The frame of which a part has gone.
    begun: Option<Frame>,
    control: VecDeque<Frame>,
    data: VecDeque<Frame>,
    /// Bytes of all of them.
    queued_bytes: usize,
}

impl Outbox {
    /// An outbox with nothing in it.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// Queues `message`.
    pub fn push(&mut self, message: &Message) -> Result<(), FrameError> {
        Frame::new(message).map(|frame| self.push_frame(frame))
    }

    /// Queues a frame: one encoding for many links.
    pub fn push_frame(&mut self, frame: Frame) {
        self.queued_bytes += frame.remaining();
        match frame.class() {
            Class::Control => self.control.push_back(frame),
            Class::Data => self.data.push_back(frame),
        }
    }

    /// Whether nothing waits to be sealed.
    pub fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    /// How many bytes wait to be sealed.
    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Appends sealed records to `out` until it holds `bytes_max` bytes (or up to one record more)
    /// or nothing is left.
    pub fn fill(
        &mut self,
        channel: &mut Channel,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<(), ChannelError> {
        let room = self.queued_bytes.min(bytes_max) + SEALED_BYTES_MAX.min(self.queued_bytes);
        if out.is_empty() && out.capacity() < room {
            // To grow would copy what it held before.
            *out = Vec::with_capacity(room.next_power_of_two());
        }
        while out.len() < bytes_max && !self.is_empty() {
            channel.seal_record(out, |out| self.gather(out))?;
        }
        if self.is_empty() {
            *self = Outbox::new();
        }
        Ok(())
    }

    /// Appends the next bytes to `out`, as many as a record takes.
    fn gather(&mut self, out: &mut Vec<u8>) {
        let full = out.len() + RECORD_PLAIN_BYTES_MAX;
        while out.len() < full
            && let Some(mut frame) = self.next_frame()
        {
            let before = out.len();
            frame.take_into(out, full - before);
            self.queued_bytes -= out.len() - before;
            self.begun = (frame.remaining() > 0).then_some(frame);
        }
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.begun.take().or_else(|| self.control.pop_front()).or_else(|| self.data.pop_front())
    }
}
