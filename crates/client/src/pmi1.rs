//! PMI-1 (`reference/pmi1.md`): one request after the other, but for a barrier that may be under way meanwhile.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pmi::pmi1::Fields;
use pmi::{Excerpt, is_surely_taken};

use crate::connection::{Answer, Connection, checked, unexpected};
use crate::snapshots::Snapshots;
use crate::{Endpoint, Error, Pair, Spawn};

/// A connection that speaks PMI-1.
#[derive(Debug)]
pub struct Pmi1 {
    rank: u32,
    size: u32,
    maxes: Maxes,
    /// Whether the server answers a put only where it refuses it.
    has_quiet_puts: bool,
    snapshots: Snapshots,
    dialogue: Mutex<Dialogue>,
}

/// How long things may be, each with the NUL that ends it in C.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Maxes {
    /// The name of a space of keys.
    pub name: usize,
    /// A key.
    pub key: usize,
    /// A value.
    pub value: usize,
}

#[derive(Debug)]
struct Dialogue {
    connection: Connection,
    barrier: Barrier,
    is_broken: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Barrier {
    None,
    UnderWay,
    /// Its end came while something else was waited for, and this line said it.
    Over(Bytes),
}

/// Beginning and end.
impl Pmi1 {
    /// Connects to where the environment says.
    ///
    /// # Errors
    /// When the environment contradicts itself, nobody is there, or who is there does not speak PMI-1.
    pub fn from_env() -> Result<Pmi1, Error> {
        Self::open(&Endpoint::from_env()?)
    }

    /// Connects.
    ///
    /// # Errors
    /// When nobody is there, or who is there does not speak PMI-1.
    pub fn open(endpoint: &Endpoint) -> Result<Pmi1, Error> {
        let connection = Connection::open(endpoint, 1)?;
        let (rank, size) = (connection.rank, connection.size);
        let snapshot = connection.snapshot_field();
        let dialogue = Dialogue { connection, barrier: Barrier::None, is_broken: false };
        let maxes = Maxes { name: 0, key: 0, value: 0 };
        let (snapshots, dialogue) = (Snapshots::default(), Mutex::new(dialogue));
        let mut pmi = Pmi1 { rank, size, maxes, has_quiet_puts: false, snapshots, dialogue };
        let mut fields: Vec<(&str, &[u8])> = vec![("quiet", b"1")];
        fields.extend(snapshot.iter().map(|(key, value)| (*key, value.as_bytes())));
        let line = pmi.ask("get_maxes", "maxes", &fields)?;
        let max = |key| Fields::of(&line).number(key).map_err(|_| unexpected("get_maxes", &line));
        pmi.has_quiet_puts = Fields::of(&line).get("quiet") == Some(b"1");
        pmi.maxes =
            Maxes { name: max("kvsname_max")?, key: max("keylen_max")?, value: max("vallen_max")? };
        Ok(pmi)
    }

    /// Our rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Tasks in our job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// How long things may be.
    pub fn maxes(&self) -> Maxes {
        self.maxes
    }

    /// Ends our use of PMI. The connection is closed when this is dropped.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn finalize(&self) -> Result<(), Error> {
        self.snapshots.forget();
        self.ask("finalize", "finalize_ack", &[]).map(drop)
    }

    /// Asks for the end of the job with this status; there is no answer. What a line cannot carry of the message becomes
    /// `_`.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn abort(&self, code: i32, message: &[u8]) -> Result<(), Error> {
        let word = |byte: &u8| if byte.is_ascii_graphic() { *byte } else { b'_' };
        let message: Vec<u8> = message.iter().map(word).collect();
        let line =
            line("abort", &[("exitcode", code.to_string().as_bytes()), ("message", &message)])?;
        self.lock().connection.send("abort", &line)
    }
}

