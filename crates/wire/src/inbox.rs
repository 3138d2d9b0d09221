//! The receiving end of a link: raw bytes in, messages out.
//!
//! One buffer, into which the driver reads: records are decrypted where they are, moved up by what
//! their headers and tags take, and long messages are slices of it. So no byte is copied but those
//! of a record or a frame whose end has not come when the next read needs a new buffer. An inbox
//! that waits for nothing holds no memory, so a head with a thousand idle links pays for none of
//! them.

use bytes::BytesMut;

use crate::Message;
use crate::channel::{Channel, ChannelError, RECORD_HEADER_BYTES};
use crate::cipher::TAG_BYTES;
use crate::frame::{Decoder, FrameError};

/// Turns what is read from one link into messages.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Its buffer holds frames, a gap, and the beginning of a record whose end has not come.
    decoder: Decoder,
    /// What headers and tags of opened records leave free between frames and that beginning.
    gap: usize,
}

impl Inbox {
    /// An inbox at the start of a channel.
    pub fn new() -> Inbox {
        Inbox::default()
    }

    /// Takes bytes as they were read. Then call [`Inbox::next_message`] until `None`; after an
    /// error, close the link.
    pub fn push(&mut self, channel: &mut Channel, bytes: &[u8]) -> Result<(), ChannelError> {
        self.buffer_mut().extend_from_slice(bytes);
        self.open_records(channel).map(drop)
    }

    /// Where to append what is read; then call [`Inbox::open_records`].
    pub fn buffer_mut(&mut self) -> &mut BytesMut {
        self.decoder.parts_mut().0
    }

    /// Opens all records whose end has come, and says whether there were any. Then call
    /// [`Inbox::next_message`] until `None`; after an error, close the link.
    pub fn open_records(&mut self, channel: &mut Channel) -> Result<bool, ChannelError> {
        let (buffer, plain_bytes) = self.decoder.parts_mut();
        let mut is_any = false;
        let mut record_at = *plain_bytes + self.gap;
        while let Some(len) = record_len(&buffer[record_at..])? {
            let sealed_at = record_at + RECORD_HEADER_BYTES;
            let Some(bytes) = buffer.get_mut(*plain_bytes..sealed_at + len) else { break };
            *plain_bytes += channel.open(bytes, sealed_at - *plain_bytes)?;
            record_at = sealed_at + len;
            is_any = true;
        }
        self.gap = record_at - *plain_bytes;
        if record_at == buffer.len() {
            buffer.truncate(*plain_bytes);
            self.gap = 0;
        }
        Ok(is_any)
    }

    /// The next message, once all of it is there.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        self.decoder.next_message()
    }
}

/// How long the record's ciphertext is, if that is known already.
fn record_len(bytes: &[u8]) -> Result<Option<usize>, ChannelError> {
    let Some(&header) = bytes.first_chunk() else { return Ok(None) };
    let len = usize::from(u16::from_le_bytes(header));
    if len <= TAG_BYTES {
        return Err(ChannelError::EmptyRecord(len));
    }
    Ok(Some(len))
}
