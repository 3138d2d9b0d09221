//! Requests that go to the session's name service, and are answered in the order in which they went: what is about
//! other jobs, too.

use alloc::vec::Vec;

use bytes::BytesMut;
use model::{NameReply, NameRequest, Rank};

use super::pmi2::answer_found;
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

#[derive(Clone, Debug)]
enum Kind {
    Publish,
    Lookup,
    Unpublish,
    /// Of this key, where it is no longer.
    Value {
        key: Vec<u8>,
        value_max: usize,
    },
    Job,
}

impl Server {
    /// Asks the name service for a client.
    pub(super) fn ask(&mut self, index: usize, request: NameRequest, asker: Asker) {
        let kind = match &request {
            NameRequest::Publish { .. } => Kind::Publish,
            NameRequest::Lookup(_) => Kind::Lookup,
            NameRequest::Unpublish(_) => Kind::Unpublish,
            NameRequest::Value { key, .. } => {
                let value_max = self.clients[index].limits(&asker).value;
                Kind::Value { key: key.clone(), value_max }
            }
            NameRequest::Job(_) => Kind::Job,
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

    /// Asks for what the tasks of another job have exchanged.
    pub(super) fn ask_other_job(&mut self, index: usize, job: &[u8], key: &[u8], asker: Asker) {
        let request = NameRequest::Value { job: job.to_vec(), key: key.to_vec() };
        self.ask(index, request, asker);
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
        match &self.asker {
            Asker::Line => answer_line(out, &self.kind, result),
            Asker::Frame { thread } => answer_frame(out, &self.kind, thread.as_deref(), result),
        }
    }
}

fn answer_line(out: &mut BytesMut, kind: &Kind, result: &NameReply) {
    match kind {
        Kind::Publish => reply::published(out, result),
        Kind::Lookup => reply::looked_up(out, result),
        Kind::Unpublish => reply::unpublished(out, result),
        Kind::Value { key, value_max } => reply::got(out, key, result.found(), *value_max),
        Kind::Job => {} // PMI-1 has no such request
    }
}

/// Of the two fields with a port, Slurm's client reads the first and MPICH's the second.
fn answer_frame(out: &mut BytesMut, kind: &Kind, thread: Option<&[u8]>, result: &NameReply) {
    let (name, not_found): (&[u8], _) = match kind {
        Kind::Publish => (b"name-publish", "service_not_found"),
        Kind::Lookup => (b"name-lookup", "service_not_found"),
        Kind::Unpublish => (b"name-unpublish", "service_not_found"),
        Kind::Job => (b"job-connect", "job_not_found"),
        Kind::Value { value_max, .. } => {
            let value = result.found().filter(|value| value.len() <= *value_max);
            return answer_found(out, b"kvs-get", thread, value);
        }
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
