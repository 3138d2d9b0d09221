//! Bytes that tell where they belong: a stream's byte at an offset is a function of both.
//!
//! So a reader can check order and completeness while it keeps no more than an offset, and a
//! gigabyte of output costs nothing to hold.

use bytes::Bytes;

/// How long a line is, its end included.
pub(crate) const LINE: u64 = 64;

/// The pieces of `len` bytes from `offset` on, of the stream that `key` names.
pub(crate) fn bytes(key: u64, offset: u64, len: u64) -> Bytes {
    (offset..offset + len).map(|at| byte(key, at)).collect()
}

/// The offset of the first byte of `data` that is not the stream's.
pub(crate) fn first_wrong(key: u64, offset: u64, data: &[u8]) -> Option<u64> {
    (offset..).zip(data).find(|&(at, &found)| byte(key, at) != found).map(|(at, _)| at)
}

fn byte(key: u64, at: u64) -> u8 {
    if at % LINE == LINE - 1 {
        return b'\n';
    }
    let letter = (key.wrapping_mul(7) + at / LINE * 3 + at) % 26;
    b'a' + u8::try_from(letter).unwrap_or_default()
}
