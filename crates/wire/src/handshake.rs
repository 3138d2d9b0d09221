//! How a link becomes a channel: both sides prove the session's secret, and nothing is believed
//! before that.
//!
//! The child (the initiator) sends its preamble and the first Noise message. The parent answers
//! with magic, version and a verdict, and, if it accepts, the second Noise message. The child's
//! answer to that is an empty record. Only this record proves to the parent that the child is no
//! replay of an old first message, so the parent's handshake is over when it has decrypted; a
//! parent that waits holds less than 200 bytes. The parent's second message proves it to the child.
//!
//! A refusal is sent in clear, for the words that a user sees. Nothing proves it, but whoever can
//! forge it could as well cut the link.
//!
//! One handshake costs each side two multiplications on Curve25519, 0.1 to 0.2 ms.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use model::AgentId;
use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use crate::channel::{
    GREETING_BYTES, PREAMBLE_BYTES, RECORD_HEADER_BYTES, check_greeting, greeting,
};
use crate::cipher::{PATTERN, RecordKey, Resolver, TAG_BYTES};
use crate::{
    BuildHash, Channel, ChannelError, Ephemeral, Inbox, Preamble, Refusal, Secret, SessionId,
};

/// Bytes of either Noise message: an ephemeral public key, and the tag of an empty payload.
const NOISE_BYTES: usize = 32 + TAG_BYTES;

/// Bytes of the parent's answer before the Noise message.
const ANSWER_BYTES: usize = GREETING_BYTES + 1;

/// Bytes of the empty record that ends the handshake.
const PROOF_BYTES: usize = RECORD_HEADER_BYTES + TAG_BYTES;

/// The verdict that accepts; the others are [`Refusal`]s.
const ACCEPTED: u8 = 0;

/// What a parent must be asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expected {
    /// Its own build.
    pub build: BuildHash,
    /// Its session.
    pub session: SessionId,
    /// Its own number.
    pub own: AgentId,
}

/// A handshake that succeeded.
#[derive(Debug)]
pub struct Established {
    /// The channel.
    pub channel: Channel,
    /// Where what comes next belongs. It holds what came with the handshake's last bytes, so
    /// look for messages at once.
    pub inbox: Inbox,
    /// The other side, as it has proven.
    pub peer: AgentId,
    /// Which start of the child this is.
    pub attempt: u32,
}

/// One side of a handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    /// What has come and is not used yet.
    received: Vec<u8>,
    /// What the driver must send.
    outgoing: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// A child that waits for the answer.
    Asking { noise: Box<HandshakeState>, preamble: Preamble },
    /// A parent that waits for the preamble.
    Listening { secret: Secret, expected: Expected, ephemeral: Ephemeral },
    /// A parent that waits for the empty record.
    Doubting { channel: Box<Channel>, preamble: Preamble },
    /// The driver has yet to ask for the result.
    Proven(Box<Established>),
    /// Failed, or the driver has the result.
    Over,
}

impl Handshake {
    /// The child's side. `ephemeral` must be fresh. Send what [`Handshake::poll_send`] has.
    pub fn initiator(secret: &Secret, preamble: Preamble, ephemeral: Ephemeral) -> Handshake {
        let prologue = preamble.encode();
        let mut noise = builder(secret, &prologue, ephemeral)
            .build_initiator()
            .expect("the pattern needs no more than a secret");
        let mut outgoing = prologue.to_vec();
        append_noise(&mut noise, &mut outgoing);
        let state = State::Asking { noise: Box::new(noise), preamble };
        Handshake { state, received: Vec::new(), outgoing }
    }

    /// The parent's side. `ephemeral` must be fresh.
    pub fn responder(secret: &Secret, expected: Expected, ephemeral: Ephemeral) -> Handshake {
        let state = State::Listening { secret: secret.clone(), expected, ephemeral };
        Handshake { state, received: Vec::new(), outgoing: Vec::new() }
    }

    /// Takes what came from the peer. Afterwards, also after an error, send what
    /// [`Handshake::poll_send`] has, then ask [`Handshake::poll_established`]; after an error,
    /// close the link.
    pub fn on_bytes(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.received.extend_from_slice(bytes);
        let result = self.advance();
        if result.is_err() {
            self.state = State::Over;
        }
        result
    }

