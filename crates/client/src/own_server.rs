//! The server within a program that was started alone: the one that agents have, for a job of one.

use bytes::{Buf, BytesMut};
use model::{NameReply, Rank, SpawnReply};
use pmi::{Effect, JobInfo, LocalTask, Server};

/// The only task.
const RANK: Rank = Rank(0);

/// A server and what it has answered.
#[derive(Debug)]
pub(crate) struct OwnServer {
    server: Server,
    answers: BytesMut,
}

impl OwnServer {
    pub(crate) fn new() -> OwnServer {
        let name = format!("kvs_alone_{}", std::process::id());
        let tasks = vec![LocalTask { rank: RANK, appnum: 0 }];
        let mut info = JobInfo::new(name, 1, tasks);
        info.universe_size = Some(1);
        info.process_mapping = Some("(vector,(0,1,1))".to_owned());
        OwnServer { server: Server::new(info), answers: BytesMut::new() }
    }

    /// Takes what the program asks.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.server.on_bytes(RANK, bytes);
        while let Some(effect) = self.server.poll_effect() {
            self.perform(effect);
        }
    }

    /// Gives what it answers; nothing where the program would wait for somebody else.
    pub(crate) fn give(&mut self, buffer: &mut [u8]) -> usize {
        let bytes = buffer.len().min(self.answers.len());
        self.answers.copy_to_slice(&mut buffer[..bytes]);
        bytes
    }

    /// Whoever is alone has met everybody, and there is nobody to publish anything to.
    fn perform(&mut self, effect: Effect) {
        let own = "the server reads what it has written itself";
        match effect {
            Effect::Reply { bytes, .. } | Effect::ReplyWithSnapshot { bytes, .. } => {
                self.answers.extend_from_slice(&bytes);
            }
            Effect::ReplyInMemory { bytes, .. } => self.answers.extend_from_slice(&bytes),
            Effect::Exchange { pairs } => self.server.on_exchange_complete(&[pairs]).expect(own),
            Effect::ExchangeGroup { group, pairs } => {
                self.server.on_group_complete(&group, pairs).expect(own);
            }
            Effect::Ring(stretch) => self.server.on_ring_closed(&stretch.close()),
            Effect::Allgather(values) => self.server.on_allgathered(&[values]).expect(own),
            Effect::Ask { rank, .. } => self.server.on_name_reply(rank, &NameReply::NotFound),
            Effect::Fetch(name) => self.server.on_fetched(&name, None),
            Effect::Spawn { rank, .. } => {
                let words = "it was started alone".to_string();
                self.server.on_spawn_reply(rank, &SpawnReply::Refused(words));
            }
            Effect::KeepSnapshot(_)
            | Effect::Leave
            | Effect::Abort { .. }
            | Effect::Violation { .. }
            | Effect::ClosedActive { .. } => {}
        }
    }
}
