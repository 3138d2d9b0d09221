//! What is sent so that a job's messages can take other ways than the spawn tree.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use model::{AgentId, IdSet};
use serde::{Deserialize, Serialize};

use crate::frame::{self, Class, Decoder, FrameError};
use crate::message::Message;

/// The most addresses of one contact that are kept.
const ADDRESSES_MAX: usize = 32;

/// Where an agent listens: all of its addresses, in the order to try.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<SocketAddr>", into = "Vec<SocketAddr>")]
pub struct Contact(Vec<SocketAddr>);

impl From<Vec<SocketAddr>> for Contact {
    /// Keeps the first of very many.
    fn from(mut addresses: Vec<SocketAddr>) -> Contact {
        addresses.truncate(ADDRESSES_MAX);
        Contact(addresses)
    }
}

impl From<Contact> for Vec<SocketAddr> {
    fn from(contact: Contact) -> Vec<SocketAddr> {
        contact.0
    }
}

/// What every member needs to find its place in the routing tree and to reach its parent there.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Routes {
    /// All members but the head.
    pub members: IdSet,
    /// Where they and the head listen; nothing where contacts are asked for one by one.
    pub contacts: Vec<(AgentId, Contact)>,
}

/// How many messages of a routing edge one end has received, of each [`Class`]: control, then data.
pub type Received = [u32; 2];

/// A message between neighbours of the routing tree on its way around their own link.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Forward {
    /// Whom it is for.
    pub to: AgentId,
    /// Who sent it.
    pub from: AgentId,
    /// Whose redundant link to the lower of the two it goes over; absent: it goes along the spawn tree.
    pub via: Option<AgentId>,
    /// Whether it keeps its place behind data, as [`Class::Data`].
    pub is_data: bool,
    /// Its frame. Who passes it on does not look into it.
    frame: Bytes,
}

impl Forward {
    /// Wraps a message.
    ///
    /// # Errors
    /// When it is too long for a frame.
    pub fn new(
        from: AgentId,
        to: AgentId,
        via: Option<AgentId>,
        message: &Message,
    ) -> Result<Box<Forward>, FrameError> {
        let mut bytes = Vec::new();
        frame::encode(message, &mut bytes)?;
        let is_data = Class::of(message) == Class::Data;
        Ok(Box::new(Forward { to, from, via, is_data, frame: bytes.into() }))
    }

    /// The message.
    ///
    /// # Errors
    /// When the bytes are those of no message.
    pub fn message(&self) -> Result<Message, FrameError> {
        let mut decoder = Decoder::new();
        decoder.push(&self.frame);
        decoder.next_message()?.ok_or(FrameError::TooShort(self.frame.len()))
    }
}
