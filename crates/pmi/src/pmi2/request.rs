//! One message of a client, understood (`reference/pmi2.md` §4).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use bytes::Bytes;
use model::{NameRequest, NameValue, SpawnProgram, SpawnRequest};

use super::allgather;
use super::fields::Fields;
use super::reply::ReturnCode;
use crate::asker::{Asker, is_numbered};
use crate::{ClientError, Excerpt};

/// What a client asks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Request<'a> {
    /// The second half of its initialisation, with the rank that it has from `PMI_ID`, and the version of snapshots
    /// that it reads, if it reads any, and whether it asks for quiet puts.
    FullInit {
        rank: Option<u32>,
        snapshot: Option<u32>,
        quiet: bool,
    },
    Finalize,
    /// The code makes the job's exit status.
    Abort {
        code: i32,
        message: Cow<'a, [u8]>,
    },
    JobGetId,
    JobDisconnect,
    PutNodeAttr {
        key: Cow<'a, [u8]>,
        value: Cow<'a, [u8]>,
    },
    /// With `wait`, the answer waits until somebody on the node has put it.
    GetNodeAttr {
        key: Cow<'a, [u8]>,
        wait: bool,
    },
    GetJobAttr {
        key: Cow<'a, [u8]>,
    },
    /// A quiet one is answered only where it is refused.
    Put {
        key: Cow<'a, [u8]>,
        value: Cow<'a, [u8]>,
        quiet: bool,
    },
    Fence,
    /// Of the job that is named, or of the client's own.
    Get {
        job: Option<Cow<'a, [u8]>>,
        key: Cow<'a, [u8]>,
    },
    Ring {
        left: Cow<'a, [u8]>,
        right: Cow<'a, [u8]>,
    },
    /// Within the length that the client gives, if it gives one.
    Allgather {
        value: Cow<'a, [u8]>,
        length_max: Option<usize>,
    },
    Name(NameRequest),
    Spawn(SpawnRequest),
}

/// A message as it came: what it asks may be nothing that can be done.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// The name of the request, which the reply repeats.
    pub(crate) name: &'a [u8],
    /// Which thread of the client asks, if it has several.
    pub(crate) thread: Option<Cow<'a, [u8]>>,
    pub(crate) request: Result<Request<'a>, Refusal>,
}

/// Why a request is refused: the code and the text that the client gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Refusal(pub(crate) ReturnCode, pub(crate) &'static str);

/// The longest name of a request, and of a thread, which are repeated in replies: twice what is known.
const REPEATED_BYTES_MAX: usize = 64;

impl<'a> Asked<'a> {
    /// The thread that asks, to be named in an answer that comes later.
    pub(crate) fn thread(&self) -> Option<Bytes> {
        self.thread.as_deref().map(Bytes::copy_from_slice)
    }

    /// Who is to be answered later, where clients of another dialect may be, too.
    pub(crate) fn asker(&self) -> Asker {
        Asker::Frame { thread: self.thread() }
    }

    /// Understands the body of a frame.
    ///
    /// # Errors
    /// When it is no command at all. A command that is unknown, or lacks a field, is refused in a reply.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Asked<'a>, ClientError> {
        let fields = Fields::of(body);
        let is_name = |name: &[u8]| name.len() <= REPEATED_BYTES_MAX && !name.contains(&b';');
        let name = match fields.into_iter().next() {
            Some((b"cmd", Cow::Borrowed(name))) if is_name(name) => name,
            Some(_) | None => return Err(ClientError::NotACommand(Excerpt::new(body))),
        };
        let thread = fields.get("thrid");
        if thread.as_ref().is_some_and(|thread| thread.len() > REPEATED_BYTES_MAX) {
            return Err(ClientError::NotACommand(Excerpt::new(body)));
        }
        Ok(Asked { name, thread, request: parse(name, fields) })
    }
}

