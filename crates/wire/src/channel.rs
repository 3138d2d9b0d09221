//! The protected channel between a spawn parent and a spawn child: preamble and records.
//!
//! A child says in clear who it is and whom it wants ([`Preamble`]), so that a stranger, another
//! session or another build is told apart from an attack; everything it said is the prologue of
//! the Noise handshake (`crate::handshake`) that follows, so a changed word makes that fail. Then
//! both sides send records: a `u16` length and that many bytes of ciphertext. The frame stream is
//! cut into records without regard to frames: many small ones share a record, a long one has
//! several.
//!
//! Both ways cost the cipher (see `crate::cipher`) and no copy.

use alloc::vec::Vec;

use model::AgentId;

use crate::cipher::{RecordKey, TAG_BYTES};
use crate::{BuildHash, SessionId};

/// The protocol's version; agents of one session must agree.
pub const VERSION: u16 = 1;

/// The first bytes on every link, both ways.
pub const MAGIC: [u8; 4] = *b"CVKE";

/// Bytes of magic and version, which every version of the protocol starts with.
pub(crate) const GREETING_BYTES: usize = MAGIC.len() + size_of::<u16>();

/// Bytes of an encoded [`Preamble`].
pub const PREAMBLE_BYTES: usize = GREETING_BYTES + 8 + 16 + 3 * size_of::<u32>();

/// Bytes of a record's length.
pub(crate) const RECORD_HEADER_BYTES: usize = size_of::<u16>();

/// The most ciphertext in a record that is accepted: Noise's own limit.
pub const RECORD_BYTES_MAX: usize = 65_535;

/// The most plaintext that is put into a record. Sealed, it fits into one of the largest packets that
/// Linux builds, of 64 KiB with up to 320 bytes of headers and in whole segments of an Ethernet; a
/// longer record would cost a second packet for its last few bytes.
pub const RECORD_PLAIN_BYTES_MAX: usize = 65_000;

/// The longest record that is sent, its header included.
pub const SEALED_BYTES_MAX: usize = RECORD_HEADER_BYTES + RECORD_PLAIN_BYTES_MAX + TAG_BYTES;

/// Why a link is no channel of this session, or no longer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ChannelError {
    /// The first bytes are not Convoke's.
    #[error("peer does not speak Convoke's protocol")]
    NotConvoke,
    /// The peer speaks another version of the protocol.
    #[error("peer speaks version {theirs} of the protocol, this is version {ours}")]
    Version {
        /// This program's version.
        ours: u16,
        /// The peer's.
        theirs: u16,
    },
    /// The peer is another build of Convoke.
    #[error("peer is build {theirs} of Convoke, this is build {ours}")]
    Build {
        /// This program.
        ours: BuildHash,
        /// The peer.
        theirs: BuildHash,
    },
    /// The peer belongs to another session.
    #[error("peer belongs to session {theirs}, not to this one")]
    Session {
        /// The session that the peer wants.
        theirs: SessionId,
    },
    /// The peer wants another agent: two hosts share an address.
    #[error("peer looks for agent {wanted}, this is agent {ours}")]
    WrongAgent {
        /// This agent.
        ours: AgentId,
        /// The one that the peer wants.
        wanted: AgentId,
    },
    /// The peer does not know the session's secret, or its words were changed on the way.
    #[error("peer does not hold the session's secret")]
    Secret,
    /// The peer's first words were old ones, or it lost the secret half-way.
    #[error("peer repeats a handshake that it did not begin")]
    Replayed,
    /// The peer refuses this agent. Nothing proves who said so: try another address.
    #[error("peer refuses the connection: {0}")]
    Refused(Refusal),
    /// Bytes before their turn in the handshake.
    #[error("peer sends before its turn in the handshake")]
    Early,
    /// A record that was changed, repeated, dropped or put elsewhere.
    #[error("record does not decrypt")]
    Garbled,
    /// A record too short to hold anything.
    #[error("record of {0} bytes is empty")]
    EmptyRecord(usize),
    /// All nonces are used up, after 2^64 records.
    #[error("channel is used up")]
    Exhausted,
}

/// Why a parent turns a child away, as it tells the child. Unproven words.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// It speaks another version of the protocol.
    #[error("other version of the protocol")]
    Version,
    /// It is another build of Convoke.
    #[error("other build of Convoke")]
    Build,
    /// It belongs to another session.
    #[error("other session")]
    Session,
    /// It is another agent.
    #[error("other agent")]
    WrongAgent,
    /// It does not accept the proof of the secret.
    #[error("wrong secret")]
    Secret,
}

