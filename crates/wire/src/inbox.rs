//! The receiving end of a link: raw bytes in, messages out.
//!
//! Whole records are decrypted from the driver's read buffer straight into the frame buffer. Only
//! a record whose end has not come is copied aside. An inbox that waits for nothing holds no
//! memory, so a head with a thousand idle links pays for none of them; let the links share one
//! read buffer.

use alloc::vec::Vec;

use crate::Message;
use crate::channel::{Channel, ChannelError, RECORD_HEADER_BYTES};
use crate::cipher::TAG_BYTES;
use crate::frame::{Decoder, FrameError};

/// Turns what is read from one link into messages.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The beginning of a record whose end has not come.
    partial: Vec<u8>,
    decoder: Decoder,
}

impl Inbox {
    /// An inbox at the start of a channel.
    pub fn new() -> Inbox {
        Inbox::default()
    }

    /// Takes bytes as they were read. Then call [`Inbox::next_message`] until `None`; after an
    /// error, close the link.
    pub fn push(&mut self, channel: &mut Channel, bytes: &[u8]) -> Result<(), ChannelError> {
        // Once, rather than by and by with what is there copied each time.
        self.decoder.buffer_mut().reserve(self.partial.len() + bytes.len());
        let rest = self.complete_partial(channel, bytes)?;
        let rest = self.open_records(channel, rest)?;
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// The next message, once all of it is there.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        self.decoder.next_message()
    }

    /// Adds to the record that was begun what it lacks. Returns what is beyond it.
    fn complete_partial<'a>(
        &mut self,
        channel: &mut Channel,
        mut bytes: &'a [u8],
    ) -> Result<&'a [u8], ChannelError> {
        while !self.partial.is_empty() && !bytes.is_empty() {
            let wanted = match record_len(&self.partial)? {
                Some(len) => RECORD_HEADER_BYTES + len,
                None => RECORD_HEADER_BYTES,
            };
            let missing = (wanted - self.partial.len()).min(bytes.len());
            let (more, rest) = bytes.split_at(missing);
            self.partial.extend_from_slice(more);
            bytes = rest;
            if self.partial.len() == wanted && wanted > RECORD_HEADER_BYTES {
                let sealed = &self.partial[RECORD_HEADER_BYTES..];
                channel.open(sealed, self.decoder.buffer_mut())?;
                self.partial = Vec::new();
            }
        }
        Ok(bytes)
    }

    /// Opens all whole records of `bytes`. Returns the beginning of the next one.
    fn open_records<'a>(
        &mut self,
        channel: &mut Channel,
        mut bytes: &'a [u8],
    ) -> Result<&'a [u8], ChannelError> {
        while let Some(len) = record_len(bytes)? {
            let Some((sealed, rest)) = bytes[RECORD_HEADER_BYTES..].split_at_checked(len) else {
                break;
            };
            channel.open(sealed, self.decoder.buffer_mut())?;
            bytes = rest;
        }
        Ok(bytes)
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
