//! The allgather of Slurm's PMI-2 as S4-11 has it: each task brings a value, and gets everybody's in order of rank.
//!
//! All who can come are waited for, as in a barrier. The answer is encoded once for all clients here that have said
//! the same thread, or none, and once for all to whom it goes in memory.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;

use bytes::{Bytes, BytesMut};

use super::barrier::Stage;
use super::{Effect, Server};
use crate::pmi2::{Asked, allgather};
use crate::{ClientError, Values, ValuesError};

/// Shorter answers are written to everybody. To make, send and map memory takes as long as to write and read so much.
const IN_MEMORY_BYTES_MIN: usize = 1 << 16;

/// What a client has brought into the allgather.
#[derive(Clone, Debug)]
pub(super) struct InAllgather {
    value: Bytes,
    thread: Option<Bytes>,
}

impl InAllgather {
    pub(super) fn new(asked: &Asked<'_>, value: &[u8]) -> InAllgather {
        InAllgather { value: Bytes::copy_from_slice(value), thread: asked.thread() }
    }
}

impl Server {
    /// Takes a client into the allgather.
    pub(super) fn enter_allgather(
        &mut self,
        index: usize,
        entry: InAllgather,
    ) -> Result<(), ClientError> {
        let client = &mut self.clients[index];
        if client.allgather.is_some() {
            return Err(ClientError::BarrierTwice);
        }
        client.allgather = Some(Box::new(entry));
        self.flush_replies(self.clients[index].rank);
        self.gather_if_complete();
        Ok(())
    }

    /// Goes on once all tasks here are in the allgather, or have left.
    pub(super) fn gather_if_complete(&mut self) {
        let is_missing =
            self.clients.iter().any(|client| !client.left && client.allgather.is_none());
        if is_missing || self.allgather == Stage::Exchanging {
            return;
        }
        let mut entered = self
            .clients
            .iter()
            .filter_map(|client| Some((client.rank, client.allgather.as_ref()?)));
        let mut values = Values::of(self.info.size);
        let mut is_anybody_in = false;
        for (rank, entry) in &mut entered {
            is_anybody_in = true;
            values.insert(rank, entry.value.clone()).expect("clients have ranks of their own");
        }
        if is_anybody_in {
            self.allgather = Stage::Exchanging;
            self.effects.push_back(Effect::Allgather(values.encode()));
        }
    }

    /// Handles the end of an allgather: these are the values of all tasks of the job, as [`Values`] encodes them, in one
    /// part or several.
    ///
    /// # Errors
    /// When they are no such values.
    pub fn on_allgathered(&mut self, parts: &[Bytes]) -> Result<(), ValuesError> {
        assert_eq!(self.allgather, Stage::Exchanging, "an allgather ends that was not asked for");
        self.allgather = Stage::Gathering;
        let mut values = Values::of(self.info.size);
        parts.iter().try_for_each(|part| values.merge(part))?;
        let in_memory = self.allgathered_in_memory(&values);
        let mut replies = Vec::new();
        let mut last: Option<(Option<Bytes>, Bytes)> = None;
        for client in &mut self.clients {
            let Some(entry) = mem::take(&mut client.allgather).filter(|_| !client.left) else {
                continue;
            };
            if let Some(bytes) = in_memory.as_ref().filter(|_| client.snapshot.is_some()) {
                let reply = allgather::in_memory(entry.thread.as_deref(), bytes.len());
                replies.push((client.rank, reply));
                continue;
            }
            let bytes = match last.take().filter(|(thread, _)| *thread == entry.thread) {
                Some((_, bytes)) => bytes,
                None => {
                    let mut out = BytesMut::new();
                    allgather::write(&mut out, entry.thread.as_deref(), &values);
                    out.freeze()
                }
            };
            last = Some((entry.thread, bytes.clone()));
            self.effects.push_back(Effect::Reply { rank: client.rank, bytes });
        }
        self.effects.extend(in_memory.map(|bytes| Effect::ReplyInMemory { replies, bytes }));
        Ok(())
    }

    /// The answer for clients that read snapshots, if it is long and there are such.
    fn allgathered_in_memory(&self, values: &Values) -> Option<Bytes> {
        let mut waiting = self.clients.iter().filter(|it| it.allgather.is_some() && !it.left);
        let has_reader = waiting.any(|client| client.snapshot.is_some());
        let bytes = || values.iter().map(<[u8]>::len).sum::<usize>();
        if !has_reader || bytes() < IN_MEMORY_BYTES_MIN {
            return None;
        }
        let mut out = BytesMut::new();
        allgather::write(&mut out, None, values);
        Some(out.freeze())
    }
}