    /// What to send next, if anything.
    pub fn poll_send(&mut self) -> Option<Vec<u8>> {
        (!self.outgoing.is_empty()).then(|| mem::take(&mut self.outgoing))
    }

    /// The result, once both sides have proven themselves and all was taken for sending.
    pub fn poll_established(&mut self) -> Option<Established> {
        if !self.outgoing.is_empty() || !matches!(self.state, State::Proven(_)) {
            return None;
        }
        let State::Proven(established) = mem::replace(&mut self.state, State::Over) else {
            return None;
        };
        Some(*established)
    }

    /// Goes as far as the received bytes allow.
    fn advance(&mut self) -> Result<(), ChannelError> {
        self.state = match mem::replace(&mut self.state, State::Over) {
            State::Asking { noise, preamble } => self.on_answer(noise, preamble)?,
            State::Listening { secret, expected, ephemeral } => {
                self.on_preamble(secret, expected, ephemeral)?
            }
            State::Doubting { channel, preamble } => self.on_proof(channel, preamble)?,
            State::Proven(mut established) => {
                let received = mem::take(&mut self.received);
                established.inbox.push(&mut established.channel, &received)?;
                State::Proven(established)
            }
            State::Over => return Err(ChannelError::Early),
        };
        Ok(())
    }

    /// The child, when its parent has spoken.
    fn on_answer(
        &mut self,
        mut noise: Box<HandshakeState>,
        preamble: Preamble,
    ) -> Result<State, ChannelError> {
        check_greeting(&self.received)?;
        if let Some(&verdict) = self.received.get(GREETING_BYTES)
            && verdict != ACCEPTED
        {
            let refusal = Refusal::from_byte(verdict).ok_or(ChannelError::NotConvoke)?;
            return Err(ChannelError::Refused(refusal));
        }
        if self.received.len() < ANSWER_BYTES + NOISE_BYTES {
            return Ok(State::Asking { noise, preamble });
        }
        let answer = self.take(ANSWER_BYTES + NOISE_BYTES);
        read_noise(&mut noise, &answer[ANSWER_BYTES..])?;
        let mut channel = into_channel(*noise)?;
        channel.seal_record(&mut self.outgoing, |_| {})?;
        self.prove(channel, preamble.to, preamble.attempt)
    }

    /// The parent, when a child has spoken.
    fn on_preamble(
        &mut self,
        secret: Secret,
        expected: Expected,
        ephemeral: Ephemeral,
    ) -> Result<State, ChannelError> {
        self.answer_refusal(check_greeting(&self.received))?;
        if self.received.len() > PREAMBLE_BYTES + NOISE_BYTES {
            return Err(ChannelError::Early);
        }
        let Some(&prologue) = self.received.first_chunk() else {
            return Ok(State::Listening { secret, expected, ephemeral });
        };
        let preamble = Preamble::decode(&prologue);
        self.answer_refusal(check_preamble(&preamble, &expected))?;
        if self.received.len() < PREAMBLE_BYTES + NOISE_BYTES {
            return Ok(State::Listening { secret, expected, ephemeral });
        }
        let mut noise = builder(&secret, &prologue, ephemeral)
            .build_responder()
            .expect("the pattern needs no more than a secret");
        let message = mem::take(&mut self.received).split_off(PREAMBLE_BYTES);
        self.answer_refusal(read_noise(&mut noise, &message))?;
        self.answer(ACCEPTED);
        append_noise(&mut noise, &mut self.outgoing);
        Ok(State::Doubting { channel: Box::new(into_channel(noise)?), preamble })
    }

    /// The parent, when the child has answered its answer.
    fn on_proof(
        &mut self,
        mut channel: Box<Channel>,
        preamble: Preamble,
    ) -> Result<State, ChannelError> {
        if self.received.len() < PROOF_BYTES {
            return Ok(State::Doubting { channel, preamble });
        }
        let mut proof = self.take(PROOF_BYTES);
        let (header, sealed) = proof.split_at_mut(RECORD_HEADER_BYTES);
        if header != [TAG_BYTES as u8, 0] {
            return Err(ChannelError::Replayed);
        }
        channel.open(sealed, 0).map_err(|_| ChannelError::Replayed)?;
        self.prove(*channel, preamble.from, preamble.attempt)
    }

