//! The lines that clients get, in the form that every known client accepts (`reference/pmi1.md` §3).

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use bytes::BytesMut;
use model::{NameReply, Rank, SpawnReply, SpawnedTasks};

use crate::{JobInfo, PutError};

/// The answer to everybody in the barrier of all. With PMI-1.2 a client looks at the tag of any; those of 1.1 ignore it.
pub(crate) const BARRIER_OUT: &[u8] = b"cmd=barrier_out tag=0\n";
pub(crate) const INIT: &[u8] = b"cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=0\n";
/// What a client of PMI-2 gets, before it goes on in frames (`reference/pmi2.md` §2).
pub(crate) const INIT_PMI2: &[u8] = b"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
pub(crate) const INIT_REFUSED: &[u8] =
    b"cmd=response_to_init pmi_version=1 pmi_subversion=2 rc=1\n";
pub(crate) const FINALIZE: &[u8] = b"cmd=finalize_ack rc=0\n";
pub(crate) const PUT: &[u8] = b"cmd=put_result rc=0\n";
pub(crate) const KVS_DESTROYED: &[u8] = b"cmd=kvs_destroyed rc=0 msg=success\n";
pub(crate) const KVS_NOT_DESTROYED: &[u8] = b"cmd=kvs_destroyed rc=-1 msg=kvs_not_found\n";

/// Appends a line made of text and numbers.
pub(crate) fn text(out: &mut BytesMut, line: fmt::Arguments<'_>) {
    // Only memory bounds a `BytesMut`, so it never reports an error.
    let _ = out.write_fmt(line);
    out.extend_from_slice(b"\n");
}

/// Appends a line made of byte strings.
pub(crate) fn parts(out: &mut BytesMut, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\n");
}

/// Appends the answer to an `initack`, each line of which clients wait for in this order (§4).
pub(crate) fn initack(out: &mut BytesMut, rank: Rank, size: u32, appnum: u32) {
    let line = format_args!("cmd=initack rc=0 rank={rank} size={size} appnum={appnum} debug=0");
    text(out, line);
    text(out, format_args!("cmd=set size={size}"));
    text(out, format_args!("cmd=set rank={rank}"));
    text(out, format_args!("cmd=set debug=0"));
}

/// Appends the answer to a put.
pub(crate) fn put_result(out: &mut BytesMut, result: Result<(), PutError>) {
    match result {
        Ok(()) => out.extend_from_slice(PUT),
        Err(error) => text(out, format_args!("cmd=put_result rc=-1 msg={error}")),
    }
}

/// Appends the answer to a get; `key` is quoted when there is no value. One that a line does not hold, or has more bytes
/// than the client makes room for, is not found either.
pub(crate) fn got(out: &mut BytesMut, key: &[u8], value: Option<&[u8]>, value_max: usize) {
    match value {
        Some(value) if !fits(value, value_max) => {
            parts(out, &[b"cmd=get_result rc=1 msg=value_does_not_fit value=unknown"]);
        }
        Some(value) => parts(out, &[b"cmd=get_result rc=0 value=", value]),
        None => {
            let key = key.get(..JobInfo::KEYLEN_MAX).unwrap_or(key);
            parts(out, &[b"cmd=get_result rc=1 msg=key_", key, b"_not_found value=unknown"]);
        }
    }
}

/// Appends the answer to a `publish_name`.
pub(crate) fn published(out: &mut BytesMut, reply: &NameReply) {
    parts(out, &[b"cmd=publish_result info=ok ", name_result(reply)]);
}

/// Appends the answer to an `unpublish_name`.
pub(crate) fn unpublished(out: &mut BytesMut, reply: &NameReply) {
    parts(out, &[b"cmd=unpublish_result info=ok ", name_result(reply)]);
}

