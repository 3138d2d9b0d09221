//! The first line of who connects to `PMI_PORT` (`reference/pmi1.md` §4): whose program is it?

use alloc::vec::Vec;
use core::mem;

use model::Rank;

use super::Request;
use crate::{ClientError, Excerpt};

/// What a program has said that has not said its rank yet.
#[derive(Debug, Default)]
pub struct Call {
    unfinished: Vec<u8>,
}

impl Call {
    /// The longest first line: many times what `initack` needs.
    pub const BYTES_MAX: usize = 256;

    /// Takes the next bytes, cut anywhere. Once the line is whole, returns the rank that the program claims and what it
    /// sent behind that.
    ///
    /// # Errors
    /// When it says something else, which is no task's fault: whoever reaches the port may have sent it.
    pub fn feed(&mut self, data: &[u8]) -> Result<Option<(Rank, Vec<u8>)>, ClientError> {
        self.unfinished.extend_from_slice(data);
        let end = memchr::memchr(b'\n', &self.unfinished);
        if end.unwrap_or(self.unfinished.len()) > Self::BYTES_MAX {
            return Err(not_a_call(&self.unfinished));
        }
        let Some(end) = end else { return Ok(None) };
        let mut line = mem::take(&mut self.unfinished);
        let rest = line.split_off(end + 1);
        line.truncate(end);
        match Request::parse(&line) {
            Ok(Request::Initack { id }) => Ok(Some((Rank(id), rest))),
            Ok(_) | Err(_) => Err(not_a_call(&line)),
        }
    }
}

fn not_a_call(said: &[u8]) -> ClientError {
    ClientError::NotACall(Excerpt::new(said))
}