/// Spaces of keys.
impl Pmi1 {
    /// The name of our job's space.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn name(&self) -> Result<Vec<u8>, Error> {
        let name = self.ask_for("get_my_kvsname", "my_kvsname", &[], "kvsname")?;
        self.snapshots.set_name(&name);
        Ok(name)
    }

    /// Makes a space.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn create(&self) -> Result<Vec<u8>, Error> {
        self.ask_for("create_kvs", "newkvs", &[], "kvsname")
    }

    /// Takes a space back that [`create`](Self::create) has made.
    ///
    /// # Errors
    /// When the server is gone, or has no such space.
    pub fn destroy(&self, name: &[u8]) -> Result<(), Error> {
        self.ask("destroy_kvs", "kvs_destroyed", &[("kvsname", name)]).map(drop)
    }

    /// Puts a pair, which others find after the next barrier. Waits for no answer where there can be but one.
    ///
    /// # Errors
    /// When the server is gone or refuses, or a blank or line end is in the pair.
    pub fn put(&self, name: &[u8], key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (bytes, bytes_max) = (value.len(), self.maxes.value.saturating_sub(1));
        if bytes > bytes_max {
            return Err(Error::TooLong { request: "put", bytes, bytes_max });
        }
        let is_own = self.snapshots.is_own(name);
        if is_own {
            self.snapshots.put(key);
        }
        let pair = [("kvsname", name), ("key", key), ("value", value)];
        if is_own && self.has_quiet_puts && is_surely_taken(key, value) {
            let fields = [&[("quiet", &b"1"[..])], &pair[..]].concat();
            return self.lock().send("put", &line("put", &fields)?);
        }
        self.ask("put", "put_result", &pair).map(drop)
    }

    /// Gets a value.
    ///
    /// # Errors
    /// When the server is gone, or nobody has put the key.
    pub fn get(&self, name: &[u8], key: &[u8]) -> Result<Vec<u8>, Error> {
        if self.snapshots.is_own(name)
            && let Some(value) = self.snapshots.get(key)?
        {
            return Ok(value);
        }
        self.ask_for("get", "get_result", &[("kvsname", name), ("key", key)], "value")
    }

    /// The pair with this number in a space, from 0; nothing behind the last.
    ///
    /// # Errors
    /// When the server is gone, or has no such space.
    pub fn by_index(&self, name: &[u8], index: u32) -> Result<Option<Pair>, Error> {
        const REQUEST: &str = "getbyidx";
        let number = index.to_string();
        let fields = [("kvsname", name), ("idx", number.as_bytes())];
        let answer = match self.ask(REQUEST, "getbyidx_results", &fields) {
            Err(Error::Refused { words, .. }) if words.as_str() == "no_more_keyvals" => {
                return Ok(None);
            }
            answer => answer?,
        };
        let pair = Fields::of(&answer).get("key").zip(Fields::of(&answer).get("val"));
        let (key, value) = pair.ok_or_else(|| unexpected(REQUEST, &answer))?;
        Ok(Some((key.to_vec(), value.to_vec())))
    }

    /// Waits for all tasks of the job, whose pairs are then everybody's.
    ///
    /// # Errors
    /// When the server is gone, or a barrier is under way.
    pub fn barrier(&self) -> Result<(), Error> {
        self.begin_barrier()?;
        self.wait_barrier()
    }

    /// Begins to wait for them.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    pub fn begin_barrier(&self) -> Result<(), Error> {
        let mut dialogue = self.lock();
        if dialogue.barrier != Barrier::None {
            return Err(Error::FenceUnderWay { request: BARRIER });
        }
        dialogue.connection.send(BARRIER, &line(BARRIER, &[])?)?;
        dialogue.barrier = Barrier::UnderWay;
        Ok(())
    }

    /// Waits for the end of a barrier that was begun.
    ///
    /// # Errors
    /// When the server is gone, or no barrier is under way.
    pub fn wait_barrier(&self) -> Result<(), Error> {
        let mut dialogue = self.lock();
        let line = match mem::replace(&mut dialogue.barrier, Barrier::None) {
            Barrier::None => return Err(Error::NotUnderWay),
            Barrier::UnderWay => {
                dialogue.barrier = Barrier::UnderWay;
                dialogue.receive(BARRIER)?
            }
            Barrier::Over(line) => line,
        };
        dialogue.check(&line, BARRIER, BARRIER_OUT)?;
        dialogue.barrier = Barrier::None;
        let descriptor = dialogue.connection.incoming.take_descriptor();
        self.snapshots.renew(Fields::of(&line).number("snapshot").ok(), descriptor)
    }
}

const BARRIER: &str = "barrier_in";
const BARRIER_OUT: &str = "barrier_out";

