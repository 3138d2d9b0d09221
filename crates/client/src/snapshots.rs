//! What a program looks up without asking (`docs/pmi.md`, "Local channel").

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{PoisonError, RwLock};

use os::memory::Sealed;
use pmi::{Snapshot, SnapshotError};

use crate::Error;

/// The pairs of our job's space as the agent has given them last, if it has, and the name of the space, if that is known.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    last: RwLock<Option<Sealed>>,
    name: RwLock<Option<Vec<u8>>>,
}

impl Snapshots {
    /// Takes note of what our job's space is called.
    pub(crate) fn set_name(&self, name: &[u8]) {
        *self.name.write().unwrap_or_else(PoisonError::into_inner) = Some(name.to_vec());
    }

    /// Whether a space of this name is our job's.
    pub(crate) fn is_own(&self, name: &[u8]) -> bool {
        self.name.read().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(name)
    }

    /// Takes what a barrier's answer says: that a snapshot of so many bytes comes with it, where that is news. Where no
    /// descriptor has come, or there is no room to map it, there is none.
    pub(crate) fn renew(
        &self,
        bytes: Option<usize>,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), Error> {
        let Some(bytes) = bytes else { return Ok(()) };
        self.forget();
        let mapped = match descriptor.map(Sealed::map) {
            Some(Ok(mapped)) => mapped,
            Some(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Error::Snapshot(SnapshotError));
            }
            Some(Err(_)) | None => return Ok(()),
        };
        if mapped.len() != bytes {
            return Err(Error::Snapshot(SnapshotError));
        }
        Snapshot::new(&mapped).map_err(Error::Snapshot)?;
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(mapped);
        Ok(())
    }

    /// The value of a key of our job's space, if it is there. Else the agent may know it.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mapped) = &*last else { return Ok(None) };
        let value = Snapshot::new(mapped).and_then(|snapshot| snapshot.get(key));
        value.map(|value| value.map(<[u8]>::to_vec)).map_err(Error::Snapshot)
    }

    /// Takes note that a key gets another value, if it has one: the agent knows it from here on.
    pub(crate) fn put(&self, key: &[u8]) {
        if !matches!(self.get(key), Ok(None)) {
            self.forget();
        }
    }

    /// Has everything asked for.
    pub(crate) fn forget(&self) {
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