/// Appends the answer to a `lookup_name`, which may be what a line does not hold.
pub(crate) fn looked_up(out: &mut BytesMut, reply: &NameReply) {
    match reply {
        NameReply::Found(port) if fits(port, JobInfo::VALLEN_MAX - 1) => {
            parts(out, &[b"cmd=lookup_result port=", port, b" info=ok rc=0 msg=success"]);
        }
        NameReply::Found(_) => parts(out, &[b"cmd=lookup_result rc=1 msg=port_does_not_fit"]),
        NameReply::Done | NameReply::NotFound | NameReply::Taken | NameReply::TooLong => {
            parts(out, &[b"cmd=lookup_result ", name_result(reply)]);
        }
    }
}

/// Appends the answer to a spawn. Clients expect an error code for each task, or none at all: so many do not fit
/// the buffer that some read lines into.
pub(crate) fn spawned(out: &mut BytesMut, reply: &SpawnReply) {
    match reply {
        SpawnReply::Started { programs, .. } => match error_codes(programs, ERRCODES_BYTES_MAX) {
            Some(codes) => parts(out, &[b"cmd=spawn_result rc=0 errcodes=", codes.as_bytes()]),
            None => parts(out, &[b"cmd=spawn_result rc=0"]),
        },
        SpawnReply::Refused(words) => {
            out.extend_from_slice(b"cmd=spawn_result rc=-1 status=1 msg=");
            let word = |byte| if matches!(byte, b' ' | b'\n' | b'\\') { b'_' } else { byte };
            out.extend(words.bytes().take(JobInfo::VALLEN_MAX / 2).map(word));
            out.extend_from_slice(b"\n");
        }
    }
}

/// What fits the line of a client that reads it into a kilobyte.
const ERRCODES_BYTES_MAX: usize = 960;

/// The error code of each task that was asked for, between commas, where they fit so many bytes.
pub(crate) fn error_codes(programs: &[SpawnedTasks], bytes_max: usize) -> Option<String> {
    if SpawnedTasks::asked(programs) > bytes_max as u64 {
        return None;
    }
    let codes: Vec<String> = SpawnedTasks::codes(programs).map(|code| code.to_string()).collect();
    Some(codes.join(",")).filter(|codes| codes.len() <= bytes_max)
}

fn name_result(reply: &NameReply) -> &'static [u8] {
    match reply {
        NameReply::Done | NameReply::Found(_) => b"rc=0 msg=success",
        NameReply::NotFound => b"rc=1 msg=service_not_found",
        NameReply::Taken => b"rc=1 msg=key_already_present",
        NameReply::TooLong => b"rc=1 msg=port_too_long",
    }
}

/// Whether a value, which clients of PMI-2 may have put, fits a line and the room of who reads it.
fn fits(value: &[u8], value_max: usize) -> bool {
    value.len() <= value_max && !value.contains(&b'\n')
}

/// Appends the answer to a `getbyidx`.
pub(crate) fn by_index(out: &mut BytesMut, index: usize, pair: Option<(&[u8], &[u8])>) {
    match pair {
        Some((key, value)) => {
            let _ = write!(out, "cmd=getbyidx_results rc=0 nextidx={} key=", index + 1);
            parts(out, &[key, b" val=", value]);
        }
        None => parts(out, &[b"cmd=getbyidx_results rc=-1 reason=no_more_keyvals"]),
    }
}

/// Appends the answer to a `getbyidx` where not all pairs are.
pub(crate) fn no_index(out: &mut BytesMut) {
    parts(out, &[b"cmd=getbyidx_results rc=-1 reason=pairs_are_fetched_by_key_alone"]);
}

/// Appends the answer to a `getbyidx` of a space that is not there.
pub(crate) fn no_such_kvs_by_index(out: &mut BytesMut, kvsname: &[u8]) {
    let name = kvsname.get(..JobInfo::KVSNAME_MAX).unwrap_or(kvsname);
    parts(out, &[b"cmd=getbyidx_results rc=-1 reason=kvs_", name, b"_not_found"]);
}
