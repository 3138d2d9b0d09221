//! What an agent learns on its boot channel, before it can speak to anyone: who it is, where its
//! parent listens, and the session's secret.
//!
//! `bootstrap` wraps these bytes in a line that survives login shells that print noise. The
//! version stands first, as two plain bytes, so that another version's payload is named as such.
//!
//! One payload serves every agent of a bulk start: it lists their numbers, and each agent takes
//! the one at its own index, which the bulk bootstrapper tells it.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use model::{AgentId, IdSet};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{BuildHash, Secret, SessionId, VERSION};

/// What one start of agents tells them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BootPayload {
    /// The build that must answer: the one that runs the session.
    pub build: BuildHash,
    /// The session.
    pub session: SessionId,
    /// Its secret.
    pub secret: Secret,
    /// The agents that this payload starts: one, unless the start is in bulk.
    pub agents: IdSet,
    /// Their spawn parent.
    pub parent: AgentId,
    /// Which start of them this is, counted from 0.
    pub attempt: u32,
    /// Where the parent listens, both families, in the order to try.
    pub addresses: Vec<SocketAddr>,
    /// Whether the streams of the shell that started them may be the link, where no address is.
    pub shell_link: bool,
    /// How long to wait for the parent's welcome before giving up, in milliseconds.
    pub welcome_timeout_ms: u32,
}

/// Bytes that are no boot payload of this program.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BootError {
    /// It ends before it says its version.
    #[error("boot payload of {0} bytes is too short")]
    TooShort(usize),
    /// It was written by another version.
    #[error("boot payload is of version {theirs} of the protocol, this is version {ours}")]
    Version {
        /// This program's version.
        ours: u16,
        /// The payload's.
        theirs: u16,
    },
    /// It was written by another build.
    #[error("boot payload is from build {theirs} of Convoke, this is build {ours}")]
    Build {
        /// This program.
        ours: BuildHash,
        /// The parent's.
        theirs: BuildHash,
    },
    /// What follows its version is no payload.
    #[error("boot payload cannot be read")]
    Body(#[source] postcard::Error),
    /// It goes on after its end.
    #[error("boot payload has {0} bytes after its end")]
    Trailing(usize),
    /// It starts nobody.
    #[error("boot payload names no agent")]
    NoAgent,
}

impl BootPayload {
    /// Its bytes, which are wiped when dropped.
    pub fn encode(&self) -> Result<Zeroizing<Vec<u8>>, BootError> {
        let body = Body {
            build: self.build,
            session: self.session,
            secret: *self.secret.bytes(),
            agents: self.agents.clone(),
            parent: self.parent,
            attempt: self.attempt,
            addresses: self.addresses.iter().map(|it| (it.ip(), it.port())).collect(),
            shell_link: self.shell_link,
            welcome_timeout_ms: self.welcome_timeout_ms,
        };
        let body = postcard::to_allocvec(&body).map(Zeroizing::new).map_err(BootError::Body)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(size_of::<u16>() + body.len()));
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Reads what `build`, which is this program, may use.
    pub fn decode(bytes: &[u8], build: BuildHash) -> Result<BootPayload, BootError> {
        let (&version, body) = bytes.split_first_chunk().ok_or(BootError::TooShort(bytes.len()))?;
        let theirs = u16::from_le_bytes(version);
        if theirs != VERSION {
            return Err(BootError::Version { ours: VERSION, theirs });
        }
        let (body, rest) = postcard::take_from_bytes::<Body>(body).map_err(BootError::Body)?;
        if !rest.is_empty() {
            return Err(BootError::Trailing(rest.len()));
        }
        if body.build != build {
            return Err(BootError::Build { ours: build, theirs: body.build });
        }
        if body.agents.is_empty() {
            return Err(BootError::NoAgent);
        }
        Ok(body.into())
    }

    /// Who the agent at `index` of this start is. Without a bulk start the index is 0.
    pub fn agent(&self, index: u32) -> Option<AgentId> {
        let (_, from_index) = self.agents.split(u64::from(index));
        from_index.first().map(AgentId)
    }
}

/// The payload as it is encoded: the one place where the secret is plain data.
#[derive(Serialize, Deserialize)]
struct Body {
    build: BuildHash,
    session: SessionId,
    secret: [u8; 32],
    agents: IdSet,
    parent: AgentId,
    attempt: u32,
    addresses: Vec<(IpAddr, u16)>,
    shell_link: bool,
    welcome_timeout_ms: u32,
}

impl From<Body> for BootPayload {
    fn from(body: Body) -> BootPayload {
        BootPayload {
            build: body.build,
            session: body.session,
            secret: Secret::new(body.secret),
            agents: body.agents,
            parent: body.parent,
            attempt: body.attempt,
            addresses: body.addresses.into_iter().map(SocketAddr::from).collect(),
            shell_link: body.shell_link,
            welcome_timeout_ms: body.welcome_timeout_ms,
        }
    }
}