impl Refusal {
    /// The byte that says so.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Refusal::Version => 1,
            Refusal::Build => 2,
            Refusal::Session => 3,
            Refusal::WrongAgent => 4,
            Refusal::Secret => 5,
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Refusal> {
        [Refusal::Version, Refusal::Build, Refusal::Session, Refusal::WrongAgent, Refusal::Secret]
            .into_iter()
            .find(|refusal| refusal.byte() == byte)
    }
}

/// What a child says in clear before anything else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Preamble {
    /// Its build.
    pub build: BuildHash,
    /// Its session.
    pub session: SessionId,
    /// Itself.
    pub from: AgentId,
    /// The spawn parent that it looks for.
    pub to: AgentId,
    /// Which start of it this is, counted from 0.
    pub attempt: u32,
}

impl Preamble {
    /// Its bytes, magic and version first.
    pub fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        let fields: [&[u8]; 7] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &self.build.0,
            &self.session.0,
            &self.from.0.to_le_bytes(),
            &self.to.0.to_le_bytes(),
            &self.attempt.to_le_bytes(),
        ];
        let mut rest = bytes.as_mut_slice();
        for field in fields {
            let (place, after) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = after;
        }
        bytes
    }

    /// Reads what [`Preamble::encode`] wrote, all but magic and version.
    pub(crate) fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Preamble {
        Preamble {
            build: BuildHash(array_at(bytes, 6)),
            session: SessionId(array_at(bytes, 14)),
            from: AgentId(u32::from_le_bytes(array_at(bytes, 30))),
            to: AgentId(u32::from_le_bytes(array_at(bytes, 34))),
            attempt: u32::from_le_bytes(array_at(bytes, 38)),
        }
    }
}

/// Magic and version, as both sides send them first.
pub(crate) fn greeting() -> [u8; GREETING_BYTES] {
    let [a, b, c, d] = MAGIC;
    let [low, high] = VERSION.to_le_bytes();
    [a, b, c, d, low, high]
}

/// Checks the first bytes of a peer as far as they have come. A stranger is recognised by its
/// first byte, so nobody waits for more.
pub(crate) fn check_greeting(received: &[u8]) -> Result<(), ChannelError> {
    let known = received.len().min(MAGIC.len());
    if received[..known] != MAGIC[..known] {
        return Err(ChannelError::NotConvoke);
    }
    match received.get(MAGIC.len()..GREETING_BYTES) {
        Some(&[low, high]) if [low, high] != VERSION.to_le_bytes() => {
            let theirs = u16::from_le_bytes([low, high]);
            Err(ChannelError::Version { ours: VERSION, theirs })
        }
        Some(_) | None => Ok(()),
    }
}

/// One side of a link after the handshake. `crate::Outbox` and `crate::Inbox` use it.
#[derive(Debug)]
pub struct Channel {
    sending: RecordKey,
    receiving: RecordKey,
}

impl Channel {
    pub(crate) fn new(sending: RecordKey, receiving: RecordKey) -> Channel {
        Channel { sending, receiving }
    }

    /// Appends `plain`, in as few records as possible, to `out`.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), ChannelError> {
        plain
            .chunks(RECORD_PLAIN_BYTES_MAX)
            .try_for_each(|part| self.seal_record(out, |out| out.extend_from_slice(part)))
    }

    /// Appends one record to `out`: what `write` appends, at most [`RECORD_PLAIN_BYTES_MAX`].
    pub(crate) fn seal_record(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), ChannelError> {
        let header_at = out.len();
        let start = header_at + RECORD_HEADER_BYTES;
        out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        write(out);
        let len = u16::try_from(out.len() - start + TAG_BYTES).ok();
        match len.zip(self.sending.seal(&mut out[start..]).ok()) {
            Some((len, tag)) => {
                out[header_at..start].copy_from_slice(&len.to_le_bytes());
                out.extend_from_slice(&tag);
                Ok(())
            }
            None => {
                out.truncate(header_at);
                Err(ChannelError::Exhausted)
            }
        }
    }

    /// Decrypts to the front of `bytes` the one record's ciphertext that they hold from `at` on.
    /// Returns how many bytes of plaintext there are.
    pub(crate) fn open(&mut self, bytes: &mut [u8], at: usize) -> Result<usize, ChannelError> {
        self.receiving.open(bytes, at).ok_or(ChannelError::Garbled)
    }
}

/// The `N` bytes of `bytes` from `start` on, which must be there.
fn array_at<const N: usize>(bytes: &[u8; PREAMBLE_BYTES], start: usize) -> [u8; N] {
    core::array::from_fn(|index| bytes[start + index])
}
