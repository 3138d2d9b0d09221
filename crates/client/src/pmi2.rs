//! PMI-2 (`reference/pmi2.md`), with several requests under way.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use os::memory::Sealed;
use pmi::pmi2::Fields;
use pmi::{AllgatherPiece, Message, MessageBuffer, is_surely_taken};

use crate::collective::{Collective, Turn};
use crate::connection::{Answer, Connection, unexpected};
use crate::mailbox::{Answered, Mailbox, Ticket, accepted, frame};
use crate::snapshots::Snapshots;
use crate::{Endpoint, Error, Spawn};

/// A connection that speaks PMI-2.
#[derive(Debug)]
pub struct Pmi2 {
    mailbox: Mailbox,
    place: Place,
    /// Whether the server answers a put only where it refuses it.
    has_quiet_puts: bool,
    snapshots: Snapshots,
    fence: Collective,
    allgather: Collective,
    /// A program is in one ring at a time.
    ring: Mutex<()>,
}

/// Who a program is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Its rank.
    pub rank: u32,
    /// Tasks in its job.
    pub size: u32,
    /// Which part of the command it belongs to, if it belongs to any.
    pub appnum: Option<u32>,
    /// The id of the job that has started this one, if one has.
    pub spawner: Option<Vec<u8>>,
}

/// Where a program stands in a ring, and what its neighbours have brought.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Neighbours {
    /// Its number in the ring.
    pub number: u32,
    /// The value of the one before it.
    pub left: Vec<u8>,
    /// The value of the one behind it.
    pub right: Vec<u8>,
}

/// What has ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// A fence: all tasks were in it.
    Met,
    /// An allgather, and what all tasks have brought, in order of rank.
    Gathered(Vec<Vec<u8>>),
}

/// A collective that was begun. Give it to [`Pmi2::wait`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request(u64);

impl Request {
    /// Its number, above 0, which no other request of the connection has.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The one with this number, if there is one: [`Pmi2::wait`] finds out.
    pub fn with_number(number: u64) -> Request {
        Request(number)
    }
}

/// Beginning and end.
impl Pmi2 {
    /// Connects to where the environment says.
    ///
    /// # Errors
    /// When the environment contradicts itself, nobody is there, or who is there does not speak PMI-2.
    pub fn from_env() -> Result<Pmi2, Error> {
        Self::open(&Endpoint::from_env()?)
    }

    /// Connects.
    ///
    /// # Errors
    /// When nobody is there, or who is there does not speak PMI-2.
    pub fn open(endpoint: &Endpoint) -> Result<Pmi2, Error> {
        const REQUEST: &str = "fullinit";
        let mut connection = Connection::open(endpoint, 2)?;
        let rank = connection.rank.to_string();
        let snapshot = connection.snapshot_field();
        let mut fields: Vec<(&str, &[u8])> =
            vec![("pmirank", rank.as_bytes()), ("threaded", b"TRUE"), ("quiet", b"TRUE")];
        fields.extend(snapshot.iter().map(|(key, value)| (*key, value.as_bytes())));
        if let Endpoint::Descriptor { job: Some(job), .. } = endpoint {
            fields.push(("pmijobid", job.as_bytes()));
        }
        connection.send(REQUEST, &frame(REQUEST, &[], &fields)?)?;
        let body = match connection.incoming.next(&connection.link, REQUEST)? {
            Answer::Frame(body) => body,
            Answer::Line(line) => return Err(unexpected(REQUEST, &line)),
        };
        accepted(&body, REQUEST)?;
        let mut place = Place::read(&body).ok_or_else(|| unexpected(REQUEST, &body))?;
        if *endpoint == Endpoint::Alone {
            place.appnum = None;
        }
        let has_quiet_puts = Fields::of(&body).is_true("quiet");
        let mailbox = Mailbox::new(connection);
        Ok(Pmi2 {
            mailbox,
            place,
            has_quiet_puts,
            snapshots: Snapshots::default(),
            fence: Collective::default(),
            allgather: Collective::default(),
            ring: Mutex::default(),
        })
    }

