//! Requests for a job of its own: they go to the head, and are answered when its tasks were created, or could not be.

use alloc::collections::VecDeque;
use core::mem;

use bytes::BytesMut;
use model::{Rank, SpawnReply, SpawnRequest, SpawnedTasks};

use super::{Effect, Server};
use crate::asker::Asker;
use crate::pmi1::{SpawnBlock, reply};
use crate::pmi2::{Reply, ReturnCode};
use crate::spaces::Limits;
use crate::{ClientError, MessageBuffer};

/// What one client wants spawned.
#[derive(Debug, Default)]
pub(super) struct Spawns {
    /// The blocks of a request whose last one has not come (`reference/pmi1.md` §7).
    unfinished: SpawnRequest,
    unfinished_bytes: usize,
    /// Who waits for an answer, in the order of the requests.
    waiting: VecDeque<Asker>,
}

impl Server {
    /// Takes a block of a request of PMI-1; `bytes` long it came.
    pub(super) fn on_spawn_block(
        &mut self,
        index: usize,
        block: SpawnBlock,
        bytes: usize,
    ) -> Result<(), ClientError> {
        let spawns = self.clients[index].spawns.get_or_insert_default();
        spawns.unfinished_bytes += bytes;
        if spawns.unfinished_bytes > MessageBuffer::MESSAGE_BYTES_MAX {
            return Err(ClientError::TooLong { bytes_max: MessageBuffer::MESSAGE_BYTES_MAX });
        }
        // Old clients repeat the pairs in every block.
        if spawns.unfinished.programs.is_empty() {
            spawns.unfinished.preput = block.preput;
        }
        spawns.unfinished.programs.push(block.program);
        if block.is_last {
            spawns.unfinished_bytes = 0;
            let request = mem::take(&mut spawns.unfinished);
            self.spawn(index, request, Asker::Line);
        }
        Ok(())
    }

    /// Asks the head for a job of its own.
    pub(super) fn spawn(&mut self, index: usize, request: SpawnRequest, asker: Asker) {
        if request.preput.iter().any(|(key, value)| Limits::PMI2.check(key, value).is_err()) {
            let refused = SpawnReply::Refused("its key-value pairs cannot be put".into());
            return answer(&mut self.replies, &asker, &refused);
        }
        let client = &mut self.clients[index];
        client.spawns.get_or_insert_default().waiting.push_back(asker);
        let rank = client.rank;
        self.flush_replies(rank);
        self.effects.push_back(Effect::Spawn { rank, request });
    }

    /// Handles the answer to the request that a client made the longest ago.
    pub fn on_spawn_reply(&mut self, rank: Rank, result: &SpawnReply) {
        let index = self.index(rank);
        let client = &mut self.clients[index];
        let Some(spawns) = &mut client.spawns else { return };
        let Some(asker) = spawns.waiting.pop_front() else { return };
        self.answer_late(index, |out| answer(out, &asker, result));
    }
}

fn answer(out: &mut BytesMut, asker: &Asker, result: &SpawnReply) {
    match asker {
        Asker::Line => reply::spawned(out, result),
        Asker::Frame { thread } => answer_frame(out, thread.as_deref(), result),
    }
}

fn answer_frame(out: &mut BytesMut, thread: Option<&[u8]>, result: &SpawnReply) {
    let code = match result {
        SpawnReply::Started { .. } => ReturnCode::Success,
        SpawnReply::Refused(_) => ReturnCode::Fail,
    };
    let frame = Reply::to(out, b"spawn", thread, code);
    match result {
        SpawnReply::Started { kvsname, programs } => {
            let missing = SpawnedTasks::missing(programs);
            let frame = frame.field("jobid", kvsname).field("nerrs", missing);
            match reply::error_codes(programs, Limits::PMI2.value).filter(|_| missing > 0) {
                Some(codes) => frame.field("errcodes", codes).end(),
                None => frame.end(),
            }
        }
        SpawnReply::Refused(words) => frame.field("errmsg", words).end(),
    }
}
