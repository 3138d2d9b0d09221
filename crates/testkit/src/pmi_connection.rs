//! The client side of PMI-1 (`reference/pmi1.md`), with one write and one read for each request.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use crate::raw;

/// A connection to the PMI server that launched this process.
#[derive(Debug)]
pub struct PmiConnection {
    /// This task's rank.
    pub rank: u32,
    /// Tasks in the job.
    pub size: u32,
    stream: File,
    /// What has been read and not returned.
    unread: Vec<u8>,
    /// The reply that was returned last.
    reply: Vec<u8>,
}

impl PmiConnection {
    /// Adopts the descriptor in `PMI_FD`, or connects to `PMI_PORT`. Call it once in a process.
    pub fn from_env() -> io::Result<PmiConnection> {
        match std::env::var("PMI_PORT") {
            Ok(address) if std::env::var_os("PMI_FD").is_none() => PmiConnection::call(&address),
            _ => PmiConnection::inherited(),
        }
    }

    fn inherited() -> io::Result<PmiConnection> {
        let fd = number("PMI_FD")?;
        let fd = i32::try_from(fd).map_err(|_| invalid("PMI_FD is out of range"))?;
        let (rank, size) = (number("PMI_RANK")?, number("PMI_SIZE")?);
        Ok(PmiConnection::over(raw::adopt_descriptor(fd)?, rank, size))
    }

    fn call(address: &str) -> io::Result<PmiConnection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut pmi = PmiConnection::over(stream.into(), number("PMI_ID")?, 0);
        pmi.expect(&format!("cmd=initack pmiid={}", pmi.rank), "initack")?;
        pmi.size = pmi.receive_set("size")?;
        pmi.rank = pmi.receive_set("rank")?;
        pmi.receive_set("debug")?;
        Ok(pmi)
    }

    fn over(stream: OwnedFd, rank: u32, size: u32) -> PmiConnection {
        let (stream, unread, reply) = (File::from(stream), Vec::new(), Vec::new());
        PmiConnection { rank, size, stream, unread, reply }
    }

    /// One of the lines behind the answer to `initack`.
    fn receive_set(&mut self, name: &str) -> io::Result<u32> {
        let line = self.receive()?;
        let value = line.strip_prefix("cmd=set ").and_then(|fields| field(fields, name));
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or_else(|| invalid(format!("`{line}` where {name} is to be set")))
    }

    /// Sends `request`, without its line end, and returns the reply's line.
    pub fn ask(&mut self, request: &str) -> io::Result<&str> {
        self.send(&format!("{request}\n"))?;
        self.receive()
    }

    /// Sends bytes as they are, and waits for nothing.
    pub fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())
    }

    /// Sends `request`, and checks that the reply is `cmd=<name>` with no `rc` but 0.
    pub fn expect(&mut self, request: &str, name: &str) -> io::Result<&str> {
        let reply = self.ask(request)?;
        let good =
            field(reply, "cmd") == Some(name) && matches!(field(reply, "rc"), None | Some("0"));
        if good { Ok(reply) } else { Err(invalid(format!("`{request}` got `{reply}`"))) }
    }

    /// Initialises, asks for the limits, and returns the name of the job's key-value space.
    pub fn init(&mut self) -> io::Result<String> {
        self.expect("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        self.expect("cmd=get_maxes", "maxes")?;
        let reply = self.expect("cmd=get_my_kvsname", "my_kvsname")?;
        field(reply, "kvsname").map(str::to_owned).ok_or_else(|| invalid("no kvsname"))
    }

    /// Puts a pair.
    pub fn put(&mut self, kvsname: &str, key: &str, value: &str) -> io::Result<()> {
        let request = format!("cmd=put kvsname={kvsname} key={key} value={value}");
        self.expect(&request, "put_result").map(drop)
    }

    /// Gets the value of a key that must be there.
    pub fn get(&mut self, kvsname: &str, key: &str) -> io::Result<&str> {
        let request = format!("cmd=get kvsname={kvsname} key={key}");
        let reply = self.expect(&request, "get_result")?;
        field(reply, "value").ok_or_else(|| invalid("no value"))
    }

    /// Enters the barrier of the job, and leaves it.
    pub fn barrier(&mut self) -> io::Result<()> {
        self.expect("cmd=barrier_in", "barrier_out").map(drop)
    }

    /// Ends this task's use of PMI.
    pub fn finalize(&mut self) -> io::Result<()> {
        self.expect("cmd=finalize", "finalize_ack").map(drop)
    }

    fn receive(&mut self) -> io::Result<&str> {
        let end = loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            let mut buffer = [0; 4096];
            let bytes = self.stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the PMI server is gone"));
            }
            self.unread.extend_from_slice(&buffer[..bytes]);
        };
        self.reply.clear();
        self.reply.extend(self.unread.drain(..=end));
        self.reply.pop();
        std::str::from_utf8(&self.reply).map_err(|_| invalid("reply is not text"))
    }
}

/// The value of the first field `key` of a line.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
}

fn number(variable: &str) -> io::Result<u32> {
    let value = std::env::var(variable).ok().and_then(|value| value.parse().ok());
    value.ok_or_else(|| invalid(format!("{variable} is not set to a number")))
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}
