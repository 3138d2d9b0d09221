//! Who this process is to its peers, and the parts that prove it.

use std::fs::File;

use model::AgentId;
use os::machine;
use wire::{BuildHash, Ephemeral, Expected, Preamble, Secret, SessionId};

use crate::elf;

/// This build: only processes of one build form a session.
///
/// The linker has put a hash of all that it linked into the file (`--build-id`), which is the same
/// in a copy, stripped or not, and another for every other build. Reading it takes microseconds,
/// while a hash of the file would take each agent milliseconds. A file without one is told apart by
/// its version alone.
pub(crate) fn own_build() -> BuildHash {
    let id = File::open("/proc/self/exe").ok().and_then(|file| elf::build_id(&file));
    let hash = id.and_then(|id| id.first_chunk().copied());
    BuildHash(hash.unwrap_or_else(|| fnv(env!("CARGO_PKG_VERSION").as_bytes()).to_le_bytes()))
}

/// What a process needs to prove itself.
#[derive(Debug)]
pub(crate) struct Identity {
    /// Its build.
    pub(crate) build: BuildHash,
    /// Who it is.
    pub(crate) own: AgentId,
    /// Its session.
    pub(crate) session: SessionId,
    /// The session's secret.
    pub(crate) secret: Secret,
}

impl Identity {
    /// The head of a session that begins.
    pub(crate) fn new_session() -> std::io::Result<Identity> {
        let (mut session, mut secret) = ([0; 16], [0; 32]);
        machine::random_bytes(&mut session)?;
        machine::random_bytes(&mut secret)?;
        Ok(Identity {
            build: own_build(),
            own: AgentId::HEAD,
            session: SessionId(session),
            secret: Secret::new(secret),
        })
    }

    /// What we say first to `parent`.
    pub(crate) fn preamble(&self, parent: AgentId, attempt: u32) -> Preamble {
        Preamble { build: self.build, session: self.session, from: self.own, to: parent, attempt }
    }

    /// What a child must ask for.
    pub(crate) fn expected(&self) -> Expected {
        Expected { build: self.build, session: self.session, own: self.own }
    }
}

/// Fresh randomness for one handshake.
pub(crate) fn ephemeral() -> std::io::Result<Ephemeral> {
    let mut bytes = [0; 32];
    machine::random_bytes(&mut bytes)?;
    Ok(Ephemeral::new(bytes))
}

fn fnv(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