/// Job and node.
impl Pmi1 {
    /// Which part of the command we belong to, if to any.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn appnum(&self) -> Result<Option<u32>, Error> {
        self.ask_number("get_appnum", "appnum", "appnum")
    }

    /// How many tasks there is room for, if the server knows.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn universe_size(&self) -> Result<Option<u32>, Error> {
        self.ask_number("get_universe_size", "universe_size", "size")
    }

    /// Tells all jobs of the session the port of a service.
    ///
    /// # Errors
    /// When the server is gone, or the name is taken.
    pub fn publish(&self, service: &[u8], port: &[u8]) -> Result<(), Error> {
        let fields = [("service", service), ("port", port)];
        self.ask("publish_name", "publish_result", &fields).map(drop)
    }

    /// The port of a service.
    ///
    /// # Errors
    /// When the server is gone, or nobody has published it.
    pub fn look_up(&self, service: &[u8]) -> Result<Vec<u8>, Error> {
        self.ask_for("lookup_name", "lookup_result", &[("service", service)], "port")
    }

    /// Takes a name back.
    ///
    /// # Errors
    /// When the server is gone, or nobody has published it.
    pub fn unpublish(&self, service: &[u8]) -> Result<(), Error> {
        self.ask("unpublish_name", "unpublish_result", &[("service", service)]).map(drop)
    }

    /// Starts a job, and returns an error code of each of its tasks.
    ///
    /// # Errors
    /// When the server is gone or refuses, or a line end is in the commands.
    pub fn spawn(&self, spawn: &Spawn) -> Result<Vec<i32>, Error> {
        const REQUEST: &str = "spawn";
        let answer = self.converse(REQUEST, "spawn_result", &spawn.lines()?)?;
        let codes = Fields::of(&answer).get("errcodes").unwrap_or_default();
        let codes = crate::spawn::codes(codes, spawn.tasks());
        codes.ok_or_else(|| unexpected(REQUEST, &answer))
    }
}

/// Requests and answers.
impl Pmi1 {
    fn ask(
        &self,
        request: &'static str,
        answer: &'static str,
        fields: &[(&str, &[u8])],
    ) -> Result<Bytes, Error> {
        self.converse(request, answer, &line(request, fields)?)
    }

    /// Asks for a field of the answer.
    fn ask_for(
        &self,
        request: &'static str,
        answer: &'static str,
        fields: &[(&str, &[u8])],
        key: &str,
    ) -> Result<Vec<u8>, Error> {
        let line = self.ask(request, answer, fields)?;
        let value = Fields::of(&line).get(key).map(<[u8]>::to_vec);
        value.ok_or_else(|| unexpected(request, &line))
    }

    /// The same of a number; servers say -1 where there is none.
    fn ask_number(
        &self,
        request: &'static str,
        answer: &'static str,
        key: &'static str,
    ) -> Result<Option<u32>, Error> {
        let line = self.ask(request, answer, &[])?;
        let number: i64 = Fields::of(&line).number(key).map_err(|_| unexpected(request, &line))?;
        Ok(u32::try_from(number).ok())
    }

    fn converse(
        &self,
        request: &'static str,
        answer: &'static str,
        bytes: &[u8],
    ) -> Result<Bytes, Error> {
        let mut dialogue = self.lock();
        dialogue.send(request, bytes)?;
        let line = loop {
            let line = dialogue.receive(request)?;
            let ends_barrier = Fields::of(&line).get("cmd") == Some(BARRIER_OUT.as_bytes());
            if !ends_barrier || dialogue.barrier != Barrier::UnderWay {
                break line;
            }
            dialogue.barrier = Barrier::Over(line);
        };
        dialogue.check(&line, request, answer)?;
        Ok(line)
    }

    fn lock(&self) -> MutexGuard<'_, Dialogue> {
        self.dialogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dialogue {
    fn send(&self, request: &'static str, bytes: &[u8]) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        self.connection.send(request, bytes)
    }

    /// Waits for a line. What comes instead, or nothing, is the end of the dialogue.
    fn receive(&mut self, request: &'static str) -> Result<Bytes, Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let Connection { link, incoming, .. } = &mut self.connection;
        let line = match incoming.next(link, request) {
            Ok(Answer::Line(line)) => Ok(line),
            Ok(Answer::Frame(body)) => Err(unexpected(request, &body)),
            Err(error) => Err(error),
        };
        self.is_broken = line.is_err();
        line
    }

    /// Checks an answer. Behind a wrong one nothing is known to belong together.
    fn check(
        &mut self,
        line: &[u8],
        request: &'static str,
        answer: &'static str,
    ) -> Result<(), Error> {
        let checked = checked(line, request, answer);
        self.is_broken = matches!(checked, Err(Error::Unexpected { .. }));
        checked
    }
}

/// A whole request.
fn line(request: &'static str, fields: &[(&str, &[u8])]) -> Result<Vec<u8>, Error> {
    let mut line = format!("cmd={request}").into_bytes();
    for (key, value) in fields {
        if value.iter().any(|byte| matches!(byte, b' ' | b'\n')) {
            let (text, why) = (Excerpt::new(value), "it has a blank or a line end");
            return Err(Error::Text { request, text, why });
        }
        line.extend_from_slice(&[b" ", key.as_bytes(), b"=", *value].concat());
    }
    line.push(b'\n');
    Ok(line)
}
