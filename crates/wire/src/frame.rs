//! Messages as bytes: the stream of frames that a channel carries.
//!
//! A frame is five bytes, the length of its body (little-endian) and its kind, and then the body.
//! Control messages are postcard. Output and standard input are a gigabyte where everything else
//! is kilobytes: they have a fixed header, are put on the wire without serde, and come off it as
//! slices of the buffer into which the channel decrypted, without a copy.
//!
//! A length is believed only as far as its kind allows, and nothing is reserved for bytes that
//! have not come. A frame that cannot be decoded is an error of the peer and leaves the decoder
//! where it was: the link is to be closed.

use alloc::vec::Vec;

use bytes::{Buf, Bytes, BytesMut};
use model::{JobId, Rank};
use postcard::ser_flavors::{Flavor, Size};

use crate::{Message, Output, Stream};

/// Bytes before a frame's body: its length (`u32`) and its kind (`u8`).
pub const HEADER_BYTES: usize = 5;

/// Bytes before the raw ones in the body of an output frame: job, rank (`u32`), offset (`u64`).
pub const OUTPUT_HEADER_BYTES: usize = 16;

/// The same of an input frame, which names no rank.
pub const INPUT_HEADER_BYTES: usize = 12;

/// The most raw bytes in a data frame: the longest line that goes out whole.
pub const DATA_BYTES_MAX: usize = 64 << 10;

/// The longest body of a control frame. Large exchanges travel in parts; the largest messages are what a group has
/// exchanged, a part that is one large value, and the map of a job's tasks.
pub const CONTROL_BYTES_MAX: usize = 256 << 20;

/// Bytes that are no frame, or a message that fits into none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    /// A frame of a kind that does not exist.
    #[error("frame of unknown kind {0}")]
    Kind(u8),
    /// A body that is longer than its kind allows.
    #[error("frame body of {bytes} bytes, where at most {bytes_max} are allowed")]
    TooLong {
        /// The length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A data frame without room for its header.
    #[error("data frame body of {0} bytes has no room for its header")]
    TooShort(usize),
    /// A control frame whose body is no message.
    #[error("control frame holds no message")]
    Control(#[source] postcard::Error),
    /// A control frame that goes on after its message.
    #[error("control frame has {0} bytes after its message")]
    Trailing(usize),
    /// A control frame that holds what only a data frame may.
    #[error("control frame holds output or input")]
    DataAsControl,
}

/// Which messages a frame may overtake on its link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// Goes before all data that is still queued.
    Control,
    /// Keeps its place: output and input, and the messages that say that there is no more of it; and what large exchanges
    /// carry, which nothing urgent is to wait for.
    Data,
}

impl Class {
    /// The class of `message`.
    pub fn of(message: &Message) -> Class {
        match message {
            Message::Output(_)
            | Message::Input { .. }
            | Message::InputEnd(..)
            | Message::Done { .. }
            | Message::Marks(_)
            | Message::Records(..)
            | Message::EnterPart(..)
            | Message::ReleasePart(..)
            | Message::Bye(_) => Class::Data,
            Message::Hello(_)
            | Message::Welcome(_)
            | Message::Job(_)
            | Message::Joined(_)
            | Message::StartFailed(_)
            | Message::JoinDeadline
            | Message::Launch(_)
            | Message::JobFault(..)
            | Message::Enter { .. }
            | Message::Release { .. }
            | Message::Held(..)
            | Message::Fetch(..)
            | Message::Fetched(..)
            | Message::OutputCredit(_)
            | Message::InputCredit(..)
            | Message::InputClosed(_)
            | Message::Signal(..)
            | Message::Stop { .. }
            | Message::Lost(_)
            | Message::Shutdown
            | Message::Ping { .. }
            | Message::Suspend(_)
            | Message::MoreWork(_)
            | Message::Work(_)
            | Message::GroupEnter { .. }
            | Message::GroupRelease { .. }
            | Message::GroupAwaited(..)
            | Message::Warning(..)
            | Message::NameRequest(..)
            | Message::NameReply(..)
            | Message::SpawnRequest(..)
            | Message::SpawnReply(..)
            | Message::Spawn(_)
            | Message::Reached(..)
            | Message::RingEnter(..)
            | Message::RingPlace(..)
            | Message::AllgatherEnter(..)
            | Message::AllgatherRelease(..)
            | Message::Contacts(_)
            | Message::Resolve(_)
            | Message::Route(_)
            | Message::Attach(_)
            | Message::Received(_)
            | Message::Routed
            | Message::Gone(_) => Class::Control,
            Message::Forward(forward) if forward.is_data => Class::Data,
            Message::Forward(_) => Class::Control,
        }
    }
}

/// An encoded message. Clones share their bytes, so one encoding serves many links.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    class: Class,
    /// Everything that had to be encoded: of a data frame the headers and a lead, of another the whole.
    head: Bytes,
    /// The raw bytes of a data frame, shared with its message.
    data: Bytes,
}

