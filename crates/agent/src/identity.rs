//! Who this process is to its peers, and the parts that prove it.

use model::AgentId;
use os::machine;
use wire::{BuildHash, Ephemeral, Expected, Preamble, Secret, SessionId};

/// This build: only processes of one build form a session. Whoever builds for others sets
/// `CONVOKE_BUILD` to what tells one build from the next.
pub(crate) const BUILD: BuildHash = {
    let hash = fnv(0xcbf2_9ce4_8422_2325, env!("CARGO_PKG_VERSION").as_bytes());
    match option_env!("CONVOKE_BUILD") {
        Some(build) => BuildHash(fnv(hash, build.as_bytes()).to_le_bytes()),
        None => BuildHash(hash.to_le_bytes()),
    }
};

/// What a process needs to prove itself.
#[derive(Debug)]
pub(crate) struct Identity {
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
            own: AgentId::HEAD,
            session: SessionId(session),
            secret: Secret::new(secret),
        })
    }

    /// What we say first to `parent`.
    pub(crate) fn preamble(&self, parent: AgentId, attempt: u32) -> Preamble {
        Preamble { build: BUILD, session: self.session, from: self.own, to: parent, attempt }
    }

    /// What a child must ask for.
    pub(crate) fn expected(&self) -> Expected {
        Expected { build: BUILD, session: self.session, own: self.own }
    }
}

/// Fresh randomness for one handshake.
pub(crate) fn ephemeral() -> std::io::Result<Ephemeral> {
    let mut bytes = [0; 32];
    machine::random_bytes(&mut bytes)?;
    Ok(Ephemeral::new(bytes))
}

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
        index += 1;
    }
    hash
}
