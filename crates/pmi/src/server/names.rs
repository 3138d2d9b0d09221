//! Requests that go to the session's name service, and are answered in the order in which they went.

use bytes::BytesMut;
use model::{NameReply, NameRequest, Rank};

use super::{Effect, Server};
use crate::asker::Asker;
use crate::pmi1::reply;
use crate::pmi2::{Reply, ReturnCode};
use crate::spaces::Limits;

/// A request that is under way.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    asker: Asker,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Publish,
    Lookup,
    Unpublish,
}

impl Server {
    /// Asks the name service for a client.
    pub(super) fn ask(&mut self, index: usize, request: NameRequest, asker: Asker) {
        let kind = match &request {
            NameRequest::Publish { .. } => Kind::Publish,
            NameRequest::Lookup(_) => Kind::Lookup,
            NameRequest::Unpublish(_) => Kind::Unpublish,
        };
        let pending = Pending { asker, kind };
        if let NameRequest::Publish { service, port } = &request
            && service.len().max(port.len()) > Limits::PMI2.value
        {
            return pending.answer(&mut self.replies, &NameReply::TooLong);
        }
        let client = &mut self.clients[index];
        client.pending.push_back(pending);
        let rank = client.rank;
        self.flush_replies(rank);
        self.effects.push_back(Effect::Ask { rank, request });
    }

    /// Handles the answer to what a client has asked the longest ago.
    pub fn on_name_reply(&mut self, rank: Rank, reply: &NameReply) {
        let index = self.index(rank);
        let client = &mut self.clients[index];
        let Some(pending) = client.pending.pop_front() else { return };
        self.answer_late(index, |out| pending.answer(out, reply));
    }
}

impl Pending {
    fn answer(&self, out: &mut BytesMut, result: &NameReply) {
        match (&self.asker, self.kind) {
            (Asker::Line, Kind::Publish) => reply::published(out, result),
            (Asker::Line, Kind::Lookup) => reply::looked_up(out, result),
            (Asker::Line, Kind::Unpublish) => reply::unpublished(out, result),
            (Asker::Frame { thread }, kind) => answer_frame(out, kind, thread.as_deref(), result),
        }
    }
}

/// Of the two fields with a port, Slurm's client reads the first and MPICH's the second.
fn answer_frame(out: &mut BytesMut, kind: Kind, thread: Option<&[u8]>, result: &NameReply) {
    let name: &[u8] = match kind {
        Kind::Publish => b"name-publish",
        Kind::Lookup => b"name-lookup",
        Kind::Unpublish => b"name-unpublish",
    };
    let (code, words) = match result {
        NameReply::Done | NameReply::Port(_) => (ReturnCode::Success, None),
        NameReply::NotFound => (ReturnCode::Fail, Some("service_not_found")),
        NameReply::Taken => (ReturnCode::Fail, Some("service_is_published")),
        NameReply::TooLong => (ReturnCode::InvalidValueLength, Some("port_too_long")),
    };
    let frame = Reply::to(out, name, thread, code);
    match (result, words) {
        (NameReply::Port(port), _) => frame.bytes("value", port).bytes("port", port).end(),
        (_, Some(words)) => frame.field("errmsg", words).end(),
        (_, None) => frame.end(),
    }
}