impl Frame {
    /// Encodes `message`.
    pub fn new(message: &Message) -> Result<Frame, FrameError> {
        let mut head = Vec::new();
        let data = encode_head(message, &mut head)?;
        Ok(Frame { class: Class::of(message), head: head.into(), data })
    }

    /// Which queue it belongs to.
    pub fn class(&self) -> Class {
        self.class
    }

    /// How many of its bytes have not been taken.
    pub(crate) fn remaining(&self) -> usize {
        self.head.len() + self.data.len()
    }

    /// Moves its next bytes, at most `bytes_max`, to the end of `out`.
    pub(crate) fn take_into(&mut self, out: &mut Vec<u8>, bytes_max: usize) {
        let from_head = self.head.len().min(bytes_max);
        out.extend_from_slice(&self.head[..from_head]);
        self.head.advance(from_head);
        let from_data = self.data.len().min(bytes_max - from_head);
        out.extend_from_slice(&self.data[..from_data]);
        self.data.advance(from_data);
    }
}

/// Appends the frame of `message` to `out`, or nothing if it is too long for one.
pub fn encode(message: &Message, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let data = encode_head(message, out)?;
    out.extend_from_slice(&data);
    Ok(())
}

/// How many bytes the frame of `message` has. Costs nothing for output and input, and a walk
/// through the message for others.
pub fn encoded_len(message: &Message) -> usize {
    match data_of(message) {
        Some((head, data)) => {
            HEADER_BYTES + head.kind.header_bytes() + head.lead.len() + data.len()
        }
        None => {
            let size = postcard::serialize_with_flavor(message, Size::default());
            HEADER_BYTES + size.unwrap_or(0)
        }
    }
}

/// Turns a stream of bytes, cut anywhere, back into messages.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    /// How many bytes of the buffer are frames. What follows is not decrypted yet.
    plain_bytes: usize,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Takes the next bytes of the stream. Call [`Decoder::next_message`] until `None`.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.plain_bytes = self.buffer.len();
    }

    /// The next message, once all of it is there. After an error the stream is worth nothing.
    pub fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        let Some((kind, body_len)) = self.header()? else {
            self.release_if_empty();
            return Ok(None);
        };
        if self.plain_bytes < HEADER_BYTES + body_len {
            return Ok(None);
        }
        match kind {
            Kind::Control => self.next_control(body_len).map(Some),
            Kind::Data(data) => Ok(Some(self.next_data(data, body_len))),
        }
    }

    /// The buffer, in which the channel decrypts, and how many bytes of it are frames.
    pub(crate) fn parts_mut(&mut self) -> (&mut BytesMut, &mut usize) {
        (&mut self.buffer, &mut self.plain_bytes)
    }

    /// The kind and the length of the next frame's body, both within their limits.
    fn header(&self) -> Result<Option<(Kind, usize)>, FrameError> {
        let Some((&[a, b, c, d, kind], _)) = self.buffer[..self.plain_bytes].split_first_chunk()
        else {
            return Ok(None);
        };
        let kind = Kind::from_byte(kind)?;
        let bytes = u32::from_le_bytes([a, b, c, d]) as usize;
        kind.check_len(bytes)?;
        Ok(Some((kind, bytes)))
    }

    fn next_control(&mut self, body_len: usize) -> Result<Message, FrameError> {
        let frame_len = HEADER_BYTES + body_len;
        let message = decode_control(&self.buffer[HEADER_BYTES..frame_len])?;
        self.buffer.advance(frame_len);
        self.plain_bytes -= frame_len;
        Ok(message)
    }

    fn next_data(&mut self, kind: DataKind, body_len: usize) -> Message {
        let frame_len = HEADER_BYTES + body_len;
        let mut frame = self.buffer.split_to(frame_len).freeze();
        self.plain_bytes -= frame_len;
        frame.advance(HEADER_BYTES);
        let job = JobId(frame.get_u32_le());
        let stream = match kind {
            DataKind::Stdout => Stream::Stdout,
            DataKind::Stderr => Stream::Stderr,
            DataKind::Input => {
                let offset = frame.get_u64_le();
                return Message::Input { job, offset, data: frame };
            }
        };
        let (rank, offset) = (Rank(frame.get_u32_le()), frame.get_u64_le());
        Message::Output(Output { job, rank, stream, offset, lead: Bytes::new(), data: frame })
    }

    /// Gives the buffer back: an idle link costs no memory, and what its messages still share
    /// lives as long as they do.
    fn release_if_empty(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }
}

/// What a frame's body is.
#[derive(Clone, Copy)]
enum Kind {
    Control,
    Data(DataKind),
}

#[derive(Clone, Copy)]
enum DataKind {
    Stdout,
    Stderr,
    Input,
}

