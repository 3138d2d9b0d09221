//! Bytes to the server and back.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};

use crate::own_server::OwnServer;
use crate::{Endpoint, Error};

/// The way to the server.
#[derive(Debug)]
pub(crate) enum Link {
    Socket(OwnedFd),
    Own(Box<Mutex<OwnServer>>),
}

impl Link {
    pub(crate) fn to(endpoint: &Endpoint) -> Result<Link, Error> {
        match endpoint {
            Endpoint::Descriptor { number, .. } => {
                let copy = os::stream::copy_of(*number);
                copy.map(Link::Socket)
                    .map_err(|source| Error::Descriptor { number: *number, source })
            }
            Endpoint::Port { address, .. } => {
                let connected = TcpStream::connect(address)
                    .and_then(|stream| stream.set_nodelay(true).map(|()| stream));
                let failed = |source| Error::Connect { address: address.clone(), source };
                connected.map(|stream| Link::Socket(stream.into())).map_err(failed)
            }
            Endpoint::Alone => Ok(Link::Own(Box::new(Mutex::new(OwnServer::new())))),
        }
    }

    /// Writes all of it. That nobody reads is an error, and never the signal of a broken pipe.
    pub(crate) fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Link::Socket(socket) => {
                while !bytes.is_empty() {
                    let sent = retry_on_intr(|| send(socket, bytes, SendFlags::NOSIGNAL))?;
                    bytes = &bytes[sent..];
                }
            }
            Link::Own(server) => {
                server.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
            }
        }
        Ok(())
    }

    /// Waits for bytes, and returns how many have come, none at the end, and a descriptor that came with them.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        match self {
            Link::Socket(socket) => os::stream::read_with(socket, buffer),
            Link::Own(server) => {
                Ok((server.lock().unwrap_or_else(PoisonError::into_inner).give(buffer), None))
            }
        }
    }
}