    /// The end: what has come beyond the handshake belongs to the channel.
    fn prove(
        &mut self,
        mut channel: Channel,
        peer: AgentId,
        attempt: u32,
    ) -> Result<State, ChannelError> {
        let mut inbox = Inbox::new();
        inbox.push(&mut channel, &mem::take(&mut self.received))?;
        Ok(State::Proven(Box::new(Established { channel, inbox, peer, attempt })))
    }

    /// Tells the child why it is turned away, if it is.
    fn answer_refusal(&mut self, verdict: Result<(), ChannelError>) -> Result<(), ChannelError> {
        if let Err(error) = &verdict
            && let Some(refusal) = refusal_of(error)
        {
            self.answer(refusal.byte());
        }
        verdict
    }

    fn answer(&mut self, verdict: u8) {
        self.outgoing.extend_from_slice(&greeting());
        self.outgoing.push(verdict);
    }

    /// Cuts the first `count` received bytes off, which must be there.
    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.received.split_off(count);
        mem::replace(&mut self.received, rest)
    }
}

fn builder<'a>(secret: &'a Secret, prologue: &'a [u8], ephemeral: Ephemeral) -> Builder<'a> {
    let params = PATTERN.parse().expect("the pattern is well-formed");
    Builder::with_resolver(params, Box::new(Resolver(ephemeral)))
        .prologue(prologue)
        .and_then(|builder| builder.psk(0, secret.bytes()))
        .expect("each parameter is given once")
}

fn append_noise(noise: &mut HandshakeState, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + NOISE_BYTES, 0);
    noise
        .write_message(&[], &mut out[start..])
        .expect("it is this side's turn, and the buffer is as long as the message");
}

fn read_noise(noise: &mut HandshakeState, message: &[u8]) -> Result<(), ChannelError> {
    // The cipher works in place, so its tag needs room.
    noise.read_message(message, &mut [0; TAG_BYTES]).map(|_| ()).map_err(|_| ChannelError::Secret)
}

/// The first key of the split is the initiator's, to send with.
fn into_channel(mut noise: HandshakeState) -> Result<Channel, ChannelError> {
    if !noise.is_handshake_finished() {
        return Err(ChannelError::Secret);
    }
    let (first, second) = noise.dangerously_get_raw_split();
    let (first, second) = (Zeroizing::new(first), Zeroizing::new(second));
    let (first, second) = (RecordKey::new(&first), RecordKey::new(&second));
    Ok(match noise.is_initiator() {
        true => Channel::new(first, second),
        false => Channel::new(second, first),
    })
}

fn check_preamble(preamble: &Preamble, expected: &Expected) -> Result<(), ChannelError> {
    if preamble.build != expected.build {
        return Err(ChannelError::Build { ours: expected.build, theirs: preamble.build });
    }
    if preamble.session != expected.session {
        return Err(ChannelError::Session { theirs: preamble.session });
    }
    if preamble.to != expected.own {
        return Err(ChannelError::WrongAgent { ours: expected.own, wanted: preamble.to });
    }
    Ok(())
}

/// What the child is told about `error`; a stranger is told nothing.
fn refusal_of(error: &ChannelError) -> Option<Refusal> {
    match error {
        ChannelError::Version { .. } => Some(Refusal::Version),
        ChannelError::Build { .. } => Some(Refusal::Build),
        ChannelError::Session { .. } => Some(Refusal::Session),
        ChannelError::WrongAgent { .. } => Some(Refusal::WrongAgent),
        ChannelError::Secret => Some(Refusal::Secret),
        ChannelError::NotConvoke
        | ChannelError::Replayed
        | ChannelError::Refused(_)
        | ChannelError::Early
        | ChannelError::Garbled
        | ChannelError::EmptyRecord(_)
        | ChannelError::Exhausted => None,
    }
}