impl Kind {
    fn from_byte(byte: u8) -> Result<Kind, FrameError> {
        match byte {
            0 => Ok(Kind::Control),
            1 => Ok(Kind::Data(DataKind::Stdout)),
            2 => Ok(Kind::Data(DataKind::Stderr)),
            3 => Ok(Kind::Data(DataKind::Input)),
            unknown => Err(FrameError::Kind(unknown)),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Kind::Control => 0,
            Kind::Data(DataKind::Stdout) => 1,
            Kind::Data(DataKind::Stderr) => 2,
            Kind::Data(DataKind::Input) => 3,
        }
    }

    fn check_len(self, bytes: usize) -> Result<(), FrameError> {
        let (bytes_min, bytes_max) = match self {
            Kind::Control => (0, CONTROL_BYTES_MAX),
            Kind::Data(kind) => (kind.header_bytes(), kind.header_bytes() + DATA_BYTES_MAX),
        };
        if bytes > bytes_max {
            return Err(FrameError::TooLong { bytes, bytes_max });
        }
        if bytes < bytes_min {
            return Err(FrameError::TooShort(bytes));
        }
        Ok(())
    }
}

impl DataKind {
    fn header_bytes(self) -> usize {
        match self {
            DataKind::Stdout | DataKind::Stderr => OUTPUT_HEADER_BYTES,
            DataKind::Input => INPUT_HEADER_BYTES,
        }
    }
}

/// The fixed header of a data frame, and the raw bytes that are copied behind it.
struct DataHead<'a> {
    kind: DataKind,
    job: JobId,
    /// Whose output it is.
    rank: Option<Rank>,
    offset: u64,
    lead: &'a [u8],
}

/// The parts of a message that travels as a data frame.
fn data_of(message: &Message) -> Option<(DataHead<'_>, &Bytes)> {
    if let Message::Output(Output { job, rank, stream, offset, lead, data }) = message {
        let kind = match stream {
            Stream::Stdout => DataKind::Stdout,
            Stream::Stderr => DataKind::Stderr,
        };
        let rank = Some(*rank);
        return Some((DataHead { kind, job: *job, rank, offset: *offset, lead }, data));
    }
    if let Message::Input { job, offset, data } = message {
        let (kind, lead) = (DataKind::Input, &[]);
        let head = DataHead { kind, job: *job, rank: None, offset: *offset, lead };
        return Some((head, data));
    }
    None
}

/// Appends all but the raw bytes, which it returns.
fn encode_head(message: &Message, out: &mut Vec<u8>) -> Result<Bytes, FrameError> {
    match data_of(message) {
        Some((head, data)) => {
            encode_data_head(&head, data.len(), out)?;
            Ok(data.clone())
        }
        None => encode_control(message, out).map(|()| Bytes::new()),
    }
}

fn encode_data_head(
    head: &DataHead<'_>,
    data_len: usize,
    out: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let raw_bytes = head.lead.len() + data_len;
    let head_bytes = head.kind.header_bytes();
    let header = header(Kind::Data(head.kind), head_bytes + raw_bytes)?;
    out.reserve(HEADER_BYTES + head_bytes + head.lead.len());
    out.extend_from_slice(&header);
    out.extend_from_slice(&head.job.0.to_le_bytes());
    if let Some(rank) = head.rank {
        out.extend_from_slice(&rank.0.to_le_bytes());
    }
    out.extend_from_slice(&head.offset.to_le_bytes());
    out.extend_from_slice(head.lead);
    Ok(())
}

fn encode_control(message: &Message, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let encoded = postcard::serialize_with_flavor(message, Tail(out)).map_err(FrameError::Control);
    let body_len = out.len() - start - HEADER_BYTES;
    match encoded.and_then(|()| header(Kind::Control, body_len)) {
        Ok(header) => {
            out[start..start + HEADER_BYTES].copy_from_slice(&header);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

fn header(kind: Kind, body_len: usize) -> Result<[u8; HEADER_BYTES], FrameError> {
    kind.check_len(body_len)?;
    // Within the limits of its kind, a length fits.
    let [a, b, c, d] = u32::try_from(body_len).unwrap_or(u32::MAX).to_le_bytes();
    Ok([a, b, c, d, kind.byte()])
}

fn decode_control(body: &[u8]) -> Result<Message, FrameError> {
    let (message, rest) = postcard::take_from_bytes(body).map_err(FrameError::Control)?;
    if !rest.is_empty() {
        return Err(FrameError::Trailing(rest.len()));
    }
    // One message has one encoding, and the limits of data frames have no way around them.
    if data_of(&message).is_some() {
        return Err(FrameError::DataAsControl);
    }
    Ok(message)
}

/// Where postcard writes: the end of a vector that holds other frames already.
struct Tail<'a>(&'a mut Vec<u8>);

impl Flavor for Tail<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