fn parse<'a>(name: &[u8], fields: Fields<'a>) -> Result<Request<'a>, Refusal> {
    Ok(match name {
        b"kvs-get" => Request::Get { job: fields.get("jobid"), key: key(fields)? },
        b"kvs-put" => {
            let quiet = fields.is_true("quiet");
            Request::Put { key: key(fields)?, value: value(fields), quiet }
        }
        b"kvs-fence" => Request::Fence,
        b"info-getnodeattr" => {
            Request::GetNodeAttr { key: key(fields)?, wait: fields.is_true("wait") }
        }
        b"info-putnodeattr" => Request::PutNodeAttr { key: key(fields)?, value: value(fields) },
        b"info-getjobattr" => Request::GetJobAttr { key: key(fields)? },
        b"fullinit" => Request::FullInit {
            rank: own_rank(fields),
            snapshot: fields.number("snapshot"),
            quiet: fields.is_true("quiet"),
        },
        b"finalize" => Request::Finalize,
        b"abort" => abort(fields),
        b"job-getid" => Request::JobGetId,
        b"job-connect" => Request::Name(NameRequest::Job(job(fields)?)),
        b"job-disconnect" => Request::JobDisconnect,
        b"name-publish" => Request::Name(NameRequest::Publish {
            service: service(fields)?,
            port: fields.get("port").unwrap_or_default().into_owned(),
        }),
        b"name-lookup" => Request::Name(NameRequest::Lookup(service(fields)?)),
        b"name-unpublish" => Request::Name(NameRequest::Unpublish(service(fields)?)),
        b"ring" => Request::Ring {
            left: fields.get("ring-left").unwrap_or_default(),
            right: fields.get("ring-right").unwrap_or_default(),
        },
        allgather::NAME => {
            Request::Allgather { value: value(fields), length_max: fields.number("max-length") }
        }
        b"spawn" => Request::Spawn(spawn(fields)?),
        _ => return Err(Refusal(ReturnCode::Other, "unknown_command")),
    })
}

/// The order of the fields tells what belongs together (§6).
fn spawn(fields: Fields<'_>) -> Result<SpawnRequest, Refusal> {
    const NO_NUMBER: Refusal = Refusal(ReturnCode::InvalidArgument, "maxprocs_is_no_number");
    let mut request = SpawnRequest::default();
    for (name, value) in fields {
        let value = value.into_owned();
        if name == b"subcmd" {
            let program = SpawnProgram { argv: [value].into(), ..SpawnProgram::default() };
            request.programs.push(program);
        } else if let Some(program) = request.programs.last_mut() {
            if name == b"maxprocs" {
                let number =
                    core::str::from_utf8(&value).ok().and_then(|it| it.trim().parse().ok());
                program.tasks = number.ok_or(NO_NUMBER)?;
            } else if is_numbered(name, "argv") {
                program.argv.push(value);
            } else {
                add_pair(&mut program.info, ["infokey", "infoval"], name, value);
            }
        } else {
            add_pair(&mut request.preput, ["ppkey", "ppval"], name, value);
        }
    }
    Ok(request)
}

/// Adds a pair with the field that has its name, and its value with the one behind that.
fn add_pair(pairs: &mut Vec<NameValue>, [key, val]: [&str; 2], name: &[u8], text: Vec<u8>) {
    if is_numbered(name, key) {
        pairs.push((text, Vec::new()));
    } else if is_numbered(name, val)
        && let Some((_, value)) = pairs.last_mut()
    {
        *value = text;
    }
}

fn key(fields: Fields<'_>) -> Result<Cow<'_, [u8]>, Refusal> {
    let key = fields.get("key").unwrap_or_default();
    if key.is_empty() { Err(Refusal(ReturnCode::InvalidKey, "no_key")) } else { Ok(key) }
}

fn service(fields: Fields<'_>) -> Result<Vec<u8>, Refusal> {
    let name = fields.get("name").ok_or(Refusal(ReturnCode::InvalidArgument, "no_name"))?;
    Ok(name.into_owned())
}

fn job(fields: Fields<'_>) -> Result<Vec<u8>, Refusal> {
    let job = fields.get("jobid").ok_or(Refusal(ReturnCode::InvalidArgument, "no_jobid"))?;
    Ok(job.into_owned())
}

/// Slurm's client calls it `srcid`, MPICH's `pmirank`.
fn own_rank(fields: Fields<'_>) -> Option<u32> {
    fields.number("srcid").or_else(|| fields.number("pmirank"))
}

/// One that is empty may be left out.
fn value(fields: Fields<'_>) -> Cow<'_, [u8]> {
    fields.get("value").unwrap_or_default()
}

/// An abort must never fail to end the job, so one without a code has 1. Slurm's client says only whether the world is
/// meant, and its words `msg`; MPICH's says `exitcode` and `message`. Only the low 32 bits of a code are kept.
fn abort(fields: Fields<'_>) -> Request<'_> {
    let code = fields.number::<i64>("exitcode").unwrap_or(1);
    let [a, b, c, d, ..] = code.to_le_bytes();
    let message = fields.get("message").or_else(|| fields.get("msg")).unwrap_or_default();
    Request::Abort { code: i32::from_le_bytes([a, b, c, d]), message }
}
