//! The boot line: what an agent learns before it can ask anybody.
//!
//! One line of text, `CONVOKE-BOOT-1` and the payload in hexadecimal, since it comes down channels
//! where login scripts print, and terminals change bytes. Whatever stands before it is skipped.
//! It is bounded, so that an agent given the wrong input ends.

/// The longest line, and the most noise before it.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// The largest payload that fits.
pub const PAYLOAD_BYTES_MAX: usize = (LINE_BYTES_MAX - MAGIC.len() - 1) / 2;

const MAGIC: &[u8] = b"CONVOKE-BOOT-1 ";

/// The line that carries `payload`, newline included.
///
/// # Panics
/// When the payload is larger than [`PAYLOAD_BYTES_MAX`].
pub fn line(payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() <= PAYLOAD_BYTES_MAX);
    let mut line = MAGIC.to_vec();
    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
    line.extend(payload.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    line.push(b'\n');
    line
}

/// Finds the boot line in what arrives.
#[derive(Debug, Default)]
pub struct BootReader {
    seen: Vec<u8>,
    /// How much noise was dropped.
    noise_bytes: usize,
}

/// What a boot channel said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Boot {
    /// What was sent.
    pub payload: Vec<u8>,
    /// What came after the line and belongs to whatever the channel is used for next.
    pub rest: Vec<u8>,
}

/// Why there is no boot line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BootError {
    /// Nothing like it within the bound.
    #[error("no boot line within {LINE_BYTES_MAX} bytes")]
    TooMuch,
    /// The magic was there, but what follows is no hexadecimal number of whole bytes.
    #[error("garbled boot line")]
    Garbled,
    /// The channel ended before the line did.
    #[error("the boot channel ended before the boot line")]
    Ended,
}

impl BootReader {
    /// A reader that has seen nothing.
    pub fn new() -> BootReader {
        BootReader::default()
    }

    /// Takes what was read. Read on while it is `None`.
    ///
    /// # Errors
    /// When there will be no boot line; close the channel.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Boot>, BootError> {
        self.seen.extend_from_slice(bytes);
        self.noise_bytes += drop_noise(&mut self.seen, MAGIC);
        let started = self.seen.starts_with(MAGIC);
        if started && let Some(end) = self.seen.iter().position(|byte| *byte == b'\n') {
            let rest = self.seen.split_off(end + 1);
            let digits = self.seen[MAGIC.len()..end].trim_ascii_end();
            let payload = from_hex(digits).ok_or(BootError::Garbled)?;
            return Ok(Some(Boot { payload, rest }));
        }
        let bytes = if started { self.seen.len() } else { self.noise_bytes };
        if bytes > LINE_BYTES_MAX { Err(BootError::TooMuch) } else { Ok(None) }
    }

    /// The error to report when the channel ends.
    pub fn end(&self) -> BootError {
        BootError::Ended
    }
}

/// Drops all before `magic`, or before its possible start, and returns how many bytes that were.
pub(crate) fn drop_noise(seen: &mut Vec<u8>, magic: &[u8]) -> usize {
    let found = seen.windows(magic.len()).position(|window| window == magic);
    let noise = found.unwrap_or_else(|| seen.len().saturating_sub(magic.len() - 1));
    seen.drain(..noise);
    noise
}

/// The boot line of an environment variable.
///
/// # Errors
/// When it is none.
pub fn from_text(text: &[u8]) -> Result<Boot, BootError> {
    let mut reader = BootReader::new();
    match reader.push(text)? {
        Some(boot) => Ok(boot),
        // A launcher may have trimmed the newline.
        None => reader.push(b"\n")?.ok_or(BootError::Ended),
    }
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(nibble(*high)? << 4 | nibble(*low)?).ok();
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_behind_noise_byte_by_byte() {
        let mut stream = b"Welcome!\r\nCONVOKE-BOOT-\nCONVOKE-BOOT-1".to_vec();
        stream.extend(line(&[0, 1, 0xab, 0xff]));
        stream.extend(b"next");
        let mut reader = BootReader::new();
        let mut boots = stream.iter().filter_map(|byte| reader.push(&[*byte]).unwrap());
        assert_eq!(boots.next().unwrap().payload, [0, 1, 0xab, 0xff]);
        let boot = BootReader::new().push(&stream).unwrap().unwrap();
        assert_eq!(boot, Boot { payload: vec![0, 1, 0xab, 0xff], rest: b"next".to_vec() });
    }

    #[test]
    fn the_largest_payload_fits_and_endless_input_does_not() {
        let payload = vec![7; PAYLOAD_BYTES_MAX];
        assert!(line(&payload).len() <= LINE_BYTES_MAX);
        let boot = BootReader::new().push(&line(&payload)).unwrap().unwrap();
        assert_eq!(boot.payload, payload);
        for endless in [&b"noise"[..], &b"CONVOKE-BOOT-1 00"[..]] {
            let mut reader = BootReader::new();
            let refused = (0..LINE_BYTES_MAX).find_map(|n| {
                let bytes = if n == 0 { endless } else { b"0000" };
                reader.push(bytes).err()
            });
            assert_eq!(refused, Some(BootError::TooMuch));
        }
    }

    #[test]
    fn a_garbled_line_is_an_error() {
        for text in ["CONVOKE-BOOT-1 0\n", "CONVOKE-BOOT-1 0g\n", "CONVOKE-BOOT-1 +1\n"] {
            assert_eq!(BootReader::new().push(text.as_bytes()), Err(BootError::Garbled));
        }
        assert_eq!(from_text(b"CONVOKE-BOOT-1 ff").unwrap().payload, [0xff]);
        assert_eq!(from_text(b"CONVOKE"), Err(BootError::Ended));
    }
}
