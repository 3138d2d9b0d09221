//! Answers in PMI-2 (`reference/pmi2.md` §4): the union of what all known clients look for.

use alloc::vec::Vec;

use bytes::BytesMut;
use model::PmiDialect;

use super::allgather::InAllgather;
use super::ring::InRing;
use super::{ClientState, Effect, Server};
use crate::node_attributes::Waiter;
use crate::pmi2::{Asked, Frame, Refusal, Reply, Request, ReturnCode};
use crate::spaces::Limits;
use crate::{ClientError, PutError, Snapshot};

impl Server {
    /// Handles a message of PMI-2.
    pub(super) fn on_frame(&mut self, index: usize, body: &[u8]) -> Result<(), ClientError> {
        if !self.info.offer.has(PmiDialect::Two) {
            return Err(ClientError::NotOffered(PmiDialect::Two));
        }
        let asked = Asked::parse(body)?;
        self.clients[index].state = ClientState::Active;
        match &asked.request {
            Ok(request) => self.on_request_pmi2(index, &asked, request),
            Err(refusal) => {
                refuse(&mut self.replies, &asked, *refusal);
                Ok(())
            }
        }
    }

    fn on_request_pmi2(
        &mut self,
        index: usize,
        asked: &Asked<'_>,
        request: &Request<'_>,
    ) -> Result<(), ClientError> {
        match request {
            Request::Get { job, key } => self.on_kvs_get(index, asked, job.as_deref(), key),
            Request::Put { key, value, quiet } => {
                let limits = self.clients[index].limits(&asked.asker());
                let result = self.spaces.put(self.info.kvsname.as_bytes(), key, value, limits);
                if result.is_err() || !quiet {
                    answer_put(&mut self.replies, asked, result);
                }
            }
            Request::Fence => return self.enter(index, asked.asker()),
            Request::GetNodeAttr { key, wait } => self.on_get_node_attr(index, asked, key, *wait),
            Request::PutNodeAttr { key, value } => {
                self.on_put_node_attr(index, asked, key, value);
            }
            Request::GetJobAttr { key } => self.on_get_job_attr(asked, key),
            Request::FullInit { rank: _, snapshot, quiet } => {
                self.read_snapshots(index, *snapshot == Some(Snapshot::VERSION));
                self.on_full_init(index, asked, *quiet);
            }
            Request::Finalize => {
                self.clients[index].state = ClientState::Finalized;
                self.read_snapshots(index, false);
                accept(&mut self.replies, asked).end();
            }
            Request::Abort { code, message } => self.on_abort(index, *code, message),
            Request::JobGetId => {
                accept(&mut self.replies, asked).field("jobid", &self.info.kvsname).end();
            }
            // Jobs of a session are connected as long as they are there.
            Request::JobDisconnect => accept(&mut self.replies, asked).end(),
            Request::Ring { left, right } => {
                if left.len().max(right.len()) > Limits::PMI2.value {
                    let refusal = Refusal(ReturnCode::InvalidValueLength, "value_too_long");
                    refuse(&mut self.replies, asked, refusal);
                    return Ok(());
                }
                return self.enter_ring(index, InRing::new(asked, left, right));
            }
            Request::Allgather { value, length_max } => {
                if value.len() > length_max.unwrap_or(usize::MAX).min(Limits::PMI2.value) {
                    let refusal = Refusal(ReturnCode::InvalidValueLength, "value_too_long");
                    refuse(&mut self.replies, asked, refusal);
                    return Ok(());
                }
                return self.enter_allgather(index, InAllgather::new(asked, value));
            }
            Request::Name(request) => self.ask(index, request.clone(), asked.asker()),
            Request::Spawn(request) => self.spawn(index, request.clone(), asked.asker()),
        }
        Ok(())
    }

    fn on_full_init(&mut self, index: usize, asked: &Asked<'_>, quiet: bool) {
        let (rank, appnum) = (self.clients[index].rank, self.clients[index].appnum);
        let size = self.info.size;
        let reply = accept(&mut self.replies, asked)
            .field("pmi-version", 2)
            .field("pmi-subversion", 0)
            .field("rank", rank)
            .field("size", size)
            .field("appnum", appnum)
            .field("debugged", "FALSE")
            .field("pmiverbose", "FALSE");
        let reply = if quiet { reply.field("quiet", "TRUE") } else { reply };
        match &self.info.spawner {
            Some(name) => reply.field("spawner-jobid", name).end(),
            None => reply.end(),
        }
    }