    /// Who we are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Ends our use of PMI. The connection is closed when this is dropped.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn finalize(&self) -> Result<(), Error> {
        self.snapshots.forget();
        self.mailbox.ask("finalize", &[]).map(drop)
    }

    /// Asks for the end of the job, or without `is_world` of ourselves; there is no answer.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn abort(&self, is_world: bool, message: &[u8]) -> Result<(), Error> {
        let is_world: &[u8] = if is_world { b"TRUE" } else { b"FALSE" };
        self.mailbox.tell("abort", &[("isworld", is_world), ("msg", message)])
    }
}

/// The space of keys.
impl Pmi2 {
    /// Puts a pair, which others find after the next fence. Waits for no answer where there can be but one.
    ///
    /// # Errors
    /// When the server is gone or refuses, or a fence that was begun is under way.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        const REQUEST: &str = "kvs-put";
        drop(self.no_fence(REQUEST)?);
        self.snapshots.put(key);
        let [key_field, value_field] = [("key", key), ("value", value)];
        if self.has_quiet_puts && is_surely_taken(key, value) {
            return self.mailbox.tell(REQUEST, &[key_field, ("quiet", b"TRUE"), value_field]);
        }
        self.mailbox.ask(REQUEST, &[key_field, value_field]).map(drop)
    }

    /// Gets a value of a job, or of our own, that the task `source` may have put.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get(
        &self,
        job: Option<&[u8]>,
        source: Option<u32>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        const REQUEST: &str = "kvs-get";
        drop(self.no_fence(REQUEST)?);
        if job.is_none_or(|job| job.is_empty() || self.snapshots.is_own(job))
            && let Some(value) = self.snapshots.get(key)?
        {
            return Ok(Some(value));
        }
        let source = source.map_or("-1".to_owned(), |rank| rank.to_string());
        let fields =
            [("jobid", job.unwrap_or_default()), ("srcid", source.as_bytes()), ("key", key)];
        found(self.mailbox.ask(REQUEST, &fields)?, REQUEST)
    }

    /// Waits for all tasks of the job, whose pairs are then everybody's.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn fence(&self) -> Result<(), Error> {
        let _turn = self.no_fence(FENCE)?;
        self.met(self.mailbox.wait(self.mailbox.begin(FENCE, &[])?)?)
    }

    /// Begins a fence. Until it has been waited for, [`put`](Self::put), [`get`](Self::get) and further fences are
    /// refused.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn begin_fence(&self) -> Result<Request, Error> {
        let mut turn = self.no_fence(FENCE)?;
        let ticket = self.mailbox.begin(FENCE, &[])?;
        Ok(Request(turn.insert(ticket).number()))
    }

    /// The fence that was begun and not waited for.
    pub fn fence_under_way(&self) -> Option<Request> {
        self.fence.lock().map(|ticket| Request(ticket.number()))
    }

    /// The turn to use the space of keys, which nobody has between the begin and the end of a fence.
    fn no_fence(&self, request: &'static str) -> Result<Turn<'_>, Error> {
        self.fence.turn().ok_or(Error::FenceUnderWay { request })
    }
}

/// Values of all tasks.
impl Pmi2 {
    /// Brings a value of up to `length_max` bytes, and returns those of all tasks in order of rank.
    ///
    /// # Errors
    /// When the server is gone or refuses, or an allgather that was begun is under way.
    pub fn allgather(&self, value: &[u8], length_max: usize) -> Result<Vec<Vec<u8>>, Error> {
        let _turn = self.no_allgather()?;
        let ticket = self.ask_allgather(value, length_max)?;
        values(self.mailbox.wait(ticket)?)
    }

