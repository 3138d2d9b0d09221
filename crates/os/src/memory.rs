//! Bytes that processes share, and nobody can change.
#![expect(unsafe_code, reason = "no safe call maps a file")]

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::slice;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// What must be sealed of a file whose bytes may be used as memory: nobody writes to it, and nobody cuts it.
const SEALS: SealFlags = SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK);

/// A file in memory with these bytes, which stay as they are (memfd_create(2), "File sealing"). Whoever has a
/// descriptor of it can map it.
///
/// # Errors
/// When memory or descriptors have run out.
pub fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(c"convoke", flags)?;
    rustix::fs::ftruncate(&file, bytes.len() as u64)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = &rest[written..];
    }
    rustix::fs::fcntl_add_seals(&file, SEALS | SealFlags::SEAL)?;
    Ok(file)
}

/// The bytes of such a file.
#[derive(Debug)]
pub struct Sealed {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: nobody changes the bytes, so any thread may read them, and any may be the one that unmaps them.
unsafe impl Send for Sealed {}
// SAFETY: as above.
unsafe impl Sync for Sealed {}

impl Sealed {
    /// Maps a file. The descriptor is needed no longer.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] when it is none that is sealed; when it is empty, or memory has run out.
    pub fn map(file: impl AsFd) -> io::Result<Sealed> {
        // What is no file in memory cannot be sealed.
        let seals = rustix::fs::fcntl_get_seals(&file).unwrap_or(SealFlags::empty());
        if !seals.contains(SEALS) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a file that is not sealed"));
        }
        let size = rustix::fs::fstat(&file)?.st_size;
        let length = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?;
        // Linux before 6.7 does not share what is sealed, not even to read; pages that nobody writes are no copies.
        // SAFETY: a new mapping, at an address that the kernel chooses, touches no other.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                file,
                0,
            )?
        };
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0");
        Ok(Sealed { start, length })
    }
}

impl Deref for Sealed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped as long as `self` lives, and the seals keep them there as they are.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and whoever has borrowed of it is gone.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "what was mapped can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn sealed_bytes_are_read_by_who_has_the_descriptor_and_changed_by_nobody() {
        let bytes = vec![b'x'; 10_000];
        let file = sealed(&bytes).unwrap();
        let mapped = Sealed::map(&file).unwrap();
        let mut file = std::fs::File::from(file);
        assert!(file.write(b"y").is_err());
        assert!(file.set_len(1).is_err());
        assert!(file.set_len(20_000).is_err());
        drop(file);
        assert_eq!(mapped[..], bytes);
    }

    #[test]
    fn a_file_that_is_not_sealed_is_not_mapped() {
        let file = rustix::fs::memfd_create(c"test", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert!(Sealed::map(&file).is_err());
        rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).unwrap();
        assert!(Sealed::map(&file).is_err());
        assert!(Sealed::map(std::fs::File::open("/proc/self/exe").unwrap()).is_err());
    }
}