    fn on_kvs_get(&mut self, index: usize, asked: &Asked<'_>, job: Option<&[u8]>, key: &[u8]) {
        let own = self.info.kvsname.as_bytes();
        match job.filter(|job| !job.is_empty() && *job != own) {
            Some(job) => self.ask_other_job(index, job, key, asked.asker()),
            None => self.read(index, asked.asker(), &[], key),
        }
    }

    fn on_get_job_attr(&mut self, asked: &Asked<'_>, key: &[u8]) {
        match (key, self.info.universe_size) {
            (b"universeSize", Some(size)) => {
                accept(&mut self.replies, asked).field("found", "TRUE").field("value", size).end();
            }
            (b"hasNameServ", _) => found(&mut self.replies, asked, Some(b"TRUE")),
            _ if key.starts_with(b"PMI_") => {
                found(&mut self.replies, asked, self.spaces.own().get(key));
            }
            _ => found(&mut self.replies, asked, None),
        }
    }

    fn on_get_node_attr(&mut self, index: usize, asked: &Asked<'_>, key: &[u8], wait: bool) {
        match self.attributes.get(key) {
            None if wait => {
                let rank = self.clients[index].rank;
                self.attributes.wait(key, Waiter { rank, thread: asked.thread() });
            }
            value => found(&mut self.replies, asked, value),
        }
    }

    /// Whoever has waited is answered behind what has been answered before, be it the one who puts.
    fn on_put_node_attr(&mut self, index: usize, asked: &Asked<'_>, key: &[u8], value: &[u8]) {
        let result = Limits::PMI2.check(key, value);
        let waiters = result.map_or_else(|_| Vec::new(), |()| self.attributes.put(key, value));
        answer_put(&mut self.replies, asked, result);
        self.flush_replies(self.clients[index].rank);
        for Waiter { rank, thread } in waiters {
            let mut out = BytesMut::new();
            answer_found(&mut out, b"info-getnodeattr", thread.as_deref(), Some(value));
            self.effects.push_back(Effect::Reply { rank, bytes: out.freeze() });
        }
    }
}

fn answer_put(out: &mut BytesMut, asked: &Asked<'_>, result: Result<(), PutError>) {
    match result {
        Ok(()) => accept(out, asked).end(),
        Err(error) => reply_to(out, asked, code_of(error)).field("errmsg", error).end(),
    }
}

fn refuse(out: &mut BytesMut, asked: &Asked<'_>, Refusal(code, words): Refusal) {
    reply_to(out, asked, code).field("errmsg", words).end();
}

fn accept<'a>(out: &'a mut BytesMut, asked: &Asked<'_>) -> Frame<'a> {
    reply_to(out, asked, ReturnCode::Success)
}

fn reply_to<'a>(out: &'a mut BytesMut, asked: &Asked<'_>, code: ReturnCode) -> Frame<'a> {
    Reply::to(out, asked.name, asked.thread.as_deref(), code)
}

fn found(out: &mut BytesMut, asked: &Asked<'_>, value: Option<&[u8]>) {
    answer_found(out, asked.name, asked.thread.as_deref(), value);
}

/// Appends what was found, or that nothing was.
pub(super) fn answer_found(
    out: &mut BytesMut,
    name: &[u8],
    thread: Option<&[u8]>,
    value: Option<&[u8]>,
) {
    let reply = Reply::to(out, name, thread, ReturnCode::Success);
    match value {
        Some(value) => reply.field("found", "TRUE").bytes("value", value).end(),
        None => reply.field("found", "FALSE").end(),
    }
}

fn code_of(error: PutError) -> ReturnCode {
    match error {
        PutError::KeyEmpty | PutError::KeyReserved => ReturnCode::InvalidKey,
        PutError::KeyTooLong => ReturnCode::InvalidKeyLength,
        PutError::ValueTooLong => ReturnCode::InvalidValueLength,
        PutError::NoSuchKvs => ReturnCode::Other,
    }
}