    /// Begins that. Until it has been waited for, further ones are refused.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn begin_allgather(&self, value: &[u8], length_max: usize) -> Result<Request, Error> {
        let mut turn = self.no_allgather()?;
        let ticket = self.ask_allgather(value, length_max)?;
        Ok(Request(turn.insert(ticket).number()))
    }

    /// Waits for the end of what was begun.
    ///
    /// # Errors
    /// When the server is gone or refuses, or nothing of the kind is under way.
    pub fn wait(&self, request: Request) -> Result<Outcome, Error> {
        if let Some(ticket) = self.allgather.begun(request) {
            let ended = self.mailbox.wait(ticket);
            self.allgather.end(request);
            return values(ended?).map(Outcome::Gathered);
        }
        let ticket = self.fence.begun(request).ok_or(Error::NotUnderWay)?;
        let ended = self.mailbox.wait(ticket);
        let met = ended.and_then(|answered| self.met(answered));
        self.fence.end(request);
        met.map(|()| Outcome::Met)
    }

    /// Takes what a fence's answer brings.
    fn met(&self, Answered { messages, descriptor }: Answered) -> Result<(), Error> {
        let bytes = messages.iter().find_map(|answer| Fields::of(answer).number("snapshot"));
        self.snapshots.renew(bytes, descriptor)
    }

    /// The allgather that was begun and not waited for.
    pub fn allgather_under_way(&self) -> Option<Request> {
        self.allgather.lock().map(|ticket| Request(ticket.number()))
    }

    fn ask_allgather(&self, value: &[u8], length_max: usize) -> Result<Ticket, Error> {
        let length_max = length_max.to_string();
        let fields = [("value", value), ("max-length", length_max.as_bytes())];
        self.mailbox.begin(ALLGATHER, &fields)
    }

    fn no_allgather(&self) -> Result<Turn<'_>, Error> {
        self.allgather.turn().ok_or(Error::UnderWay { request: ALLGATHER })
    }
}

const ALLGATHER: &str = "allgather";

const FENCE: &str = "kvs-fence";

/// Job and node.
impl Pmi2 {
    /// The id of our job.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn job_id(&self) -> Result<Vec<u8>, Error> {
        const REQUEST: &str = "job-getid";
        let answer = self.mailbox.ask(REQUEST, &[])?;
        let job = required(&answer, "jobid", REQUEST)?;
        self.snapshots.set_name(&job);
        Ok(job)
    }

    /// Makes another job's space readable for ours.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn connect(&self, job: &[u8]) -> Result<(), Error> {
        self.mailbox.ask("job-connect", &[("jobid", job)]).map(drop)
    }

    /// Takes that back.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn disconnect(&self, job: &[u8]) -> Result<(), Error> {
        self.mailbox.ask("job-disconnect", &[("jobid", job)]).map(drop)
    }

    /// Starts a job, and returns its id and an error code of each of its tasks.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn spawn(&self, spawn: &Spawn) -> Result<(Vec<u8>, Vec<i32>), Error> {
        const REQUEST: &str = "spawn";
        let fields = spawn.fields();
        let fields: Vec<(&str, &[u8])> =
            fields.iter().map(|(key, value)| (&**key, &**value)).collect();
        let answer = self.mailbox.ask(REQUEST, &fields)?;
        let codes = Fields::of(&answer).get("errcodes").unwrap_or_default();
        let codes = crate::spawn::codes(&codes, spawn.tasks());
        let codes = codes.ok_or_else(|| unexpected(REQUEST, &answer))?;
        Ok((required(&answer, "jobid", REQUEST)?, codes))
    }

    /// Brings a value into a ring of all tasks, and learns those of both neighbours.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn ring(&self, value: &[u8]) -> Result<Neighbours, Error> {
        const REQUEST: &str = "ring";
        let _turn = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let fields: [(&str, &[u8]); 3] =
            [("ring-count", b"1"), ("ring-left", value), ("ring-right", value)];
        let answer = self.mailbox.ask(REQUEST, &fields)?;
        let number = Fields::of(&answer).number("ring-count");
        Ok(Neighbours {
            number: number.ok_or_else(|| unexpected(REQUEST, &answer))?,
            left: required(&answer, "ring-left", REQUEST)?,
            right: required(&answer, "ring-right", REQUEST)?,
        })
    }

    /// Puts an attribute of our node, which the job's tasks there see at once.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn put_node_attribute(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.mailbox.ask("info-putnodeattr", &[("key", key), ("value", value)]).map(drop)
    }

    /// An attribute of our node. With `waits`, one that nobody has put is waited for.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn node_attribute(&self, key: &[u8], waits: bool) -> Result<Option<Vec<u8>>, Error> {
        const REQUEST: &str = "info-getnodeattr";
        let waits: &[u8] = if waits { b"TRUE" } else { b"FALSE" };
        found(self.mailbox.ask(REQUEST, &[("key", key), ("wait", waits)])?, REQUEST)
    }

    /// An attribute of our job, such as `PMI_process_mapping`.
    ///
    /// # Errors
    /// When the server is gone or refuses.
    pub fn job_attribute(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        const REQUEST: &str = "info-getjobattr";
        found(self.mailbox.ask(REQUEST, &[("key", key)])?, REQUEST)
    }

    /// Tells all jobs of the session the port of a service.
    ///
    /// # Errors
    /// When the server is gone, or the name is taken.
    pub fn publish(&self, service: &[u8], port: &[u8]) -> Result<(), Error> {
        let fields: [(&str, &[u8]); 3] =
            [("name", service), ("port", port), ("infokeycount", b"0")];
        self.mailbox.ask("name-publish", &fields).map(drop)
    }

    /// The port of a service.
    ///
    /// # Errors
    /// When the server is gone, or nobody has published it.
    pub fn look_up(&self, service: &[u8]) -> Result<Vec<u8>, Error> {
        const REQUEST: &str = "name-lookup";
        let answer = self.mailbox.ask(REQUEST, &[("name", service), ("infokeycount", b"0")])?;
        // Slurm's server says `value`, MPICH's `port`.
        required(&answer, "value", REQUEST).or_else(|_| required(&answer, "port", REQUEST))
    }

    /// Takes a name back.
    ///
    /// # Errors
    /// When the server is gone, or nobody has published it.
    pub fn unpublish(&self, service: &[u8]) -> Result<(), Error> {
        self.mailbox.ask("name-unpublish", &[("name", service), ("infokeycount", b"0")]).map(drop)
    }
}

