//! The client side of PMI-1 and PMI-2 (`reference/pmi1.md`, `reference/pmi2.md`), with one write and one read for each
//! request.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::OwnedFd;

use model::PmiDialect;

use crate::raw;

/// What stands before the body of a frame of PMI-2.
const PREFIX_BYTES: usize = 6;

/// A connection to the PMI server that launched this process.
#[derive(Debug)]
pub struct PmiConnection {
    /// This task's rank.
    pub rank: u32,
    /// Tasks in the job.
    pub size: u32,
    dialect: PmiDialect,
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
        PmiConnection { rank, size, dialect: PmiDialect::One, stream, unread, reply }
    }

    /// One of the lines behind the answer to `initack`.
    fn receive_set(&mut self, name: &str) -> io::Result<u32> {
        let line = self.receive()?;
        let value = line.strip_prefix("cmd=set ").and_then(|fields| field(fields, name));
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or_else(|| invalid(format!("`{line}` where {name} is to be set")))
    }

    /// Sends `request`, without its line end or its length, and returns the reply.
    pub fn ask(&mut self, request: &str) -> io::Result<&str> {
        match self.dialect {
            PmiDialect::One => self.send(&format!("{request}\n"))?,
            PmiDialect::Two => self.send(&format!("{:<PREFIX_BYTES$}{request}", request.len()))?,
        }
        self.receive()
    }

    /// Sends bytes as they are, and waits for nothing.
    pub fn send(&mut self, text: &str) -> io::Result<()> {
        self.send_bytes(text.as_bytes())
    }

    /// The same of bytes that are no text.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Another way to send, for a thread of its own.
    pub fn writer(&self) -> io::Result<File> {
        self.stream.try_clone()
    }

    /// Sends `request`, and checks that the reply is `cmd=<name>` with no `rc` but 0.
    pub fn expect(&mut self, request: &str, name: &str) -> io::Result<&str> {
        let reply = self.ask(request)?;
        let good =
            field(reply, "cmd") == Some(name) && matches!(field(reply, "rc"), None | Some("0"));
        if good { Ok(reply) } else { Err(invalid(format!("`{request}` got `{reply}`"))) }
    }

    /// Initialises in PMI-2, and returns the name of the job.
    pub fn init_pmi2(&mut self) -> io::Result<String> {
        self.expect("cmd=init pmi_version=2 pmi_subversion=0", "response_to_init")?;
        self.dialect = PmiDialect::Two;
        // Slurm's server wants to be told what it has told us, and whether there are threads.
        let job = std::env::var("PMI_JOBID").map(|id| format!("pmijobid={id};"));
        let (job, rank) = (job.unwrap_or_default(), self.rank);
        let full_init = format!("cmd=fullinit;{job}pmirank={rank};threaded=FALSE;");
        self.expect(&full_init, "fullinit-response")?;
        let reply = self.expect("cmd=job-getid;", "job-getid-response")?;
        field(reply, "jobid").map(str::to_owned).ok_or_else(|| invalid("no jobid"))
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
        let (request, reply) = match self.dialect {
            PmiDialect::One => {
                (format!("cmd=put kvsname={kvsname} key={key} value={value}"), "put_result")
            }
            PmiDialect::Two => {
                (format!("cmd=kvs-put;key={key};value={value};"), "kvs-put-response")
            }
        };
        self.expect(&request, reply).map(drop)
    }

    /// Gets the value of a key that must be there.
    pub fn get(&mut self, kvsname: &str, key: &str) -> io::Result<&str> {
        let (request, reply) = match self.dialect {
            PmiDialect::One => (format!("cmd=get kvsname={kvsname} key={key}"), "get_result"),
            PmiDialect::Two => {
                (format!("cmd=kvs-get;jobid={kvsname};srcid=-1;key={key};"), "kvs-get-response")
            }
        };
        let reply = self.expect(&request, reply)?;
        field(reply, "value").ok_or_else(|| invalid("no value"))
    }

    /// Enters the barrier of the job, and leaves it.
    pub fn barrier(&mut self) -> io::Result<()> {
        match self.dialect {
            PmiDialect::One => self.expect("cmd=barrier_in", "barrier_out").map(drop),
            PmiDialect::Two => self.expect("cmd=kvs-fence;", "kvs-fence-response").map(drop),
        }
    }

    /// Ends this task's use of PMI.
    pub fn finalize(&mut self) -> io::Result<()> {
        match self.dialect {
            PmiDialect::One => self.expect("cmd=finalize", "finalize_ack").map(drop),
            PmiDialect::Two => self.expect("cmd=finalize;", "finalize-response").map(drop),
        }
    }

    /// The message at the front of what is unread, if it is whole.
    fn whole(&self) -> io::Result<Option<Whole>> {
        match self.dialect {
            PmiDialect::One => {
                let end = self.unread.iter().position(|byte| *byte == b'\n');
                Ok(end.map(|end| Whole { text: 0..end, end: end + 1 }))
            }
            PmiDialect::Two => {
                let Some(prefix) = self.unread.get(..PREFIX_BYTES) else { return Ok(None) };
                let length =
                    std::str::from_utf8(prefix).ok().and_then(|text| text.trim().parse().ok());
                let length: usize = length.ok_or_else(|| invalid("a frame without its length"))?;
                let end = PREFIX_BYTES + length;
                Ok((self.unread.len() >= end).then_some(Whole { text: PREFIX_BYTES..end, end }))
            }
        }
    }

    /// The next message of the server.
    pub fn receive(&mut self) -> io::Result<&str> {
        let message = loop {
            if let Some(message) = self.whole()? {
                break message;
            }
            let mut buffer = [0; 4096];
            let bytes = self.stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the PMI server is gone"));
            }
            self.unread.extend_from_slice(&buffer[..bytes]);
        };
        self.reply.clear();
        self.reply.extend_from_slice(&self.unread[message.text]);
        self.unread.drain(..message.end);
        std::str::from_utf8(&self.reply).map_err(|_| invalid("reply is not text"))
    }
}

/// Where the text of a message lies, and where the next begins.
struct Whole {
    text: Range<usize>,
    end: usize,
}

/// The value of the first field `key` of a line or a frame.
fn field<'a>(message: &'a str, key: &str) -> Option<&'a str> {
    message.split([' ', ';']).find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
}

fn number(variable: &str) -> io::Result<u32> {
    let value = std::env::var(variable).ok().and_then(|value| value.parse().ok());
    value.ok_or_else(|| invalid(format!("{variable} is not set to a number")))
}

fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}
