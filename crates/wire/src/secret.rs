//! What the agents of one session have in common: its secret, its identifier, their build.

use core::fmt;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The secret that proves that a peer belongs to a session. Wiped when dropped, never printed.
#[derive(Clone, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret of these bytes: the driver draws them at random once a session.
    pub fn new(bytes: [u8; 32]) -> Secret {
        Secret(bytes)
    }

    /// The bytes, for the handshake and the boot payload.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever the two differ.
    fn eq(&self, other: &Secret) -> bool {
        self.0.iter().zip(&other.0).fold(0, |different, (a, b)| different | (a ^ b)) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The random part of one handshake: 32 fresh bytes from the driver, used once, wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Ephemeral(pub(crate) [u8; 32]);

impl Ephemeral {
    /// The ephemeral key of these bytes. They must be fresh for every handshake.
    pub fn new(bytes: [u8; 32]) -> Ephemeral {
        Ephemeral(bytes)
    }
}

impl fmt::Debug for Ephemeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ephemeral(..)")
    }
}

/// A session's identifier: random, and no secret.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct SessionId(pub [u8; 16]);

/// Which build of Convoke a program is. Agents of one session must agree.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct BuildHash(pub [u8; 8]);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for BuildHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