impl Place {
    fn read(body: &[u8]) -> Option<Place> {
        let fields = Fields::of(body);
        Some(Place {
            rank: fields.number("rank")?,
            size: fields.number("size")?,
            // Servers say -1 where there is none.
            appnum: fields.number("appnum"),
            spawner: fields.get("spawner-jobid").map(|job| job.into_owned()),
        })
    }
}

fn required(answer: &Bytes, key: &str, request: &'static str) -> Result<Vec<u8>, Error> {
    let value = Fields::of(answer).get(key).map(|value| value.into_owned());
    value.ok_or_else(|| unexpected(request, answer))
}

fn found(answer: Bytes, request: &'static str) -> Result<Option<Vec<u8>>, Error> {
    let fields = Fields::of(&answer);
    match fields.get("found").as_deref() {
        // A server may leave out a value that is empty.
        Some(b"TRUE") => Ok(Some(fields.get("value").unwrap_or_default().into_owned())),
        Some(b"FALSE") => Ok(None),
        Some(_) | None => Err(unexpected(request, &answer)),
    }
}

/// The values of all tasks from the messages that they came in, or that are in the memory that came.
fn values(Answered { messages, descriptor }: Answered) -> Result<Vec<Vec<u8>>, Error> {
    let mut values = Vec::new();
    let announced =
        messages.first().and_then(|first| Fields::of(first).number::<usize>("snapshot"));
    let Some(bytes) = announced else {
        messages.iter().try_for_each(|message| take_values(&mut values, message))?;
        return Ok(values);
    };
    let damaged = || Error::Shared { request: ALLGATHER };
    let mapped = descriptor.and_then(|file| Sealed::map(file).ok());
    let mapped = mapped.filter(|mapped| mapped.len() == bytes).ok_or_else(damaged)?;
    let (mut buffer, mut taken) = (MessageBuffer::default(), Ok(()));
    buffer.feed(&mapped, |message| {
        taken = match message {
            Ok(Message::Frame(body)) => take_values(&mut values, body),
            Ok(Message::Line(_)) | Err(_) => Err(damaged()),
        };
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    taken?;
    if buffer.unfinished().is_empty() { Ok(values) } else { Err(damaged()) }
}

/// Takes those that the next message has.
fn take_values(values: &mut Vec<Vec<u8>>, message: &[u8]) -> Result<(), Error> {
    let piece = AllgatherPiece::parse(message);
    let piece = piece.filter(|piece| piece.first as usize == values.len());
    let piece = piece.ok_or_else(|| unexpected(ALLGATHER, message))?;
    values.extend(piece.values().map(<[u8]>::to_vec));
    Ok(())
}
