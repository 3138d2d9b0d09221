//! One message of a client, understood (`reference/pmi1.md` §3).
//!
//! Little is copied: fields are slices of the line, and a field is found by walking the few that
//! stand before it. The order of fields is free, the first of two equal keys counts, several blanks are one.

use alloc::vec::Vec;
use core::str::FromStr;

use model::{NameRequest, NameValue, SpawnProgram};

use crate::asker::is_numbered;
use crate::{ClientError, Excerpt};

/// A request, its fields borrowed from the client's bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Request<'a> {
    Initack {
        id: u32,
    },
    Init {
        version: i64,
    },
    /// With the version of snapshots that the client reads, if it reads any, and whether it asks for quiet puts.
    GetMaxes {
        snapshot: Option<u32>,
        quiet: bool,
    },
    GetAppnum,
    GetMyKvsname,
    GetUniverseSize,
    /// A quiet one is answered only where it is refused.
    Put {
        kvsname: &'a [u8],
        key: &'a [u8],
        value: &'a [u8],
        quiet: bool,
    },
    Get {
        kvsname: &'a [u8],
        key: &'a [u8],
    },
    BarrierIn {
        group: Option<&'a [u8]>,
    },
    Finalize,
    Abort {
        code: i32,
        message: &'a [u8],
    },
    Name(NameRequest),
    Spawn(SpawnBlock),
    CreateKvs,
    DestroyKvs {
        kvsname: &'a [u8],
    },
    GetByIdx {
        kvsname: &'a [u8],
        idx: i64,
    },
}

/// One block of a spawn request (§7).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct SpawnBlock {
    pub(crate) program: SpawnProgram,
    pub(crate) preput: Vec<NameValue>,
    /// Whether the request is complete with it, and a reply is due.
    pub(crate) is_last: bool,
}

impl<'a> Request<'a> {
    /// Understands a message as [`MessageBuffer`](crate::MessageBuffer) cuts it.
    pub(crate) fn parse(message: &'a [u8]) -> Result<Request<'a>, ClientError> {
        let fields = Fields::of(message);
        if fields.separator == b'\n' {
            return parse_block(fields);
        }
        match fields.iter().next() {
            Some((b"cmd", name)) => parse_line(name, fields),
            Some(_) | None => Err(ClientError::NotACommand(Excerpt::new(message))),
        }
    }
}

fn is_quiet(fields: Fields<'_>) -> bool {
    fields.get("quiet") == Some(b"1")
}

fn parse_line<'a>(name: &[u8], fields: Fields<'a>) -> Result<Request<'a>, ClientError> {
    Ok(match name {
        b"put" => Request::Put {
            kvsname: fields.required("kvsname")?,
            key: fields.required("key")?,
            value: fields.required("value")?,
            quiet: is_quiet(fields),
        },
        b"get" => {
            Request::Get { kvsname: fields.required("kvsname")?, key: fields.required("key")? }
        }
        b"barrier_in" => Request::BarrierIn { group: fields.get("group") },
        b"init" => Request::Init { version: fields.number("pmi_version")? },
        b"get_maxes" => {
            Request::GetMaxes { snapshot: fields.number("snapshot").ok(), quiet: is_quiet(fields) }
        }
        b"get_appnum" => Request::GetAppnum,
        b"get_my_kvsname" => Request::GetMyKvsname,
        b"get_universe_size" => Request::GetUniverseSize,
        b"finalize" => Request::Finalize,
        b"abort" => Request::Abort {
            code: abort_code(fields),
            message: fields.get("message").unwrap_or_default(),
        },
        b"publish_name" => Request::Name(NameRequest::Publish {
            service: fields.required("service")?.to_vec(),
            port: fields.required("port")?.to_vec(),
        }),
        b"lookup_name" => Request::Name(NameRequest::Lookup(fields.required("service")?.to_vec())),
        b"unpublish_name" => {
            Request::Name(NameRequest::Unpublish(fields.required("service")?.to_vec()))
        }
        b"create_kvs" => Request::CreateKvs,
        b"destroy_kvs" => Request::DestroyKvs { kvsname: fields.required("kvsname")? },
        b"getbyidx" => {
            Request::GetByIdx { kvsname: fields.required("kvsname")?, idx: fields.number("idx")? }
        }
        b"initack" => Request::Initack { id: fields.number("pmiid")? },
        b"singinit" => return Err(ClientError::Unsupported(Excerpt::new(fields.message))),
        _ => return Err(ClientError::UnknownCommand(Excerpt::new(fields.message))),
    })
}

