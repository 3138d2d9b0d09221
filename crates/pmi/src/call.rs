//! What a program says first that connects to `PMI_PORT`: whose is it?
//!
//! One of PMI-1 begins with `initack` and its rank (`reference/pmi1.md` §4). One of PMI-2 greets as it does over a
//! descriptor, and tells its rank only in `fullinit` (`reference/pmi2.md` §2): its greeting is answered before anybody
//! knows whose it is, and whether PMI-2 is offered, the server judges.

use alloc::vec::Vec;
use core::mem;

use model::Rank;

use crate::message_buffer::{MessageBuffer, frame_length};
use crate::pmi1::{self, reply};
use crate::pmi2::{self, Asked};
use crate::{ClientError, Excerpt};

/// What a program has said that has not said its rank yet.
#[derive(Debug, Default)]
pub struct Call {
    /// Of the message that has not come whole.
    said: Vec<u8>,
    has_greeted: bool,
}

/// Whose a connection is, as its program says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Introduction {
    /// The rank that it claims.
    pub rank: Rank,
    /// Whether it waits for the answer to `initack`.
    pub by_initack: bool,
    /// What the server is still to handle of what it has sent.
    pub bytes: Vec<u8>,
}

impl Call {
    /// The longest message before its rank is known: many times what is needed.
    pub const BYTES_MAX: usize = 256;

    /// Takes the next bytes, cut anywhere, and appends to `out` what is to be sent before the program says more. Once
    /// it has said whose it is, returns that.
    ///
    /// # Errors
    /// When it says something else, which is no task's fault: whoever reaches the port may have sent it.
    pub fn feed(
        &mut self,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Introduction>, ClientError> {
        self.said.extend_from_slice(data);
        if !self.has_greeted {
            let Some(line) = self.take_line()? else { return Ok(None) };
            match pmi1::Request::parse(&line) {
                Ok(pmi1::Request::Initack { id }) => {
                    let bytes = mem::take(&mut self.said);
                    return Ok(Some(Introduction { rank: Rank(id), by_initack: true, bytes }));
                }
                Ok(pmi1::Request::Init { version: 2 }) => {
                    out.extend_from_slice(reply::INIT_PMI2);
                    self.has_greeted = true;
                }
                Ok(_) | Err(_) => return Err(not_a_call(&line)),
            }
        }
        self.full_init()
    }

    /// The first line, once it is whole.
    fn take_line(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        let end = memchr::memchr(b'\n', &self.said);
        if end.unwrap_or(self.said.len()) > Self::BYTES_MAX {
            return Err(not_a_call(&self.said));
        }
        let Some(end) = end else { return Ok(None) };
        let behind = self.said.split_off(end + 1);
        let mut line = mem::replace(&mut self.said, behind);
        line.truncate(end);
        Ok(Some(line))
    }

    /// Who the frame behind the greeting is from, once it is whole. The server is to handle it, too.
    fn full_init(&mut self) -> Result<Option<Introduction>, ClientError> {
        let Some(prefix) = self.said.get(..MessageBuffer::PREFIX_BYTES) else { return Ok(None) };
        let length = frame_length(prefix).filter(|length| *length <= Self::BYTES_MAX);
        let end = MessageBuffer::PREFIX_BYTES + length.ok_or_else(|| not_a_call(prefix))?;
        let Some(frame) = self.said.get(..end) else { return Ok(None) };
        let asked = Asked::parse(&frame[MessageBuffer::PREFIX_BYTES..]).map(|it| it.request);
        match asked {
            Ok(Ok(pmi2::Request::FullInit { rank: Some(rank), .. })) => {
                let bytes = mem::take(&mut self.said);
                Ok(Some(Introduction { rank: Rank(rank), by_initack: false, bytes }))
            }
            Ok(_) | Err(_) => Err(not_a_call(frame)),
        }
    }
}

fn not_a_call(said: &[u8]) -> ClientError {
    ClientError::NotACall(Excerpt::new(said))
}
