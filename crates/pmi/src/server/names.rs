//! Requests that go to the session's name service, and are answered in the order in which they went: what is about
//! other jobs, too.

use alloc::vec::Vec;

use bytes::BytesMut;
use model::{NameReply, NameRequest, Rank};

use super::{Effect, Server};
use crate::asker::Asker;
use crate::pmi1::reply;
use crate::pmi2::{Reply, ReturnCode};
use crate::spaces::Limits;

/// A request that is under way.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    /// A read of this key in the space of another job.
    Read { asker: Asker, key: Vec<u8> },
    /// What is about a name.
    Name { asker: Asker, kind: Kind },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Publish,
    Lookup,
    Unpublish,
    Job,
}

impl Server {
    /// Asks the name service for a client.
    pub(super) fn ask(&mut self, index: usize, request: NameRequest, asker: Asker) {
        if let NameRequest::Publish { service, port } = &request
            && service.len().max(port.len()) > Limits::PMI2.value
        {
            return answer(&mut self.replies, &asker, Kind::Publish, &NameReply::TooLong);
        }
        let pending = match &request {
            NameRequest::Publish { .. } => Pending::Name { asker, kind: Kind::Publish },
            NameRequest::Lookup(_) => Pending::Name { asker, kind: Kind::Lookup },
            NameRequest::Unpublish(_) => Pending::Name { asker, kind: Kind::Unpublish },
            NameRequest::Job(_) => Pending::Name { asker, kind: Kind::Job },
            NameRequest::Value { key, .. } => Pending::Read { asker, key: key.clone() },
        };
        let client = &mut self.clients[index];
        client.pending.push_back(pending);
        let rank = client.rank;
        self.flush_replies(rank);
        self.effects.push_back(Effect::Ask { rank, request });
    }

    /// Asks for what the tasks of another job have exchanged.
    pub(super) fn ask_other_job(&mut self, index: usize, job: &[u8], key: &[u8], asker: Asker) {
        let request = NameRequest::Value { job: job.to_vec(), key: key.to_vec() };
        self.ask(index, request, asker);
    }

    /// Handles the answer to what a client has asked the longest ago.
    pub fn on_name_reply(&mut self, rank: Rank, reply: &NameReply) {
        let index = self.index(rank);
        match self.clients[index].pending.pop_front() {
            Some(Pending::Read { asker, key }) => {
                self.answer_read(index, &asker, &key, reply.found());
            }
            Some(Pending::Name { asker, kind }) => {
                self.answer_late(index, |out| answer(out, &asker, kind, reply));
            }
            None => {}
        }
    }
}

fn answer(out: &mut BytesMut, asker: &Asker, kind: Kind, result: &NameReply) {
    match (asker, kind) {
        (Asker::Line, Kind::Publish) => reply::published(out, result),
        (Asker::Line, Kind::Lookup) => reply::looked_up(out, result),
        (Asker::Line, Kind::Unpublish) => reply::unpublished(out, result),
        (Asker::Line, Kind::Job) => {} // PMI-1 has no such request
        (Asker::Frame { thread }, kind) => answer_frame(out, kind, thread.as_deref(), result),
    }
}

/// Of the two fields with a port, Slurm's client reads the first and MPICH's the second.
fn answer_frame(out: &mut BytesMut, kind: Kind, thread: Option<&[u8]>, result: &NameReply) {
    let (name, not_found): (&[u8], _) = match kind {
        Kind::Publish => (b"name-publish", "service_not_found"),
        Kind::Lookup => (b"name-lookup", "service_not_found"),
        Kind::Unpublish => (b"name-unpublish", "service_not_found"),
        Kind::Job => (b"job-connect", "job_not_found"),
    };
    let (code, words) = match result {
        NameReply::Done | NameReply::Found(_) => (ReturnCode::Success, None),
        NameReply::NotFound => (ReturnCode::Fail, Some(not_found)),
        NameReply::Taken => (ReturnCode::Fail, Some("service_is_published")),
        NameReply::TooLong => (ReturnCode::InvalidValueLength, Some("port_too_long")),
    };
    let frame = Reply::to(out, name, thread, code);
    match (result, words, kind) {
        (NameReply::Found(port), _, _) => frame.bytes("value", port).bytes("port", port).end(),
        (_, Some(words), _) => frame.field("errmsg", words).end(),
        // The client is to read the space of the other job itself, and not a copy.
        (_, None, Kind::Job) => frame.field("kvscopy", "FALSE").end(),
        (_, None, _) => frame.end(),
    }
}