fn parse_block(fields: Fields<'_>) -> Result<Request<'_>, ClientError> {
    if fields.get("mcmd") != Some(b"spawn") {
        return Err(ClientError::UnknownCommand(Excerpt::new(fields.message)));
    }
    let is_last = fields.number::<i64>("spawnssofar")? >= fields.number("totspawns")?;
    let arguments = fields.iter().filter(|(name, _)| is_numbered(name, "arg"));
    let program = [fields.required("execname")?].into_iter();
    Ok(Request::Spawn(SpawnBlock {
        program: SpawnProgram {
            tasks: fields.number("nprocs")?,
            argv: program.chain(arguments.map(|(_, value)| value)).map(<[u8]>::to_vec).collect(),
            info: fields.pairs("info_key_", "info_val_"),
        },
        preput: fields.pairs("preput_key_", "preput_val_"),
        is_last,
    }))
}

/// The code of an abort, which must never fail to end the job: codes of MPI errors may be as large as
/// they like, and one that is no number counts as 1. Only the low 32 bits are kept.
fn abort_code(fields: Fields<'_>) -> i32 {
    fields.number::<i64>("exitcode").map_or(1, |code| {
        let [a, b, c, d, ..] = code.to_le_bytes();
        i32::from_le_bytes([a, b, c, d])
    })
}

/// The `key=value` fields of a message.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    message: &'a [u8],
    separator: u8,
}

impl<'a> Fields<'a> {
    /// Those of a message as [`MessageBuffer`](crate::MessageBuffer) cuts it: a line, or a block of lines.
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        let is_block = message.starts_with(b"mcmd=");
        Fields { message, separator: if is_block { b'\n' } else { b' ' } }
    }

    /// The fields in order; one without `=` has an empty value (§1).
    fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.message;
        let fields = core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (field, after) = split_at_first(self.separator, rest);
            rest = after;
            Some(field)
        });
        fields.filter(|field| !field.is_empty()).map(|field| split_at_first(b'=', field))
    }

    /// The value of the first field called `key`.
    pub fn get(self, key: &str) -> Option<&'a [u8]> {
        self.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| value)
    }

    fn required(self, field: &'static str) -> Result<&'a [u8], ClientError> {
        let missing = || ClientError::MissingField { field, line: Excerpt::new(self.message) };
        self.get(field).ok_or_else(missing)
    }

    /// Pairs of which each has a field with its name, and behind it one with its value.
    fn pairs(self, name: &str, value: &str) -> Vec<NameValue> {
        let mut pairs: Vec<NameValue> = Vec::new();
        for (field, text) in self.iter() {
            if is_numbered(field, name) {
                pairs.push((text.to_vec(), Vec::new()));
            } else if is_numbered(field, value)
                && let Some((_, value)) = pairs.last_mut()
            {
                *value = text.to_vec();
            }
        }
        pairs
    }

    /// The same of one that must be a number.
    ///
    /// # Errors
    /// When it is missing, or none.
    pub fn number<N: FromStr>(self, field: &'static str) -> Result<N, ClientError> {
        let text = self.required(field)?;
        let number = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| ClientError::NotANumber { field, line: Excerpt::new(self.message) })
    }
}

/// What stands before and after the first `separator`, or everything and nothing.
fn split_at_first(separator: u8, bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(separator, bytes) {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
