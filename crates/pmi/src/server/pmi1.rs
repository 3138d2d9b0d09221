//! Answers in PMI-1.2 (`reference/pmi1.md` §3).

use model::{IdSet, PmiDialect, RankGroup};

use super::barrier::present;
use super::{ClientState, Server};
use crate::asker::Asker;
use crate::pmi1::{Request, Scope, reply};
use crate::{ClientError, Excerpt, GroupFault, JobInfo, Snapshot};

impl Server {
    /// Handles a message of PMI-1. That of a client of PMI-2 begins as one, too.
    pub(super) fn on_line(&mut self, index: usize, line: &[u8]) -> Result<(), ClientError> {
        let request = Request::parse(line)?;
        self.clients[index].state = ClientState::Active;
        let is_common = matches!(request, Request::Init { .. } | Request::Initack { .. });
        if !is_common && !self.info.offer.has(PmiDialect::One) {
            return Err(ClientError::NotOffered(PmiDialect::One));
        }
        self.on_request(index, request, line.len())
    }

    fn on_request(
        &mut self,
        index: usize,
        request: Request<'_>,
        bytes: usize,
    ) -> Result<(), ClientError> {
        match request {
            Request::Put { kvsname, key, value, quiet } => {
                let limits = self.clients[index].limits(&Asker::Line);
                let result = self.spaces.put(kvsname, key, value, limits);
                if result.is_err() || !quiet {
                    reply::put_result(&mut self.replies, result);
                }
            }
            Request::Get { kvsname, key } => self.on_get(index, kvsname, key),
            Request::BarrierIn { group } => return self.on_barrier_in(index, group),
            Request::Initack { .. } => return Err(ClientError::CallTwice),
            Request::Init { version } => {
                self.read_snapshots(index, false);
                return self.on_init(version);
            }
            Request::GetMaxes { snapshot, quiet } => {
                self.read_snapshots(index, snapshot == Some(Snapshot::VERSION));
                self.on_get_maxes(index, quiet);
            }
            Request::GetAppnum => self.on_get_appnum(index),
            Request::GetMyKvsname => self.on_get_my_kvsname(),
            Request::GetUniverseSize => self.on_get_universe_size(),
            Request::Finalize => self.on_finalize(index),
            Request::Abort { code, message } => self.on_abort(index, code, message),
            Request::Name(request) => self.ask(index, request, Asker::Line),
            Request::Spawn(block) => return self.on_spawn_block(index, block, bytes),
            Request::CreateKvs => self.on_create_kvs(index),
            Request::DestroyKvs { kvsname } => self.on_destroy_kvs(kvsname),
            Request::GetByIdx { kvsname, idx } => self.on_get_by_idx(kvsname, idx),
        }
        Ok(())
    }

    /// A client that asks for a version that nobody knows is told ours, and decides by itself (§3).
    fn on_init(&mut self, version: i64) -> Result<(), ClientError> {
        let (dialect, reply) = match version {
            1 => (PmiDialect::One, reply::INIT),
            2 => (PmiDialect::Two, reply::INIT_PMI2),
            _ => {
                self.reply(reply::INIT_REFUSED);
                return Ok(());
            }
        };
        if !self.info.offer.has(dialect) {
            self.reply(reply::INIT_REFUSED);
            return Err(ClientError::NotOffered(dialect));
        }
        self.reply(reply);
        Ok(())
    }

    fn on_get_maxes(&mut self, index: usize, quiet: bool) {
        let vallen_max = self.clients[index].limits(&Asker::Line).value + 1;
        reply::text(
            &mut self.replies,
            format_args!(
                "cmd=maxes kvsname_max={} keylen_max={} vallen_max={vallen_max}{} rc=0",
                JobInfo::KVSNAME_MAX,
                JobInfo::KEYLEN_MAX,
                if quiet { " quiet=1" } else { "" },
            ),
        );
    }

    fn on_get_appnum(&mut self, index: usize) {
        let appnum = self.clients[index].appnum;
        reply::text(&mut self.replies, format_args!("cmd=appnum appnum={appnum} rc=0"));
    }

    fn on_get_my_kvsname(&mut self) {
        let line = format_args!("cmd=my_kvsname kvsname={} rc=0", self.info.kvsname);
        reply::text(&mut self.replies, line);
    }

    fn on_get_universe_size(&mut self) {
        let size = self.info.universe_size.map_or(-1, i64::from);
        reply::text(&mut self.replies, format_args!("cmd=universe_size size={size} rc=0"));
    }

    fn on_get(&mut self, index: usize, kvsname: &[u8], key: &[u8]) {
        if kvsname.is_empty() {
            reply::got(&mut self.replies, key, None, 0);
        } else if self.spaces.may_have(kvsname) {
            self.read(index, Asker::Line, kvsname, key);
        } else {
            self.ask_other_job(index, kvsname, key, Asker::Line);
        }
    }

    fn on_barrier_in(&mut self, index: usize, group: Option<&[u8]>) -> Result<(), ClientError> {
        let (ranks, tag) = match Scope::parse(group, self.info.size)? {
            Scope::Whole => return self.enter(index, Asker::Line),
            Scope::World(tag) => (IdSet::range(0, self.info.size - 1), tag),
            Scope::Node(tag) => (self.clients.iter().map(|client| client.rank.0).collect(), tag),
            Scope::Ranks(ranks, tag) => (ranks, tag),
        };
        let rank = self.clients[index].rank;
        if !ranks.contains(rank.0) {
            let group = Excerpt::new(group.unwrap_or_default());
            return Err(ClientError::Group { group, fault: GroupFault::Stranger });
        }
        self.meetings.enter(&RankGroup { ranks, tag }, rank, || present(&self.clients))?;
        self.flush_replies(rank);
        self.meet();
        Ok(())
    }

    fn on_finalize(&mut self, index: usize) {
        self.clients[index].state = ClientState::Finalized;
        self.read_snapshots(index, false);
        self.reply(reply::FINALIZE);
    }

    fn on_create_kvs(&mut self, index: usize) {
        let name = self.spaces.create(self.clients[index].rank);
        reply::text(&mut self.replies, format_args!("cmd=newkvs kvsname={name} rc=0"));
    }

    fn on_destroy_kvs(&mut self, kvsname: &[u8]) {
        if self.spaces.destroy(kvsname) {
            self.reply(reply::KVS_DESTROYED);
        } else {
            self.reply(reply::KVS_NOT_DESTROYED);
        }
    }

    fn on_get_by_idx(&mut self, kvsname: &[u8], idx: i64) {
        if self.spaces.are_held() {
            return reply::no_index(&mut self.replies);
        }
        let index = usize::try_from(idx).unwrap_or(usize::MAX);
        match self.spaces.get(kvsname) {
            Some(space) => reply::by_index(&mut self.replies, index, space.by_index(index)),
            None => reply::no_such_kvs_by_index(&mut self.replies, kvsname),
        }
    }
}
